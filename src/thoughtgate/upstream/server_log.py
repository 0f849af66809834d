"""The last lines of a server's standard error, kept for the operator."""

from collections import deque
from typing import Final

from thoughtgate.errors import visible
from thoughtgate.wire.lines import LineSplitter

KEPT_LINES: Final = 1000
"""Number of lines kept per server."""

MAX_LINE: Final = 4096
"""Maximum length of a kept line in bytes."""


class ServerLog:
    """A bounded log of one server."""

    def __init__(self, kept: int = KEPT_LINES) -> None:
        self._lines: deque[str] = deque(maxlen=kept)
        self._splitter = LineSplitter(64 * 1024)

    def take(self, chunk: bytes) -> list[str]:
        """Add a chunk of output, and return the lines that it completes."""
        lines = [_readable(line) for line in self._splitter.feed(chunk)]
        self._lines.extend(lines)
        return lines

    def add(self, line: str) -> None:
        """Add a line written by the gate itself."""
        self._lines.append(line)

    def tail(self, count: int) -> list[str]:
        """Return the last lines, oldest first."""
        return list(self._lines)[-count:] if count > 0 else []


def _readable(line: bytes) -> str:
    """Return a line with control characters written out, so that it cannot control the terminal."""
    return visible(line[:MAX_LINE].rstrip(b"\r").decode("utf-8", "replace"), kept="\t")
