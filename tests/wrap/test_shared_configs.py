"""Two wraps of one config at once: each has its own run, and the last to end restores the file."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, WrappedAgent, entry, kind_of, text_of

DENY_ECHO = "schema: 1\ndefault: forward\nrules:\n  - {tool: echo, action: deny}\n"


@pytest.fixture
def pair(machine: Machine) -> Iterator[tuple[bytes, WrappedAgent, WrappedAgent]]:
    """Two running wraps of one config, and what the config contained before."""
    original = machine.write_sample()
    with machine.wrap() as first:
        first.open()
        with machine.wrap() as second:
            second.open()
            yield original, first, second


def _assert_clean(machine: Machine, original: bytes) -> None:
    wait_for(lambda: machine.config.read_bytes() == original, what="the config to come back")
    wait_for(lambda: not machine.left_in(machine.project), what="a clean directory")
    wait_for(lambda: not list((machine.state / "wraps").glob("*.json")), what="no journal")
    seen = machine.run("doctor")
    assert seen.returncode == 0, seen.stdout
    machine.assert_record_is_sound()


@pytest.mark.parametrize("first_ends", ["first", "second"])
def test_each_wrap_governs_its_own_agent_and_the_last_restores(
    machine: Machine, pair: tuple[bytes, WrappedAgent, WrappedAgent], first_ends: str
) -> None:
    original, first, second = pair
    assert text_of(first.call("echo", {"text": "1"})) == "1"
    assert text_of(second.call("echo", {"text": "2"})) == "2"
    during = machine.config.read_bytes()
    gates = json.loads(machine.run("status", "--json").stdout)["gates"]
    assert {gate["pid"] for gate in gates} == {first.peer.pid, second.peer.pid}
    assert [one["status"] for gate in gates for one in gate["servers"]] == ["governed"] * 2
    assert machine.run("doctor").returncode == 0
    assert machine.run("unwrap").returncode == 0  # restores nothing that is in use
    assert machine.run("unwrap", "--config-path", str(machine.config)).returncode != 0

    ends, stays = (first, second) if first_ends == "first" else (second, first)
    assert ends.finish() == 0
    assert machine.config.read_bytes() == during
    assert text_of(stays.call("echo", {"text": "3"})) == "3"
    stays.order("open")  # its servers still find their gate
    assert text_of(stays.call("echo", {"text": "4"})) == "4"
    assert machine.run("doctor").returncode == 0
    assert stays.finish() == 0

    _assert_clean(machine, original)
    runs = [one["run_id"] for one in machine.events("tool_call_end")]
    assert (len(runs), len(set(runs))) == (4, 2)


@pytest.mark.parametrize("order", ["first-second", "second-first"])
def test_kills_in_any_order_leave_the_file_as_it_was(
    machine: Machine, pair: tuple[bytes, WrappedAgent, WrappedAgent], order: str
) -> None:
    original, first, second = pair
    during = machine.config.read_bytes()
    dies, stays = (first, second) if order == "first-second" else (second, first)
    os.kill(dies.peer.pid, signal.SIGKILL)
    dies.wait()
    dies.assert_nothing_left()
    wait_for(
        lambda: len(list((machine.state / "wraps").glob("*.json"))) == 1, what="one journal left"
    )
    assert machine.config.read_bytes() == during
    stays.order("open")
    assert text_of(stays.call("echo", {"text": "on"})) == "on"

    os.kill(stays.peer.pid, signal.SIGKILL)
    stays.wait()
    stays.assert_nothing_left()
    _assert_clean(machine, original)


def test_a_kill_and_an_end_leave_the_file_as_it_was(
    machine: Machine, pair: tuple[bytes, WrappedAgent, WrappedAgent]
) -> None:
    original, first, second = pair
    os.kill(first.peer.pid, signal.SIGKILL)
    first.wait()
    with machine.wrap() as third:  # takes the name of the one that was killed
        third.open()
        assert text_of(third.call("echo", {"text": "3"})) == "3"
        assert second.finish() == 0
        assert machine.config.read_bytes() != original
        assert third.finish() == 0
    _assert_clean(machine, original)


def test_each_wrap_has_its_own_policy(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as first:
        first.open()
        machine.policy = machine.top / "strict.yaml"
        machine.policy.write_text(DENY_ECHO, "utf-8")
        with machine.wrap() as second:
            second.open()
            assert kind_of(second.call("echo", {"text": "x"})) == "governance_denied"
            assert text_of(first.call("echo", {"text": "x"})) == "x"
            assert first.finish() == 0
            second.order("open")
            assert kind_of(second.call("echo", {"text": "x"})) == "governance_denied"
            assert second.finish() == 0
    assert machine.config.read_bytes() == original


def test_wraps_that_start_together_do_not_disturb_each_other(machine: Machine) -> None:
    original = machine.write_sample()
    with ExitStack() as stack:
        runs = [stack.enter_context(machine.wrap()) for _ in range(4)]
        for number, run in enumerate(runs):
            run.open()
            assert text_of(run.call("echo", {"text": str(number)})) == str(number)
        for run in runs:
            run.peer.close_stdin()
        for run in runs:
            assert run.wait() == 0
    _assert_clean(machine, original)


def test_variables_that_go_to_the_server_alone_are_those_of_each_wrap(machine: Machine) -> None:
    original = machine.write_sample(env={"PYTHONPATH": "/one"})
    with machine.wrap() as first:
        first.open()
        with machine.wrap() as second:
            second.open()
            assert first.finish() == 0
            second.order("open")
            assert "/one" in text_of(second.call("env"))
            assert second.finish() == 0
    assert machine.config.read_bytes() == original


def test_a_wrap_that_would_govern_more_is_refused_and_changes_nothing(machine: Machine) -> None:
    original = machine.write_config({"sample": entry(), "far": {"url": "https://example.com/mcp"}})
    with machine.wrap("--no-remote") as first:
        first.open()
        during = machine.config.read_bytes()
        done = machine.wrap_once()
        assert done.returncode == 2, done.stderr
        assert "without mcpServers.far" in done.stderr
        assert machine.config.read_bytes() == during
        assert first.finish() == 0
    assert machine.config.read_bytes() == original
