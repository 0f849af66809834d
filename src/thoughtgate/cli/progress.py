"""One line on a terminal that tells how far long work has come; nothing anywhere else."""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

SHOWN_AFTER_S: Final = 1.0
"""Work that takes no longer shows nothing."""

SHOWN_EVERY_S: Final = 0.1
"""Time between two updates, at the least."""

COUNTED: Final = 1000
"""Items between two looks at the clock."""

_COLUMNS: Final = 80
"""Width of a terminal that does not tell its own."""

_Item = TypeVar("_Item")


class Progress:
    """The line of one piece of work, on stderr if that is a terminal, gone when the work ends."""

    def __init__(self, *, wanted: bool = True) -> None:
        self._is_wanted = wanted and sys.stderr.isatty()
        self._due_at = time.monotonic() + SHOWN_AFTER_S
        self._shown = 0

    def __enter__(self) -> Self:
        """Begin the work."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the work, however it went."""
        self.clear()

    def is_due(self) -> bool:
        """Tell whether it is time to show how far the work is."""
        return self._is_wanted and time.monotonic() >= self._due_at

    def count(self, items: Iterable[_Item], total: int, doing: str) -> Iterator[_Item]:
        """Give the items one by one and show how many of them were taken."""
        for number, item in enumerate(items):
            if number % COUNTED == 0 and self.is_due():
                self.show(f"{doing}: {number:,} of {total:,}")
            yield item

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        self._due_at = time.monotonic() + SHOWN_EVERY_S
        # A line that fills the terminal would go on in the next, and could not be cleared.
        text = text[: _columns() - 1]
        _write(f"\r{text.ljust(self._shown)}")
        self._shown = len(text)

    def clear(self) -> None:
        """Leave the terminal's line empty for what is said next."""
        if self._shown:
            _write(f"\r{' ' * self._shown}\r")
            self._shown = 0


class Reading(Progress):
    """How far the files of a record are read."""

    def __init__(self, files: Iterable[Path], *, wanted: bool = True) -> None:
        super().__init__(wanted=wanted)
        self._total = sum(map(_size, files))
        self._read: dict[Path, tuple[int, int]] = {}

    def read(self, file: Path, lines: int, size: int) -> None:
        """Take note of how much of a file has been read."""
        self._read[file] = lines, size
        if self.is_due():
            lines, size = map(sum, zip(*self._read.values(), strict=True))
            # A gate may be adding to the record meanwhile.
            percent = min(100, 100 * size // max(1, self._total))
            self.show(f"reading the record: {lines:,} lines, {percent} %")


def _size(file: Path) -> int:
    """Return the size of a file, nothing for one that was put aside just now."""
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
    """Write to the terminal; that it is gone is no reason to give the work up."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
