"""Copies the files of a record to the ledger that several gates share.

A thread reads what was appended to the files, at least once per second, so writing an event costs
no more than without it. If the disk of a killed gate is lost too, the ledger lacks at most what was
written in its last second. While the database cannot be reached, the lines stay in the files, and
rotated files are kept until they are stored.

Gates with the same state directory write the same files. The gate that holds a lock copies them;
another one takes over when that gate ends.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from thoughtgate.core.envelope import GENESIS, stated_chain
from thoughtgate.core.record_events import ABOUT_SERVERS
from thoughtgate.errors import StoreError
from thoughtgate.record.call_rows import member, parse_time
from thoughtgate.record.evidence import RECORD_OPENED
from thoughtgate.record.file import (
    current_number,
    ends_with_chain,
    open_regular,
    rotated_files,
    traffic_path,
)
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.reader import MAX_LINE, read_lines
from thoughtgate.record.shared_ledger import (
    BATCH_BYTES,
    Chunk,
    NewFile,
    SharedLedger,
    StoredFile,
    open_shared_ledger,
)
from thoughtgate.record.verification import parse_event
from thoughtgate.stores.open_database import StoreLocation

SHIP_EVERY_S: Final = 0.2
"""How often the files are checked, so that a console shows a call within half a second. A kill
loses nothing unless the disk is lost too: then the lines of up to twice this time are lost, because
the transaction takes time as well."""

INDEX_EVERY_S: Final = 0.5
"""How often a gate indexes what was copied; a page that lists calls does not wait for it."""

CLOSE_S: Final = 2.0
"""How long a gate that stops may take to copy the rest; the next one copies what is left."""

RETAIN_EVERY_S: Final = 3600.0

INDEX_SHARE: Final = 0.01
"""The part of one core that indexing may use; queries index the rest themselves."""

_TIME: Final = re.compile(rb'"ts":"([^"]{1,40})"')
_ENVELOPE: Final = 512


def shipping_path(record: Path) -> Path:
    """Return the path of the file that says which of the record's files are in the ledger.

    It contains the number of the first one that is not; the process that copies the record locks it.
    """
    return record.with_name(f"{record.name}.shipping")


def is_shipped(record: Path, number: int) -> bool:
    """Tell whether a rotated file is in the ledger as a whole."""
    try:
        with open_regular(shipping_path(record)) as file:
            return number < int(file.read() or b"0")
    except (OSError, ValueError):
        return False


class RecordShipper:
    """Copies one record and its traffic, from a thread of its own."""

    def __init__(
        self,
        record: Path,
        location: StoreLocation,
        writer: str,
        *,
        retain_s: float = 0.0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Copy the record at a path; ``writer`` is the id of the state directory.

        What is older than ``retain_s`` is deleted from the ledger. ``say`` reports a failure and
        its end to the operator.
        """
        self._location = location
        self._chains = [
            ChainShipper(path, writer, location.directory)
            for path in (record, traffic_path(record))
        ]
        self._lock_path = shipping_path(record)
        self._lock = -1
        self._ledger: SharedLedger | None = None
        self._retain_s = retain_s
        self._retained_at = 0.0
        self._indexed: list[StoredFile | None] = []
        """The files as they were when they were last indexed."""
        self._say = say
        self._has_failed = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="record shipper", daemon=True)
        # Indexing is slow on purpose, so copying must not wait for it.
        self._indexer = threading.Thread(
            target=self._index_and_retain, name="record index", daemon=True
        )

    @staticmethod
    def may_remove(record: Path, number: int) -> bool:
        """Tell whether the writers of a record may remove a rotated file."""
        return is_shipped(record, number)

    def start(self) -> None:
        """Start the threads."""
        self._thread.start()
        self._indexer.start()

    def close(self) -> None:
        """Copy what is left, within a limit, and end the thread."""
        self._stop.set()
        self._thread.join(CLOSE_S + 1)

    def _run(self) -> None:
        try:
            while not self._stop.wait(SHIP_EVERY_S):
                self._try(self._stop.is_set)
            deadline = time.monotonic() + CLOSE_S
            self._try(lambda: time.monotonic() > deadline)
        finally:
            if self._lock >= 0:
                os.close(self._lock)
            self._indexer.join(CLOSE_S)
            if self._ledger is not None:
                self._ledger.close()

    def _try(self, is_over: Callable[[], bool]) -> None:
        try:
            self._ship(is_over)
        except (StoreError, OSError) as error:
            if not self._has_failed:
                self._has_failed = True
                self._say(f"{error}; new lines of the record wait to be copied to the ledger")
            self._stop.wait(SHIP_EVERY_S)
        else:
            if self._has_failed:
                self._has_failed = False
                self._say("the record is copied to the ledger again")

    def _ship(self, is_over: Callable[[], bool]) -> None:
        if not self._has_lock():
            return
        if not any(chain.has_news() for chain in self._chains):
            return
        if self._ledger is None:
            self._ledger = open_shared_ledger(self._location)
        for chain in self._chains:
            while chain.ship(self._ledger) and not is_over():
                pass
            chain.save_progress()

    def _has_lock(self) -> bool:
        """Tell whether this process copies the record; the lock ends with the process."""
        if self._lock < 0:
            if not self._chains[0].path.parent.is_dir():
                return False
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            lock = os.open(self._lock_path, flags, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                return False
            self._lock = lock
        return True

    def _index_and_retain(self) -> None:
        """Index what was copied and delete what is too old, until the gate stops."""
        while not self._stop.wait(INDEX_EVERY_S):
            # A failure is reported by the other thread, which uses the same database.
            with contextlib.suppress(StoreError, Stopped):
                if self._ledger is not None:
                    self._index(self._ledger)
                    self._retain(self._ledger)

    def _index(self, ledger: SharedLedger) -> None:
        stored = [chain.stored for chain in self._chains]
        if self._indexed == stored:
            return
        ids = {file.id for file in stored if file is not None}
        # Read again: a process that queries the ledger indexes too.
        files = [file for file in ledger.files() if file.id in ids]
        index_ledger(ledger, files, Pace(INDEX_SHARE, self._stop).wait)
        self._indexed = stored

    def _retain(self, ledger: SharedLedger) -> None:
        now = time.time()
        if self._retain_s and abs(now - self._retained_at) >= RETAIN_EVERY_S:
            at = ledger.database.time(now)
            ledger.retain(at - self._retain_s, at)
            self._retained_at = now


class Stopped(Exception):  # noqa: N818 - not an error
    """The gate stops, so the rest of a thread's work is left to the next gate."""


class Pace:
    """Keeps a thread's work below a share of one core."""

    def __init__(self, share: float, stop: threading.Event) -> None:
        self._rest = 1 / share - 1
        self._stop = stop
        self._used = time.thread_time()

    def wait(self) -> None:
        """Wait in proportion to the processor time since the last call.

        Raises:
            Stopped: the gate stops.
        """
        used = time.thread_time()
        if self._stop.wait((used - self._used) * self._rest):
            raise Stopped
        self._used = used


class _LocalFile(NamedTuple):
    number: int
    path: Path
    inode: int
    size: int


class ChainShipper:
    """Copies the files of one chain: a record, or its traffic."""

    def __init__(self, path: Path, writer: str, directory: Path) -> None:
        self.path = path
        self.stored: StoredFile | None = None
        """The file that is being copied, as the ledger has it."""
        self.first_open = 0
        """Number of the first file that is not in the ledger as a whole."""
        self._inode = 0
        self._saved = 0
        self._has_looked = False
        self._place = NewFile(
            writer, _text(socket.gethostname()), _text(directory), _text(path), 0, "", GENESIS
        )

    def has_news(self) -> bool:
        """Tell whether the file changed since the last copy; very cheap."""
        try:
            found = self.path.stat()
        except OSError:
            return self._has_looked and self.stored is not None and not self.stored.gone_at
        if not self._has_looked or self.stored is None:
            return found.st_size > 0
        return (found.st_ino, found.st_size) != (self._inode, self.stored.size)

    def ship(self, ledger: SharedLedger) -> bool:
        """Copy at most one chunk; tell whether there may be more.

        Raises:
            StoreError: the ledger cannot be reached, or the file cannot be read.
        """
        stored = self.stored
        if stored is None or not self._is_same(stored):
            if not self._look(ledger):
                return False
            stored = self.stored
        return stored is not None and self._append(ledger, stored)

    def save_progress(self) -> None:
        """Let the writers of the record know which rotated files they may delete."""
        if self.first_open != self._saved:
            shipping_path(self.path).write_bytes(b"%d\n" % self.first_open)
            self._saved = self.first_open

    def _is_same(self, stored: StoredFile) -> bool:
        """Tell whether the file at the path continues what is stored."""
        try:
            with open_regular(self.path) as stream:
                return os.fstat(stream.fileno()).st_ino == self._inode and ends_with(
                    self.path, stored
                )
        except OSError:
            return False

    def _look(self, ledger: SharedLedger) -> bool:
        """Find the first file that is not stored as a whole; False if there is none."""
        files = self._files()
        self.stored, self._has_looked = None, True
        self._mark_gone(ledger, files)
        for file in files:
            head, previous = first_line(file.path)
            if not head:
                continue
            place = self._place._replace(number=file.number, head=head, previous=previous)
            stored = self._find(ledger, file, place)
            self._place, self.stored = place, stored
            self._inode = file.inode
            self.first_open = file.number
            # The newest file is chosen even if it is stored as a whole, because it still grows.
            if stored.size < file.size or file is files[-1]:
                return True
        return False

    def _files(self) -> list[_LocalFile]:
        """Return the files that exist now, oldest first."""
        found = []
        try:
            numbered = rotated_files(self.path)
            current = current_number(self.path)
            for number, path in [*numbered, (current, self.path)]:
                with contextlib.suppress(FileNotFoundError):
                    status = path.stat()
                    found.append(_LocalFile(number, path, status.st_ino, status.st_size))
        except OSError:
            return []
        # A rotation that was killed halfway leaves one file under two names.
        return list({file.inode: file for file in found}.values())

    def _find(self, ledger: SharedLedger, file: _LocalFile, place: NewFile) -> StoredFile:
        """Return what is stored of a file; it is added if nothing is."""
        known = ledger.files_with(place.head)
        own = [
            one
            for one in known
            # The directory may have moved, but a copy under another name is another file.
            if one.writer == place.writer
            and Path(one.path).name == self.path.name
            and ends_with(file.path, one)
        ]
        if own:
            return max(own, key=lambda one: one.size)
        # Somebody cut or changed the file, copied it, or exchanged it for another one: what was
        # stored stays, and the rest of this file is stored beside it.
        branches = [(one.id, common_chunk(ledger, one, file.path)) for one in known]
        longest = max(branches, key=lambda one: one[1].start if one[1] else -1, default=None)
        return ledger.add_file(place, longest)

    def _mark_gone(self, ledger: SharedLedger, files: list[_LocalFile]) -> None:
        """Tell the ledger if the file that was current is gone, and no other continues it."""
        kept = {file.number for file in files}
        known = ledger.files_of(self._place.writer, self._place.path)
        if not known:
            return
        last = max(known, key=lambda one: (one.number, one.id))
        oldest = min(kept, default=0)
        if last.number not in kept and last.number >= oldest and not last.gone_at:
            now = time.time()
            ledger.mark_gone(last, now)
            last = last._replace(gone_at=now)
        if not files:
            self.stored, self._inode = last, 0

    def _append(self, ledger: SharedLedger, stored: StoredFile) -> bool:
        file = self._current()
        if file is None:
            return False
        is_complete = file != self.path
        data = read_whole_lines(file, stored.size, self._inode, is_complete=is_complete)
        if not data:
            if is_complete:
                self.stored = None  # the next file follows
            return is_complete
        chunk = make_chunk(stored, data)
        moved = ledger.append(stored, self._place, chunk)
        if moved is None:
            self.stored = None  # another process copied it; look again
            return True
        self.stored = moved
        return True

    def _current(self) -> Path | None:
        """Return the path of the file that is being copied, under its present name."""
        for path in self._names():
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == self._inode:
                    return path
        self.stored = None
        return None

    def _names(self) -> Iterator[Path]:
        yield self.path
        for _, path in reversed(rotated_files(self.path)):
            yield path


def make_chunk(stored: StoredFile, data: bytes) -> Chunk:
    """Return a chunk with the next bytes of a file."""
    last = data[data.rfind(b"\n", 0, -1) + 1 :].removesuffix(b"\n")
    sealed = stated_chain(last)
    first_at = _line_time(data[:_ENVELOPE]) or stored.last_at
    last_at = max(_line_time(last[:_ENVELOPE]) or first_at, first_at)
    return Chunk(
        stored.size,
        stored.lines,
        sealed[1] if sealed else "",
        first_at,
        last_at,
        int(any(mark in data for mark in ABOUT_SERVERS)),
        data,
    )


def read_whole_lines(file: Path, offset: int, inode: int, *, is_complete: bool = False) -> bytes:
    """Return the next whole lines of a file; nothing if there are none, or it is another file.

    The end of a file that is complete belongs to it, even if it is not a whole line.
    """
    with open_regular(file) as stream:
        if os.fstat(stream.fileno()).st_ino != inode:
            return b""
        stream.seek(offset)
        data = stream.read(BATCH_BYTES)
        end = data.rfind(b"\n") + 1
        if not end and len(data) == BATCH_BYTES:
            data += stream.read(MAX_LINE)
            # No gate writes such a line; it is stored as it is, in parts.
            end = data.find(b"\n") + 1 or (len(data) if len(data) > MAX_LINE else 0)
        return data[: end or len(data)] if is_complete else data[:end]


def ends_with(path: Path, stored: StoredFile) -> bool:
    """Tell whether a file has the last stored line where it was."""
    if not stored.size:
        return True
    if not stored.chain:
        return path.stat().st_size >= stored.size
    try:
        with open_regular(path) as stream:
            return ends_with_chain(stream, stored.size, stored.chain)
    except OSError:
        return False


def common_chunk(ledger: SharedLedger, stored: StoredFile, path: Path) -> Chunk | None:
    """Return the last chunk that a file has at the same place, or None.

    A chunk ends with a hash over everything before it, so the chunks before it agree too.
    """
    before = 2**62
    with open_regular(path) as stream:
        while chunks := ledger.last_chunks(stored.id, before, 1):
            stream.seek(chunks[0].start)
            if stream.read(len(chunks[0].data)) == chunks[0].data:
                return chunks[0]
            before = chunks[0].start
    return None


def first_line(path: Path) -> tuple[str, str]:
    """Return the digest of a file's first line, and the chain that it continues."""
    try:
        for line in read_lines(path):
            if not line.ended:
                break
            event = parse_event(line.data) or {}
            said = member(event, "record") if event.get("type") == RECORD_OPENED else {}
            return hashlib.sha256(line.data).hexdigest(), str(said.get("previous_chain") or GENESIS)
    except StoreError:
        pass  # removed or rotated in the meantime
    return "", ""


def _line_time(data: bytes) -> float:
    found = _TIME.search(data)
    return parse_time(found[1].decode("ascii", "replace")) or 0.0 if found else 0.0


def _text(value: Path | str) -> str:
    """Return a path as text that can be stored."""
    return str(value).encode("utf-8", "backslashreplace").decode()
