"""What an agent or a repository puts in the place of files that a wrap reads and writes."""

import fcntl
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.waiting import PATIENCE_S, wait_for
from tests.support.wraps import Machine, entry

PLANT = {
    "pipe": "rm -rf {0} && mkfifo {0}",
    "directory": "rm -rf {0} && mkdir {0}",
    "device": "rm -rf {0} && ln -s /dev/zero {0}",
}
"""Shell commands that replace a file by something else."""


def _replaced(path: Path, how: str) -> list[str]:
    return ["sh", "-c", PLANT[how].format(shlex.quote(str(path)))]


def _backup_of(config: Path) -> Path:
    return config.with_name(f"{config.name}.thoughtgate-backup")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.promise("config-restored")
@pytest.mark.parametrize("how", PLANT)
def test_a_config_is_restored_without_its_backup(machine: Machine, how: str) -> None:
    original = machine.write_sample(env={"PYTHONPATH": "/evil"})

    done = machine.wrap_once(agent=_replaced(_backup_of(machine.config), how))

    assert done.returncode == 0, done.stderr
    assert machine.config.read_bytes() == original


@pytest.mark.promise("config-restored")
@pytest.mark.parametrize("how", PLANT)
def test_what_replaced_one_config_keeps_no_other_from_being_restored(
    machine: Machine, how: str
) -> None:
    project = machine.project / ".cursor" / "mcp.json"
    own = machine.home / ".cursor" / "mcp.json"
    machine.write_config({"one": entry()}, path=project)
    original = machine.write_config({"two": entry()}, path=own)

    replace = _replaced(project, how)
    done = machine.run("wrap", "--agent-type", "cursor", "--", *replace)

    assert own.read_bytes() == original
    assert done.returncode == 1
    assert f"{project}: could not be restored" in done.stderr


@pytest.mark.promise("config-restored")
@pytest.mark.parametrize("which", ["*", "other"])
def test_a_config_is_restored_with_a_pipe_in_the_place_of_a_journal(
    machine: Machine, which: str
) -> None:
    original = machine.write_sample()
    plant = PLANT["pipe"].format('"$file"')
    script = f"for file in {shlex.quote(str(machine.state))}/wraps/{which}.json; do {plant}; done"

    done = machine.wrap_once(agent=["sh", "-c", script])

    assert done.returncode == 0, done.stderr
    assert machine.config.read_bytes() == original


@pytest.mark.promise("config-restored")
def test_a_pipe_in_the_place_of_the_backup_does_not_stop_the_wrap(machine: Machine) -> None:
    original = machine.write_sample()
    os.mkfifo(_backup_of(machine.config))

    done = machine.wrap_once()

    assert done.returncode == 0, done.stderr
    assert machine.config.read_bytes() == original


@pytest.mark.promise("config-restored")
def test_a_lock_that_is_another_file_s_second_name_is_not_written(machine: Machine) -> None:
    original = machine.write_sample()
    precious = machine.home / "precious"
    precious.write_text("precious", "utf-8")
    machine.config.with_name(f"{machine.config.name}.thoughtgate-lock").hardlink_to(precious)

    done = machine.wrap_once()

    assert done.returncode == 1
    assert "cannot be locked: not a lock file; remove it" in done.stderr
    assert precious.read_text("utf-8") == "precious"
    assert machine.config.read_bytes() == original


@pytest.mark.promise("entry-environment")
@pytest.mark.parametrize("how", PLANT)
def test_a_file_of_variables_that_is_no_file_does_not_stop_the_wrap(
    machine: Machine, how: str
) -> None:
    variables = machine.project / ".env"
    machine.write_config({"bad": entry(envFile=str(variables)), "good": entry()})
    subprocess.run(_replaced(variables, how), check=True, timeout=PATIENCE_S)

    done = machine.wrap_once()

    assert done.returncode == 0, done.stderr
    assert f"the file {variables} cannot be read" in done.stderr


@pytest.mark.promise("cut-tail-is-found")
def test_a_record_that_the_agent_removes_is_missed(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        run.call("echo", {"text": "unseen"})
        machine.wait_for_event("tool_call_end")
        machine.record.unlink()
        run.call("echo", {"text": "x"})
        assert run.finish() == 0

    done = machine.run("audit", "verify")

    assert done.returncode == 1, done.stdout
    assert "removed" in done.stdout
    assert "bytes were cut off the record's end" in run.stderr


@pytest.mark.promise("config-restored")
@pytest.mark.parametrize("end", ["exit", "kill"])
def test_a_lock_that_a_process_of_the_agent_holds_keeps_no_config_rewritten(
    machine: Machine, end: str
) -> None:
    original = machine.write_sample()
    with machine.wrap() as agent:
        agent.open()
        lock = machine.config.with_name(f"{machine.config.name}.thoughtgate-lock")
        with lock.open("rb") as held:  # as by a process that the agent leaves behind
            fcntl.flock(held, fcntl.LOCK_SH)
            if end == "exit":
                assert agent.finish() == 0
            else:
                os.kill(agent.peer.pid, signal.SIGKILL)
                agent.wait()
            wait_for(
                lambda: machine.config.read_bytes() == original, what="the config to come back"
            )
