"""Server-sent events: splitting a byte stream into events, and writing events.

An event keeps its original bytes, so that an unchanged event is forwarded byte for byte, with
ids, ``retry``, comments and empty data. Data is not interpreted here.
"""

import re
from typing import Final, NamedTuple

MAX_EVENT: Final = 10 * 1024 * 1024 + 65_536
"""Maximum bytes of an event: the largest message on stdio, plus the other fields."""

MEDIA_TYPE: Final = b"text/event-stream"

_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")
_EVENT_END: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
"""A blank line. A CR is a line end only if it is certainly not followed by an LF."""
_ODD_ENDS: Final = re.compile(rb"\r(?!\n)|[\x0b\x0c\x1c-\x1e]|\xc2\x85|\xe2\x80[\xa8\xa9]")
"""Characters that end a line only for some readers, such as Python's ``splitlines``."""
_FIELD: Final = rb"(?:data|id|event|retry)?(?:[:\r\n]|\Z)"
_UNKNOWN: Final = re.compile(rb"(?:\A|[\r\n])(?!" + _FIELD + rb")")
"""The beginning of a line with a field that the specification does not define. A byte order mark
before a known name makes one: readers ignore the mark at the beginning of a stream."""
_KNOWN: Final = re.compile(_FIELD)
_BOM: Final = b"\xef\xbb\xbf"


class EventTooLongError(ValueError):
    """An event exceeds the maximum length."""


class Event(NamedTuple):
    """One event and its original bytes."""

    raw: bytes
    """As received, including the blank line at its end."""
    data: bytes | None
    """The data lines joined by LF; None when the event has no data field."""
    id: bytes | None
    """The event's id; None when it has none."""
    name: bytes = b""
    """The ``event`` field; empty means ``message``."""

    @property
    def is_message(self) -> bool:
        """Whether this event is delivered to a reader that listens for messages."""
        return bool(self.data) and self.name in {b"", b"message"}


class EventSplitter:
    """Splits chunks into complete events."""

    def __init__(self, limit: int = MAX_EVENT) -> None:
        self._limit = limit
        self._held = bytearray()
        self._seen = 0
        self._fresh = True

    def feed(self, chunk: bytes) -> list[Event]:
        """Add a chunk and return the events that are now complete.

        Raises:
            EventTooLongError: an event is longer than the limit.
        """
        self._held += chunk
        # Readers ignore a byte order mark at the start of a stream, and only there.
        if self._fresh and len(self._held) >= len(_BOM):
            self._fresh = False
            if self._held.startswith(_BOM):
                del self._held[: len(_BOM)]
        held = self._held
        events = []
        start = 0
        # Bytes searched before contain no event end, except for a blank line split in two.
        position = max(0, self._seen - 3)
        while (found := _EVENT_END.search(held, position)) is not None:
            end = found.end()
            if end == len(held) and held.endswith(b"\r"):
                break  # The LF of a CRLF may be in the next chunk.
            if end - start > self._limit:
                raise EventTooLongError(f"an event is over {self._limit} bytes")
            events.append(parse_event(bytes(held[start:end])))
            start = position = end
        del held[:start]
        self._seen = len(held)
        if len(held) > self._limit:
            raise EventTooLongError(f"an event is over {self._limit} bytes")
        return events

    def close(self) -> list[Event]:
        """End the stream and return an event whose blank line ended in a bare CR.

        Data without a final blank line is not an event and is dropped, as the specification of
        server-sent events requires.
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
        elif field == b"id" and b"\0" not in value:  # as the specification requires
            ident = value
        elif field == b"event":
            name = value
    return Event(raw, b"\n".join(data) if data else None, ident, name)


def with_one_reading(event: Event) -> Event:
    """Return an event that all readers split into the same lines and fields.

    Otherwise a comment or an unknown field could contain a message that some readers see and that
    was not judged. Data lines stay unchanged: their content is judged as a message.
    """
    if _ODD_ENDS.search(event.raw) is None and _UNKNOWN.search(event.raw) is None:
        return event
    lines = [
        line
        for line in _LINE_ENDS.split(event.raw)
        if line
        and (line.startswith(b"data:") or (_KNOWN.match(line) and not _ODD_ENDS.search(line)))
    ]
    return event._replace(raw=b"\n".join(lines) + b"\n\n")


def render_event(data: bytes) -> bytes:
    """Render an event that contains a message of one line."""
    return b"event: message\ndata: %b\n\n" % data


def replace_data(event: Event, data: bytes | None) -> bytes:
    """Render an event with other data; its other fields and comments stay unchanged.

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
