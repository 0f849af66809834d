"""The ledger that several gates share: a copy of every record, in PostgreSQL.

Each gate's own files stay authoritative. Their bytes are stored in chunks of whole lines, in the
order of the file, so the hash chains can be verified here too. A chunk and the new position in its
file are committed together, which makes the copy exact after a kill at any moment. The rows that
queries read are made from the chunks by a second step (``record.ledger_index``).
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final, NamedTuple, Protocol, cast

from thoughtgate.core.envelope import GENESIS
from thoughtgate.errors import StoreError
from thoughtgate.stores.database import Database, Transaction
from thoughtgate.stores.open_database import StoreLocation, open_database

BATCH_BYTES: Final = 1024 * 1024
"""Maximum bytes of chunks that are read from the ledger at once."""

_BATCH_CHUNKS: Final = 256

_RETAIN_ROWS: Final = 500
"""How many chunks or calls one transaction deletes, so that none takes long."""


class SharedDatabase(Database, Protocol):
    """An engine that can run queries over the whole ledger."""

    def read_slowly(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query that may take longer than others."""


class StoredFile(NamedTuple):
    """One file of some gate's record, and how much of it is stored."""

    id: int
    writer: str
    """Id of the state directory whose gates write the file."""
    host: str
    directory: str
    """The state directory."""
    path: str
    """The current file of the record, also if this one was rotated."""
    number: int
    """Number of the file, counted over rotations."""
    head: str
    """Digest of the first line, which identifies the file under any name."""
    previous: str
    """The chain that the first line continues."""
    branch_of: int
    """The stored file that this one agrees with up to ``branch_at``; 0 if there is none."""
    branch_at: int
    size: int
    """Bytes that are stored, counted from the beginning of the file."""
    lines: int
    chain: str
    """The chain of the last line that is stored."""
    cut_size: int
    """Bytes at the beginning that were deleted because of their age."""
    cut_lines: int
    cut_chain: str
    cut_at: float
    """When they were deleted."""
    indexed: int
    """Bytes from which rows were made."""
    last_at: float
    """Time of the last line."""
    gone_at: float
    """When the gate noticed that its file was gone; 0 if it did not."""

    @property
    def name(self) -> str:
        """How findings name the file."""
        return f"{self.host}:{self.path}.{self.number:06d}"

    @property
    def start(self) -> int:
        """Offset of the first byte that is stored for this file itself and was not deleted."""
        return max(self.branch_at, self.cut_size)


class NewFile(NamedTuple):
    """A file that is not stored yet."""

    writer: str
    host: str
    directory: str
    path: str
    number: int
    head: str
    previous: str


class Chunk(NamedTuple):
    """Consecutive whole lines of a file."""

    start: int
    """Offset of the first byte in the file."""
    lines_before: int
    chain: str
    """The chain of the last line."""
    first_at: float
    last_at: float
    has_lists: int
    """1 if a line is about a server: what it lists, its start or its end."""
    data: bytes


_FILE: Final = ", ".join(StoredFile._fields)
_NEW: Final = (
    "INSERT INTO record_files (writer, host, directory, path, number, head, previous, branch_of, "  # noqa: S608 - our own names
    "branch_at, size, lines, chain, indexed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    f"RETURNING {_FILE}"
)
_MOVE: Final = (
    "UPDATE record_files SET size = ?, lines = ?, chain = ?, last_at = ?, host = ?, "
    "directory = ?, path = ?, number = ? WHERE id = ? AND size = ?"
)
_CHUNK: Final = "start, lines_before, chain, first_at, last_at, has_lists, data"
_ADD_CHUNK: Final = (
    f"INSERT INTO record_chunks (file, size, {_CHUNK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own names
)


class SharedLedger:
    """The files of all gates that use a database."""

    def __init__(self, database: SharedDatabase) -> None:
        self.database = database
        self.connection = LedgerRows(database)
        """For the queries in ``record.ledger_queries``."""

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def files(self) -> list[StoredFile]:
        """Return all files, in the order in which they were first stored."""
        return self._files("ORDER BY id")

    def files_with(self, head: str) -> list[StoredFile]:
        """Return the files that begin with the same line."""
        return self._files("WHERE head = ? ORDER BY id", (head,))

    def files_of(self, writer: str, path: str) -> list[StoredFile]:
        """Return the files of one record."""
        return self._files("WHERE writer = ? AND path = ? ORDER BY id", (writer, path))

    def add_file(self, new: NewFile, branch: tuple[int, Chunk | None] | None = None) -> StoredFile:
        """Add a file; ``branch`` is the stored file it agrees with, up to the end of a chunk."""
        of, last = branch or (0, None)
        at, lines, chain = 0, 0, new.previous or GENESIS
        if last is not None:
            at = last.start + len(last.data)
            lines, chain = last.lines_before + last.data.count(b"\n"), last.chain
        with self.database.write() as transaction:
            values = (*new, of, at, at, lines, chain, at)
            return StoredFile(*transaction.execute(_NEW, values).fetchone())

    def append(self, file: StoredFile, where: NewFile, chunk: Chunk) -> StoredFile | None:
        """Store a chunk and the position after it; None if another process was faster."""
        size = file.size + len(chunk.data)
        lines = file.lines + chunk.data.count(b"\n")
        place = (where.host, where.directory, where.path, where.number)
        with self.database.write(exclusive=False) as transaction:
            # The condition on the size rejects the slower of two processes, so no lock is needed.
            moved = (size, lines, chunk.chain, chunk.last_at, *place, file.id, file.size)
            if not transaction.execute(_MOVE, moved).rowcount:
                return None
            transaction.execute(_ADD_CHUNK, (file.id, len(chunk.data), *chunk))
        return file._replace(size=size, lines=lines, chain=chunk.chain, last_at=chunk.last_at)

    def mark_gone(self, file: StoredFile, now: float) -> None:
        """Note that the file is no longer where the gate wrote it."""
        with self.database.write(exclusive=False) as transaction:
            query = "UPDATE record_files SET gone_at = ? WHERE id = ? AND gone_at = 0"
            transaction.execute(query, (self.database.time(now), file.id))

    def chunks(self, file: int, start: int = 0, end: int = 2**62) -> Iterator[Chunk]:
        """Yield the chunks of a file that begin between two offsets, in order."""
        while True:
            # Sizes first, so that at most ``BATCH_BYTES``, or one larger chunk, are in memory.
            sizes = self.database.read(
                "SELECT start, size FROM record_chunks WHERE file = ? AND start >= ? "
                "AND start < ? ORDER BY start LIMIT ?",
                (file, start, end, _BATCH_CHUNKS),
            )
            last, total = -1, 0
            for at, size in sizes:
                if last >= 0 and total + size > BATCH_BYTES:
                    break
                last, total = at, total + size
            if last < 0:
                return
            yield from self._chunks(
                "WHERE file = ? AND start >= ? AND start <= ? ORDER BY start", (file, start, last)
            )
            start = last + 1

    def chunks_with_lists(self, file: int, start: int) -> list[Chunk]:
        """Return the chunks of a file with lines about servers."""
        where = "WHERE file = ? AND start >= ? AND has_lists = 1 ORDER BY start"
        return list(self._chunks(where, (file, start)))

    def last_chunks(self, file: int, before: int, limit: int) -> list[Chunk]:
        """Return the last chunks that begin before an offset, newest first."""
        where = "WHERE file = ? AND start < ? ORDER BY start DESC LIMIT ?"
        return list(self._chunks(where, (file, before, limit)))

    def newest_chunks(self, skip: int, limit: int) -> list[tuple[int, Chunk]]:
        """Return the chunks of all files with the newest lines, newest first, with their files."""
        query = (
            f"SELECT file, {_CHUNK} FROM record_chunks "  # noqa: S608 - our own names
            "ORDER BY last_at DESC, file DESC, start DESC LIMIT ? OFFSET ?"
        )
        rows = self.database.read(query, (limit, skip))
        return [(row[0], Chunk._make([*row[1:-1], bytes(row[-1])])) for row in rows]

    def chunks_with(self, text: str, file: int, since: float) -> Iterator[Chunk]:
        """Yield the chunks of a file's record that contain a text and end after a time."""
        which = (
            "WHERE file IN (SELECT others.id FROM record_files others JOIN record_files own "
            "ON own.writer = others.writer AND own.path = others.path WHERE own.id = ?) "
            "AND last_at >= ? AND position(?::bytea IN data) > 0 ORDER BY file, start LIMIT ?"
        )
        yield from self._chunks(which, (file, since, text.encode(), _BATCH_CHUNKS))

    def retain(self, before: float, now: float) -> None:
        """Delete everything that is older than a time, and note in each file where it was cut."""
        query = "SELECT DISTINCT file FROM record_chunks WHERE last_at < ? ORDER BY file LIMIT ?"
        for (file,) in self.database.read(query, (before, _RETAIN_ROWS)):
            while self._cut(file, before, now):
                pass
        while self._forget_calls(before):
            pass

    def _cut(self, file: int, before: float, now: float) -> bool:
        """Delete some old chunks at the beginning of a file; False when there are none left."""
        with self.database.write() as transaction:
            kept = "SELECT min(start) FROM record_chunks WHERE file = ? AND last_at >= ?"
            (end,) = transaction.execute(kept, (file, before)).fetchone()
            gone = transaction.execute(
                "SELECT start, size, chain FROM record_chunks WHERE file = ? AND start < ? "
                "ORDER BY start LIMIT ?",
                (file, 2**62 if end is None else end, _RETAIN_ROWS),
            ).fetchall()
            if not gone:
                return False
            _delete_chunks(transaction, file, gone[-1], now)
        return len(gone) == _RETAIN_ROWS

    def _forget_calls(self, before: float) -> bool:
        old = (
            "SELECT id FROM calls WHERE started_at < ? AND started_at > 0 "
            "ORDER BY started_at LIMIT ?"
        )
        untimed = (
            "SELECT id FROM calls WHERE (started_at IS NULL OR started_at <= 0) AND "
            "coalesce(ended_at, decided_at, approval_at, asked_at, 0) < ? LIMIT ?"
        )
        count = 0
        with self.database.write() as transaction:
            for which in (old, untimed):
                deleted = transaction.execute(
                    f"DELETE FROM calls WHERE id IN ({which}) RETURNING id",  # noqa: S608 - above
                    (before, _RETAIN_ROWS),
                ).fetchall()
                transaction.executemany("DELETE FROM call_words WHERE id = ?", deleted)
                count = max(count, len(deleted))
            transaction.execute("DELETE FROM traffic WHERE minute < ?", (int(before // 60),))
            transaction.execute("DELETE FROM policy_changes WHERE at < ?", (before,))
        return count == _RETAIN_ROWS

    def _files(self, which: str, values: Sequence[Any] = ()) -> list[StoredFile]:
        query = f"SELECT {_FILE} FROM record_files {which}"  # noqa: S608 - our own names
        return [StoredFile(*row) for row in self.database.read(query, values)]

    def _chunks(self, which: str, values: Sequence[Any]) -> Iterator[Chunk]:
        query = f"SELECT {_CHUNK} FROM record_chunks {which}"  # noqa: S608 - our own names
        for *facts, data in self.database.read(query, values):
            yield Chunk._make([*facts, bytes(data)])


class LedgerRows:
    """Runs queries on the rows of the shared ledger."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database

    def select(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        return self._database.read_slowly(query, values)


def open_shared_ledger(location: StoreLocation) -> SharedLedger:
    """Open the ledger of a PostgreSQL store.

    Raises:
        StoreError: the store cannot be used, or is not shared.
    """
    if not location.is_shared:
        raise StoreError("only a postgresql:// store has a shared ledger")
    return SharedLedger(cast("SharedDatabase", open_database(location)))


@contextmanager
def shared_ledger(location: StoreLocation) -> Iterator[SharedLedger]:
    """Open the ledger of a PostgreSQL store, and close it afterwards."""
    with closing(open_shared_ledger(location)) as ledger:
        yield ledger


def _delete_chunks(
    transaction: Transaction, file: int, last: tuple[int, int, str], now: float
) -> None:
    """Delete the chunks up to one, and note in the file where it begins now."""
    start, size, chain = last
    end = start + size
    lines = transaction.execute(
        "SELECT coalesce((SELECT lines_before FROM record_chunks WHERE file = ? AND start = ?), "
        "(SELECT lines FROM record_files WHERE id = ?))",
        (file, end, file),
    ).fetchone()[0]
    transaction.execute("DELETE FROM record_chunks WHERE file = ? AND start <= ?", (file, start))
    transaction.execute(
        "UPDATE record_files SET cut_size = ?, cut_lines = ?, cut_chain = ?, cut_at = ?, "
        "indexed = CASE WHEN indexed < ? THEN ? ELSE indexed END WHERE id = ?",
        (end, lines, chain, now, end, end, file),
    )
