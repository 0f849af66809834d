"""Following a record while it is written, across file rotations."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from thoughtgate.errors import StoreError
from thoughtgate.record.call_rows import event_time
from thoughtgate.record.file import traffic_path
from thoughtgate.record.reader import read_entry, read_lines, record_files
from thoughtgate.record.verification import RecordLine

_LOOKS: Final = 5
"""How often the files are listed again because a rotation happened during the listing."""


class RecordFollower:
    """Reads the events added to a record and to its traffic since the previous read, by time."""

    def __init__(self, path: Path, *, tail_bytes: int = 0, rotated: bool = False) -> None:
        """Follow the record at ``path``, as ``Follower`` does for one chain."""
        self._followers = [
            Follower(one, tail_bytes=tail_bytes, rotated=rotated)
            for one in (path, traffic_path(path))
        ]

    def read(self) -> list[dict[str, Any]]:
        """Return the events added since the last read, without invalid lines."""
        events = [event for one in self._followers for event in one.read() if event]
        return sorted(events, key=event_time)

    def lines(self) -> Iterator[RecordLine]:
        """Yield the complete lines that were added since the last read, chain by chain."""
        for one in self._followers:
            yield from one.lines()


class Follower:
    """Reads the lines added to one chain since the previous read.

    The first read returns the current file, or with ``tail_bytes`` only its end, from the first
    line that begins there.
    """

    def __init__(self, path: Path, *, tail_bytes: int = 0, rotated: bool = False) -> None:
        """Follow the record at ``path``; with ``rotated``, start with the oldest file."""
        self._path = path
        # A record that does not exist yet has no old events to leave out.
        self._from_start = rotated or not path.exists()
        self._tail_bytes = 0 if self._from_start else tail_bytes
        self._first_inode = 0
        self._inode = 0
        self._offset = 0
        self._number = 0

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the events added since the last read; an empty dict for an invalid line."""
        for line in self.lines():
            yield read_entry(line).event

    def lines(self) -> Iterator[RecordLine]:
        """Yield the complete lines that were added since the last read."""
        for file, status in self._files():
            cut = False
            self._first_inode = self._first_inode or status.st_ino
            if status.st_ino != self._inode:
                self._inode, self._offset, self._number = status.st_ino, 0, 0
                if self._tail_bytes and status.st_size > self._tail_bytes:
                    self._offset, cut = status.st_size - self._tail_bytes, True
                self._tail_bytes = 0
            # If it was rotated after it was listed, the next read finds it under its new name.
            for line in read_lines(file, self._offset, self._number, inode=status.st_ino):
                # A line that is still being written is read again from its beginning next time.
                if line.ended:
                    self._offset += line.size
                    self._number = line.number
                    if not cut:
                        yield line
                    cut = False

    def older(self) -> list[Path]:
        """Return the files that were rotated before the first one that was read, oldest first."""
        known = self._known()
        inodes = [status.st_ino for _, status in known]
        at = inodes.index(self._first_inode) if self._first_inode in inodes else 0
        return [file for file, _ in known[:at]]

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        if not self._path.is_file():
            return []  # There is no current file; rotated files hold nothing new.
        known = self._known()
        inodes = [status.st_ino for _, status in known]
        if self._inode in inodes:
            return known[inodes.index(self._inode) :]
        return known if self._from_start else known[-1:]

    def _known(self) -> list[tuple[Path, os.stat_result]]:
        """Return the files of the record that exist now, with the inodes that identify them.

        A file that is rotated between listing the names and reading their status would be missed,
        so a list counts only if it is the same afterwards.
        """
        for _ in range(_LOOKS):
            try:
                files = record_files(self._path)
                known = [(file, file.stat()) for file in files]
                if record_files(self._path) == files:
                    return known
            except (StoreError, FileNotFoundError):
                return []  # removed in the meantime
        return []  # the next read tries again
