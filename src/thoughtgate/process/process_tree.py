"""The processes that another one has started, as far as the system tells.

Many agents are launchers: the program that was started only starts another, and dies at
a signal without passing it on. Reads ``/proc``; where there is none, nobody has kin.
"""

import contextlib
import os
import signal
import time
from typing import Final, NamedTuple

_PPID: Final = 1
_GROUP: Final = 2
_STARTED: Final = 19
"""Places in ``/proc/PID/stat`` after the name, counted from the state."""

_STEP_S: Final = 0.025


class Kin(NamedTuple):
    """One process, told from a later one of the same number by the time of its start."""

    pid: int
    started: bytes

    @property
    def is_alive(self) -> bool:
        """It has not ended; a zombie has."""
        facts = _facts(self.pid)
        return facts is not None and facts[_STARTED] == self.started and facts[0] not in b"ZX"

    def signal(self, number: int) -> None:
        """Send a signal, if it is still there."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)


def kin_of(pid: int) -> list[Kin]:
    """Return the descendants of a process that stayed in its process group."""
    own = _facts(pid)
    if own is None:
        return []
    children: dict[bytes, list[tuple[int, list[bytes]]]] = {}
    for name in os.listdir("/proc"):
        facts = _facts(int(name)) if name.isdigit() else None
        if facts is not None:
            children.setdefault(facts[_PPID], []).append((int(name), facts))
    found: list[Kin] = []
    parents = [pid]
    while parents:
        for child, facts in children.pop(b"%d" % parents.pop(), ()):
            parents.append(child)
            if facts[_GROUP] == own[_GROUP]:
                found.append(Kin(child, facts[_STARTED]))
    return found


def ancestors() -> list[int]:
    """Return the processes that this one descends from, its parent first."""
    found: list[int] = []
    parent = os.getppid()
    while parent > 1 and parent not in found:
        found.append(parent)
        facts = _facts(parent)
        parent = int(facts[_PPID]) if facts is not None else 0
    return found


def end_kin(kin: list[Kin], grace_s: float) -> None:
    """Terminate what is left of a family, wait a little, and kill."""
    for one in kin:
        one.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and any(one.is_alive for one in kin):
        time.sleep(_STEP_S)
    for one in kin:
        one.signal(signal.SIGKILL)


def _facts(pid: int) -> list[bytes] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()
    except OSError:
        return None
