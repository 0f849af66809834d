"""Descendants are found, told from others, and ended."""

import os
import signal
import subprocess
import sys

from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import ending, reap, wait_for

from thoughtgate.process.process_tree import Descendant, descendants_of, end_processes

FAMILY = (
    "import subprocess, sys, os\n"
    "near = subprocess.Popen([sys.executable, '-c', "
    '\'import subprocess; subprocess.run(["sleep", "600"])\'])\n'
    "apart = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    "print(near.pid, apart.pid, flush=True)\n"
    "sys.stdin.readline()\n"
)


def test_descendants_in_the_group_are_kin_and_those_apart_are_not() -> None:
    with StdioPeer([sys.executable, "-c", FAMILY]) as peer:
        near, apart = (int(word) for word in (peer.read_line() or b"").split())
        descendants = wait_for(
            lambda: found if len(found := descendants_of(peer.pid)) == 2 else None,
            what="the grandchild",
        )
        pids = {one.pid for one in descendants}
        assert near in pids
        assert apart not in pids

        end_processes(descendants, 2.0)

        wait_for(lambda: not any(one.is_alive for one in descendants), what="the end of the family")
        os.kill(apart, 0)


def test_one_that_ignores_sigterm_is_killed() -> None:
    with StdioPeer(
        ["sh", "-c", "sh -c 'trap \"\" TERM; echo up; while :; do sleep 1; done'; :"]
    ) as peer:
        assert peer.read_line() == b"up"
        descendants = descendants_of(peer.pid)

        end_processes(descendants, 0.1)

        wait_for(
            lambda: not any(one.is_alive for one in descendants), what="the end of the stubborn one"
        )


def test_a_later_process_of_the_same_number_is_not_kin() -> None:
    with ending(subprocess.Popen(["sleep", "600"])) as process:
        stranger = Descendant(process.pid, b"1")
        assert not stranger.is_alive
        stranger.signal(signal.SIGKILL)
        assert process.poll() is None
        process.kill()


def test_a_process_that_is_gone_has_no_kin() -> None:
    pid = os.posix_spawnp("true", ["true"], {})
    reap(pid)

    assert descendants_of(pid) == []
