"""Splitting a byte stream into lines, with a bound on each.

A line ends at LF. What a line means is ``wire.frame``'s business; here only its
length matters: a line over the limit is thrown away up to its LF and reported once,
so that one huge message costs no memory and does not end the stream.
"""

from typing import Final

MAX_LINE: Final = 10 * 1024 * 1024
"""Ten MiB a message, the number that the stdio requirement gives."""

HEAD: Final = 4096
"""How much of an oversized line's beginning is kept: enough to find the id it asked with."""

TAIL: Final = 1024
"""How much of its end is kept: the SDKs of Python and TypeScript write the id last."""


class Oversized(bytes):
    """The head and the tail of a line that was too long to keep."""

    length: int
    """Bytes that the whole line had."""


def oversized(head: bytes, tail: bytes, length: int) -> Oversized:
    """Stand in for a line that was too long to keep."""
    line = Oversized(head[:HEAD] + tail[-TAIL:])
    line.length = length
    return line


def length_of(line: bytes) -> int:
    """Return how long a line was when it arrived."""
    return line.length if isinstance(line, Oversized) else len(line)


class LineSplitter:
    """Feed chunks, get whole lines without their LF."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._held = bytearray()
        """The unfinished line: one buffer, since a list of tiny reads would cost many times as much."""
        self._length = 0
        self._tail: bytes | None = None
        """The newest bytes of a line that is already too long; None while it is not."""

    @property
    def pending(self) -> int:
        """Bytes of the unfinished line that arrived so far."""
        return self._length

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next chunk and return the lines it completes."""
        first, *rest = chunk.split(b"\n")
        self._hold(first)
        if not rest:
            return []
        last = rest.pop()
        lines = [self._take()]
        limit = self._limit
        lines += [line if len(line) <= limit else oversized(line, line, len(line)) for line in rest]
        self._hold(last)
        return lines

    def close(self) -> list[bytes]:
        """The stream has ended: return what stands without a line end."""
        return [self._take()] if self._length else []

    def _hold(self, part: bytes) -> None:
        if not part:
            return
        self._length += len(part)
        if self._tail is not None:
            self._tail = (self._tail + part[-TAIL:])[-TAIL:]
            return
        self._held += part
        if self._length > self._limit:
            self._tail = bytes(self._held[-TAIL:])
            self._held = self._held[:HEAD]

    def _take(self) -> bytes:
        line, length, tail = bytes(self._held), self._length, self._tail
        self._held, self._length, self._tail = bytearray(), 0, None
        return line if tail is None else oversized(line, tail, length)
