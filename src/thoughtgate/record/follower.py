"""Following a record while it is written, across file rotations."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thoughtgate.errors import StoreError
from thoughtgate.record.reader import read_entry, read_lines, record_files
from thoughtgate.record.verification import RecordLine


class Follower:
    """Reads the lines added since the previous read.

    The first read returns the current file, or with ``tail_bytes`` only its end without the
    line that is cut in half.
    """

    def __init__(self, path: Path, *, tail_bytes: int = 0, rotated: bool = False) -> None:
        """Follow the record at ``path``; with ``rotated``, start with the oldest file."""
        self._path = path
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
        """Yield the complete lines added since the last read."""
        for file in self._files():
            status = file.stat()
            cut = False
            self._first_inode = self._first_inode or status.st_ino
            if status.st_ino != self._inode:
                self._inode, self._offset, self._number = status.st_ino, 0, 0
                if self._tail_bytes and status.st_size > self._tail_bytes:
                    self._offset, cut = status.st_size - self._tail_bytes, True
                self._tail_bytes = 0
            for line in read_lines(file, self._offset, self._number):
                if line.ended:
                    self._offset += line.size
                    self._number = line.number
                    if not cut:
                        yield line
                    cut = False

    def older(self) -> list[Path]:
        """Return the files that were rotated before the first one that was read, oldest first."""
        files, known = self._known()
        return files[: known.index(self._first_inode)] if self._first_inode in known else []

    def _files(self) -> list[Path]:
        if not self._path.is_file():
            return []  # not created yet, or removed: rotated files contain nothing new
        files, known = self._known()
        if self._inode in known:
            return files[known.index(self._inode) :]
        return files if self._from_start else files[-1:]

    def _known(self) -> tuple[list[Path], list[int]]:
        """Return the current files of the record and their inodes."""
        try:
            files = record_files(self._path)
            return files, [file.stat().st_ino for file in files]
        except (StoreError, FileNotFoundError):
            return [], []  # removed at this very moment
