"""The guardian: what a killed gate leaves behind is ended, and one command is run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.stdio_peer import StdioPeer, marked_processes
from tests.support.waiting import wait_for

from thoughtgate.process.guardian import targets_left

GATE = """
import os, signal, subprocess, sys
from thoughtgate.process.guardian import Guardian
how, after, *command = sys.argv[1:]
guardian = Guardian([sys.executable, "-c", "open(%r, 'w')" % after] if after else ())
child = subprocess.Popen(command, start_new_session=how != "process")
guardian.watch(child.pid, group=how != "process")
print(child.pid, flush=True)
if sys.stdin.readline().startswith("dismiss"):
    guardian.dismiss()
    guardian.dismiss()
    print("dismissed", flush=True)
    sys.stdin.readline()
"""

NAMED_ITSELF = """
import os, signal, sys
from thoughtgate.process.guardian import Guardian
from thoughtgate.process.launch import launch
guardian = Guardian()
def born():
    guardian.watch(os.getpid(), group=False)
    os.kill(os.getppid(), signal.SIGKILL)
launch(["sleep", "600"], os.environ, born)
"""

STUBBORN = ["sh", "-c", "trap '' TERM; sleep 600 & while :; do wait; done"]


def _gate(how: str, after: str = "", command: list[str] | None = None) -> StdioPeer:
    return StdioPeer([sys.executable, "-c", GATE, how, after, *(command or ["sleep", "600"])])


@pytest.mark.parametrize("command", [["sleep", "600"], STUBBORN])
def test_a_killed_gate_takes_the_whole_group_along(command: list[str]) -> None:
    with _gate("group", command=command) as gate:
        gate.read_line()
        gate.signal(signal.SIGKILL)
        gate.wait()
        gate.assert_nothing_left()


def test_a_killed_gate_takes_a_launchers_program_along() -> None:
    launcher = ["sh", "-c", "sleep 600; :"]
    with _gate("process", command=launcher) as gate:
        gate.read_line()
        wait_for(lambda: len(list(marked_processes(gate.mark))) >= 4, what="the launched program")
        gate.signal(signal.SIGKILL)
        gate.wait()
        gate.assert_nothing_left()


def test_a_gate_killed_before_its_child_is_the_program_takes_it_along() -> None:
    with StdioPeer([sys.executable, "-c", NAMED_ITSELF]) as gate:
        assert gate.wait() == -signal.SIGKILL
        gate.assert_nothing_left()


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (b"", []),
        (b"+5\n+-6\n", [5, -6]),
        (b"+5\n+-6\n~5\n", [-6]),
        (b"+5\n~-5\n", [5]),
        (b"~7\n+7\n", [7]),
        (b"+5\nbye\n", None),
    ],
)
def test_those_are_left_that_were_not_forgotten(said: bytes, left: list[int] | None) -> None:
    assert targets_left(said) == left


def test_a_long_life_is_summed_up() -> None:
    script = (
        "import os, subprocess, sys\n"
        "from thoughtgate.process.guardian import Guardian\n"
        "guardian = Guardian()\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "guardian.watch(child.pid)\n"
        "for number in range(2**22, 2**22 + 60_000):\n"
        "    guardian.watch(number)\n"
        "    guardian.forget(number)\n"
        "print('said', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    with StdioPeer([sys.executable, "-c", script]) as gate:
        assert gate.read_line() == b"said"
        gate.signal(signal.SIGKILL)
        gate.wait()
        gate.assert_nothing_left()


def test_the_command_runs_when_the_guardian_had_to_act(tmp_path: Path) -> None:
    after = tmp_path / "after"
    with _gate("group", str(after)) as gate:
        gate.read_line()
        gate.signal(signal.SIGKILL)
        wait_for(after.exists, what="the command")
        gate.assert_nothing_left()


def test_a_dismissed_guardian_ends_nothing_and_runs_nothing(tmp_path: Path) -> None:
    after = tmp_path / "after"
    with _gate("group", str(after)) as gate:
        child = int(gate.read_line() or b"0")
        gate.write_line(b"dismiss")
        assert gate.read_line() == b"dismissed"
        gate.signal(signal.SIGKILL)
        gate.wait()
        os.kill(child, 0)
        assert not after.exists()


def test_signals_of_the_terminal_do_not_reach_the_guardian(tmp_path: Path) -> None:
    after = tmp_path / "after"
    with _gate("group", str(after)) as gate:
        gate.read_line()
        # As a terminal does: the whole foreground group is signalled, then the gate is killed.
        os.killpg(gate.pid, signal.SIGINT)
        gate.signal(signal.SIGKILL)
        gate.wait()
        wait_for(after.exists, what="the command")


def test_a_signal_before_the_guardian_has_done_anything_does_not_end_it(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from thoughtgate.process.guardian import Guardian\n"
        "signal.signal(signal.SIGINT, lambda *_: os._exit(9))\n"
        "interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "os.register_at_fork(after_in_child=interrupt)\n"
        "Guardian([sys.executable, '-c', 'open(%r, chr(119))' % sys.argv[1]])\n"
    )
    after = tmp_path / "after"
    with StdioPeer([sys.executable, "-c", script, str(after)]) as gate:
        assert gate.wait() == 0
        wait_for(after.exists, what="the command")


def test_what_was_forgotten_is_left_alone() -> None:
    script = (
        "import os, subprocess, sys\n"
        "from thoughtgate.process.guardian import Guardian\n"
        "guardian = Guardian()\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "guardian.watch(child.pid, group=False)\n"
        "guardian.forget(child.pid, group=False)\n"
        "print(child.pid, guardian.pid, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    with StdioPeer([sys.executable, "-c", script]) as gate:
        child, guardian = (int(word) for word in (gate.read_line() or b"").split())
        gate.signal(signal.SIGKILL)
        gate.wait()
        wait_for(lambda: not Path(f"/proc/{guardian}").exists(), what="the guardian's end")
        os.kill(child, 0)


def test_a_guardian_holds_none_of_the_gates_files(tmp_path: Path) -> None:
    (tmp_path / "held").touch()
    script = (
        "import sys\n"
        f"held = open({str(tmp_path / 'held')!r})\n"
        "from thoughtgate.process.guardian import Guardian\n"
        "guardian = Guardian()\n"
        "print(guardian.pid, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    with StdioPeer([sys.executable, "-c", script]) as gate:
        pid = int(gate.read_line() or b"0")

        def holds_one() -> bool:
            return len(list(Path(f"/proc/{pid}/fd").iterdir())) == 1

        wait_for(holds_one, what="the guardian to let go")
        assert str(Path(f"/proc/{pid}/fd/0").readlink()).startswith("pipe:")
        gate.close_stdin()
        assert gate.wait() == 0


def test_the_guardian_is_no_burden_when_the_program_is_missing() -> None:
    script = "from thoughtgate.process.guardian import Guardian as G; G(['/no/such']).dismiss()"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, timeout=10, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
