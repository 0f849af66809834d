"""Which servers are asked for their lists."""

import json
from pathlib import Path

import pytest
from tests.cli.definitions.conftest import Place

from thoughtgate.cli.definitions.offers import chosen_servers, servers_of_agent
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.errors import UsageError


def test_disabled_servers_are_left_out() -> None:
    servers = {
        name: ServerSettings(name, command="x", enabled=name != "off") for name in ("a", "off", "*")
    }
    settings = Settings(default="deny", servers=servers)
    assert [one.id for one in chosen_servers(settings)] == ["a"]


def test_the_servers_of_an_agent_are_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="is not a known agent"):
        servers_of_agent("nobody")
    entry = {"command": "npx", "args": ["-y", "${NAME}"]}
    (place.root / ".cursor").mkdir()
    (place.root / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"own": entry}}))
    monkeypatch.setenv("HOME", str(place.root))
    monkeypatch.chdir(Path("/"))
    (found,) = servers_of_agent("cursor")
    assert (found.id, found.command) == ("own", "npx")
