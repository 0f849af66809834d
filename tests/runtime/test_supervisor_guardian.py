"""The process that ends what a killed hub leaves behind."""

import os
import signal
import subprocess
import sys

import pytest
from tests.support.waiting import wait_for

from thoughtgate.runtime.supervisor_guardian import GroupGuardian, end_groups, groups_left

SCRIPT = "import signal, time; signal.signal(15, signal.SIG_IGN); import os; os.write(1, b'up'); time.sleep(600)"


def sleeper() -> subprocess.Popen[bytes]:
    """Start a process that ignores SIGTERM, in a group of its own."""
    reader, writer = os.pipe()
    child = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=writer, start_new_session=True)
    os.close(writer)
    assert os.read(reader, 10).startswith(b"up")
    os.close(reader)
    return child


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (b"", set()),
        (b"+5\n+6\n", {5, 6}),
        (b"+5\n+6\n-5\n", {6}),
        (b"+5\ndone\n", set()),
        (b"-7\n+7\n", {7}),
    ],
)
def test_the_groups_that_are_left_are_those_not_released(said: bytes, left: set[int]) -> None:
    assert groups_left(said) == left


def test_a_group_that_ignores_a_polite_signal_is_killed() -> None:
    child = sleeper()
    end_groups({child.pid, 2**22 - 7})

    assert child.wait(10) == -signal.SIGKILL


def test_a_dismissed_guardian_ends_nothing() -> None:
    child = sleeper()
    try:
        guardian = GroupGuardian()
        guardian.watch(child.pid)
        guardian.dismiss()
        guardian.dismiss()

        assert child.poll() is None
    finally:
        child.kill()
        child.wait(10)


def test_a_killed_owner_takes_its_groups_along_but_for_the_released() -> None:
    kept, watched = sleeper(), sleeper()
    script = (
        "import os, sys, time\n"
        "from thoughtgate.runtime.supervisor_guardian import GroupGuardian\n"
        "guardian = GroupGuardian()\n"
        f"guardian.watch({kept.pid}); guardian.watch({watched.pid}); guardian.release({kept.pid})\n"
        "print('ready', flush=True); time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        os.kill(owner.pid, signal.SIGKILL)

        assert watched.wait(10) == -signal.SIGKILL
        assert kept.poll() is None
        wait_for(lambda: owner.poll() is not None)
    finally:
        for process in (kept, watched, owner):
            process.kill()
            process.wait(10)
        assert owner.stdout is not None
        owner.stdout.close()
