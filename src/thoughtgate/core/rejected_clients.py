"""Limits how many events unauthenticated clients can cause on the record.

Anyone who can reach a listener can be rejected as often as they like. If each rejection were
recorded, they could push all other events out of a record that keeps only its last files. So
per type a number of events per minute is recorded; the others are folded into one event that
contains the last of them and their number.
"""

from typing import Final

from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, FRAME_REFUSED, UNREAD_HTTP, Record

WINDOW_S: Final = 60.0

MAX_EACH: Final = 100
"""Events per type that are recorded individually in that time."""

_TOLD_IN: Final = {AGENT_AUTH_REJECTED: "agent", FRAME_REFUSED: "frame"}
"""The member of each type that describes what happened."""


def is_rejected_client(record: Record) -> bool:
    """Tell whether an unauthenticated client can cause an event."""
    if record.type == FRAME_REFUSED:
        return bool(record.body["frame"]["check"] == UNREAD_HTTP)
    return record.type == AGENT_AUTH_REJECTED


class RejectedClients:
    """Counts the events that unauthenticated clients cause, and folds them."""

    def __init__(self) -> None:
        self._began = 0.0
        self._counts: dict[str, int] = {}
        """Events per type since then."""
        self._last: dict[str, Record] = {}
        """Per type, the last event that was not recorded."""

    @property
    def is_behind(self) -> bool:
        """Whether folded events are still to be recorded."""
        return bool(self._last)

    def take(self, record: Record) -> list[Record]:
        """Return the events to record: usually the event itself, in a flood none."""
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
        """Return the folded events, once their minute is over."""
        return [] if self._is_current(at) else self.rest()

    def rest(self) -> list[Record]:
        """Return the folded events now."""
        told = []
        for kind, record in self._last.items():
            member = _TOLD_IN[kind]
            said = {**record.body[member], "repeated": self._counts[kind] - MAX_EACH}
            told.append(record._replace(body={**record.body, member: said}))
            self._counts[kind] = MAX_EACH
        self._last.clear()
        return told

    def _is_current(self, at: float) -> bool:
        # If the clock was set back, start a new minute.
        return 0 <= at - self._began < WINDOW_S
