"""A forked guardian process that cleans up if the gate is killed.

It reads the ids of started and ended processes from a pipe. When the gate's end of the pipe
closes, even after SIGKILL, the guardian ends the remaining processes and may run one command, such
as restoring an agent's config. This works on every Unix and covers grandchildren, unlike a
parent-death signal.

A started process reports its own id after the fork and before the exec, so a killed gate never
leaves a process behind that the guardian does not know.
"""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from typing import Final

_LAST_DESCRIPTOR: Final = 4096
"""The guardian closes all inherited descriptors up to this number."""

_MAX_MESSAGE_BYTES: Final = 1_000_000
"""Bytes of messages after which they are compacted, because a gate may run for months."""

_WAIT_STEPS: Final = 40
_STEP_S: Final = 0.025
"""Together one second from SIGTERM to SIGKILL; without the gate, no answer can be delivered."""

_IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
_BYE: Final = b"bye"


class Guardian:
    """The gate's side of the guardian. Create it before any thread exists, since it forks."""

    def __init__(self, afterwards: Sequence[str] = ()) -> None:
        """Fork the guardian; ``afterwards`` is the command to run if the gate was killed."""
        watched, self._pipe = os.pipe()
        self.pid = _fork_ignoring_signals()
        if self.pid == 0:
            os.close(self._pipe)
            _guard(watched, list(afterwards))
        os.close(watched)

    def watch(self, pid: int, *, group: bool = True) -> None:
        """Add a process or process group to end; a process may add itself."""
        self._send(b"+%d" % (-pid if group else pid))

    def forget(self, pid: int, *, group: bool = True) -> None:
        """Remove a process that has ended and was waited for: its id may be reused."""
        self._send(b"~%d" % (-pid if group else pid))

    def dismiss(self) -> None:
        """End the guardian, because the gate stops normally. A second call does nothing."""
        if self.pid:
            self._send(_BYE)
            os.close(self._pipe)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self.pid = 0

    def _send(self, message: bytes) -> None:
        if self.pid:
            # One write of less than PIPE_BUF bytes is atomic, and child processes write here too.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, message + b"\n")


def targets_left(messages: bytes) -> list[int] | None:
    """Return the targets that were added and not removed; groups are negative numbers.

    None after a normal stop, when the guardian has nothing to do.
    """
    targets: dict[int, None] = {}
    for message in messages.split():
        if message == _BYE:
            return None
        target = int(message[1:])
        if message[:1] == b"+":
            targets[target] = None
        else:
            targets.pop(target, None)
    return list(targets)


def end_all(targets: Sequence[int]) -> None:
    """Terminate the targets and the descendants of single processes, wait briefly, then kill."""
    # Imported only when needed, to keep the guardian's memory small.
    from thoughtgate.process.process_tree import descendants_of, end_processes

    # Before any signal: the descendants of a process that has ended cannot be found any more.
    descendants = [one for target in targets if target > 0 for one in descendants_of(target)]
    left = [target for target in targets if _signal(target, signal.SIGTERM)]
    for _ in range(_WAIT_STEPS):
        left = [target for target in left if _signal(target, 0)]
        if not left:
            break
        time.sleep(_STEP_S)
    for target in left:
        _signal(target, signal.SIGKILL)
    end_processes(descendants, _WAIT_STEPS * _STEP_S)


def _fork_ignoring_signals() -> int:
    """Fork with signals blocked, so that none ends the guardian before it ignores them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
    pid = -1
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _guard(watched: int, afterwards: list[str]) -> None:
    """Run the guardian. Never returns into the forked copy of the gate."""
    try:
        # Out of the gate's process group, so that a signal to the group spares the guardian.
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        os.dup2(watched, 0)
        # Also the copies of the agent's pipes: while they are open, the agent sees no end of file.
        os.closerange(1, _LAST_DESCRIPTOR)
        targets = targets_left(_read_until_closed(0))
        if targets is not None:
            end_all(targets)
            if afterwards:
                _exec(afterwards)
    except (OSError, ValueError):
        pass
    finally:
        os._exit(0)


def _read_until_closed(pipe: int) -> bytes:
    """Return all messages, once the gate and its children have closed the pipe."""
    messages = b""
    while chunk := os.read(pipe, 4096):
        messages += chunk
        if len(messages) > _MAX_MESSAGE_BYTES and messages.endswith(b"\n"):
            targets = targets_left(messages)
            messages = b"".join(b"+%d\n" % one for one in targets) if targets is not None else _BYE
    return messages


def _signal(target: int, number: int) -> bool:
    """Signal a process or group; False if it does not exist or must not be signalled."""
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _exec(command: list[str]) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execv(command[0], command)  # noqa: S606 - our own command; a shell is what we never want
