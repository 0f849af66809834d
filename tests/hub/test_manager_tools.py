"""The hub's own tools, judged like any other."""

import json
import time
from pathlib import Path

import pytest
from tests.support.frames import call
from tests.support.hub import modern, sample, serving, write_config
from tests.support.policy_changes import decide_change
from tests.support.waiting import wait_for

from thoughtgate.hub.manager_tools import ENTRIES

NAMES = [f"thoughtgate.{entry['name']}" for entry in ENTRIES]


@pytest.mark.requirement("S002-34", "S002-35", "S002-36", "S002-37", "S002-42")
def test_servers_are_listed_started_stopped_and_restarted(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--tools", "echo")}) as hub:
        hub.open()
        listed = json.loads(hub.text(1, "thoughtgate.servers_list"))
        started = hub.text(2, "thoughtgate.servers_start", {"server_id": "one"})
        pid = hub.server("one", 3)["pid"]
        restarted = hub.text(4, "thoughtgate.servers_restart", {"server_id": "one"})
        other = hub.server("one", 5)["pid"]
        stopped = hub.text(6, "thoughtgate.servers_stop", {"server_id": "one"})

        assert [one["id"] for one in listed] == ["one"]
        assert listed[0]["status"] == "stopped"
        assert str(pid) in started
        assert "restarted" in restarted
        assert other != pid
        assert stopped == "one is stopped"
        assert hub.server("one", 7)["status"] == "halted"
        assert hub.names(8) == []
        assert hub.kind(9, "one.echo", {"text": "x"}) == "server_not_running"
        hub.text(10, "thoughtgate.servers_start", {"server_id": "one"})
        assert hub.names(11) == ["one.echo"]


@pytest.mark.requirement("S002-38")
def test_the_last_lines_of_a_log_are_returned(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--stderr", "first line\nsecond line")}) as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "x"})
        told = hub.text(2, "thoughtgate.server_logs", {"server_id": "one"})
        last = hub.text(3, "thoughtgate.server_logs", {"server_id": "one", "lines": 1})
        wrong = hub.kind(4, "thoughtgate.server_logs", {"server_id": "one", "lines": -1})

    assert told == "first line\nsecond line"
    assert last == "second line"
    assert wrong == "invalid_params"


@pytest.mark.requirement("S002-40")
def test_namespaces_are_listed_with_the_active_one(tmp_path: Path) -> None:
    spaces = {"work": ["one"], "home": []}
    with serving(tmp_path, {"one": sample()}, namespaces=spaces, default_namespace="work") as hub:
        hub.open()
        told = json.loads(hub.text(1, "thoughtgate.namespaces_list"))

    assert told["active"] == "work"
    assert told["selection"] == "default"
    assert told["namespaces"] == [{"id": "work", "servers": ["one"]}, {"id": "home", "servers": []}]


@pytest.mark.requirement("S002-39")
def test_the_config_is_read_again_on_demand(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--tools", "echo")}, reload=False) as hub:
        hub.open()
        hub.names(1)
        pid = hub.server("one", 2)["pid"]
        write_config(
            hub.config,
            {"one": sample("--tools", "echo"), "two": sample("--tools", "add")},
            reload=False,
        )
        told = hub.text(3, "thoughtgate.config_reload")

        assert "a person must accept it" in told
        assert hub.names(4) == ["one.echo"]
        decide_change(hub.state)
        wait_for(lambda: hub.names(time.monotonic_ns()) == ["one.echo", "two.add"])
        assert hub.server("one", 5)["pid"] == pid
        hub.config.write_text("servers: [this is wrong")
        wrong = hub.ask(call(6, "thoughtgate.config_reload"))["result"]
        assert wrong["isError"] is True
        assert "nothing was changed" in wrong["content"][0]["text"]
        assert hub.names(7) == ["one.echo", "two.add"]


@pytest.mark.promise("no-silent-loosening")
def test_an_agent_cannot_loosen_the_policy_by_reloading_it(tmp_path: Path) -> None:
    servers = {"one": sample("--tools", "echo")}
    denied = [{"tool": "echo", "action": "deny"}]
    with serving(tmp_path, servers, rules=denied, reload=False) as hub:
        hub.open()
        write_config(hub.config, servers, reload="auto")
        told = hub.text(1, "thoughtgate.config_reload")
        again = hub.text(2, "thoughtgate.config_reload")

        assert "a person must accept it" in told
        assert "a person must accept it" in again
        assert hub.kind(3, "one.echo", {"text": "x"}) == "governance_denied"
        decide_change(hub.state, approve=False)
        wait_for(lambda: "refused" in hub.stderr)
        assert "refused" in hub.text(4, "thoughtgate.config_reload")
        assert hub.kind(5, "one.echo", {"text": "x"}) == "governance_denied"


def test_an_unknown_server_is_named_in_the_answer(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        answer = hub.ask(call(1, "thoughtgate.servers_start", {"server_id": "nope"}))
        missing = hub.kind(2, "thoughtgate.servers_start", {})
        unknown = hub.kind(3, "thoughtgate.servers_destroy", {})

    assert answer["result"]["isError"] is True
    assert "there are: one" in answer["result"]["content"][0]["text"]
    assert missing == "invalid_params"
    assert unknown == "not_exposed"


def test_they_can_be_switched_off_and_are_then_not_callable(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--tools", "echo")}, manager_tools=False) as hub:
        hub.open()

        assert [tool["name"] for tool in hub.tools(1)] == ["one.echo"]
        assert hub.kind(2, "thoughtgate.servers_list") == "not_exposed"


def test_they_are_judged_and_recorded_like_any_tool(tmp_path: Path) -> None:
    rules = [{"tool": "servers_stop", "server": "thoughtgate", "action": "deny"}]
    with serving(tmp_path, {"one": sample()}, rules=rules) as hub:
        hub.open()
        denied = hub.kind(1, "thoughtgate.servers_stop", {"server_id": "one"})
        hub.text(2, "thoughtgate.servers_list")
        decisions = [one for one in hub.records() if one["type"] == "tool_call_decision"]

    assert denied == "governance_denied"
    assert [(one["call"]["server_name"], one["decision"]["action"]) for one in decisions] == [
        ("thoughtgate", "BLOCK"),
        ("thoughtgate", "ALLOW"),
    ]


def test_a_modern_client_uses_them_too(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        names = [tool["name"] for tool in hub.ask(modern(1, "tools/list"))["result"]["tools"]]
        answer = hub.ask(
            modern(2, "tools/call", {"name": "thoughtgate.servers_list", "arguments": {}})
        )

        wait_for(lambda: set(NAMES) <= set(names))
        assert answer["result"]["resultType"] == "complete"


@pytest.mark.parametrize(
    "tool", ["servers_start", "servers_stop", "servers_restart", "server_logs"]
)
def test_a_server_of_another_namespace_is_not_the_agents_to_touch(
    tmp_path: Path, tool: str
) -> None:
    servers = {"one": sample(), "two": sample()}
    spaces = {"work": ["one"], "home": ["two"]}
    with serving(tmp_path, servers, namespaces=spaces, default_namespace="work") as hub:
        hub.open()
        told = hub.ask(call(1, f"thoughtgate.{tool}", {"server_id": "two"}))
        status = hub.server("two", 2)["status"]

    assert told["result"]["isError"] is True
    assert status == "stopped"
