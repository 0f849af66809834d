"""Opening the one SQLite file that every gate process of a user shares.

Owns its place, its modes (0600 in 0700), its schema and its versions, and how a
transaction is run. What the rows mean is the business of the other stores.
"""

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from thoughtgate.errors import StoreError

FILE_NAME: Final = "thoughtgate.db"

BUSY_MS: Final = 2000
"""How long a writer waits for another; every transaction here takes well under 10 ms."""

_PAUSE_S: Final = 0.005

_V1: Final = """
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO counter VALUES ('rev', 0);
CREATE TABLE approvals (
  id TEXT PRIMARY KEY, call_id TEXT NOT NULL, digest TEXT NOT NULL, server TEXT NOT NULL,
  kind TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL, folded INTEGER NOT NULL,
  principal TEXT NOT NULL, session TEXT NOT NULL, workflow TEXT NOT NULL, channel TEXT NOT NULL,
  rule TEXT NOT NULL, reason TEXT NOT NULL, policy_version TEXT NOT NULL,
  created_at REAL NOT NULL, expires_at REAL NOT NULL, required INTEGER NOT NULL,
  approvers TEXT NOT NULL, on_timeout TEXT NOT NULL, elicitation INTEGER NOT NULL,
  remember INTEGER NOT NULL,
  owner TEXT NOT NULL, status TEXT NOT NULL, votes TEXT NOT NULL, decided_at REAL NOT NULL,
  closed_reason TEXT NOT NULL, grant_id TEXT NOT NULL, rev INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX approvals_rev ON approvals (rev);
CREATE INDEX approvals_call ON approvals (call_id);
CREATE INDEX approvals_task ON approvals (owner) WHERE owner LIKE 'task:%';
CREATE INDEX approvals_open ON approvals (status, principal) WHERE status IN ('pending', 'approved');
CREATE TABLE grants (
  id TEXT PRIMARY KEY, principal TEXT NOT NULL, workflow TEXT NOT NULL, server TEXT NOT NULL,
  kind TEXT NOT NULL, tool TEXT NOT NULL, scope TEXT NOT NULL, digest TEXT NOT NULL,
  lifetime TEXT NOT NULL, session TEXT NOT NULL, created_at REAL NOT NULL,
  expires_at REAL NOT NULL, by TEXT NOT NULL, approval TEXT NOT NULL, uses INTEGER NOT NULL,
  last_used_at REAL NOT NULL
) STRICT;
CREATE INDEX grants_call ON grants (principal, server, kind, tool);
CREATE TABLE handles (
  approval TEXT NOT NULL, channel TEXT NOT NULL, handle TEXT NOT NULL,
  PRIMARY KEY (approval, channel)
) STRICT, WITHOUT ROWID;
CREATE TABLE tasks (
  id TEXT PRIMARY KEY, principal TEXT NOT NULL, server TEXT NOT NULL, phase TEXT NOT NULL,
  expires_at REAL NOT NULL, body TEXT NOT NULL, rev INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_principal ON tasks (principal);
"""

_V2: Final = """
ALTER TABLE tasks ADD COLUMN gate TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_gate ON tasks (gate);
"""
"""Which gate a task belongs to, and which of that gate's processes carries it now."""

MIGRATIONS: Final[tuple[str, ...]] = (_V1, _V2)
"""Scripts that take an older file to the next version; the version is how many have run."""


class Database:
    """One connection to the shared file. May be used by several threads; calls take turns."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def write(self, *, through_power_loss: bool = False) -> Iterator[sqlite3.Connection]:
        """Run one transaction that sees nobody else's writes between its reads and its own.

        A commit survives the death of any process. With ``through_power_loss`` it has
        also reached the disk when this returns, which costs a flush.
        """
        with self._lock, _as_store_error(self.path):
            connection = self._connection
            if through_power_loss:
                connection.execute("PRAGMA synchronous = FULL")
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if through_power_loss:
                    connection.execute("PRAGMA synchronous = NORMAL")

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self._lock, _as_store_error(self.path):
            return self._connection.execute(query, values).fetchall()

    def state(self) -> tuple[int, int]:
        """Return a value that differs after any change, by us or by another process."""
        with self._lock, _as_store_error(self.path):
            row = self._connection.execute("PRAGMA data_version").fetchone()
            return int(row[0]), self._connection.total_changes


def next_rev(connection: sqlite3.Connection) -> int:
    """Count one change, inside a transaction."""
    query = "UPDATE counter SET value = value + 1 WHERE name = 'rev' RETURNING value"
    return int(connection.execute(query).fetchone()[0])


def open_database(directory: Path, *, busy_ms: int = BUSY_MS) -> Database:
    """Open the shared file in the state directory, making both if they are missing.

    Raises:
        StoreError: The place cannot be used, is not ours, or is of a later version.
    """
    path = directory / FILE_NAME
    with _as_store_error(path):
        _prepare(directory, path)
        connection = sqlite3.connect(
            path, timeout=busy_ms / 1000, isolation_level=None, check_same_thread=False
        )
        try:
            _configure(connection, busy_ms)
            _migrate(connection, path)
        except BaseException:
            connection.close()
            raise
    return Database(connection, path)


def _prepare(directory: Path, path: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    if found.st_uid != os.geteuid():
        raise StoreError(
            f"{directory} belongs to another user; set THOUGHTGATE_STATE_DIR to a directory of yours"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)
    # SQLite gives its -wal and -shm files the mode of the file itself.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        # Never open and close a file that this process may use already: closing any descriptor
        # drops all of the process's locks on it, and others would take its log away.
        kept = path.lstat()
        if not stat.S_ISREG(kept.st_mode):
            raise StoreError(f"{path} is not a plain file; move it away") from None
        if stat.S_IMODE(kept.st_mode) & 0o077:
            path.chmod(0o600)


def _configure(connection: sqlite3.Connection, busy_ms: int) -> None:
    connection.execute(f"PRAGMA busy_timeout = {int(busy_ms)}")
    keep_log(connection, busy_ms)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA trusted_schema = OFF")
    # The shim's memory budget: SQLite's default cache is 2 MB a connection.
    connection.execute("PRAGMA cache_size = -256")


def keep_log(connection: sqlite3.Connection, busy_ms: int) -> None:
    """Have a file keep a write-ahead log; whoever opens a new file at the same time waits.

    SQLite itself does not wait here, whatever its timeout says.
    """
    deadline = time.monotonic() + busy_ms / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{path} was written by a later version of thoughtgate; update this one"
            )
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                if statement.strip():
                    connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _as_store_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StoreError(
            f"{path}: {reason}; the state directory is {path.parent}, "
            "THOUGHTGATE_STATE_DIR names another"
        ) from error
