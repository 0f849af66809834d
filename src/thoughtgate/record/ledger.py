"""The ledger: a SQLite database filled from the record, for fast queries.

The record is authoritative; the ledger can be deleted and rebuilt. The position in each file is
committed in the same transaction as the rows read from it, so a kill at any moment neither loses
nor duplicates anything. The queries are in ``record.ledger_queries``.
"""

import contextlib
import hashlib
import os
import sqlite3
from pathlib import Path
from typing import Final, NamedTuple

from thoughtgate.core.envelope import stated_chain
from thoughtgate.errors import StoreError
from thoughtgate.record.call_rows import CALL_COLUMNS, RecordRows
from thoughtgate.record.call_totals import FORGET_KINDS, TOTALS_SCHEMA
from thoughtgate.record.file import ends_with_chain, open_regular
from thoughtgate.record.reader import (
    Watch,
    read_entry,
    read_lines,
    record_files,
    traffic_files,
    unwatched,
)
from thoughtgate.record.verification import RecordLine
from thoughtgate.stores.engines.sqlite import keep_log

SCHEMA_VERSION: Final = 10
"""A ledger of a different version is deleted and rebuilt."""

BATCH_LINES: Final = 30_000
"""Lines per commit: about 30 MB of memory, and a second of work to repeat after a kill."""

MAX_FAULTS: Final = 1000
"""Maximum number of faults reported per ingest."""

_BUSY_S: Final = 10.0
_DAY_S: Final = 86_400.0


class Ingested(NamedTuple):
    """The result of one ingest."""

    events: int
    faults: tuple[tuple[str, int, str], ...]
    """File, line and description of each fault, found in this or an earlier ingest."""


_SQL_TYPES: Final = {"integer": "INTEGER", "boolean": "INTEGER", "time": "REAL"}
"""Of the columns' types; all others are TEXT."""

_NAMES: Final = tuple(column.name for column in CALL_COLUMNS)
_COLUMNS: Final = ", ".join(
    f"{one.name} {_SQL_TYPES.get(one.type, 'TEXT')}" for one in CALL_COLUMNS
)

_SCHEMA: Final = f"""
CREATE TABLE files (head TEXT PRIMARY KEY, name TEXT, offset INTEGER, lines INTEGER, chain TEXT);
CREATE TABLE faults (head TEXT, line INTEGER, fault TEXT, PRIMARY KEY (head, line)) WITHOUT ROWID;
CREATE TABLE calls (id INTEGER PRIMARY KEY, indexed INTEGER NOT NULL DEFAULT 0,
  {_COLUMNS}, head TEXT, UNIQUE (call_id, writer));
CREATE INDEX calls_time ON calls (started_at);
CREATE INDEX calls_run ON calls (run_id, started_at);
CREATE INDEX calls_tool ON calls (tool, started_at);
CREATE INDEX calls_verdict ON calls (decision, tool, started_at);
CREATE INDEX calls_server ON calls (server, started_at);
CREATE INDEX calls_decision ON calls (decision, started_at);
CREATE INDEX calls_status ON calls (status, started_at, latency_ms);
CREATE TABLE policy_changes (at REAL, told TEXT, head TEXT);
CREATE INDEX calls_unindexed ON calls (id) WHERE indexed = 0;
CREATE INDEX calls_untimed ON calls (id) WHERE started_at IS NULL OR started_at <= 0;
CREATE INDEX calls_found ON calls (started_at)
  WHERE argument_findings IS NOT NULL OR result_findings IS NOT NULL;
CREATE INDEX calls_asked ON calls (started_at, asked_at, approval_at, approved_by, approval, server)
  WHERE asked_at > 0;
CREATE TABLE traffic (run_id TEXT, server TEXT, minute INTEGER, type TEXT, direction TEXT,
  detail TEXT, count INTEGER, bytes INTEGER, head TEXT,
  PRIMARY KEY (minute, type, server, direction, detail, run_id, head)) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='unicode61');
{TOTALS_SCHEMA}PRAGMA user_version = {SCHEMA_VERSION};
"""

# An event fills only its own columns: a missing value must not erase an earlier one.
_MERGED: Final = ", ".join(
    f"{name}=coalesce(excluded.{name}, calls.{name})" for name in (*_NAMES[2:], "head")
)
_PUT_CALL: Final = (
    f"INSERT INTO calls ({', '.join(_NAMES)}, head) VALUES (?{', ?' * len(_NAMES)}) "  # noqa: S608 - our own names
    f"ON CONFLICT (call_id, writer) DO UPDATE SET {_MERGED}"
)
_PUT_TRAFFIC: Final = (
    "INSERT INTO traffic VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
    "count = traffic.count + excluded.count, bytes = traffic.bytes + excluded.bytes"
)
_PUT_POLICY: Final = "INSERT INTO policy_changes VALUES (?, ?, ?)"
_PUT_FILE: Final = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)"
_PUT_FAULT: Final = "INSERT OR REPLACE INTO faults VALUES (?, ?, ?)"
_KNOWN_FAULTS: Final = "SELECT line, fault FROM faults WHERE head = ? ORDER BY line LIMIT ?"
_TABLES_BY_FILE: Final = ("files", "faults", "calls", "traffic", "policy_changes")
"""Tables whose rows belong to a file: the last one that contains events for them."""

_INDEX_WORDS: Final = (
    "INSERT INTO words (rowid, text) SELECT id, coalesce(tool, '') || ' ' || preview || ' ' || "
    "coalesce(extra, '') || ' ' || coalesce(reason, '') || ' ' || coalesce(error_message, '') FROM calls "
    "WHERE indexed = 0 AND preview IS NOT NULL"
)
_MARK_INDEXED: Final = "UPDATE calls SET indexed = 1 WHERE indexed = 0 AND preview IS NOT NULL"


def ledger_path(record: Path) -> Path:
    """Return the path of a record's ledger, in the same directory."""
    return record.with_name(f"{record.name}.ledger")


class Ledger:
    """The database of one record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.connection = self._open()
        except sqlite3.DatabaseError:
            # Damaged or not a database: delete it, since the record contains everything in it.
            self._remove()
            try:
                self.connection = self._open()
            except sqlite3.Error as error:
                raise StoreError(f"{path}: the ledger cannot be opened: {error}") from error

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def ingest(self, record: Path, watch: Watch = unwatched) -> Ingested:
        """Read what was added to the record, and delete the rows of files that were removed.

        A call with events in several files stays until the last of them is removed.

        Raises:
            StoreError: the record or the ledger cannot be read or written.
        """
        events, faults = 0, list[tuple[str, int, str]]()
        try:
            chains = [
                [(file, _head(file)) for file in files]
                for files in (record_files(record), traffic_files(record))
            ]
            usable = [self._usable([head for _, head in files]) for files in chains]
            self._forget_all_but(set().union(*usable))
            for file, head in (one for files in chains for one in files):
                if head:
                    events += self._ingest_file(file, head, faults, watch)
                    faults += self._known_faults(file, head)
            if events:
                # Keeps the query planner's statistics current without scanning whole tables.
                self.connection.executescript("PRAGMA analysis_limit = 400; PRAGMA optimize;")
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path}: the ledger cannot be updated: {error}; remove it to rebuild it"
            ) from error
        return Ingested(events, tuple(faults[:MAX_FAULTS]))

    def forget_before(self, at: float) -> None:
        """Delete the rows of calls and traffic that are older than a time, to the day.

        The full-text index is rebuilt then, so this is not done with every query.

        Raises:
            StoreError: the ledger cannot be written.
        """
        before = at // _DAY_S * _DAY_S
        time = "coalesce(nullif(started_at, 0), ended_at, decided_at, approval_at, asked_at, 0)"
        old = f"{time} < ?"
        try:
            with self.connection:
                self.connection.execute("BEGIN IMMEDIATE")
                query = f"DELETE FROM calls WHERE {old}"  # noqa: S608 - a constant
                if self.connection.execute(query, (before,)).rowcount:
                    self._index_words_again()
                self.connection.execute("DELETE FROM traffic WHERE minute < ?", (before // 60,))
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: the ledger cannot be updated: {error}") from error

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Only a new file is opened here: closing one in use would drop SQLite's locks on it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            if not self.path.is_file():
                raise StoreError(f"{self.path}: the ledger cannot be opened: it is not a file")
        except OSError as error:
            raise StoreError(
                f"{self.path}: the ledger cannot be opened: {error.strerror}"
            ) from error
        connection = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)
        try:
            keep_log(connection, round(_BUSY_S * 1000))
            # Commits are not flushed: what a power loss takes is read from the record again.
            connection.executescript(
                "PRAGMA synchronous = NORMAL; "
                "PRAGMA cache_size = -65536; PRAGMA temp_store = MEMORY;"
            )
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != SCHEMA_VERSION:
                self._create(connection, version)
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self, connection: sqlite3.Connection, version: int) -> None:
        if version:
            # The constructor then deletes the file and creates it again.
            raise sqlite3.DatabaseError(f"unknown ledger version {version}")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have created the tables since.
            (now,) = connection.execute("PRAGMA user_version").fetchone()
            if now != SCHEMA_VERSION:
                for statement in _SCHEMA.split(";\n"):
                    connection.execute(statement)

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def _ingest_file(
        self, file: Path, head: str, faults: list[tuple[str, int, str]], watch: Watch
    ) -> int:
        events = 0
        while True:
            with self.connection:
                self.connection.execute("BEGIN IMMEDIATE")
                # Read inside the transaction, so that two processes never ingest the same lines.
                offset, lines, chain = self._reached(head)
                _check_unchanged(file, offset, lines, chain, faults)
                batch = _Batch(offset, lines, chain)
                for line in read_lines(file, offset, lines, watch):
                    # A line that is still being written is left for the next ingest.
                    if line.ended:
                        batch.take(line)
                    if batch.count >= BATCH_LINES:
                        break
                self._put(batch, head, file)
            events += batch.rows.events
            if batch.count < BATCH_LINES:
                return events

    def _usable(self, heads: list[str]) -> set[str]:
        """Return the files whose rows can stay: none if an unknown file precedes a known one.

        A row belongs to the last file that mentions it, so files must be read in order.
        """
        known = {str(row[0]) for row in self.connection.execute("SELECT head FROM files")}
        are_known = [head in known for head in heads if head]
        return set() if are_known != sorted(are_known, reverse=True) else set(heads)

    def _forget_all_but(self, heads: set[str]) -> None:
        """Delete the rows of files that the record no longer has."""
        known = self.connection.execute("SELECT head FROM files").fetchall()
        gone = [row for row in known if row[0] not in heads]
        if not gone:
            return
        with self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            for table in _TABLES_BY_FILE:
                self.connection.executemany(f"DELETE FROM {table} WHERE head = ?", gone)  # noqa: S608 - our own names
            self._index_words_again()

    def _index_words_again(self) -> None:
        """Rebuild the full-text index after calls were deleted.

        The index stores no texts, and without its text an entry cannot be deleted.
        """
        # The deleted calls may have been the last ones of their kind.
        self.connection.execute(FORGET_KINDS)
        self.connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
        self.connection.execute("UPDATE calls SET indexed = 0")
        self.connection.execute(_INDEX_WORDS)
        self.connection.execute(_MARK_INDEXED)

    def _known_faults(self, file: Path, head: str) -> list[tuple[str, int, str]]:
        rows = self.connection.execute(_KNOWN_FAULTS, (head, MAX_FAULTS))
        return [(str(file), int(line), str(fault)) for line, fault in rows]

    def _reached(self, head: str) -> tuple[int, int, str]:
        row = self.connection.execute(
            "SELECT offset, lines, chain FROM files WHERE head = ?", (head,)
        ).fetchone()
        return (int(row[0]), int(row[1]), str(row[2])) if row else (0, 0, "")

    def _put(self, batch: "_Batch", head: str, file: Path) -> None:
        if not batch.count:
            return
        put, rows = self.connection.executemany, batch.rows
        put(_PUT_CALL, ((*map(row.get, _NAMES), head) for row in rows.calls.values()))
        put(_PUT_TRAFFIC, ((*key, *sums, head) for key, sums in rows.traffic.items()))
        put(_PUT_POLICY, ((*one, head) for one in rows.policies))
        put(_PUT_FAULT, ((head, line, fault) for line, fault in batch.faults))
        self.connection.execute(_INDEX_WORDS)
        self.connection.execute(_MARK_INDEXED)
        values = (head, file.name, batch.offset, batch.lines, batch.chain)
        self.connection.execute(_PUT_FILE, values)


class _Batch:
    """Lines that are committed to the ledger together."""

    def __init__(self, offset: int, lines: int, chain: str) -> None:
        self.offset = offset
        self.lines = lines
        self.chain = chain
        self.count = 0
        self.rows = RecordRows()
        self.faults: list[tuple[int, str]] = []

    def take(self, line: RecordLine) -> None:
        """Add one line, or note its fault."""
        self.count += 1
        self.offset += line.size
        self.lines = line.number
        self.chain = ""
        if not line.data:
            return
        entry = read_entry(line)
        if entry.fault:
            if len(self.faults) < MAX_FAULTS:
                self.faults.append((line.number, entry.fault))
            return
        sealed = stated_chain(line.data)
        self.chain = sealed[1] if sealed is not None else ""
        self.rows.add(entry.event)


def _head(file: Path) -> str:
    """Return the digest of a file's first line, which identifies it under any name."""
    for line in read_lines(file):
        return hashlib.sha256(line.data).hexdigest() if line.ended else ""
    return ""


def _check_unchanged(
    file: Path, offset: int, lines: int, chain: str, faults: list[tuple[str, int, str]]
) -> None:
    """Add a fault if the lines read earlier are no longer in the file."""
    if not chain:
        return
    with open_regular(file) as stream:
        is_kept = ends_with_chain(stream, offset, chain)
    if not is_kept:
        told = "what the ledger has read here is gone or changed: see `thoughtgate audit verify`"
        faults.append((str(file), lines, told))
