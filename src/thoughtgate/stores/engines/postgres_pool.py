"""The connections of one process to one PostgreSQL database, shared by all of its stores.

Approvals, limits, sessions, channels and the ledger of a gate share one pool, so a database needs
few connections per gate. A database that is stopped or paused must not block the gate: every wait
also has a limit on this side, and after a failure all operations fail at once until a thread has
reached the database again.
"""

import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from thoughtgate.errors import StoreError

try:
    import psycopg
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise StoreError(
        "a postgresql:// store needs an optional dependency: pip install 'thoughtgate[postgres]'"
    ) from error

__all__ = ["Connection", "PostgresPool", "borrow_pool", "psycopg", "reason_of", "return_pool"]
"""Exports the driver too, so that a missing driver raises the same error for every user of it."""

CONNECT_S: Final = 3
QUERY_S: Final = 3.0
"""How long a statement may take, the wait for another transaction included."""

SLOW_S: Final = 60.0
"""How long a query over the whole ledger may take; no call waits for one."""

MAX_CONNECTIONS: Final = 6
"""Connections of one process: for its event loop, the threads of channels, the ledger and the
gate's own row, and the slow queries. Notifications have one more."""

MAX_SLOW: Final = 2
"""Slow queries at a time: pages with statistics must leave connections for calls."""

_PROBE_S: Final = 0.5
"""How often a database that cannot be reached is tried again."""

_STEADY_S: Final = 0.1
"""A change of the difference between the clocks up to this is ignored."""

_LOOK_S: Final = 1.0
"""How often the store is checked for changes, in case a notification was lost."""

CHANNEL: Final = "thoughtgate"
"""The notifications that say that something has changed."""

Result = TypeVar("Result")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which no statement waits longer than its limit.

    The server's own timeout does not work while the server is paused or the network is cut.
    """

    limit_s: float = QUERY_S

    def wait(
        self,
        gen: Generator[Any, Any, Result],
        interval: float = 0.05,
        timeout: float | None = None,
    ) -> Result:
        """Wait for the server, but no longer than a little more than the server's own limit."""
        try:
            return super().wait(_bounded(gen, self.limit_s + 1), interval, timeout)
        except TimeoutError as error:
            # ``lend`` takes a closed connection as a sign that the database cannot be reached.
            self.close()
            raise psycopg.OperationalError("the database does not answer") from error


class PostgresPool:
    """The connections to one database. Several threads and several stores may use it."""

    def __init__(
        self, conninfo: str, shown: str, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Connect with ``conninfo``; ``shown`` names the database in messages."""
        self.shown = shown
        self.users = 0
        """How many stores have borrowed the pool."""
        self.current = threading.local()
        """The connection of the transaction of each thread."""
        self.offset = 0.0
        """Seconds by which the database's clock is ahead of this machine's."""
        self.changes = 0
        """Incremented at each change."""
        self._clock = clock
        self._conninfo = conninfo
        self._pool = ConnectionPool(
            conninfo,
            connection_class=Connection,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=MAX_CONNECTIONS,
            timeout=QUERY_S,
            reconnect_timeout=CONNECT_S,
            open=True,
            name="thoughtgate store",
        )
        # All connections in use says nothing about the database; a timeout of the pool does.
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._slow = threading.BoundedSemaphore(MAX_SLOW)
        self._starting = threading.Lock()
        self._away = threading.Event()
        self._closed = threading.Event()
        self._listener: threading.Thread | None = None

    def close(self) -> None:
        """Close all connections."""
        self._closed.set()
        self._pool.close(timeout=1)

    @property
    def is_away(self) -> bool:
        """Whether the database could not be reached the last time that it was tried."""
        return self._away.is_set()

    def follow(self) -> None:
        """Count notifications from now on, in a thread."""
        with self._starting:
            if self._listener is None:
                self._listener = threading.Thread(
                    target=self._listen, name="store notifications", daemon=True
                )
                self._listener.start()

    def measure_clock(self, connection: Connection) -> None:
        """Measure the difference between the database's clock and this machine's."""
        asked = self._clock()
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        answered = self._clock()
        if row is None:
            return
        # The measurement is only as exact as the answer was quick. A constant difference
        # keeps the times of a row the same from one reading to the next.
        measured = row[0] - (asked + answered) / 2
        if abs(measured - self.offset) > _STEADY_S + (answered - asked) / 2:
            self.offset = measured

    @contextmanager
    def lend_slow(self, first: Callable[[Connection], None]) -> Iterator[Connection]:
        """Lend a connection for a query that may take long; only a few are lent at a time."""
        if not self._slow.acquire(timeout=SLOW_S):
            raise self._busy()
        try:
            with self.lend(first) as connection:
                yield connection
        finally:
            self._slow.release()

    @contextmanager
    def lend(self, first: Callable[[Connection], None]) -> Iterator[Connection]:
        """Lend a connection on which ``first`` has run; stale connections are replaced before.

        Raises:
            StoreError: the database cannot be reached, or refused something.
        """
        if self._away.is_set():
            raise StoreError(f"{self.shown} cannot be reached; the gate keeps trying")
        if not self._places.acquire(timeout=QUERY_S):
            raise self._busy()
        connection: Connection | None = None
        try:
            connection = self._fresh(first)
            yield connection
        except (psycopg.Error, PoolTimeout) as error:
            if isinstance(error, PoolTimeout) or (connection is not None and connection.closed):
                self._lost()
            raise StoreError(f"{self.shown}: {reason_of(error)}") from error
        finally:
            if connection is not None:
                self._pool.putconn(connection)
            self._places.release()

    def _busy(self) -> StoreError:
        return StoreError(f"{self.shown}: all connections of this process are in use")

    def _fresh(self, first: Callable[[Connection], None]) -> Connection:
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
        """Let all operations fail at once until a thread has reached the database again."""
        with self._starting:
            if self._away.is_set() or self._closed.is_set():
                return
            self._away.set()
        threading.Thread(target=self._probe, name="store probe", daemon=True).start()

    def _probe(self) -> None:
        while not self._closed.wait(_PROBE_S):
            with suppress(psycopg.Error, PoolTimeout, StoreError):
                connection = self._fresh(_look)
                self._pool.putconn(connection)
                self._away.clear()
                self.changes += 1  # something may have changed without a notification
                return

    def _listen(self) -> None:
        """Count notifications, and check for changes in case one was lost."""
        while not self._closed.is_set():
            with (
                suppress(psycopg.Error),
                Connection.connect(self._conninfo, autocommit=True) as connection,
            ):
                connection.execute(f"LISTEN {CHANNEL}".encode())
                self.changes += 1
                self._follow(connection)
            self._closed.wait(_PROBE_S)

    def _follow(self, connection: Connection) -> None:
        seen = 0
        while not self._closed.is_set():
            for _ in connection.notifies(timeout=_LOOK_S, stop_after=1):
                self.changes += 1
            row = connection.execute("SELECT value FROM counter WHERE name = 'rev'").fetchone()
            if row and row[0] != seen:
                seen = row[0]
                self.changes += 1


_open: Final[dict[tuple[int, str], PostgresPool]] = {}
"""The pools of this process. The process is part of the key: connections do not survive a fork."""

_opening: Final = threading.Lock()


def borrow_pool(conninfo: str, shown: str) -> PostgresPool:
    """Return the pool of this process for a database; each call needs one ``return_pool``.

    Raises:
        psycopg.Error: the database cannot be reached; the error says why.
    """
    key = os.getpid(), conninfo
    with _opening:
        pool = _open.get(key)
        if pool is None:
            # Tried first without the pool, whose errors do not say why a connection failed.
            Connection.connect(conninfo).close()
            pool = _open[key] = PostgresPool(conninfo, shown)
        pool.users += 1
        return pool


def return_pool(pool: PostgresPool) -> None:
    """Give a pool back; the last user closes it."""
    with _opening:
        pool.users -= 1
        if pool.users > 0:
            return
        for key in [key for key, one in _open.items() if one is pool]:
            del _open[key]
    pool.close()


def reason_of(error: Exception) -> str:
    """Return the first line of an error."""
    if isinstance(error, PoolTimeout):
        return "it cannot be reached"
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _look(connection: Connection) -> None:
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
