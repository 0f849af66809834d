"""Limiting how many record events a peer can cause without making a call.

A server can send notifications as fast as it likes, an agent pings, and anyone who can reach a
listener can be rejected over and over. If each of these were recorded, they could push all other
events out of a record that keeps only its last files. So a number of such events per minute is
recorded for each session, type and direction; the others are folded into one event that
contains the last of them and their number. Events of calls are never folded.
"""

from typing import Any, Final, TypeAlias

from thoughtgate.core.record_events import (
    AGENT_AUTH_REJECTED,
    AGENT_CONNECTED,
    FRAME_REFUSED,
    MESSAGE,
    REQUEST_FAILED,
    TOOLS_LIST,
    UNREAD_HTTP,
    Record,
)

WINDOW_S: Final = 60.0

MAX_EACH: Final = 100
"""Events of one key that are recorded individually in that time."""

MAX_DETAILS: Final = 32
"""Methods or checks per session, type and direction that are counted separately; peers choose
the names of methods, so any further ones are counted together."""

MAX_KEYS: Final = 4096
"""Keys that are counted separately; in further sessions, events are counted by type only."""

_TOLD_IN: Final = {
    AGENT_AUTH_REJECTED: "agent",
    AGENT_CONNECTED: "agent",
    FRAME_REFUSED: "frame",
    MESSAGE: "message",
    REQUEST_FAILED: "request",
    TOOLS_LIST: "list",
}
"""The types that are folded, with the member of each that describes what happened."""

_DETAIL: Final = {
    FRAME_REFUSED: "check",
    MESSAGE: "method",
    REQUEST_FAILED: "kind",
    TOOLS_LIST: "method",
}

Key: TypeAlias = tuple[str, ...]
"""Type, session, server, direction and detail."""


def is_repeatable(record: Record) -> bool:
    """Tell whether a peer can cause an event as often as it likes without making a call."""
    return record.type in _TOLD_IN


class RepeatedEvents:
    """Counts the events that peers cause besides calls, and folds them."""

    def __init__(self) -> None:
        self._began = 0.0
        self._counts: dict[Key, int] = {}
        """Events per key since then."""
        self._details: dict[Key, int] = {}
        """Details that are counted separately, per key without its detail."""
        self._first: dict[Key, str] = {}
        """Per key, the correlation id of the first event that was not recorded."""
        self._last: dict[Key, tuple[Record, int]] = {}
        """Per key, the last event that was not recorded, and the bytes of all that were not."""

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
            self._details.clear()
        key = self._key(record)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count <= MAX_EACH:
            return [*due, record]
        size = self._last[key][1] if key in self._last else 0
        if key not in self._last:
            self._first[key] = _correlation_id(record)
        self._last[key] = record, size + _size(record)
        return due

    def due(self, at: float) -> list[Record]:
        """Return the folded events, once their minute is over."""
        return [] if self._is_current(at) else self.rest()

    def rest(self) -> list[Record]:
        """Return the folded events now."""
        told = []
        for key, (record, size) in self._last.items():
            member = _TOLD_IN[record.type]
            said = {**record.body[member], "repeated": self._counts[key] - MAX_EACH}
            if "bytes" in said:
                said["repeated_bytes"] = size
            if first := self._first.get(key):
                said["first_correlation_id"] = first
            told.append(record._replace(body={**record.body, member: said}))
            self._counts[key] = MAX_EACH
        self._last.clear()
        self._first.clear()
        return told

    def _key(self, record: Record) -> Key:
        kind = record.type
        said = record.body.get(_TOLD_IN[kind]) or {}
        detail = str(said.get(_DETAIL.get(kind, ""), ""))
        if kind in {AGENT_AUTH_REJECTED, AGENT_CONNECTED} or detail == UNREAD_HTTP:
            # Each connection of such a client would be a new session.
            return (kind,)
        place = (kind, record.session, record.server, str(said.get("direction", "")))
        key = (*place, detail)
        if key in self._counts:
            return key
        if len(self._counts) >= MAX_KEYS:
            return (kind,)
        details = self._details.get(place, 0)
        if details >= MAX_DETAILS:
            return place
        self._details[place] = details + 1
        return key

    def _is_current(self, at: float) -> bool:
        # If the clock was set back, start a new minute.
        return 0 <= at - self._began < WINDOW_S


def _correlation_id(record: Record) -> str:
    return str(record.body[_TOLD_IN[record.type]].get("correlation_id", ""))


def _size(record: Record) -> int:
    said: dict[str, Any] = record.body.get(_TOLD_IN[record.type]) or {}
    size = said.get("bytes", 0)
    return size if type(size) is int else 0
