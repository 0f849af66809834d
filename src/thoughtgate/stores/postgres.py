"""The PostgreSQL engine: one database that all gates of a team share.

Every exclusive transaction takes one advisory lock first, which gives it the guarantees of
SQLite's single writer; they are short, and none is on the path of a call that needs nothing
shared. The database's clock counts, so gates with different clocks agree on what has expired.

A database that is stopped or paused must not stop the gate: every wait has a limit on this side
too, and after a failure operations fail at once until a thread has reached the database again.
"""

import functools
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from typing import Any, Final, TypeVar

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import Rows
from thoughtgate.stores.process_owner import PREFIX
from thoughtgate.stores.schema import MIGRATIONS, OLDEST, for_postgres

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise StoreError(
        "a postgresql:// store needs an optional dependency: pip install 'thoughtgate[postgres]'"
    ) from error

CONNECT_S: Final = 3
QUERY_S: Final = 3.0
"""How long a statement may take, the wait for another transaction included."""

MAX_CONNECTIONS: Final = 4
"""Of one process: its event loop, the channels' thread, the ledger's and one to spare."""

_PROBE_S: Final = 0.5
"""How often a database that is away is tried again."""

_LOOK_S: Final = 1.0
"""How often changes are looked for in case a notification was lost."""

_LOCK: Final = 0x7468_6F75_6768_7467  # "thoughtg"
"""Number of the advisory lock."""
_CHANNEL: Final = "thoughtgate"

_SERVER_SETTINGS: Final = (
    f"-c statement_timeout={int(QUERY_S * 1000)} -c lock_timeout={int(QUERY_S * 1000)} "
    f"-c idle_in_transaction_session_timeout={int(QUERY_S * 1000)}"
)

_SCHEMA_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL, oldest bigint NOT NULL)"
)
_NOTIFY: Final = f"""
CREATE OR REPLACE FUNCTION thoughtgate_changed() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('{_CHANNEL}', NEW.value::text); RETURN NULL; END $$;
CREATE OR REPLACE TRIGGER counter_changed AFTER UPDATE ON counter
FOR EACH ROW EXECUTE FUNCTION thoughtgate_changed();
"""

_REDIRECTING: Final = ("PGHOSTADDR", "PGSERVICE")
"""Variables that libpq follows to another server than the one in the URL."""

_SCHEMES: Final = ("postgresql://", "postgres://")

_VALUE: Final = re.compile(r"\?|:([a-z_]+)|%")

Result = TypeVar("Result")


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which no statement waits longer than its limit.

    The server's own timeout does not work while the server is paused or the network is cut.
    """

    def wait(
        self,
        gen: Generator[Any, Any, Result],
        interval: float = 0.05,
        timeout: float | None = None,
    ) -> Result:
        """Wait for the server, but no longer than a little more than the server's own limit."""
        try:
            return super().wait(_bounded(gen, QUERY_S + 1), interval, timeout)
        except TimeoutError as error:
            self.close()
            raise psycopg.OperationalError("the database does not answer") from error


class PostgresDatabase:
    """A pool of connections to the shared database."""

    is_shared = True

    def __init__(self, conninfo: str, shown: str) -> None:
        """Connect with ``conninfo``; ``shown`` names the database in messages."""
        self._conninfo = conninfo
        self._shown = shown
        self._pool = ConnectionPool(
            conninfo,
            connection_class=_Connection,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=MAX_CONNECTIONS,
            timeout=QUERY_S,
            reconnect_timeout=CONNECT_S,
            open=True,
            name="thoughtgate store",
        )
        self._current = threading.local()
        self._away = threading.Event()
        self._closed = threading.Event()
        self._changes = 0
        self._listener: threading.Thread | None = None
        self._offset = 0.0

    def close(self) -> None:
        """Close all connections."""
        self._closed.set()
        self._pool.close(timeout=1)

    @property
    def is_away(self) -> bool:
        """Whether the database could not be reached the last time that it was tried."""
        return self._away.is_set()

    @contextmanager
    def write(
        self, *, through_power_loss: bool = False, exclusive: bool = True
    ) -> Iterator["_Statements"]:
        """Run one transaction; PostgreSQL flushes every commit."""
        del through_power_loss
        with self._connected(self._begin_exclusive if exclusive else _begin) as connection:
            self._current.connection = connection
            try:
                yield _Statements(connection)
                connection.execute("COMMIT")
                self._changes += 1
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._current.connection = None

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        current = getattr(self._current, "connection", None)
        if current is not None:
            return _Statements(current).execute(query, values).fetchall()
        rows: list[Any] = []

        def fetch(connection: _Connection) -> None:
            rows[:] = _Statements(connection).execute(query, values).fetchall()

        with self._connected(fetch):
            return rows

    def state(self) -> tuple[int, int]:
        """Return a number that a thread counts up at each notification."""
        if self._listener is None:
            self._listener = threading.Thread(
                target=self._listen, name="store notifications", daemon=True
            )
            self._listener.start()
        return self._changes, 0

    def time(self, at: float) -> float:
        """Return the database's time at a time of this machine's clock."""
        return at + self._offset

    def is_alive(self, owner: str) -> bool:
        """Tell whether a gate has renewed its row in time; the database's clock decides.

        Tasks and policies own requests too, and end in other ways.
        """
        if not owner.startswith(PREFIX):
            return True
        now = "extract(epoch FROM clock_timestamp())::float8"
        query = f"SELECT 1 FROM gates WHERE owner = ? AND expires_at > {now}"  # noqa: S608 - a constant
        return bool(self.read(query, (owner,)))

    def migrate(self) -> None:
        """Create or upgrade the tables.

        Raises:
            StoreError: the tables are of a version that this one cannot use.
        """
        with self.write() as statements:
            statements.execute(_SCHEMA_TABLE)
            row = statements.execute("SELECT version, oldest FROM schema_version").fetchone()
            version, oldest = row or (0, 0)
            if oldest > len(MIGRATIONS):
                raise StoreError(
                    f"{self._shown} was upgraded by a later version of thoughtgate; update this one"
                )
            if version >= len(MIGRATIONS):
                return
            for script in MIGRATIONS[version:]:
                statements.run(for_postgres(script))
            statements.run(_NOTIFY)
            statements.execute("DELETE FROM schema_version")
            statements.execute(
                "INSERT INTO schema_version VALUES (?, ?)", (len(MIGRATIONS), OLDEST)
            )

    def _begin_exclusive(self, connection: _Connection) -> None:
        """Begin a transaction, wait for its turn, and look at the database's clock."""
        connection.execute("BEGIN")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        asked = time.time()
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        self._offset = row[0] - (asked + time.time()) / 2 if row else 0.0

    @contextmanager
    def _connected(self, first: Callable[[_Connection], None]) -> Iterator[_Connection]:
        """Lend a connection on which ``first`` has run; one that is stale is replaced before."""
        if self._away.is_set():
            raise StoreError(f"{self._shown} cannot be reached; it is tried again all the time")
        connection: _Connection | None = None
        try:
            connection = self._fresh(first)
            yield connection
        except (psycopg.Error, PoolTimeout) as error:
            if isinstance(error, PoolTimeout) or (connection is not None and connection.closed):
                self._lost()
            raise StoreError(f"{self._shown}: {_reason(error)}") from error
        finally:
            if connection is not None:
                self._pool.putconn(connection)

    def _fresh(self, first: Callable[[_Connection], None]) -> _Connection:
        """Return a connection on which ``first`` succeeded.

        After a restart of the database, every connection of the pool is stale. Nothing was
        committed on them by ``first``, so it can be repeated.
        """
        for left in reversed(range(MAX_CONNECTIONS + 1)):
            connection = self._pool.getconn()
            try:
                first(connection)
            except BaseException as error:
                is_stale = isinstance(error, psycopg.OperationalError) and connection.closed
                if not connection.closed:
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")
                self._pool.putconn(connection)
                if not is_stale:
                    raise
                if not left:
                    raise PoolTimeout from error
            else:
                return connection
        raise AssertionError("the last attempt raises")

    def _lost(self) -> None:
        """Fail at once from now on, until a thread has reached the database again."""
        if not self._away.is_set() and not self._closed.is_set():
            self._away.set()
            threading.Thread(target=self._probe, name="store probe", daemon=True).start()

    def _probe(self) -> None:
        while not self._closed.wait(_PROBE_S):
            with suppress(psycopg.Error, PoolTimeout, StoreError):
                connection = self._fresh(_look)
                self._pool.putconn(connection)
                self._away.clear()
                self._changes += 1  # something may have changed that nobody told us
                return

    def _listen(self) -> None:
        """Count notifications, and look for changes in case one was lost."""
        while not self._closed.is_set():
            with (
                suppress(psycopg.Error),
                _Connection.connect(self._conninfo, autocommit=True) as connection,
            ):
                connection.execute(f"LISTEN {_CHANNEL}".encode())
                self._changes += 1
                self._follow(connection)
            self._closed.wait(_PROBE_S)

    def _follow(self, connection: _Connection) -> None:
        seen = 0
        while not self._closed.is_set():
            for _ in connection.notifies(timeout=_LOOK_S, stop_after=1):
                self._changes += 1
            row = connection.execute("SELECT value FROM counter WHERE name = 'rev'").fetchone()
            if row and row[0] != seen:
                seen = row[0]
                self._changes += 1


class _Statements:
    """Runs the stores' statements on a connection."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def execute(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Run one statement."""
        return self._connection.execute(translated(query).encode(), values)

    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> Rows:
        """Run one statement for each of several sets of values."""
        cursor = self._connection.cursor()
        cursor.executemany(translated(query).encode(), values)
        return cursor

    def run(self, script: str) -> None:
        """Run several statements without values."""
        self._connection.execute(script.encode())


def open_postgres(url: str) -> PostgresDatabase:
    """Connect to a database, and create or upgrade its tables.

    Raises:
        StoreError: the URL is wrong, or the database cannot be used; the text has no password.
    """
    conninfo, shown = connection_info(url)
    # The pool logs every failed attempt; what a user should know is in our own errors.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    try:
        # Tried first without the pool, whose errors do not say why a connection failed.
        _Connection.connect(conninfo).close()
    except psycopg.Error as error:
        raise StoreError(f"{shown}: {_reason(error)}; see the key store in the config") from None
    database = PostgresDatabase(conninfo, shown)
    try:
        database.migrate()
    except BaseException:
        database.close()
        raise
    return database


def connection_info(url: str) -> tuple[str, str]:
    """Return what libpq needs for a URL, and how messages name the database.

    Raises:
        StoreError: it is not a URL of a PostgreSQL database.
    """
    for name in _REDIRECTING:
        if os.environ.get(name):
            raise StoreError(f"{name} names another server than the key store; unset it")
    try:
        parts = conninfo_to_dict(url)
        hosts, database = str(parts.get("host") or ""), parts.get("dbname")
        ports = str(parts.get("port") or "").replace(",", "")
        is_whole = bool(hosts and database and (not ports or ports.isdecimal()))
        if not url.startswith(_SCHEMES) or not is_whole:
            raise ValueError  # noqa: TRY301 - one answer to every kind of wrong URL
        if "sslmode" not in parts and not all(map(_is_local, hosts.split(","))):
            parts["sslmode"] = os.environ.get("PGSSLMODE", "require")
        parts["options"] = f"{parts.get('options', '')} {_SERVER_SETTINGS}".strip()
        # After a failover, the server that was the primary may only be read.
        parts.setdefault("target_session_attrs", "read-write" if "," in hosts else "any")
        parts |= {
            "connect_timeout": CONNECT_S,
            "tcp_user_timeout": int(QUERY_S * 1000),
            "application_name": "thoughtgate",
        }
        conninfo = make_conninfo("", **parts)
    except (ValueError, psycopg.Error):
        raise StoreError(
            "store: must be sqlite or postgresql://USER@HOST/DATABASE; "
            "the password comes from PGPASSWORD or a ${VARIABLE}"
        ) from None
    return conninfo, f"database {database} on {hosts}"


@functools.lru_cache(maxsize=256)
def translated(query: str) -> str:
    """Return a statement with the placeholders of psycopg."""

    def placeholder(found: re.Match[str]) -> str:
        if found[0] == "%":
            return "%%"
        return f"%({found[1]})s" if found[1] else "%s"

    # A cast (``::float8``) is not a value; it has no letter before the second colon.
    return "::".join(_VALUE.sub(placeholder, part) for part in query.split("::"))


def _begin(connection: _Connection) -> None:
    connection.execute("BEGIN")


def _look(connection: _Connection) -> None:
    connection.execute("SELECT 1")


def _bounded(gen: Generator[Any, Any, Result], limit_s: float) -> Generator[Any, Any, Result]:
    """Run a generator of psycopg, which is resumed at every interval, until a time limit."""
    deadline = time.monotonic() + limit_s
    try:
        state = next(gen)
        while True:
            ready = yield state
            if time.monotonic() > deadline:
                raise TimeoutError
            state = gen.send(ready)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]


def _is_local(host: str) -> bool:
    if host == "localhost" or host.startswith("/"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _reason(error: Exception) -> str:
    """Return the first line of an error."""
    if isinstance(error, PoolTimeout):
        return "it cannot be reached"
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
