"""The wrapped run as a whole: what is said, what is refused, what changes while it goes on."""

import json
import os
import signal
import urllib.request
from pathlib import Path

import pytest
from tests.support.waiting import wait_for
from tests.support.wraps import HOLD, Machine, entry, kind_of, text_of

from thoughtgate.gate.run_file import read_run_file
from thoughtgate.wrap.run import named

DENY_ALL = "schema: 1\ndefault: deny\n"
REMOTE = {
    "url": "https://example.com/mcp",
    "headersHelper": "print-headers",
    "headers": {"Authorization": "Bearer hush"},
}
"""A kind of remote server that only the agent can reach."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _run_files(machine: Machine) -> list[Path]:
    return sorted((machine.state / "runs").glob("*.json"))


def test_servers_are_counted_and_named() -> None:
    told = [named(servers) for servers in ([], ["files"], ["files", "search"])]
    assert told == ["0 servers", "1 server: files", "2 servers: files, search"]


@pytest.mark.requirement("IMP-002")
def test_the_banner_and_the_summary_say_what_matters(machine: Machine) -> None:
    machine.write_config({"one": entry(), "two": entry()})
    with machine.wrap() as run:
        run.open()
        run.call("echo", {"text": "x"}, server="one")
        assert run.finish() == 0

    said = run.stderr
    assert "agent     python" in said
    assert "configured 2 servers: one, two" in said
    assert "governed  2 servers: one, two" in said
    assert f"policy    {machine.policy} (THOUGHTGATE_CONFIG), production" in said
    assert "1 call, 0 refused, 0 held for approval" in said
    assert f"record    {machine.record}" in said
    assert machine.events("tool_call_end")[0]["call"]["tool_name"] == "echo"


def test_the_token_is_in_the_private_run_file_and_nowhere_else(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        (place,) = _run_files(machine)
        token = read_run_file(str(place)).token
        assert place.stat().st_mode & 0o777 == 0o600
        assert place.parent.stat().st_mode & 0o777 == 0o700
        for pid in [run.peer.pid, *run.peer.descendants()]:
            for name in ("cmdline", "environ"):
                assert token.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
        assert token not in run.order("text")["said"]
        seen = text_of(run.call("env"))
        assert token not in seen
        assert "THOUGHTGATE" not in seen
        assert run.finish() == 0
    assert token not in machine.record.read_text("utf-8")
    assert token not in run.stderr
    assert _run_files(machine) == []


def test_metrics_of_the_shims_arrive_at_the_service(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        run.call("echo", {"text": "x"})
        service = read_run_file(str(_run_files(machine)[0]))
        request = urllib.request.Request(
            f"http://127.0.0.1:{service.port}/metrics",
            headers={"Authorization": f"Bearer {service.token}"},
        )

        def metrics() -> str:
            with urllib.request.urlopen(request, timeout=10) as answer:
                text: str = answer.read().decode()
            return text

        wait_for(lambda: 'server_id="sample"' in metrics(), what="the shim's metrics")
        text = metrics()
        assert "thoughtgate_stdio_messages_total{" in text
        assert "thoughtgate_stdio_governance_decisions_total{" in text
        assert "thoughtgate_stdio_active_servers 1.0" in text
        assert run.finish() == 0


@pytest.mark.parametrize("how", ["hangup", "file"])
def test_a_changed_policy_is_in_force_while_the_run_goes_on(machine: Machine, how: str) -> None:
    machine.write_sample()
    if how == "hangup":
        machine.policy.write_text("schema: 1\ndefault: forward\nreload: false\n", "utf-8")
    with machine.wrap() as run:
        run.open()
        assert text_of(run.call("echo", {"text": "1"})) == "1"
        machine.policy.write_text(DENY_ALL, "utf-8")
        if how == "hangup":
            run.signal(signal.SIGHUP)
        machine.wait_for_event("policy_changed")
        assert kind_of(run.call("echo", {"text": "2"})) == "governance_denied"

        machine.policy.write_text("schema: 1\ndefault: nonsense\n", "utf-8")
        run.peer.wait_for_stderr("the old rules stay in force")
        assert kind_of(run.call("echo", {"text": "3"})) == "governance_denied"
        assert run.finish() == 0
    assert [one["policy"]["loaded"] for one in machine.events("policy_changed")] == [True, False]


def test_a_remote_server_is_named_as_not_governed(machine: Machine) -> None:
    original = machine.write_config({"sample": entry(), "far": REMOTE})

    done = machine.wrap_once()

    assert done.returncode == 0
    assert "NOT GOVERNED: far" in done.stderr
    assert "hush" not in done.stderr
    assert machine.config.read_bytes() == original


def test_strict_refuses_to_start_when_something_stays_outside(machine: Machine) -> None:
    original = machine.write_config({"sample": entry(), "far": REMOTE})

    done = machine.wrap_once("--strict", agent=["touch", str(machine.top / "ran")])

    assert done.returncode == 2
    assert "NOT GOVERNED: far" in done.stderr
    assert "--strict" in done.stderr
    assert machine.config.read_bytes() == original
    assert not (machine.top / "ran").exists()


def test_strict_counts_servers_that_no_file_holds(machine: Machine) -> None:
    machine.write_config({"sample": entry()}, path=machine.home / ".claude.json")
    text = json.dumps({"mcpServers": {"inline": {"command": "x"}}})
    agent = machine.top / "claude"
    agent.write_text("#!/bin/sh\n", "utf-8")
    agent.chmod(0o755)

    done = machine.run("wrap", "--strict", "--rewrite", "--", str(agent), "--mcp-config", text)

    assert done.returncode == 2
    assert "NOT GOVERNED: --mcp-config" in done.stderr


def test_a_config_with_nothing_but_remote_servers_is_refused(machine: Machine) -> None:
    machine.write_config({"far": REMOTE})

    done = machine.wrap_once(agent=["touch", str(machine.top / "ran")])

    assert done.returncode == 1
    assert str(machine.config) in done.stderr
    assert not (machine.top / "ran").exists()


def test_a_bad_config_of_ours_stops_the_wrap_before_anything_is_touched(machine: Machine) -> None:
    original = machine.write_sample()
    machine.policy.write_text("schema: 1\n", "utf-8")

    done = machine.wrap_once(agent=["touch", str(machine.top / "ran")])

    assert done.returncode == 1
    assert f"{machine.policy}" in done.stderr
    assert machine.config.read_bytes() == original
    assert not (machine.top / "ran").exists()


def test_a_killed_agent_does_not_delay_the_end(tmp_path: Path) -> None:
    machine = Machine(tmp_path, HOLD)
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        for pid in run.shims.values():
            os.kill(pid, signal.SIGKILL)
        os.kill(run.agent_pid, signal.SIGKILL)
        assert run.wait(8.0) == 128 + signal.SIGKILL
        run.assert_nothing_left()


def test_a_foreign_edit_during_the_run_is_kept(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        text = run.order("text")["said"].replace('{\n  "mcp', '{\n  "theme": "dark",\n  "mcp', 1)
        run.order("write", text=text)
        assert run.finish() == 0

    assert json.loads(machine.config.read_text("utf-8")) == {
        "theme": "dark",
        "mcpServers": {"sample": entry()},
    }
