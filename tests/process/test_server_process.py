"""A server as a child process: its pipes, its group, its end."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import ROOT, own_children
from tests.support.waiting import read_line, reap, wait_for

from thoughtgate.process.server_process import ServerProcess

CAT = ["cat"]


def _run(code: str) -> ServerProcess:
    return ServerProcess([sys.executable, "-c", code], dict(os.environ))


def _end(server: ServerProcess) -> int:
    server.signal(signal.SIGKILL)
    wait_for(lambda: server.poll() is not None, what="the end")
    server.sweep()
    for descriptor in (server.stdin, server.stdout):
        os.close(descriptor)
    assert server.returncode is not None
    return server.returncode


def _read(server: ServerProcess) -> bytes:
    assert select.select([server.stdout], [], [], 10)[0]
    return os.read(server.stdout, 65536)


@pytest.mark.requirement("S000-F-011")
def test_a_server_has_pipes_a_group_and_an_end() -> None:
    server = ServerProcess(CAT, dict(os.environ))
    os.write(server.stdin, b"hello\n")

    assert _read(server) == b"hello\n"
    assert os.getpgid(server.pid) == server.pid
    assert server.poll() is None
    assert server.has_group()
    assert _end(server) == 128 + signal.SIGKILL
    assert not server.has_group()


def test_an_exit_code_is_told_and_kept() -> None:
    server = _run("raise SystemExit(7)")

    assert wait_for(lambda: server.poll() is not None)
    assert (server.poll(), server.returncode) == (7, 7)
    _end(server)


def test_a_child_that_somebody_else_reaped_has_ended() -> None:
    server = _run("pass")
    reap(server.pid)

    assert server.poll() == 0
    _end(server)


@pytest.mark.parametrize("command", [["no-such-program-here"], ["/"]])
def test_a_server_that_cannot_start_leaves_nothing_behind(command: list[str]) -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the entries are not paths
    children = own_children()

    with pytest.raises(OSError, match=r"."):
        ServerProcess(command, {})
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - the entries are not paths
    assert own_children() == children


def test_the_child_begins_with_the_systems_signals_and_no_other_descriptor() -> None:
    kept = os.open("/dev/null", os.O_RDONLY)
    passed_on = {n for n in range(3, 256) if _is_open(n) and os.get_inheritable(n)}
    code = (
        "import os,signal\n"
        "names = [s.name for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)"
        " if signal.getsignal(s) == signal.SIG_IGN]\n"
        "print(names, len(os.listdir('/proc/self/fd')), flush=True)\n"
        "status = open('/proc/self/status').read()\n"
        "print([l for l in status.splitlines() if 'SigBlk' in l], flush=True)\n"
    )
    server = _run(code)
    wait_for(lambda: server.poll() is not None)
    said = _read(server).decode()
    _end(server)
    os.close(kept)

    # Three standard ones, the one that lists them, and what was inheritable all along.
    assert said.startswith(f"[] {4 + len(passed_on)}\n")
    assert "0000000000000000" in said


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_a_grandchild_is_swept_away_with_the_group() -> None:
    server = _run(
        "import subprocess,sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
    )
    grandchild = int(_read(server))
    wait_for(lambda: server.poll() is not None)
    assert server.has_group()
    server.sweep()

    wait_for(lambda: _is_gone(grandchild), what="the grandchild's end")
    _end(server)


def _is_gone(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return text.rpartition(")")[2].split()[0] in {"Z", "X"}


def test_the_group_ends_when_the_gate_is_killed() -> None:
    code = (
        "import os,time\n"
        "from thoughtgate.process.server_process import ServerProcess\n"
        "server = ServerProcess(['sleep', '600'], dict(os.environ))\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    gate = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT)
    assert gate.stdout is not None
    pid = int(read_line(gate.stdout))
    gate.kill()
    gate.wait(10)
    gate.stdout.close()

    wait_for(lambda: _is_gone(pid), what="the server's end")


def test_a_signal_to_a_group_that_is_gone_is_no_error() -> None:
    server = _run("pass")
    wait_for(lambda: server.poll() is not None)
    wait_for(lambda: not server.has_group())
    server.signal(signal.SIGTERM)
    _end(server)
