"""The SQLite engine: a file that all gate processes of a user share.

The file has mode 0600 in a directory with mode 0700.
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
from thoughtgate.stores.directory_owners import require_own_path
from thoughtgate.stores.engines.schema import MIGRATIONS
from thoughtgate.stores.process_owner import is_alive

FILE_NAME: Final = "thoughtgate.db"
"""Name of the file in the state directory."""

BUSY_MS: Final = 2000
"""How long a writer waits for another one; a transaction takes well under 10 ms."""

_PAUSE_S: Final = 0.005
"""Pause between two attempts to enable the write-ahead log."""


class SqliteDatabase:
    """A connection to the shared file. Several threads may use it; a lock serialises them."""

    is_shared = False
    is_away = False

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        opened = path.stat()
        self._identity = (opened.st_dev, opened.st_ino)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def write(
        self, *, through_power_loss: bool = False, exclusive: bool = True
    ) -> Iterator[sqlite3.Connection]:
        """Run one transaction; SQLite has one writer at a time, so every one is exclusive."""
        del exclusive
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

    def is_current(self) -> bool:
        """Tell whether other processes still use this file; False if another one took its place."""
        try:
            found = self.path.stat()
        # Removed: nobody else can open it either, and a new file would change the inode.
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def time(self, at: float) -> float:
        """Return the time itself: all processes that use the file have the same clock."""
        return at

    def is_alive(self, owner: str) -> bool:
        """Tell whether the process that owns a row may still be running."""
        return is_alive(owner)


def open_sqlite(directory: Path, *, busy_ms: int = BUSY_MS) -> SqliteDatabase:
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
    return SqliteDatabase(connection, path)


def _prepare(directory: Path, path: Path) -> None:
    require_own_path(str(directory))
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
    # A new file has nothing to lose yet, and waiting for the disk delays the start of a gate.
    connection.execute("PRAGMA synchronous = OFF")
    keep_log(connection, busy_ms)
    connection.execute("PRAGMA synchronous = NORMAL")
    # The file may have been put there by somebody else: its views and triggers must not run
    # functions with side effects.
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
        # Read again under the lock: another process may have upgraded the file in the meantime.
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
