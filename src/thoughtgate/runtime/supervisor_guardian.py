"""One forked process that ends the hub's servers when the hub is killed.

It holds one end of a pipe on which the hub names process groups as they come and go.
When the hub's end closes without a goodbye, SIGKILL included, it ends all that are left,
grandchildren too, which a parent-death signal would not reach.
"""

import contextlib
import os
import signal
import time
from typing import Final

from thoughtgate.runtime.guardian import IGNORED, fork_deaf

_LAST_DESCRIPTOR: Final = 4096
_STEPS: Final = 20
_STEP_S: Final = 0.025
"""Half a second from SIGTERM to SIGKILL: the hub is gone, and agents wait for nobody."""


class GroupGuardian:
    """The hub's side. Fork it before the event loop and before any thread."""

    def __init__(self) -> None:
        watched, self._pipe = os.pipe()
        self._pid = fork_deaf()
        if self._pid == 0:
            os.close(self._pipe)
            _guard(watched)
        os.close(watched)

    def watch(self, group: int) -> None:
        """End this process group when the hub is killed."""
        self._say(b"+%d\n" % group)

    def release(self, group: int) -> None:
        """The group is gone; its number may soon be somebody else's."""
        self._say(b"-%d\n" % group)

    def dismiss(self) -> None:
        """All is well: let the guardian go."""
        if self._pid:
            self._say(b"done\n")
            os.close(self._pipe)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0

    def _say(self, line: bytes) -> None:
        if self._pid:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, line)


def _guard(watched: int) -> None:
    """The guardian's whole life. Never returns into the forked copy of the hub."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in IGNORED:
            signal.signal(number, signal.SIG_IGN)
        os.dup2(watched, 0)
        os.closerange(1, _LAST_DESCRIPTOR)
        end_groups(groups_left(_read_all(0)))
    except (OSError, ValueError):
        pass
    finally:
        os._exit(0)


def _read_all(descriptor: int) -> bytes:
    said = b""
    while chunk := os.read(descriptor, 4096):
        said += chunk
        if len(said) > 1_000_000:  # noqa: PLR2004  a hub that lives for months
            kept = groups_left(said)
            said = b"".join(b"+%d\n" % group for group in sorted(kept))
    return said


def groups_left(said: bytes) -> set[int]:
    """Return the groups that were named and not released; none after a goodbye."""
    groups: set[int] = set()
    for word in said.split():
        if word == b"done":
            return set()
        change = groups.add if word[:1] == b"+" else groups.discard
        change(int(word[1:]))
    return groups


def end_groups(groups: set[int]) -> None:
    """Terminate, wait a little, kill."""
    left = {group for group in groups if _signal(group, signal.SIGTERM)}
    for _ in range(_STEPS):
        left = {group for group in left if _signal(group, 0)}
        if not left:
            return
        time.sleep(_STEP_S)
    for group in left:
        _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
