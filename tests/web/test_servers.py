"""Servers: what they offer, what is hidden, what has changed."""

from pathlib import Path

from tests.support.consoles import Client, write_events

from thoughtgate.core.record_events import TOOLS_LIST, Record


def listed(at: float, entries: dict[str, str], hidden: list[str]) -> Record:
    body = {
        "method": "tools/list",
        "offered": len(entries),
        "returned": 1,
        "hidden": hidden,
        "entries": entries,
    }
    return Record(TOOLS_LIST, at, "files", "1", {"list": body})


def test_hidden_and_changed_tools_are_marked(client: Client, tmp_path: Path) -> None:
    write_events(
        tmp_path,
        listed(1.0, {"read": "aa", "drop": "bb"}, ["drop"]),
        listed(2.0, {"read": "cc", "drop": "bb"}, ["drop"]),
        Record("server_started", 1.0, "files", "1", {"server": {"pid": 1}}),
    )
    text = client.get("/servers").text

    assert "<b>1 changed</b>" in text
    assert text.count('class="chip bad">changed') == 1
    assert text.count('class="chip dull">hidden') == 1
    assert "running" in text


def test_without_servers_the_page_says_so(client: Client) -> None:
    assert "contains no servers yet" in client.get("/servers").text
