"""Servers that are added during a run, and config files that are deleted."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.commands import thoughtgate
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, WrappedAgent, entry, text_of

REMOTE = {"url": "https://example.com/mcp", "headersHelper": "print-headers"}
"""A server that only the agent can reach."""


def _add(path: Path, name: str, server: Mapping[str, object]) -> str:
    """Add a server as a person does, before all others, and return the line."""
    line = f'\n    "{name}": {json.dumps(server)},'
    text = path.read_text("utf-8")
    path.write_text(text.replace('"mcpServers": {', '"mcpServers": {' + line, 1), "utf-8")
    return line


def _with_line(original: bytes, line: str) -> bytes:
    return original.replace(b'"mcpServers": {', b'"mcpServers": {' + line.encode(), 1)


def test_an_added_server_is_governed_and_restored_as_it_was_written(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        line = _add(machine.config, "late", entry(env={"LD_X": "1", "KEPT": "2"}))
        run.peer.wait_for_stderr("added     late in")
        changed = machine.wait_for_event("config_changed")
        run.order("open")
        assert text_of(run.call("echo", {"text": "x"}, server="late")) == "x"
        seen = json.loads(text_of(run.call("env", server="late")))
        assert (seen["LD_X"], seen["KEPT"]) == ("1", "2")
        assert text_of(run.call("echo", {"text": "y"})) == "y"
        assert run.finish() == 0

    assert machine.config.read_bytes() == _with_line(original, line)
    assert machine.left_in(machine.project) == []
    assert "governed  2 servers: late, sample" in run.stderr
    assert "NOT GOVERNED" not in run.stderr
    assert changed["server_name"] == "late"
    assert changed["config"]["governed"] is True
    machine.assert_record_is_sound()


def test_a_wrapped_entry_that_somebody_unwraps_is_wrapped_again(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        machine.config.write_bytes(original)
        run.peer.wait_for_stderr("added     sample in")
        run.order("open")
        assert text_of(run.call("echo", {"text": "x"})) == "x"
        assert run.finish() == 0
    assert machine.config.read_bytes() == original
    assert "governed  1 server: sample" in run.stderr


@pytest.mark.promise("repository-servers")
def test_an_added_program_that_is_called_like_ours_is_named(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        words = ["shim", "--server-id", "x", "--run", "/repo/run.json", "--", "server"]
        _add(machine.config, "fake", {"command": "/repo/thoughtgate", "args": words})
        run.peer.wait_for_stderr("NOT GOVERNED: fake in")
        run.finish()


def test_a_server_that_cannot_be_governed_is_named_at_once_and_at_the_end(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.open()
        line = _add(machine.config, "far", REMOTE)
        run.peer.wait_for_stderr("NOT GOVERNED: far in")
        (gate,) = json.loads(machine.run("status", "--json").stdout)["gates"]
        states = {one["id"]: one["status"] for one in gate["servers"]}
        assert states["far"] == "not governed"
        assert run.finish() == 0
    assert machine.config.read_bytes() == _with_line(original, line)
    assert "NOT GOVERNED during the run: far" in run.stderr
    assert machine.events("config_changed")[0]["config"]["change"] == "server_not_governed"


def test_a_server_in_a_file_that_is_new_is_governed(machine: Machine) -> None:
    user = machine.home / ".cursor" / "mcp.json"
    original = machine.write_config({"sample": entry()}, path=user)
    late = machine.project / ".cursor" / "mcp.json"
    agent = machine.agent(config=late)
    told = ["wrap", "--agent-type", "cursor", "--", *agent]
    with WrappedAgent(machine, thoughtgate(*told)) as run:
        run.wait_until_ready()
        written = machine.write_config({"project": entry(), "off": entry(disabled=True)}, path=late)
        run.peer.wait_for_stderr("added     project in")
        run.order("open")
        assert text_of(run.call("echo", {"text": "x"}, server="project")) == "x"
        run.signal(signal.SIGTERM)
        run.wait()
    assert (user.read_bytes(), late.read_bytes()) == (original, written)
    assert machine.left_in(late.parent) == []


def test_a_killed_wrap_restores_what_was_added_too(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        line = _add(machine.config, "late", entry())
        run.peer.wait_for_stderr("added     late in")
        run.signal(signal.SIGKILL)
        run.wait()
        wait_for(
            lambda: machine.config.read_bytes() == _with_line(original, line),
            what="the restored config",
        )


def test_a_deleted_config_stays_deleted_and_is_named(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        machine.config.unlink()
        run.peer.wait_for_stderr("it stays deleted unless somebody writes it again")
        assert run.finish() == 0
    assert not machine.config.exists()
    assert "was removed while it was wrapped; its backup is" in run.stderr
    assert machine.events("config_changed")[0]["config"]["change"] == "file_removed"


def test_a_config_that_is_deleted_and_written_again_is_governed(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        machine.config.unlink()
        run.peer.wait_for_stderr("it stays deleted unless somebody writes it again")
        machine.config.write_bytes(original)
        run.peer.wait_for_stderr("added     sample in")
        assert run.finish() == 0
    assert machine.config.read_bytes() == original


def test_a_run_that_injects_names_what_is_added(machine: Machine) -> None:
    state = machine.home / ".claude.json"
    machine.write_config({"sample": entry()}, path=state)
    agent = machine.top / "claude"
    agent.write_text("#!/bin/sh\necho '{\"ready\": 1}'\nread line\n", "utf-8")
    agent.chmod(0o755)
    with WrappedAgent(machine, thoughtgate("wrap", "--", str(agent))) as run:
        run.wait_until_ready()
        line = _add(state, "late", entry())
        run.peer.wait_for_stderr("NOT GOVERNED: late in")
        assert run.finish() in (0, 1)
    assert line in state.read_text("utf-8")
    assert "this run does not govern it, the next start does" in run.stderr
