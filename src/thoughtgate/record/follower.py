"""Reading a record on while it is being written, through every file that is put aside."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thoughtgate.errors import StoreError
from thoughtgate.record.reader import read_entry, read_lines, record_files
from thoughtgate.record.verification import Line


class Follower:
    """Reads on where it stopped.

    The first reading gives the current file, or with ``tail_bytes`` only its end: a line
    that the cut goes through is left out.
    """

    def __init__(self, path: Path, *, tail_bytes: int = 0, rotated: bool = False) -> None:
        """Follow the record at ``path``; with ``rotated`` begin with the oldest file there is."""
        self._path = path
        self._from_start = rotated or not path.exists()
        self._tail_bytes = 0 if self._from_start else tail_bytes
        self._first_inode = 0
        self._inode = 0
        self._offset = 0
        self._number = 0

    def read(self) -> Iterator[dict[str, Any]]:
        """Give the events that came since the last time; empty for a line that is none."""
        for line in self.lines():
            yield read_entry(line).event

    def lines(self) -> Iterator[Line]:
        """Give the whole lines that came since the last time."""
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
        """Return the files that were put aside before the first one it read, oldest first."""
        files, known = self._known()
        return files[: known.index(self._first_inode)] if self._first_inode in known else []

    def _files(self) -> list[Path]:
        if not self._path.is_file():
            return []  # not there yet, or gone: what was put aside is no news
        files, known = self._known()
        if self._inode in known:
            return files[known.index(self._inode) :]
        return files if self._from_start else files[-1:]

    def _known(self) -> tuple[list[Path], list[int]]:
        """Return the files of the record that are there now, and what tells them apart."""
        try:
            files = record_files(self._path)
            return files, [file.stat().st_ino for file in files]
        except (StoreError, FileNotFoundError):
            return [], []  # removed at this very moment
