"""``thoughtgate unwrap``: one command undoes what a killed wrap left."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.support.wraps import Machine, entry


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _abandon(machine: Machine) -> bytes:
    """Leave a config wrapped, as a wrap killed with its guardian does; return the original."""
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        for pid in run.peer.descendants():
            if pid != run.agent_pid:
                os.kill(pid, signal.SIGKILL)
        run.signal(signal.SIGKILL)
        run.wait()
    assert machine.config.read_bytes() != original
    return original


def test_with_nothing_wrapped_there_is_nothing_to_do(machine: Machine) -> None:
    done = machine.run("unwrap")

    assert done.returncode == 0
    assert "nothing to restore" in done.stderr
    assert machine.run("unwrap", "--quiet").stderr == ""


@pytest.mark.requirement("S000-F-020")
def test_a_killed_wrap_is_undone_and_its_run_file_removed(machine: Machine) -> None:
    original = _abandon(machine)

    done = machine.run("unwrap")

    assert done.returncode == 0
    assert f"restored {machine.config}" in done.stderr
    assert machine.config.read_bytes() == original
    assert machine.left_in(machine.project) == []
    assert list((machine.state / "runs").iterdir()) == []


def test_the_outcome_can_be_had_as_json(machine: Machine) -> None:
    _abandon(machine)

    done = machine.run("unwrap", "--json")

    assert json.loads(done.stdout) == {
        "restored": [str(machine.config)],
        "warnings": [],
        "problems": [],
    }


def test_a_living_wrap_is_not_undone(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        wrapped = machine.config.read_bytes()

        assert machine.run("unwrap").returncode == 0
        assert machine.config.read_bytes() == wrapped
        named = machine.run("unwrap", "--config-path", str(machine.config))
        assert named.returncode == 2
        assert f"process {run.peer.pid}" in named.stderr
        assert machine.config.read_bytes() == wrapped
        assert run.finish() == 0


def test_a_file_whose_journal_is_lost_can_still_be_mended(machine: Machine) -> None:
    _abandon(machine)
    for journal in (machine.state / "wraps").iterdir():
        journal.unlink()

    done = machine.run("unwrap", "--config-path", str(machine.config))

    assert done.returncode == 0
    assert json.loads(machine.config.read_text("utf-8"))["mcpServers"] == {"sample": entry()}


def test_an_unreadable_journal_is_a_problem_that_is_named(machine: Machine) -> None:
    (machine.state / "wraps").mkdir(parents=True)
    (machine.state / "wraps" / "odd.json").write_text("{", "utf-8")

    done = machine.run("unwrap")

    assert done.returncode == 2
    assert "odd.json" in done.stderr
