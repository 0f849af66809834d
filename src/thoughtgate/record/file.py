"""The record's file: appending from several processes at once, and rotation.

This module handles bytes, not events: a callback gets the chain of the last line and returns
the bytes to append. A batch is one ``write`` under an exclusive ``flock``; it is written
completely or, after a failure, truncated again. It survives the death of the process at any
moment, but survives power loss only with ``fsync``.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from thoughtgate.core.envelope import GENESIS, TRAFFIC, stated_chain
from thoughtgate.errors import RecordError
from thoughtgate.record.evidence import Torn, torn_bytes
from thoughtgate.wire.unchecked import unchecked

LOCK_WAIT_S: Final = 1.0
"""A batch holds the lock for microseconds; a process that holds it longer is suspended or hung."""

_LOCK_NOW: Final = fcntl.LOCK_EX | fcntl.LOCK_NB
_LOCK_PAUSE_S: Final = 0.0005
"""``flock`` has no timeout, so the lock is tried again after this pause."""
_TAIL_CHUNK: Final = 65_536
"""Bytes read first to find the last line; most lines are shorter, since previews are limited."""
_MAX_TAIL: Final = 64 * 1024 * 1024
"""How far back a valid line is looked for before the file counts as foreign."""
_ROTATE_AGAIN: Final = 1_048_576
"""How many more bytes are written before a failed rotation is tried again."""
_RETAIN_EVERY_S: Final = 3600.0
"""How often the directory is searched for files that have become too old."""
_DIGITS: Final = 6
_MAX_DIGITS: Final = 15
"""A longer number in a file's name is not ours: the store could not hold it."""


class Tail(NamedTuple):
    """The end of the file, from which an append continues."""

    chain: str
    """The chain in the last valid line."""
    torn: Torn | None = None
    """An incomplete line after that one, left by a killed writer."""
    needs_newline: bool = False
    """Whether the file does not end with a newline."""
    gone: int = 0
    """The minimum number of bytes that this writer had appended and that were removed since."""


Render: TypeAlias = Callable[[Tail], tuple[bytes, str]]
"""Returns the bytes to append after a tail, and the chain they end with."""

Opening: TypeAlias = Callable[[int, str, str], tuple[bytes, str]]
"""Returns the first line of file number n, which continues the named file and its chain."""


class RecordFile:
    """One file of the record, open for appending. Not for use by several threads at once."""

    def __init__(
        self,
        path: Path,
        opening: Opening,
        *,
        rotate_bytes: int = 0,
        keep: int = 0,
        keep_bytes: int = 0,
        retain_s: float = 0.0,
        may_remove: Callable[[Path, int], bool] = lambda _path, _number: True,
        fsync: bool = False,
        take_back: Callable[[], None] = lambda: None,
        on_append: Callable[[int, int, str], None] = lambda _number, _end, _chain: None,
    ) -> None:
        """Open a file; ``take_back`` is called if the line from ``opening`` was not written.

        Rotated files are removed beyond ``keep`` files or ``keep_bytes``, and when they are older
        than ``retain_s``; but not while ``may_remove`` says no.
        After each append, ``on_append`` gets the number of the current file, its size and its
        last chain.
        """
        self._on_append = on_append
        self._number = 1
        self.path = path
        self._opening = opening
        self._take_back = take_back
        self._rotate_bytes = rotate_bytes
        self._rotate_at = rotate_bytes
        self._keep = keep
        self._keep_bytes = keep_bytes
        self._retain_s = retain_s
        self._may_remove = may_remove
        self._retained_at = 0.0
        self._fsync = fsync
        self._path = str(path)
        self._fd = -1
        self._inode = -1
        self._end = -1
        self._written = 0
        """Bytes of the last append."""
        self._gone = 0
        """Bytes that were removed by somebody else and not yet reported."""
        self._known = 0
        """Size of the file after the last append, also if another file is now at the path."""
        self._tail = Tail(GENESIS)
        self._open()

    def append(self, render: Render) -> None:
        """Append what ``render`` returns, completely or not at all.

        Raises:
            RecordError: it could not be written; the file is unchanged.
        """
        try:
            size = self._lock()
            try:
                head, tail = b"", self._tail
                if size != self._end:
                    head, tail = self._catch_up(size)
                data, chain = render(tail)
                data = head + data
                self._write(data, size)
                self._written = len(data)
                self._end = self._known = size + self._written
                self._gone = 0
                self._tail = unchecked(Tail, (chain, None, False, 0))
                # After the write, so that a batch is never split over two files.
                if self._rotate_bytes and self._end >= self._rotate_at:
                    self._rotate()
                if self._retain_s:
                    self._retain_by_age()
                self._on_append(self._number, self._end, self._tail.chain)
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        except OSError as error:
            raise RecordError(
                f"{self._path}: the record cannot be written: {error.strerror}"
            ) from error

    def close(self) -> None:
        """Close the file; everything appended is already with the kernel."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> None:
        try:
            directory = self.path.parent
            if not directory.is_dir():
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            fd = os.open(self._path, flags, 0o600)
            found = os.fstat(fd)
        except OSError as error:
            raise RecordError(
                f"{self._path}: the record cannot be opened: {error.strerror}"
            ) from error
        if not stat.S_ISREG(found.st_mode):
            # A link to /dev/null that somebody put in its place would swallow the record.
            os.close(fd)
            raise RecordError(
                f"{self._path}: the record must be a regular file; move this one away"
            )
        # Only now, so that a failure above leaves the previous file open.
        self.close()
        self._fd, self._inode, self._end = fd, found.st_ino, -1
        self._number = current_number(self.path)

    def _lock(self) -> int:
        """Lock the file that is currently at the path, and return its size."""
        if self._fd < 0:
            self._open()
        deadline = 0.0
        while True:
            try:
                fcntl.flock(self._fd, _LOCK_NOW)
            except BlockingIOError:
                deadline = _wait(deadline, self._path)
                continue
            try:
                status = os.stat(self._path)  # noqa: PTH116 - every event passes here
                if status.st_ino == self._inode:
                    return status.st_size
            except FileNotFoundError:
                pass
            # Another process rotated the file, or somebody removed it: use the current one.
            self._open()

    def _catch_up(self, size: int) -> tuple[bytes, Tail]:
        """Return the line that the file must start with, if any, and its current tail."""
        self._gone += self._taken_away(size)
        self._end = -1
        if size or self._tail.chain == GENESIS:
            return b"", read_tail(self._fd, size, self._path)._replace(gone=self._gone)
        # Somebody removed or emptied the file: the new one states which chain it continues. A
        # rotation never leaves an empty file, so what was in the old one is lost.
        self._gone = max(self._gone, self._known, 1)
        number = current_number(self.path)
        line, chain = self._opening(number, self.path.name, self._tail.chain)
        return line, Tail(chain, gone=self._gone)

    def _taken_away(self, size: int) -> int:
        """Return the minimum number of bytes removed from what this writer saw in the file.

        Writers only append, and truncate only their own batch. So whatever other writers did,
        everything up to the end of our last append must still be there.
        """
        if size < self._end:
            return self._end - size
        if self._end < 0:
            return 0
        ending = f'{self._tail.chain}"}}\n'.encode()
        kept = os.pread(self._fd, len(ending), self._end - len(ending)) == ending
        return 0 if kept else self._written

    def _write(self, data: bytes, size: int) -> None:
        try:
            _write_whole(self._fd, data)
            if self._fsync:
                os.fsync(self._fd)
        except OSError:
            # Set before truncating, which may fail: the next append looks for the end again.
            self._end = -1
            os.ftruncate(self._fd, size)
            raise

    # Rotation.

    def _rotate(self) -> None:
        """Start a new file at the path, which continues the chain of this one."""
        # If this fails, the record continues in the current file. A full disk will be noticed
        # by the next append.
        self._rotate_at = self._end + _ROTATE_AGAIN
        try:
            number, name = self._put_aside()
        except OSError:
            return
        line, chain = self._opening(number + 1, name, self._tail.chain)
        try:
            fd = self._fresh(line)
        except OSError:
            self._take_back()
            return
        os.close(self._fd)  # releases the lock; a process that waited for it finds the new file
        self._fd = fd
        self._number = number + 1
        self._inode = os.fstat(fd).st_ino
        self._end = self._written = self._known = len(line)
        self._tail = Tail(chain)
        self._rotate_at = self._rotate_bytes
        with contextlib.suppress(OSError):
            # The batch is already written: failing to remove an old file must not write it twice.
            self._retain()

    def _put_aside(self) -> tuple[int, str]:
        """Link the full file to its numbered name, so that the path always has a file."""
        rotated = rotated_files(self.path)
        number = rotated[-1][0] if rotated else 0
        # An earlier rotation linked the file and was killed then.
        if rotated and rotated[-1][1].stat().st_ino == self._inode:
            return number, rotated[-1][1].name
        aside = self.path.with_name(f"{self.path.name}.{number + 1:0{_DIGITS}d}")
        aside.hardlink_to(self.path)
        return number + 1, aside.name

    def _fresh(self, line: bytes) -> int:
        fresh = self.path.with_name(f"{self.path.name}.next")
        # Whatever is there was left by a killed rotation, or is a link that came with a repository:
        # following that would let somebody else choose which file is emptied.
        fresh.unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(fresh, flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            _write_whole(fd, line)
            fresh.rename(self.path)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _retain(self) -> None:
        """Remove the oldest files beyond the retention limits."""
        rotated = rotated_files(self.path)
        states = [path.stat() for _, path in rotated]
        oldest = time.time() - self._retain_s
        while rotated and (
            (self._keep and len(rotated) > self._keep)
            or (self._keep_bytes and sum(state.st_size for state in states) > self._keep_bytes)
            # A rotated file is no longer written, so it is as old as its last line.
            or (self._retain_s and states[0].st_mtime < oldest)
        ):
            number, path = rotated.pop(0)
            if not self._may_remove(self.path, number):
                return
            path.unlink(missing_ok=True)
            states.pop(0)

    def _retain_by_age(self) -> None:
        """Remove files that have become too old, without waiting for a rotation."""
        now = time.monotonic()
        if not self._retained_at or now - self._retained_at >= _RETAIN_EVERY_S:
            self._retained_at = now
            with contextlib.suppress(OSError):
                self._retain()


def rotated_files(path: Path) -> list[tuple[int, Path]]:
    """Return the numbered predecessors of a record, oldest first."""
    found = []
    prefix = f"{path.name}."
    for entry in path.parent.iterdir():
        number = entry.name.removeprefix(prefix)
        is_number = _DIGITS <= len(number) <= _MAX_DIGITS and number.isdecimal()
        if entry.name.startswith(prefix) and is_number and number.isascii():
            found.append((int(number), entry))
    return sorted(found)


def traffic_path(record: Path) -> Path:
    """Return the path of a record's traffic file, in the same directory."""
    return record.with_name(f"{record.stem}.{TRAFFIC}{record.suffix}")


def current_number(path: Path) -> int:
    """Return the number of the current file, which it keeps when it is rotated."""
    rotated = rotated_files(path)
    if not rotated:
        return 1
    number, last = rotated[-1]
    with contextlib.suppress(OSError):
        if last.samefile(path):
            return number  # a rotation was killed halfway
    return number + 1


def is_written(path: Path, number: int, size: int, chain: str) -> bool:
    """Tell whether a line with a chain still ends at a position of a record.

    The retention limits never remove the file of the stored head (``HeadKeeper.may_remove``), so
    the answer is no if there is no file with that number, whatever later files there are.
    """
    found = _rotated(path)
    while not _ends_at(dict(found), path, number, size, chain):
        before, found = found, _rotated(path)
        if found == before:
            return False
        # Another process rotated the file in the meantime.
    return True


def _rotated(path: Path) -> list[tuple[int, Path]]:
    return rotated_files(path) if path.parent.is_dir() else []


def _ends_at(files: dict[int, Path], path: Path, number: int, size: int, chain: str) -> bool:
    """Tell whether a file has a line with this chain there; ``files`` are the rotated ones."""
    files[max(files, default=0) + 1] = path
    try:
        with open_regular(files[number]) as stream:
            return ends_with_chain(stream, size, chain)
    except (KeyError, OSError):
        return False


def ends_with_chain(stream: BinaryIO, size: int, chain: str) -> bool:
    """Tell whether the first ``size`` bytes of a file end with the line that has this chain."""
    # The chain is a line's last member, and a hash of everything before it.
    ending = f'{chain}"}}\n'.encode()
    stream.seek(max(0, size - len(ending)))
    return stream.read(len(ending)) == ending


def open_regular(path: Path) -> BinaryIO:
    """Open a file of the record for reading.

    Raises:
        OSError: it cannot be opened, or is not a regular file: whoever can write to the directory
            may have put a pipe there, and waiting for its writer might never end.
    """
    stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return stream


def read_tail(fd: int, size: int, name: str) -> Tail:
    """Find the last valid line of a file, and whatever follows it.

    Raises:
        RecordError: the file is not empty and contains no line of a record.
    """
    if size == 0:
        return Tail(GENESIS)
    span = _TAIL_CHUNK
    while True:
        span = min(span, size, _MAX_TAIL)
        data = os.pread(fd, span, size - span)
        whole = span == size
        tail = _tail_of(data, whole=whole)
        if tail is not None:
            return tail
        if whole or span == _MAX_TAIL:
            raise RecordError(
                f"{name}: this file is not a record of ThoughtGate; configure a different file"
            )
        span *= 8


def _tail_of(data: bytes, *, whole: bool) -> Tail | None:
    """Return the tail if the last valid line is in ``data``; None if it is further back."""
    end = len(data)
    while end > 0:
        start = data.rfind(b"\n", 0, end - 1 if data[end - 1 : end] == b"\n" else end) + 1
        if start == 0 and not whole:
            return None
        line = data[start:end].removesuffix(b"\n")
        sealed = stated_chain(line)
        if sealed is not None and line.startswith(b"{"):
            rest = data[end:]
            needs_newline = not data.endswith(b"\n")
            return Tail(sealed[1], torn_bytes(rest) if rest else None, needs_newline)
        end = start
    if whole and data.startswith(b'{"v":') and b"\n" not in data:
        # The very first line was cut off.
        return Tail(GENESIS, torn_bytes(data), needs_newline=True)
    return None


def _write_whole(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])


def _wait(deadline: float, name: str) -> float:
    now = time.monotonic()
    if deadline and now > deadline:
        raise RecordError(
            f"{name}: another process has held the record's lock for {LOCK_WAIT_S:g} s"
        )
    time.sleep(_LOCK_PAUSE_S)
    return deadline or now + LOCK_WAIT_S
