"""A progress line for long work, shown only on a terminal."""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Self, TypeVar

SHOWN_AFTER_S: Final = 1.0
"""Shorter work shows no progress line."""

SHOWN_EVERY_S: Final = 0.1
"""Minimum time between two updates."""

COUNTED: Final = 1000
"""Items between two reads of the clock; reading it for each would cost more than the work."""

_COLUMNS: Final = 80
"""Width to assume for a terminal that does not report its own."""

_Item = TypeVar("_Item")


class Progress:
    """The progress line of one piece of work, on stderr; cleared when the work ends."""

    def __init__(self, *, wanted: bool = True) -> None:
        self._is_wanted = wanted and sys.stderr.isatty()
        self._due_at = time.monotonic() + SHOWN_AFTER_S
        self._shown = 0

    def __enter__(self) -> Self:
        """Start the work."""
        return self

    def __exit__(self, *error: object) -> None:
        """Clear the line, even if the work failed."""
        self.clear()

    def is_due(self) -> bool:
        """Return whether it is time to update the line."""
        return self._is_wanted and time.monotonic() >= self._due_at

    def count(self, items: Iterable[_Item], total: int, doing: str) -> Iterator[_Item]:
        """Yield the items one by one and show how many have been processed."""
        for number, item in enumerate(items):
            if number % COUNTED == 0 and self.is_due():
                self.show(f"{doing}: {number:,} of {total:,}")
            yield item

    def show(self, text: str) -> None:
        """Replace the text of the line."""
        self._due_at = time.monotonic() + SHOWN_EVERY_S
        # A line that fills the terminal would wrap, and a wrapped line cannot be cleared.
        text = text[: _columns() - 1]
        _write(f"\r{text.ljust(self._shown)}")
        self._shown = len(text)

    def clear(self) -> None:
        """Clear the line for the next output."""
        if self._shown:
            _write(f"\r{' ' * self._shown}\r")
            self._shown = 0


class Reading(Progress):
    """The progress of reading the files of a record."""

    def __init__(self, files: Iterable[Path], *, wanted: bool = True) -> None:
        super().__init__(wanted=wanted)
        self._total = sum(map(_size, files))
        self._read: dict[Path, tuple[int, int]] = {}

    def read(self, file: Path, lines: int, size: int) -> None:
        """Update how much of a file has been read."""
        self._read[file] = lines, size
        if self.is_due():
            lines, size = map(sum, zip(*self._read.values(), strict=True))
            # A gate may append to the record at the same time, so more than the total may be read.
            percent = min(100, 100 * size // max(1, self._total))
            self.show(f"reading the record: {lines:,} lines, {percent} %")


def _size(file: Path) -> int:
    """Return the size of a file, or 0 if it has just been rotated away."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS


def _write(text: str) -> None:
    """Write to the terminal; if the terminal is gone, the work still continues."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
