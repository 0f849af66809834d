"""What strangers cause on the record: written one by one while it is little, else counted.

Whoever can reach a listener can have himself turned away as often as he likes. If every
time were written, he could push everybody else's events out of a record that keeps its
last files only. So of each type some events a minute are written; the rest is one event
that tells the last of them and how many there were.
"""

from typing import Final

from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, FRAME_REFUSED, UNREAD_HTTP, Record

WINDOW_S: Final = 60.0

MAX_EACH: Final = 100
"""Events of one type that are written one by one in that time."""

_TOLD_IN: Final = {AGENT_AUTH_REJECTED: "agent", FRAME_REFUSED: "frame"}
"""The member of each type that says what happened."""


def is_rejected_client(record: Record) -> bool:
    """Tell whether somebody who has shown nothing of himself can cause an event."""
    if record.type == FRAME_REFUSED:
        return bool(record.body["frame"]["check"] == UNREAD_HTTP)
    return record.type == AGENT_AUTH_REJECTED


class RejectedClients:
    """Counts what strangers cause, and says what of it is written."""

    def __init__(self) -> None:
        self._began = 0.0
        self._counts: dict[str, int] = {}
        """Events of each type since then."""
        self._last: dict[str, Record] = {}
        """Of each type, the last event that was not written."""

    @property
    def is_behind(self) -> bool:
        """Whether events wait to be told as one."""
        return bool(self._last)

    def take(self, record: Record) -> list[Record]:
        """Return what is written when an event happens: often it alone, in a flood nothing."""
        due = self.due(record.at)
        if not self._is_current(record.at):
            self._began = record.at
            self._counts.clear()
        kind = record.type
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count <= MAX_EACH:
            return [*due, record]
        self._last[kind] = record
        return due

    def due(self, at: float) -> list[Record]:
        """Return what was not written one by one, once its time is over."""
        return [] if self._is_current(at) else self.rest()

    def rest(self) -> list[Record]:
        """Return what was not written one by one, now."""
        told = []
        for kind, record in self._last.items():
            member = _TOLD_IN[kind]
            said = {**record.body[member], "repeated": self._counts[kind] - MAX_EACH}
            told.append(record._replace(body={**record.body, member: said}))
            self._counts[kind] = MAX_EACH
        self._last.clear()
        return told

    def _is_current(self, at: float) -> bool:
        # A clock that was set back begins anew.
        return 0 <= at - self._began < WINDOW_S
