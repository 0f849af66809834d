"""The PostgreSQL engine: one database that all gates of a team share.

Every exclusive transaction first takes an advisory lock, which gives it the guarantees of
SQLite's single writer. These transactions are short, and a call that needs nothing shared waits
for none of them. Times are those of the database's clock, so gates with different clocks agree on
what has expired.
"""

import functools
import logging
import os
import pwd
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import Rows
from thoughtgate.stores.engines.postgres_pool import (
    CHANNEL,
    CONNECT_S,
    QUERY_S,
    SLOW_S,
    Connection,
    PostgresPool,
    borrow_pool,
    psycopg,
    reason_of,
    return_pool,
)
from thoughtgate.stores.engines.schema import MIGRATIONS, OLDEST, for_postgres
from thoughtgate.stores.process_owner import PREFIX

_LOCK: Final = 0x7468_6F75_6768_7467  # "thoughtg"
"""Number of the advisory lock."""

_SERVER_SETTINGS: Final = (
    f"-c statement_timeout={int(QUERY_S * 1000)} -c lock_timeout={int(QUERY_S * 1000)} "
    f"-c idle_in_transaction_session_timeout={int(QUERY_S * 1000)}"
)

_SCHEMA_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL, oldest bigint NOT NULL)"
)
_NOTIFY: Final = f"""
CREATE OR REPLACE FUNCTION thoughtgate_changed() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('{CHANNEL}', NEW.value::text); RETURN NULL; END $$;
CREATE OR REPLACE TRIGGER counter_changed AFTER UPDATE ON counter
FOR EACH ROW EXECUTE FUNCTION thoughtgate_changed();
"""

_REDIRECTING: Final = ("PGHOSTADDR", "PGSERVICE")
"""Variables that make libpq connect to a different server than the one in the URL."""

_LEFT_TO_ENVIRONMENT: Final = frozenset(
    {*_REDIRECTING, "PGSSLCERTMODE", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION"}
)
"""Variables without a default that libpq accepts; they can only make a connection fail."""

_SCHEMES: Final = ("postgresql://", "postgres://")

_VALUE: Final = re.compile(r"\?|:([a-z_]+)|%")


class PostgresDatabase:
    """The shared database, as one store uses it; the connections belong to the process."""

    is_shared = True

    def __init__(
        self,
        conninfo: str,
        shown: str,
        *,
        clock: Callable[[], float] = time.time,
        pool: PostgresPool | None = None,
    ) -> None:
        """Connect with ``conninfo``; ``shown`` names the database in messages.

        ``clock`` is the clock of the times that are passed to ``time``. ``pool`` is a borrowed pool,
        which ``close`` returns; without one, the store has its own connections.
        """
        self._conninfo = conninfo
        self._shown = shown
        self._pool = pool or PostgresPool(conninfo, shown, clock=clock)
        self._is_open = True

    def close(self) -> None:
        """Give the connections back; they are closed when no store uses them."""
        if self._is_open:
            self._is_open = False
            return_pool(self._pool)

    @property
    def is_away(self) -> bool:
        """Whether the database could not be reached the last time that it was tried."""
        return self._pool.is_away

    @contextmanager
    def write(
        self, *, through_power_loss: bool = False, exclusive: bool = True
    ) -> Iterator["_Statements"]:
        """Run one transaction; PostgreSQL flushes every commit."""
        del through_power_loss
        with self._lend(self._begin_exclusive if exclusive else _begin) as connection:
            current = self._pool.current
            outer = getattr(current, "connection", None)
            # Lets reads of the same thread see what this transaction has written.
            current.connection = connection
            try:
                yield _Statements(connection)
                connection.execute("COMMIT")
                self._pool.changes += 1
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            finally:
                current.connection = outer

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        current = getattr(self._pool.current, "connection", None)
        if current is not None:
            return _Statements(current).execute(query, values).fetchall()
        rows: list[Any] = []

        def fetch(connection: Connection) -> None:
            rows[:] = _Statements(connection).execute(query, values).fetchall()

        with self._lend(fetch):
            return rows

    def read_slowly(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query that may take longer than others, such as statistics.

        Raises:
            StoreError: the store cannot be reached or read.
        """
        rows: list[Any] = []

        def fetch(connection: Connection) -> None:
            connection.limit_s = SLOW_S
            try:
                connection.execute("BEGIN READ ONLY")
                connection.execute(f"SET LOCAL statement_timeout = {int(SLOW_S * 1000)}".encode())
                rows[:] = _Statements(connection).execute(query, values).fetchall()
                connection.execute("COMMIT")
            finally:
                connection.limit_s = QUERY_S

        with self._pool.lend_slow(fetch):
            return rows

    def state(self) -> tuple[int, int]:
        """Return a number that a thread increments at each notification."""
        self._pool.follow()
        return self._pool.changes, 0

    def is_current(self) -> bool:
        """Tell that other processes use this database, whatever happens to its files."""
        return True

    def time(self, at: float) -> float:
        """Return the database's time at a time of this machine's clock."""
        return at + self._pool.offset

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
                    f"{self._shown} was upgraded by a later version of thoughtgate, which this one "
                    "cannot work with; update it: pip install --upgrade thoughtgate"
                )
            if version >= len(MIGRATIONS):
                return
            # One transaction, so that a failed upgrade leaves the tables as they were.
            for script in MIGRATIONS[version:]:
                statements.run(for_postgres(script))
            statements.run(_NOTIFY)
            statements.execute("DELETE FROM schema_version")
            statements.execute(
                "INSERT INTO schema_version VALUES (?, ?)", (len(MIGRATIONS), OLDEST)
            )

    def _begin_exclusive(self, connection: Connection) -> None:
        """Begin a transaction, wait for the lock, and read the database's clock."""
        connection.execute("BEGIN")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        self._pool.measure_clock(connection)

    def _lend(self, first: Callable[[Connection], None]) -> AbstractContextManager[Connection]:
        if not self._is_open:
            raise StoreError(f"{self._shown}: this store was closed")
        return self._pool.lend(first)


class _Statements:
    """Runs the stores' statements on a connection."""

    def __init__(self, connection: Connection) -> None:
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


def open_postgres(url: str, *, ignores_environment: bool = False) -> PostgresDatabase:
    """Connect to a database, and create or upgrade its tables.

    With ``ignores_environment``, only a password is taken from the environment.

    Raises:
        StoreError: the URL is wrong, or the database cannot be used; the text has no password.
    """
    conninfo, shown = connection_info(url, ignores_environment=ignores_environment)
    # The pool logs every failed attempt; what a user should know is in our own errors.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    try:
        pool = borrow_pool(conninfo, shown)
    except psycopg.Error as error:
        raise StoreError(f"{shown}: {reason_of(error)}; {_advice(error)}") from None
    database = PostgresDatabase(conninfo, shown, pool=pool)
    try:
        database.migrate()
    except StoreError as error:
        database.close()
        cause = error.__cause__
        raise StoreError(f"{error}; {_advice(cause)}" if cause else str(error)) from None
    except BaseException:
        database.close()
        raise
    return database


def connection_info(url: str, *, ignores_environment: bool = False) -> tuple[str, str]:
    """Return what libpq needs for a URL, and how messages name the database.

    Raises:
        StoreError: it is not a URL of a PostgreSQL database.
    """
    for name in _REDIRECTING:
        if os.environ.get(name):
            raise StoreError(f"{name} names another server than the key store; unset it")
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
        hosts, database = str(parts.get("host") or ""), parts.get("dbname")
        ports = str(parts.get("port") or "").replace(",", "")
        is_whole = bool(hosts and database and (not ports or ports.isdecimal()))
        if not url.startswith(_SCHEMES) or not is_whole:
            raise ValueError  # noqa: TRY301 - one answer to every kind of wrong URL
        if "sslmode" not in parts and not all(map(_is_local, hosts.split(","))):
            # Without TLS, others in the network could read the arguments of calls.
            is_told = "PGSSLMODE" in os.environ and not ignores_environment
            parts["sslmode"] = os.environ["PGSSLMODE"] if is_told else "require"
        # libpq would take PGPORT, which may be the port of another server on the same host.
        parts.setdefault("port", "5432")
        parts["options"] = f"{parts.get('options', '')} {_SERVER_SETTINGS}".strip()
        # After a failover, the server that was the primary may only be read.
        parts.setdefault("target_session_attrs", "read-write" if "," in hosts else "any")
        parts |= {
            "connect_timeout": CONNECT_S,
            "tcp_user_timeout": int(QUERY_S * 1000),
            "application_name": "thoughtgate",
        }
        if ignores_environment:
            # A service file, which the environment names, could add the address of another server.
            if "service" in parts:
                raise ValueError  # noqa: TRY301 - as above
            parts = {**_defaults(), **parts}
        conninfo = psycopg.conninfo.make_conninfo("", **parts)
    except (ValueError, psycopg.Error):
        raise StoreError(
            "store: must be sqlite or postgresql://USER@HOST/DATABASE; "
            "the password comes from PGPASSWORD or a ${VARIABLE}"
        ) from None
    return conninfo, f"database {database} on {hosts}"


def _defaults() -> dict[str, str]:
    """Return libpq's defaults, which keep it from reading the environment.

    The root certificate is the one that libpq finds with the account's own ``HOME``.
    """
    options = psycopg.pq.Conninfo.get_defaults()
    values = {
        one.keyword.decode(): (one.compiled or b"").decode()
        for one in options
        if one.envvar and one.envvar.decode() not in _LEFT_TO_ENVIRONMENT
    }
    root = Path(pwd.getpwuid(os.geteuid()).pw_dir, ".postgresql", "root.crt")
    return {
        **values,
        "password": os.environ.get("PGPASSWORD", ""),
        "sslrootcert": str(root),
        # Kerberos is configured by the environment, and would be used instead of TLS.
        "gssencmode": "disable",
    }


@functools.lru_cache(maxsize=256)
def translated(query: str) -> str:
    """Return a statement with the placeholders of psycopg."""

    def placeholder(found: re.Match[str]) -> str:
        if found[0] == "%":
            return "%%"
        return f"%({found[1]})s" if found[1] else "%s"

    # A cast (``::float8``) is not a value; it has no letter before the second colon.
    return "::".join(_VALUE.sub(placeholder, part) for part in query.split("::"))


def _begin(connection: Connection) -> None:
    connection.execute("BEGIN")


def _is_local(host: str) -> bool:
    if host == "localhost" or host.startswith("/"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


_ADVICE: Final = (
    ("password", "set PGPASSWORD, or write the password as ${VARIABLE} into the key store"),
    ("does not exist", "create it (createuser, createdb), or correct the key store in the config"),
    ("permission denied", "grant the user CREATE on the schema, so that it can create its tables"),
    ("pg_hba.conf", "allow this user and host in the server's pg_hba.conf"),
    ("ssl", "enable TLS at the server, or choose sslmode in the key store or in PGSSLMODE"),
    ("certificate", "set PGSSLROOTCERT to the certificate of the server's authority"),
)
"""What to do about an error, by a word in its text."""


def _advice(error: BaseException) -> str:
    text = str(error).lower()
    found = (advice for word, advice in _ADVICE if word in text)
    return next(found, "start the database, or correct the key store in the config")
