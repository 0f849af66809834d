"""Agents that are given their servers at their start: nothing of theirs is touched."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.support.commands import sample_server
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, entry, kind_of, text_of

KINDS = ("claude", "codex", "opencode")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _set_up(machine: Machine, kind: str) -> Path:
    """Write the config of an agent with the sample server; return the file."""
    sample = entry()
    if kind == "claude":
        path = machine.home / ".claude.json"
        machine.write_config({"sample": sample}, path=path)
    elif kind == "codex":
        path = machine.home / ".codex" / "config.toml"
        path.parent.mkdir()
        args = json.dumps(sample["args"])
        text = f'[mcp_servers.sample]\ncommand = "{sample["command"]}"\nargs = {args}\n'
        path.write_text(text, "utf-8")
    else:
        path = machine.project / "opencode.json"
        one = {"type": "local", "command": sample_server()}
        path.write_text(json.dumps({"mcp": {"sample": one}}), "utf-8")
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_two_runs_in_one_directory_go_on_at_once_and_change_no_file(
    machine: Machine, kind: str
) -> None:
    path = _set_up(machine, kind)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    with machine.wrap_stand_in(kind, "hi") as one, machine.wrap_stand_in(kind, "hi") as two:
        for run in (one, two):
            run.open()
            assert text_of(run.call("echo", {"text": kind})) == kind
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before
        assert machine.left_in(path.parent) == []
        assert len(list((machine.state / "runs").glob("*.json"))) == 2
        assert one.finish() == two.finish() == 0

    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [one["call"]["tool_name"] for one in machine.events("tool_call_end")] == ["echo"] * 2
    assert len(machine.events("run_end")) == 2
    assert list(machine.state.glob("runs/*")) == list(machine.state.glob("injected/*")) == []
    assert "no file changed" in one.stderr + two.stderr
    machine.assert_record_is_sound()


def test_a_command_line_is_the_same_in_the_next_run(machine: Machine) -> None:
    _set_up(machine, "claude")
    seen = []
    for _ in range(2):
        with machine.wrap_stand_in("claude") as run:
            run.wait_until_ready()
            seen.append((run.order("words"), run.order("servers")))
            assert run.finish() == 0
    assert seen[0] == seen[1]


def test_each_run_has_a_policy_of_its_own(machine: Machine) -> None:
    _set_up(machine, "claude")
    strict = machine.top / "strict.yaml"
    strict.write_text("schema: 1\ndefault: deny\n", "utf-8")
    with (
        machine.wrap_stand_in("claude") as free,
        machine.wrap_stand_in("claude", flags=["-c", str(strict)]) as held,
    ):
        free.open()
        held.open()
        assert text_of(free.call("echo", {"text": "1"})) == "1"
        assert kind_of(held.call("echo", {"text": "2"})) == "governance_denied"
        assert free.finish() == held.finish() == 0


def test_a_killed_run_leaves_no_private_file(machine: Machine) -> None:
    _set_up(machine, "claude")
    with machine.wrap_stand_in("claude") as run:
        run.open()
        assert len(list(machine.state.glob("injected/*/mcp.json"))) == 1
        os.kill(run.peer.pid, signal.SIGKILL)
        run.wait()
        wait_for(lambda: not list(machine.state.glob("injected/*")), what="the guardian")
        wait_for(lambda: not list(machine.state.glob("runs/*.json")), what="the guardian")
        run.assert_nothing_left()


def test_a_server_that_is_not_approved_is_named_and_does_not_run(machine: Machine) -> None:
    _set_up(machine, "claude")
    machine.write_config({"proj": entry()}, path=machine.project / ".mcp.json")
    with machine.wrap_stand_in("claude") as run:
        run.open()
        assert set(run.shims) == {"sample"}
        assert run.finish() == 0
    assert "LEFT OUT: proj (a project server that you have not approved" in run.stderr

    done = machine.run("wrap", "--strict", "--", str(machine.stand_in("claude")))
    assert done.returncode == 2
    assert "LEFT OUT: proj" in done.stderr


def test_without_any_approved_server_the_agent_runs_with_none(machine: Machine) -> None:
    machine.write_config({"proj": entry()}, path=machine.project / ".mcp.json")
    with machine.wrap_stand_in("claude") as run:
        run.open()
        assert run.shims == {}
        assert run.finish() == 0
    assert "LEFT OUT: proj" in run.stderr


def test_a_subcommand_has_the_files_rewritten_and_the_user_may_ask_for_it(
    machine: Machine,
) -> None:
    path = _set_up(machine, "claude")
    original = path.read_bytes()
    for words, flags in ((("mcp", "list"), ()), ((), ("--rewrite",))):
        with machine.wrap_stand_in("claude", *words, flags=flags) as run:
            run.open()
            assert run.order("words")["said"] == list(words)
            assert path.read_bytes() != original
            assert text_of(run.call("echo", {"text": "x"})) == "x"
            assert run.finish() == 0
        assert path.read_bytes() == original


def test_entries_that_another_wrap_has_rewritten_are_given_as_they_were(machine: Machine) -> None:
    path = _set_up(machine, "claude")
    with machine.wrap_stand_in("claude", flags=["--rewrite"]) as first:
        first.open()
        written = path.read_bytes()
        with machine.wrap_stand_in("claude") as second:
            second.open()
            assert text_of(second.call("echo", {"text": "2"})) == "2"
            assert second.finish() == 0
        assert path.read_bytes() == written
        assert text_of(first.call("echo", {"text": "1"})) == "1"
        assert first.finish() == 0
    ends = {one["call"]["tool_name"]: one["run_id"] for one in machine.events("tool_call_end")}
    assert len(ends) == 1
    assert len({one["run_id"] for one in machine.events("tool_call_end")}) == 2
