"""Finding and ending the descendants of a process.

Many agents are launchers: the program that we start only starts another one, and dies on a
signal without passing it on. This reads ``/proc``; without it, no descendants are found.
"""

import contextlib
import os
import signal
import time
from collections.abc import Container
from typing import Final, NamedTuple

_PPID: Final = 1
_GROUP: Final = 2
_STARTED: Final = 19
"""Indexes of fields in ``/proc/PID/stat``, counted from the state after the name."""

_MAX_NAME: Final = 256

_STEP_S: Final = 0.025


class Descendant(NamedTuple):
    """One process; its start time distinguishes it from a later one with the same id."""

    pid: int
    started: bytes

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs; a zombie does not."""
        facts = _facts(self.pid)
        return facts is not None and facts[_STARTED] == self.started and facts[0] not in b"ZX"

    @property
    def name(self) -> str:
        """The name of its program; empty if it has exited."""
        try:
            with open(f"/proc/{self.pid}/comm", encoding="utf-8", errors="replace") as file:
                return file.read(_MAX_NAME).strip()
        except OSError:
            return ""

    def signal(self, number: int) -> None:
        """Send a signal if the process still runs."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)


def descendants_of(
    pid: int, *, any_group: bool = False, spare: Container[int] = ()
) -> list[Descendant]:
    """Return the descendants of a process that stayed in its process group, or all of them.

    Those in ``spare`` are left out, with their own descendants.
    """
    own = _facts(pid)
    if own is None:
        return []
    # One pass over all processes, because /proc lists no children of a process.
    children: dict[bytes, list[tuple[int, list[bytes]]]] = {}
    for name in os.listdir("/proc"):
        facts = _facts(int(name)) if name.isdigit() else None
        if facts is not None:
            children.setdefault(facts[_PPID], []).append((int(name), facts))
    found: list[Descendant] = []
    parents = [pid]
    while parents:
        for child, facts in children.pop(b"%d" % parents.pop(), ()):
            if child in spare:
                continue
            parents.append(child)
            if any_group or facts[_GROUP] == own[_GROUP]:
                found.append(Descendant(child, facts[_STARTED]))
    return found


def end_processes(descendants: list[Descendant], grace_s: float) -> None:
    """Terminate processes, wait for ``grace_s``, and kill those that remain."""
    for one in descendants:
        one.signal(signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline and any(one.is_alive for one in descendants):
        time.sleep(_STEP_S)
    for one in descendants:
        one.signal(signal.SIGKILL)


def _facts(pid: int) -> list[bytes] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()
    except OSError:
        return None
