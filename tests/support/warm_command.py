"""The command line in a new process, without the time that Python and the imports take.

A process that has imported everything forks a child for each command. The child has its own
environment, directory and streams, and its exit code is the command's, as with a process
started in the usual way. Tests of how the command itself starts do not use this.
"""

import atexit
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from tests.support.commands import ROOT, thoughtgate
from tests.support.real_home import guard_real_home, is_stray_gate
from tests.support.waiting import PATIENCE_S, read_some

import thoughtgate as package
from thoughtgate.gate import state_directory
from thoughtgate.gate.definitions.inspection import load_checks
from thoughtgate.policy.inspection.inspect import inspect_arguments, inspect_result

MARK: Final = "STDIO_PEER_MARK"
"""The variable by which a process and all that it starts are found. It is named unlike any variable
of the gate, which takes its own from what a server inherits."""
_NO_MARK: Final = "0" * 32

_MESSAGE: Final = 1 << 20
_STREAMS: Final = 4
"""Standard input, output and error, and the socket on which the end of the command is told."""

_COMMANDS: Final = (tuple(thoughtgate()), (sys.executable, "-m", "thoughtgate.cli.entry"))
"""The ways in which tests start the installed command."""


class WarmProcess:
    """A command that was forked; it is used like a ``subprocess.Popen`` in binary mode."""

    def __init__(
        self,
        argv: Sequence[str],
        streams: Sequence[int],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        kill_at: int = 0,
        is_gate: bool = False,
    ) -> None:
        """Start a command; a gate has a session of its own, others the terminal of a person."""
        self.args = list(argv)
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self.returncode: int | None = None
        self._lock = threading.Lock()
        wanted = {
            "argv": self.args,
            "env": dict(os.environ if env is None else env),
            "cwd": str(cwd or Path.cwd()),
            "kill_at": kill_at,
            "is_gate": is_gate,
        }
        self._status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            _nursery().start(wanted, [*streams, theirs.fileno()])
        self.pid = int(read_some(self._status.fileno()))

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the command runs."""
        return self._end(0)

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """Return the exit code once the command has ended.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        code = self._end(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal to the command alone, if it still runs."""
        # Its watcher may have waited for it, and not told the exit code yet.
        with contextlib.suppress(ProcessLookupError):
            if self.poll() is None:
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the command to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the command."""
        self.send_signal(signal.SIGKILL)

    def _end(self, timeout: float) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
                self.returncode = int(self._status.recv(_MESSAGE))
                self._status.close()
            return self.returncode


def start_command(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: int = subprocess.PIPE,
    is_warm: bool = True,
) -> "subprocess.Popen[bytes] | WarmProcess":
    """Start a command in a session of its own, with unbuffered pipes; warm if it can be."""
    arguments = warm_arguments(command) if is_warm else None
    if arguments is None:
        return subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            bufsize=0,
            start_new_session=True,
        )
    assert not is_stray_gate(command), f"uses the state of the account: {command}"
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        ends = [os.pipe(), os.pipe(), os.pipe()]
        if stdin == subprocess.DEVNULL:
            os.close(ends[0][1])
        mine = [ends[0][1], ends[1][0], ends[2][0]]
        other = [ends[0][0], ends[1][1], ends[2][1]]
        for one in other:
            theirs.callback(os.close, one)
        files = [
            None
            if stdin == subprocess.DEVNULL
            else ours.enter_context(os.fdopen(mine[0], "wb", 0)),
            ours.enter_context(os.fdopen(mine[1], "rb", 0)),
            ours.enter_context(os.fdopen(mine[2], "rb", 0)),
        ]
        process = WarmProcess(arguments, other, env=env, cwd=cwd, is_gate=True)
        process.stdin, process.stdout, process.stderr = files
        ours.pop_all()
    return process


def warm_arguments(command: Sequence[str]) -> list[str] | None:
    """Return the arguments of a command line of the installed command; None for another program."""
    for words in _COMMANDS:
        if tuple(command[: len(words)]) == words:
            return list(command[len(words) :])
    return None


def run_warm(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str = "",
    timeout: float = PATIENCE_S,
    kill_at: int = 0,
    is_gate: bool = False,
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
        streams = [one.fileno() for one in files]
        process = WarmProcess(
            arguments, streams, env=env, cwd=cwd, kill_at=kill_at, is_gate=is_gate
        )
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
            process.wait()
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
                env={**os.environ, MARK: _NO_MARK},
                check=True,
                timeout=PATIENCE_S,
            )

    def start(self, wanted: dict[str, Any], streams: Sequence[int]) -> None:
        """Have a command started on these streams."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(wanted).encode()], streams)

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
    # The children are never waited for here, so the kernel must not keep them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, streams, _, _ = socket.recv_fds(requests, _MESSAGE, _STREAMS)
        if not message:
            return
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(_watch_over(json.loads(message), streams))
        for stream in streams:
            os.close(stream)


def _watch_over(wanted: dict[str, Any], streams: list[int]) -> int:
    """Start the command, as a parent that it has to itself, and tell its id and its exit code."""
    status = streams.pop()
    child = os.fork()
    if child == 0:
        os.close(status)
        os._exit(_run(wanted, streams))
    for stream in streams:
        os.close(stream)
    # A test may have ended, with its socket, while its command still runs.
    with contextlib.suppress(BrokenPipeError):
        os.write(status, b"%d" % child)
    _, ended = os.waitpid(child, 0)  # no deadline: the test has one, and kills the child
    with contextlib.suppress(BrokenPipeError):
        os.write(status, b"%d" % os.waitstatus_to_exitcode(ended))
    return 0


def _run(wanted: dict[str, Any], streams: list[int]) -> int:
    """Become the command."""
    from thoughtgate.cli.entry import main

    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    _show_mark(wanted["env"].get(MARK, _NO_MARK))
    os.environ.clear()
    os.environ.update(wanted["env"])
    time.tzset()
    os.chdir(wanted["cwd"])
    sys.path[1:1] = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    importlib.invalidate_caches()
    sys.argv = ["thoughtgate", *wanted["argv"]]
    if wanted["is_gate"]:
        _Account.is_real = True
        os.setsid()
    if wanted["kill_at"]:
        _die_at(wanted["kill_at"])
    try:
        return main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        # What the interpreter does at its end; `threading` has no public name for its part.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream_object in (sys.stdout, sys.stderr):
            if stream_object is not None:
                stream_object.flush()


def _show_mark(mark: str) -> None:
    """Write the mark to where the system looks for the variables that a process started with."""
    with contextlib.suppress(FileNotFoundError):
        stat = Path("/proc/self/stat").read_text("ascii").rpartition(")")[2].split()
        start, end = int(stat[47]), int(stat[48])
        at = ctypes.string_at(start, end - start).index(f"{MARK}={_NO_MARK}".encode())
        ctypes.memmove(start + at + len(MARK) + 1, mark.encode(), len(_NO_MARK))


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


class _Account:
    """The home directory that the password database gives a command."""

    is_real = False
    """Whether it is the account's own, and not what ``HOME`` says."""
    _ask_database = staticmethod(state_directory.account_home)

    @classmethod
    def home(cls) -> str:
        return cls._ask_database() if cls.is_real else os.environ["HOME"]


def _main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    # Before anything imports it: gates that an agent starts ask the password database.
    state_directory.account_home = _Account.home
    guard_real_home()
    for module in pkgutil.walk_packages(package.__path__, "thoughtgate."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # A gate builds the automata of the content checks when it needs them; these are for all gates.
    load_checks().join(PATIENCE_S)
    inspect_arguments({"text": "x"})
    inspect_result({"content": [{"type": "text", "text": "x"}]})
    gc.freeze()
    if os.fork() == 0:
        os.setsid()
        # Commands run in another terminal than the tests, as a person's do: not below the agent
        # that a test plays, and with a terminal of their own.
        _, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        _serve(requests)


if __name__ == "__main__":
    _main()
