"""A wrap inside a wrap: another agent gets a run of its own, and nothing becomes looser."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import thoughtgate
from tests.support.wraps import ALLOW, Machine, WrappedAgent, entry

from thoughtgate.errors import UsageError
from thoughtgate.wrap.nesting import find_outer_runs

ORDERS = [
    {"do": "open"},
    {"do": "ask", "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "in"}}},
]


def _inner(machine: Machine, config: Path, *flags: str, **env: str) -> list[str]:
    """Return a command that wraps an agent, which calls a tool of its server."""
    lines = "\n".join(json.dumps(order) for order in ORDERS) + "\n"
    agent = f"printf %s {shlex.quote(lines)} | {shlex.join(machine.agent(config=config))}"
    told = ["--agent-type", "custom", "--config-path", str(config), *flags]
    command = thoughtgate("wrap", *told, "--", "sh", "-c", agent)
    return ["env", *(f"{name}={value}" for name, value in env.items()), *command]


def _run_inside(run: WrappedAgent, command: list[str]) -> dict[str, Any]:
    said: dict[str, Any] = run.order("run", command=command)["said"]
    return said


def test_another_agent_inside_gets_a_run_of_its_own(machine: Machine) -> None:
    first = machine.write_sample()
    other = machine.project / "other.json"
    second = machine.write_config({"sample": entry()}, path=other)
    with machine.wrap() as run:
        run.open()
        inner = _run_inside(run, _inner(machine, other))
        assert inner["code"] == 0, inner
        run.call("echo", {"text": "out"})
        assert run.finish() == 0

    assert json.loads(inner["stdout"].splitlines()[-1])["said"]["result"]["content"]
    assert "console " not in inner["stderr"]  # its link would sign the agent in
    assert (machine.config.read_bytes(), other.read_bytes()) == (first, second)
    ends = machine.events("tool_call_end")
    assert len({one["run_id"] for one in ends}) == len(ends) == 2
    machine.assert_record_is_sound()


def test_what_the_inner_agent_starts_cannot_approve_either(machine: Machine) -> None:
    machine.write_sample()
    other = machine.project / "other.json"
    machine.write_config({"sample": entry()}, path=other)
    approve = f"env -u THOUGHTGATE_ACTIVE {shlex.join(thoughtgate('approvals', 'approve', '1'))}"
    told = ["--agent-type", "custom", "--config-path", str(other), "--", "sh", "-c", approve]
    with machine.wrap() as run:
        run.wait_until_ready()
        inner = _run_inside(run, thoughtgate("wrap", *told))
        assert run.finish() == 0
    assert inner["code"] == 2
    assert "cannot approve its own calls" in inner["stderr"]


def test_the_same_config_inside_is_shared(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        inner = _run_inside(run, _inner(machine, machine.config))
        assert run.finish() == 0

    assert inner["code"] == 0, inner["stderr"]
    assert "is rewritten already by another wrap" in inner["stderr"]
    assert machine.config.read_bytes() == original


@pytest.mark.parametrize("way", ["profile", "config", "variable", "state"])
def test_nothing_becomes_looser_inside(machine: Machine, way: str) -> None:
    machine.write_sample()
    other = machine.project / "other.json"
    machine.write_config({"sample": entry()}, path=other)
    loose = machine.top / "loose.yaml"
    loose.write_text(ALLOW, "utf-8")
    command = {
        "profile": _inner(machine, other, "--profile", "development"),
        "config": _inner(machine, other, "--config", str(loose)),
        "variable": _inner(machine, other, THOUGHTGATE_CONFIG=str(loose)),
        "state": _inner(machine, other, THOUGHTGATE_STATE_DIR=str(machine.top / "fresh")),
    }[way]
    with machine.wrap() as run:
        run.wait_until_ready()
        inner = _run_inside(run, command)
        assert run.finish() == 0

    assert inner["code"] == 2
    assert "must have the same policy" in inner["stderr"]
    assert inner["stdout"] == ""


def test_a_mark_without_its_run_is_refused(tmp_path: Path) -> None:
    assert find_outer_runs({}, str(tmp_path)) == ()
    with pytest.raises(UsageError, match="cannot be found among the processes"):
        find_outer_runs({"THOUGHTGATE_ACTIVE": "1"}, str(tmp_path))
