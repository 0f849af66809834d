"""The command line in a new process, without the time that Python and the imports take.

A process that has imported everything forks a child for each command. The child has its own
environment, directory and streams, and its exit code is the command's, as with a process
started in the usual way. Tests of how the command itself starts do not use this.
"""

import atexit
import contextlib
import fcntl
import functools
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.commands import ROOT
from tests.support.real_home import guard_real_home
from tests.support.waiting import PATIENCE_S, read_some

import thoughtgate
from thoughtgate.gate import state_directory

_MESSAGE: Final = 1 << 20


def run_warm(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
    timeout: float = PATIENCE_S,
    kill_at: int = 0,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as ``subprocess.run`` would.

    With ``kill_at``, the command is killed before it changes something in the file system for the
    nth time; its exit code is -9 then.

    Raises:
        subprocess.TimeoutExpired: it has not ended in time, and was killed.
    """
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(stdin.encode())
        files[0].seek(0)
        wanted = {
            "argv": arguments,
            "env": dict(os.environ if env is None else env),
            "cwd": str(cwd or Path.cwd()),
            "kill_at": kill_at,
        }
        code = _nursery().run(wanted, [one.fileno() for one in files], timeout)
        for one in files[1:]:
            one.seek(0)
        out, err = (one.read().decode() for one in files[1:])
    return subprocess.CompletedProcess(["thoughtgate", *arguments], code, out, err)


class _Nursery:
    """The process that forks the commands."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            # It forks once more at its start: nobody who counts his children meets it.
            subprocess.run(
                [sys.executable, "-m", "tests.support.warm_command", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                check=True,
                timeout=PATIENCE_S,
            )

    def run(self, wanted: dict[str, Any], streams: list[int], timeout: float) -> int:
        """Have a command run on these streams and return its exit code."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(wanted).encode()], streams)
            pid = int(read_some(self._socket.fileno()))
            try:
                return int(read_some(self._socket.fileno(), timeout=timeout))
            except AssertionError:
                os.kill(pid, signal.SIGKILL)
                read_some(self._socket.fileno())
                raise subprocess.TimeoutExpired(wanted["argv"], timeout) from None

    def close(self) -> None:
        """Let the process end."""
        self._socket.close()


@functools.cache
def _nursery() -> _Nursery:
    made = _Nursery()
    atexit.register(made.close)
    return made


def _serve(requests: socket.socket) -> None:
    """Fork a child for each request until the tests have ended."""
    while True:
        message, streams, _, _ = socket.recv_fds(requests, _MESSAGE, 3)
        if not message:
            return
        child = os.fork()
        if child == 0:
            requests.close()
            os._exit(_run(json.loads(message), streams))
        for stream in streams:
            os.close(stream)
        requests.send(b"%d" % child)
        _, status = os.waitpid(child, 0)  # no deadline: the test has one, and kills the child
        requests.send(b"%d" % os.waitstatus_to_exitcode(status))


def _run(wanted: dict[str, Any], streams: list[int]) -> int:
    """Become the command."""
    from thoughtgate.cli import app

    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    os.environ.clear()
    os.environ.update(wanted["env"])
    time.tzset()
    os.chdir(wanted["cwd"])
    sys.argv = ["thoughtgate", *wanted["argv"]]
    if wanted["kill_at"]:
        _die_at(wanted["kill_at"])
    try:
        return app.run(wanted["argv"])
    finally:
        for stream_object in (sys.stdout, sys.stderr):
            if stream_object is not None:
                stream_object.flush()


_CHANGES: Final = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod"})


def _die_at(step: int) -> None:
    """Make this process kill itself before its nth change in the file system."""
    left = step

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        is_write = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if is_write or event in _CHANGES:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def _main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    # Before anything imports it: gates that an agent starts ask the password database.
    state_directory.account_home = lambda: os.environ["HOME"]
    guard_real_home()
    for module in pkgutil.walk_packages(thoughtgate.__path__, "thoughtgate."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    if os.fork() == 0:
        os.setsid()
        # Commands run in another terminal than the tests, as a person's do: not below the agent
        # that a test plays, and with a terminal of their own.
        _, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        _serve(requests)


if __name__ == "__main__":
    _main()
