"""The SQLite file that all gate processes of a user share: opening, migrations, transactions.

The file has mode 0600 in a directory with mode 0700. The other stores define what its rows mean.
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
from thoughtgate.stores.argument_parts import TABLE

FILE_NAME: Final = "thoughtgate.db"

BUSY_MS: Final = 2000
"""How long a writer waits for another one; a transaction takes well under 10 ms."""

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
"""Adds the gate that a task belongs to, and the process of that gate that owns it."""

_V3: Final = """
ALTER TABLE approvals ADD COLUMN extra TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN definition TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN ended_grants TEXT NOT NULL DEFAULT '[]';
ALTER TABLE grants ADD COLUMN definition TEXT NOT NULL DEFAULT '';
"""
"""Adds what a call carries beyond its arguments, and the definition of the tool that it calls."""

_V4: Final = """
CREATE TABLE record_heads (
  record TEXT PRIMARY KEY, number INTEGER NOT NULL, size INTEGER NOT NULL, chain TEXT NOT NULL,
  run_id TEXT NOT NULL, writer TEXT NOT NULL, seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
"""Adds how far each file of the record was written."""

_V6: Final = """
CREATE TABLE policies (
  path TEXT NOT NULL, digest TEXT NOT NULL, status TEXT NOT NULL, files TEXT NOT NULL,
  changed_at REAL NOT NULL, accepted_by TEXT NOT NULL, rev INTEGER NOT NULL,
  PRIMARY KEY (path, digest)
) STRICT;
CREATE UNIQUE INDEX policies_accepted ON policies (path) WHERE status = 'accepted';
"""
"""Adds the policies that were accepted, and those that wait to be."""

_V7: Final = "ALTER TABLE approvals ADD COLUMN client TEXT NOT NULL DEFAULT ''"
"""Adds what the agent's client says it is."""

MIGRATIONS: Final[tuple[str, ...]] = (_V1, _V2, _V3, _V4, TABLE, _V6, _V7)
"""Scripts that each upgrade a file by one version; the version is the number of scripts run."""


class Database:
    """A connection to the shared file. Several threads may use it; a lock serialises them."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def write(self, *, through_power_loss: bool = False) -> Iterator[sqlite3.Connection]:
        """Run one transaction; no other process can write between its reads and its writes.

        A commit survives the death of any process. With ``through_power_loss`` it has also
        reached the disk when this returns, at the cost of a flush.
        """
        with self._lock, _as_store_error(self.path):
            connection = self._connection
            if through_power_loss:
                connection.execute("PRAGMA synchronous = FULL")
            try:
                with connection:
                    # IMMEDIATE takes the write lock before the first read.
                    connection.execute("BEGIN IMMEDIATE")
                    yield connection
            finally:
                if through_power_loss:
                    connection.execute("PRAGMA synchronous = NORMAL")

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self._lock, _as_store_error(self.path):
            return self._connection.execute(query, values).fetchall()

    def state(self) -> tuple[int, int]:
        """Return a value that differs after any change, by this or another process."""
        with self._lock, _as_store_error(self.path):
            row = self._connection.execute("PRAGMA data_version").fetchone()
            return int(row[0]), self._connection.total_changes


def next_rev(connection: sqlite3.Connection) -> int:
    """Return the next revision number; must run inside a transaction."""
    query = "UPDATE counter SET value = value + 1 WHERE name = 'rev' RETURNING value"
    return int(connection.execute(query).fetchone()[0])


def open_database(directory: Path, *, busy_ms: int = BUSY_MS) -> Database:
    """Open the shared file in the state directory, creating both if necessary.

    Raises:
        StoreError: The directory or file cannot be used, belongs to another user, or was
            written by a later version.
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
            f"{directory} belongs to another user; set THOUGHTGATE_STATE_DIR to your own directory"
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)
    # SQLite gives its -wal and -shm files the mode of the file itself.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        # Never open and close a file that this process may already use: closing any descriptor
        # drops all POSIX locks of the process on it, and another process could reset the WAL.
        kept = path.lstat()
        if not stat.S_ISREG(kept.st_mode):
            raise StoreError(f"{path} is not a regular file; move it away") from None
        if stat.S_IMODE(kept.st_mode) & 0o077:
            path.chmod(0o600)


def _configure(connection: sqlite3.Connection, busy_ms: int) -> None:
    connection.execute(f"PRAGMA busy_timeout = {int(busy_ms)}")
    keep_log(connection, busy_ms)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA trusted_schema = OFF")
    # SQLite's default cache of 2 MB per connection would exceed the shim's memory budget.
    connection.execute("PRAGMA cache_size = -256")


def keep_log(connection: sqlite3.Connection, busy_ms: int) -> None:
    """Enable the write-ahead log, retrying while another process opens the same new file.

    SQLite's busy timeout does not apply to this statement.
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
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        version = _version(connection)
        if version > len(MIGRATIONS):
            raise StoreError(
                f"{path} was written by a later version of thoughtgate; update this one"
            )
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _as_store_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StoreError(
            f"{path}: {reason}; to use another state directory than {path.parent}, "
            "set THOUGHTGATE_STATE_DIR"
        ) from error
