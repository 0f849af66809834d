"""Adopting and reaping processes that a child left behind."""

import subprocess
import sys

import pytest
from tests.support.waiting import PATIENCE_S

from thoughtgate.process import orphans

ADOPT = """
import os, subprocess, sys, time
from thoughtgate.process.orphans import adopt_orphans, reap_orphans

assert adopt_orphans()
own = subprocess.Popen(["sleep", "600"])
# The shell exits at once; its child waits for its stdin to close.
reader, writer = os.pipe()
script = "cat <&%d >/dev/null & echo $!" % reader
left = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, pass_fds=[reader], check=True)
orphan = int(left.stdout)

def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])

assert parent(orphan) == os.getpid()
os.close(writer)
deadline = time.monotonic() + 20
while os.path.exists(f"/proc/{orphan}"):
    assert time.monotonic() < deadline
    reap_orphans({own.pid})
own.kill()
os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
reap_orphans({own.pid})
assert own.wait() == -9, "the exit code of an own child is left to whoever started it"
reap_orphans({own.pid})
print("done")
"""


def test_orphans_become_children_and_are_reaped() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ADOPT],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr


def test_elsewhere_nobody_adopts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not orphans.adopt_orphans()
