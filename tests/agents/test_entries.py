"""The records of what is found."""

from pathlib import Path

from thoughtgate.agents.entries import Layer, ServerEntry, UngovernedServer


def test_an_entry_knows_its_place_in_the_file() -> None:
    layer = Layer(Path("a.json"), Path("/a.json"), "local", ("projects", "/srv", "mcpServers"))
    entry = ServerEntry("files", layer, "governed")
    assert entry.path == ("projects", "/srv", "mcpServers", "files")


def test_what_is_outside_says_where_and_why() -> None:
    assert str(UngovernedServer("plugin.json", "servers of a plugin")) == (
        "plugin.json: servers of a plugin"
    )
