"""Servers: their state at the gates, what they offer, what has changed, and commands to them."""

import json
import time
from pathlib import Path
from typing import Any

from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, LocalConsole, write_events
from tests.support.hub import sample, serving
from tests.support.waiting import wait_for
from tests.web.conftest import Gate

from thoughtgate.core.definitions.pinned import Definition
from thoughtgate.core.record_events import TOOLS_LIST, Record
from thoughtgate.stores.pins import ACCEPTED, FIRST_SEEN, HELD, Pin

SERVER = "/servers/server?name=files"


def listed(at: float, entries: dict[str, str], hidden: list[str]) -> Record:
    body = {
        "method": "tools/list",
        "offered": len(entries),
        "returned": 1,
        "hidden": hidden,
        "entries": entries,
    }
    return Record(TOOLS_LIST, at, "files", "1", {"list": body})


def pin(status: str, text: str, by: str = "") -> Pin:
    made = Definition("tool", "read", text, f"digest of {text}")
    return Pin("files#1", "tool", "read", made.digest, status, text, (), 0.0, by)


def test_hidden_and_changed_tools_are_marked(client: Client, tmp_path: Path) -> None:
    write_events(
        tmp_path,
        listed(1.0, {"read": "aa", "drop": "bb"}, ["drop"]),
        listed(2.0, {"read": "cc", "drop": "bb"}, ["drop"]),
        Record("server_started", 1.0, "files", "1", {"server": {"pid": 1}}),
    )
    assert "1 changed" in client.get("/servers").text
    text = client.get(SERVER).text
    assert text.count('class="chip bad">changed') == 1
    assert text.count('class="chip dull">hidden') == 1


def test_a_server_that_only_the_record_says_to_run_is_not_running(
    client: Client, tmp_path: Path
) -> None:
    write_events(tmp_path, Record("server_started", 1.0, "files", "1", {"server": {"pid": 1}}))

    assert '<span class="chip dull">not running</span>' in client.get("/servers").text
    assert "No gate on this machine is using this server now" in client.get(SERVER).text


def test_calls_of_a_server_and_its_tools_are_counted(client: Client, tmp_path: Path) -> None:
    now = time.time()
    write_events(tmp_path, *(event._replace(at=now) for event in sample_events()))
    text = client.get("/servers").text
    name = next(event.server for event in sample_events() if event.server)

    assert f"/calls?server={name}&amp;since=" in text
    assert f"server={name}&amp;tool=" in client.get(f"/servers/server?name={name}").text


def test_a_changed_definition_is_shown_with_its_difference(client: Client, gate: Gate) -> None:
    pins = gate.store.pins()
    pins.add("files#1", [pin(ACCEPTED, '{"description":"Reads a file."}', FIRST_SEEN)], (), 1.0)
    pins.add("files#1", [pin(HELD, '{"description":"Sends a file."}')], (), 2.0)

    assert '<span class="chip bad">changed</span>' in client.get("/servers").text
    text = client.get("/servers/tool?server=files&kind=tool&name=read").text
    assert "Nobody has accepted this definition" in text
    assert "[-Reads-] {+Sends+} a file." in text
    assert "first seen" in text


def test_a_server_is_started_and_stopped_through_its_gate(tmp_path: Path) -> None:
    servers: dict[str, Any] = {"one": sample(), "bad": {"command": "/nonexistent", "eager": True}}
    with serving(tmp_path, servers) as hub:
        hub.open()
        hub.names()
        with LocalConsole(hub.state) as console:
            client = console.client()
            # A start that is tried again shows as one for a moment.
            failed = '<span class="chip bad">failed</span> <small>start_failed'
            wait_for(lambda: failed in client.get("/servers").text, what="the failed server")
            assert '<span class="chip good">running</span>' in client.get("/servers").text
            page = client.get("/servers/server?name=one")
            fields = {
                "token": page.token("/servers/control"),
                "gate": str(hub.pid),
                "server": "one",
            }
            console.console.context.find_agent_reason = str
            assert client.post("/servers/control", {**fields, "token": "x"}).status == 403
            other = {**fields, "server": "bad", "action": "start"}
            assert client.post("/servers/control", other).status == 403, "a token is for one server"
            console.console.context.find_agent_reason = lambda: (
                "a governed agent started this process"
            )
            refused = client.post("/servers/control", {**fields, "action": "stop"})
            assert refused.status == 403
            assert "a governed agent started this process" in refused.text
            console.console.context.find_agent_reason = str
            answer = client.post("/servers/control", {**fields, "action": "stop"})
            assert answer.status == 303
            page = client.get(answer.headers["location"])
            assert "told to stop" in page.text
            assert '<span class="chip dull">stopped</span>' in page.text
            fields["token"] = page.token("/servers/control")
            assert client.post("/servers/control", {**fields, "action": "eat"}).status == 400


def test_what_is_not_known_is_not_found(client: Client) -> None:
    assert client.get("/servers/server?name=absent").status == 404
    assert client.get("/servers/tool?server=a&name=b").status == 404


def test_without_servers_the_page_says_so(client: Client) -> None:
    assert "contains no servers yet" in client.get("/servers").text


def test_servers_of_agents_without_the_gate_are_listed(client: Client) -> None:
    assert "Not governed" not in client.get("/servers").text
    config = Path.home() / ".cursor" / "mcp.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps({"mcpServers": {"<b>": {"command": "cat"}}}), "utf-8")

    text = client.get("/servers").text
    listed = text.partition('id="not-governed"')[2]
    assert "<b>&lt;b&gt;</b>" in listed
    assert "Cursor" in listed
    assert str(config) in listed
