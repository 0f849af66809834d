"""Splitting of a byte stream into lines of bounded length.

A line ends at LF; ``wire.frame`` interprets it. A line over the limit is discarded up to its LF
and reported once, so that one huge message uses no memory and does not end the stream.
"""

from typing import Final

MAX_LINE: Final = 10 * 1024 * 1024
"""Maximum length of a line in bytes: ten MiB."""

HEAD: Final = 4096
"""Bytes kept of the start of an oversized line, enough to find the request's id."""

TAIL: Final = 1024
"""Bytes kept of its end, because the Python and TypeScript SDKs write the id last."""


class Oversized(bytes):
    """The start and the end of a line that was too long to keep."""

    length: int
    """The length of the whole line."""


def oversized(head: bytes, tail: bytes, length: int) -> Oversized:
    """Return the placeholder for a line that was too long to keep."""
    line = Oversized(head[:HEAD] + tail[-TAIL:])
    line.length = length
    return line


def length_of(line: bytes) -> int:
    """Return the original length of a line."""
    return line.length if isinstance(line, Oversized) else len(line)


class LineSplitter:
    """Splits chunks into complete lines without their LF."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._held = bytearray()
        """The unfinished line, in one buffer: a list of small chunks would need far more memory."""
        self._length = 0
        self._tail: bytes | None = None
        """The last bytes of a line that is already too long; None if it is not."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk and return the lines that are now complete."""
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
        """End the stream and return an unterminated last line."""
        return [self._take()] if self._length else []

    def _hold(self, part: bytes) -> None:
        if not part:
            return
        self._length += len(part)
        # Of a line that is already too long, only the last bytes are still of use.
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
