"""Two framings of one stream: newline-delimited JSON, and headers with ``Content-Length``.

The MCP stdio transport has one message per line; some clients send a header block before each
message, as for language servers. The first bytes determine the framing of the whole stream, and
responses use the client's framing. Frames are not interpreted here.
"""

import re
from typing import Final

from thoughtgate.wire.batch import one_line
from thoughtgate.wire.lines import HEAD, MAX_LINE, LineSplitter, oversized

LINES: Final = "lines"
HEADERS: Final = "headers"

MAX_HEADER: Final = 4096
"""Maximum bytes of a header block; two short lines are usual."""

_OPENING: Final = re.compile(rb"[A-Za-z-]{1,32}:")
_LENGTH: Final = re.compile(
    rb"(?:^|\n)content-length:[ \t]*([0-9]{1,12})[ \t]*\r?(?:\n|$)", re.IGNORECASE
)
_BLANK: Final = re.compile(rb"\r?\n\r?\n")
_UNREADABLE: Final = b"\xff"
"""Returned for a header block without a length; it is never a valid message."""


class FrameSplitter:
    """Splits chunks into complete frames, with the framing that the first bytes show."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._lines = LineSplitter(limit)
        self._held = b""
        self._skip = 0
        self.framing = ""
        """``lines`` or ``headers`` once known; empty before the first byte."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add a chunk and return the frames that are now complete."""
        if self.framing == LINES:
            return self._lines.feed(chunk)
        self._held += chunk
        if not self.framing and not self._recognise():
            return []
        if self.framing == LINES:
            held, self._held = self._held, b""
            return self._lines.feed(held)
        return self._take_frames()

    def close(self) -> list[bytes]:
        """End the stream and return the incomplete rest."""
        if self.framing == LINES:
            return self._lines.close()
        held, self._held = self._held.strip(b"\r\n"), b""
        return [held] if held else []

    def frame(self, data: bytes) -> bytes:
        """Return a message in the framing of the stream."""
        if self.framing == HEADERS:
            return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
        return data + b"\n"

    def _recognise(self) -> bool:
        start = self._held.lstrip(b" \t\r\n")
        if not start:
            self._held = b""
            return False
        if _OPENING.match(start):
            self.framing = HEADERS
            self._held = start
        elif start[:1].isalpha() and len(start) <= MAX_HEADER and b"\n" not in start:
            # A header name that is still incomplete: no JSON-RPC message begins with a letter.
            return False
        else:
            self.framing = LINES
        return True

    def _take_frames(self) -> list[bytes]:
        frames: list[bytes] = []
        while True:
            if self._skip:
                dropped = min(self._skip, len(self._held))
                self._skip -= dropped
                self._held = self._held[dropped:]
                if self._skip:
                    return frames
            frame = self._take_frame()
            if frame is None:
                return frames
            frames.append(frame)

    def _take_frame(self) -> bytes | None:
        self._held = self._held.lstrip(b"\r\n")
        end = _BLANK.search(self._held, 0, MAX_HEADER)
        if end is None:
            if len(self._held) <= MAX_HEADER:
                return None
            self._held = b""
            return _UNREADABLE
        length = _LENGTH.search(self._held[: end.end()])
        if length is None:
            self._held = self._held[end.end() :]
            return _UNREADABLE
        size = int(length[1])
        if size > self._limit:
            head = self._held[end.end() : end.end() + HEAD]
            # The body is dropped as it arrives, so a false length cannot fill the memory.
            self._skip = size
            self._held = self._held[end.end() :]
            return oversized(head, b"", size)
        if len(self._held) < end.end() + size:
            return None
        frame = self._held[end.end() : end.end() + size]
        self._held = self._held[end.end() + size :]
        # The length ends the message, so a body with line breaks is not ambiguous here.
        return one_line(frame)
