"""Splitting a byte stream into lines, with a bound on each.

A line ends at LF. What a line means is ``wire.frame``'s business; here only its
length matters: a line over the limit is thrown away up to its LF and reported once,
so that one huge message costs no memory and does not end the stream.
"""

from typing import Final

MAX_LINE: Final = 10 * 1024 * 1024
"""Ten MiB a message, the number that the stdio requirement gives."""

HEAD: Final = 4096
"""How much of an oversized line is kept: enough to find the id it asked with."""


class Oversized(bytes):
    """The head of a line that was too long to keep."""

    __slots__ = ()


class LineSplitter:
    """Feed chunks, get whole lines without their LF."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._length = 0
        self._skipping = False

    @property
    def pending(self) -> int:
        """Bytes of the unfinished line that are held."""
        return self._length

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next chunk and return the lines it completes."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        self._hold(first)
        lines = [self._take()]
        last = rest.pop()
        lines += [line if len(line) <= self._limit else Oversized(line[:HEAD]) for line in rest]
        self._hold(last)
        return lines

    def close(self) -> list[bytes]:
        """The stream has ended: return what stands without a line end."""
        if not self._length and not self._skipping:
            return []
        return [self._take()]

    def _hold(self, part: bytes) -> None:
        if self._skipping or not part:
            return
        self._parts.append(part)
        self._length += len(part)
        if self._length > self._limit:
            head = b"".join(self._parts)[:HEAD]
            self._parts = [head]
            self._length = len(head)
            self._skipping = True

    def _take(self) -> bytes:
        line = b"".join(self._parts) if len(self._parts) != 1 else self._parts[0]
        oversized = self._skipping
        self._parts = []
        self._length = 0
        self._skipping = False
        return Oversized(line) if oversized else line
