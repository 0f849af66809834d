"""A forked process that cleans up when the gate ends without saying goodbye.

It holds one end of a pipe on which processes are named as they come and go. When the
gate's end closes, SIGKILL included, it ends those that are left and may run one command,
such as putting an agent's config back. It works on every Unix and reaches grandchildren,
which a parent-death signal does not.

Whoever is started names itself, after the fork and before the exec: there is no moment
in which a killed gate leaves a process behind that the guardian has not heard of.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from typing import Final

_LAST_DESCRIPTOR: Final = 4096
"""Descriptors a fresh gate may have inherited; the guardian keeps none of them."""

_MAX_SAID: Final = 1_000_000
"""Bytes after which what was said is summed up: a gate may live for months."""

_PATIENCE: Final = 40
_STEP_S: Final = 0.025
"""Together one second from SIGTERM to SIGKILL: the gate is gone, nobody is left to be polite for."""

_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_BYE: Final = b"bye"


class Guardian:
    """The gate's side: tell whom to end, and say goodbye. Fork before threads exist."""

    def __init__(self, afterwards: Sequence[str] = ()) -> None:
        """Fork the guardian; ``afterwards`` is the command it runs when it had to act."""
        watched, self._pipe = os.pipe()
        self.pid = _fork_deaf()
        if self.pid == 0:
            os.close(self._pipe)
            _guard(watched, list(afterwards))
        os.close(watched)

    def watch(self, pid: int, *, group: bool = True) -> None:
        """Name the process, or the process group, to end; it may name itself."""
        self._say(b"+%d" % (-pid if group else pid))

    def forget(self, pid: int, *, group: bool = True) -> None:
        """A watched process has ended and was waited for: its number may become another's."""
        self._say(b"~%d" % (-pid if group else pid))

    def dismiss(self) -> None:
        """All is well: let the guardian go. A second call does nothing."""
        if self.pid:
            self._say(_BYE)
            os.close(self._pipe)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self.pid = 0

    def _say(self, word: bytes) -> None:
        if self.pid:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, word + b"\n")


def targets_left(said: bytes) -> list[int] | None:
    """Return the targets that were named and not forgotten, groups as negative numbers.

    None after a goodbye: the guardian has nothing to do.
    """
    targets: dict[int, None] = {}
    for word in said.split():
        if word == _BYE:
            return None
        target = int(word[1:])
        if word[:1] == b"+":
            targets[target] = None
        else:
            targets.pop(target, None)
    return list(targets)


def end_all(targets: Sequence[int]) -> None:
    """Terminate, wait a little, kill; a single process takes along what it has started."""
    from thoughtgate.process.process_tree import end_kin, kin_of  # not paid for while all is well

    kin = [one for target in targets if target > 0 for one in kin_of(target)]
    left = [target for target in targets if _signal(target, signal.SIGTERM)]
    for _ in range(_PATIENCE):
        left = [target for target in left if _signal(target, 0)]
        if not left:
            break
        time.sleep(_STEP_S)
    for target in left:
        _signal(target, signal.SIGKILL)
    end_kin(kin, _PATIENCE * _STEP_S)


def _fork_deaf() -> int:
    """Fork a guardian that no signal of the terminal ends before it has come to ignore them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _guard(watched: int, afterwards: list[str]) -> None:
    """The guardian's whole life. Never returns into the forked copy of the gate."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        os.dup2(watched, 0)
        os.closerange(1, _LAST_DESCRIPTOR)
        targets = targets_left(_hear(0))
        if targets is not None:
            end_all(targets)
            if afterwards:
                _become(afterwards)
    except (OSError, ValueError):
        pass
    finally:
        os._exit(0)


def _hear(pipe: int) -> bytes:
    """Return what the gate and its children have said, once all of them are gone."""
    said = b""
    while chunk := os.read(pipe, 4096):
        said += chunk
        if len(said) > _MAX_SAID and said.endswith(b"\n"):
            targets = targets_left(said)
            said = b"".join(b"+%d\n" % one for one in targets) if targets is not None else _BYE
    return said


def _signal(target: int, number: int) -> bool:
    """Signal a process or a group; False when there is none, or it may not be signalled."""
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _become(command: list[str]) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execv(command[0], command)  # noqa: S606 - our own command; a shell is what we never want
