"""A forked process that cleans up when the gate ends without saying goodbye.

It holds one end of a pipe. When the gate's end closes, SIGKILL included, it ends what it
was told to watch and may run one command, such as putting an agent's config back. It
works on every Unix and reaches grandchildren, which a parent-death signal does not.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from typing import Final

_LAST_DESCRIPTOR: Final = 1024
"""Descriptors a fresh gate may have inherited; the guardian keeps none of them."""

_PATIENCE: Final = 40
_STEP_S: Final = 0.025
"""Together one second from SIGTERM to SIGKILL: the gate is gone, nobody is left to be polite for."""

_TRIES: Final = 3
"""How often the command is run until it ends well."""

IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)


def fork_deaf() -> int:
    """Fork a guardian that no signal of the terminal ends before it has come to ignore them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


class Guardian:
    """The gate's side: tell whom to end, and say goodbye. Fork before threads exist."""

    def __init__(self, afterwards: Sequence[str] = ()) -> None:
        """Fork the guardian; ``afterwards`` is the command it runs when it had to act."""
        watched, self._pipe = os.pipe()
        self._pid = fork_deaf()
        if self._pid == 0:
            os.close(self._pipe)
            _guard(watched, list(afterwards))
        os.close(watched)

    def watch(self, pid: int, *, group: bool = True) -> None:
        """Name the process, or the process group, to end."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, b"%s%d\n" % (b"-" if group else b"", pid))

    def forget(self, pid: int) -> None:
        """A watched process has ended and was waited for: its number may become another's."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, b"~%d\n" % pid)

    def dismiss(self) -> None:
        """All is well: let the guardian go."""
        if self._pid:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, b"done\n")
            os.close(self._pipe)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0


def _guard(watched: int, afterwards: list[str]) -> None:
    """The guardian's whole life. Never returns into the forked copy of the gate."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        os.dup2(watched, 0)
        os.closerange(1, _LAST_DESCRIPTOR)
        said = b""
        while chunk := os.read(0, 64):
            said += chunk
        words = said.split()
        if b"done" not in words:
            for word in words:
                if not word.startswith(b"~") and b"~" + word not in words:
                    _end(int(word))
            if afterwards:
                _run(afterwards)
    except (OSError, ValueError):
        pass
    finally:
        os._exit(0)


def _end(target: int) -> None:
    """Terminate, wait a little, kill; a negative number is a process group."""
    from thoughtgate.runtime.kin import end_kin, kin_of  # not paid for while all is well

    kin = kin_of(target) if target > 0 else []
    # One that may not be signalled must not keep the others from being ended.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(target, signal.SIGTERM)
        for _ in range(_PATIENCE):
            time.sleep(_STEP_S)
            os.kill(target, 0)
        os.kill(target, signal.SIGKILL)
    end_kin(kin, _PATIENCE * _STEP_S)


def _run(command: list[str]) -> None:
    """Run a command as a process of its own; whoever ends the guardian does not end it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    for _ in range(_TRIES):
        pid = os.posix_spawn(command[0], command, os.environ, setpgroup=0, setsigmask=())
        _, status = os.waitpid(pid, 0)
        if status == 0:
            return
        time.sleep(_STEP_S)
