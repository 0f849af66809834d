"""Server-sent events: splitting a byte stream into events, and writing events.

An event keeps the bytes it came in, so that what nobody changed goes on byte for byte:
ids, ``retry``, comments, empty data and foreign fields included. What the data means is
not known here.
"""

import re
from typing import Final, NamedTuple

MAX_EVENT: Final = 10 * 1024 * 1024 + 65_536
"""Bytes of one event: a message of the largest size that stdio takes, and its other fields."""

MEDIA_TYPE: Final = b"text/event-stream"

_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")
_EVENT_END: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
"""A blank line. Only a CR that is known not to begin a CRLF is a line end of its own."""
_ODD_ENDS: Final = re.compile(rb"\r(?!\n)|[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]")
"""What ends a line to some readers only. Python's ``splitlines`` goes by all of them."""
_BOM: Final = b"\xef\xbb\xbf"


class EventTooLongError(ValueError):
    """An event never ended within the limit."""


class Event(NamedTuple):
    """One event, and the bytes it was."""

    raw: bytes
    """As received, the blank line at its end included."""
    data: bytes | None
    """The data lines joined by LF; None when the event has no data field."""
    id: bytes | None
    """The event's id; None when it has none."""
    name: bytes = b""
    """The ``event`` field; empty means ``message``."""

    @property
    def is_message(self) -> bool:
        """Whether a reader that listens for messages is given this event's data."""
        return bool(self.data) and self.name in {b"", b"message"}


class EventSplitter:
    """Feed chunks, get whole events."""

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._held = bytearray()
        self._seen = 0
        self._fresh = True

    @property
    def pending(self) -> int:
        """Bytes of the unfinished event that are held."""
        return len(self._held)

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next chunk and return the events it completes.

        Raises:
            EventTooLongError: an event does not end within the limit.
        """
        self._held += chunk
        if self._fresh and len(self._held) >= len(_BOM):
            self._fresh = False
            if self._held.startswith(_BOM):
                del self._held[: len(_BOM)]
        held = self._held
        events = []
        start = 0
        # What was looked at before cannot end an event, but for a blank line cut in two.
        position = max(0, self._seen - 3)
        while (found := _EVENT_END.search(held, position)) is not None:
            end = found.end()
            if end == len(held) and held.endswith(b"\r"):
                break  # The LF of a CRLF may be in the next chunk.
            events.append(parse_event(bytes(held[start:end])))
            start = position = end
        del held[:start]
        self._seen = len(held)
        if len(held) > self._limit:
            raise EventTooLongError(f"an event is over {self._limit} bytes")
        return events

    def close(self) -> list[Event]:
        """The stream has ended: return an event whose blank line ended in a bare CR.

        What stands without a blank line is not an event and is dropped, as the
        specification of server-sent events demands.
        """
        held, self._held = bytes(self._held), bytearray()
        if held.endswith((b"\r\r", b"\n\r")):
            return [parse_event(held)]
        return []


def parse_event(raw: bytes) -> Event:
    """Read the fields of one event."""
    data: list[bytes] = []
    ident: bytes | None = None
    name = b""
    for line in _LINE_ENDS.split(raw):
        field, colon, value = line.partition(b":")
        if not field:
            continue
        if colon and value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            data.append(value)
        elif field == b"id" and b"\0" not in value:
            ident = value
        elif field == b"event":
            name = value
    return Event(raw, b"\n".join(data) if data else None, ident, name)


def with_one_reading(event: Event) -> Event:
    """Return an event that readers with other ideas of a line end split like everybody.

    A comment could otherwise hold a message that such a reader sees and nobody has judged.
    Data lines stay: what they hold is judged as a message.
    """
    if _ODD_ENDS.search(event.raw) is None:
        return event
    lines = [
        line
        for line in _LINE_ENDS.split(event.raw)
        if line and (line.startswith(b"data:") or _ODD_ENDS.search(line) is None)
    ]
    return event._replace(raw=b"\n".join(lines) + b"\n\n")


def render_event(data: bytes, *, ident: bytes | None = None, name: bytes = b"message") -> bytes:
    """Write one event that carries a message of one line."""
    head = b"id: %b\n" % ident if ident is not None else b""
    return b"%bevent: %b\ndata: %b\n\n" % (head, name, data)


def replace_data(event: Event, data: bytes | None) -> bytes:
    """Write an event again with other data; its other fields and comments stay as they are.

    With None the data is emptied: readers skip such an event but remember its id.
    """
    lines = []
    placed = False
    for line in _LINE_ENDS.split(event.raw):
        if line == b"data" or line.startswith(b"data:"):
            if not placed:
                lines.append(b"data: %b" % data if data is not None else b"data:")
                placed = True
        elif line:
            lines.append(line)
    return b"\n".join(lines) + b"\n\n"
