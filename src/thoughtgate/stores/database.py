"""The contract of a store's engine: SQLite for one machine, PostgreSQL for several gates.

The stores of this package (approvals, tasks, policies) are written once, in SQL that both engines
run, with ``?`` or ``:name`` for values. They rely on this:

- ``write`` runs one transaction: all of it is committed, or nothing. No other process writes
  between its reads and its writes, so a store may read, ask a lifecycle, and write. With
  ``exclusive=False`` PostgreSQL takes no common lock: then only single statements are atomic, but
  a row that the transaction has updated stays as it is until the transaction ends.
- A commit survives the death of any process, and of the engine. If the connection is lost during
  a commit, it is unknown whether it took effect: the caller gets an error and must not go on.
- ``read`` returns committed rows only, or those of the transaction of the same thread.
- Every change of a row that other processes wait for takes the next revision (``next_rev``) in its
  transaction. Revisions are committed in order, so a reader that requests everything after the
  last revision it saw misses nothing.
- Every operation ends within seconds. While the engine cannot be reached, operations fail at once
  with ``StoreError``; they succeed again as soon as it can be reached.
- ``time`` converts this machine's time to the store's; all times in rows are the store's.
- ``is_alive`` tells whether an owner of rows may still act on them. Rows whose owner is not alive
  may be taken over, by an update that names the old owner.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that were changed."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""


class Transaction(Protocol):
    """Runs statements within a transaction."""

    def execute(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        """Run one statement."""

    def executemany(self, query: str, values: Iterable[Sequence[Any]]) -> Rows:
        """Run one statement for each of several sets of values."""


class Database(Protocol):
    """A store's engine. Several threads may use it."""

    is_shared: bool
    """Whether gates on other machines use the same store."""

    @property
    def is_away(self) -> bool:
        """Whether the store could not be reached the last time that it was tried; very cheap."""

    def close(self) -> None:
        """Close all connections."""

    def write(
        self, *, through_power_loss: bool = False, exclusive: bool = True
    ) -> AbstractContextManager[Transaction]:
        """Run one transaction.

        With ``through_power_loss``, the transaction has also reached the disk when this returns,
        at the cost of a flush; PostgreSQL always flushes.

        Raises:
            StoreError: the store cannot be reached or written.
        """

    def read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query.

        Raises:
            StoreError: the store cannot be reached or read.
        """

    def state(self) -> tuple[int, int]:
        """Return a value that differs after any change by any process; very cheap."""

    def is_current(self) -> bool:
        """Tell whether other processes still use this store; False if another took its place."""

    def time(self, at: float) -> float:
        """Return the store's time at a time of this machine's clock."""

    def is_alive(self, owner: str) -> bool:
        """Tell whether the owner of a row may still be running; False only if it may not act."""


class Store:
    """The base of every set of tables: a database, which several of them may share."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def close(self) -> None:
        """Close the database, also for the other tables that use it."""
        self._database.close()

    def state(self) -> tuple[int, int]:
        """Return a value that differs after any change by any process; very cheap."""
        return self._database.state()

    def rev(self) -> int:
        """Return the number of the latest change of the store."""
        return int(self._database.read("SELECT value FROM counter WHERE name = 'rev'")[0][0])

    def time(self, at: float) -> float:
        """Return the store's time at a time of this machine's clock."""
        return self._database.time(at)


def next_rev(transaction: Transaction) -> int:
    """Return the next revision number; must run inside an exclusive transaction."""
    query = "UPDATE counter SET value = value + 1 WHERE name = 'rev' RETURNING value"
    return int(transaction.execute(query).fetchone()[0])
