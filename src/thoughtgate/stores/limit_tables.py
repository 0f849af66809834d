"""The tables of shared limits as a whole: listing, resetting and removing what has ended."""

import json
from contextlib import suppress
from typing import Any, Final, NamedTuple

from thoughtgate.errors import StoreError
from thoughtgate.policy.limits import OVERFLOW, Circuit
from thoughtgate.policy.shared_limits import PORTION_S
from thoughtgate.stores.database import Database, Store, Transaction, next_rev

TABLES: Final = ("limit_budgets", "limit_portions", "limit_rates", "limit_calls", "limit_breakers")

TIDY_S: Final = 60.0
"""How often a process removes what has ended."""

MAX_CALLS: Final = 100_000
"""Calls of a limit whose repetition is refused; beyond that the oldest are forgotten."""

DROPPED_AFTER_S: Final = PORTION_S + 10.0
"""When a reset stops counting the portion of a gate that seems to have died. The gate may only be
paused, but it uses no portion older than ``PORTION_S`` without asking the store again. The extra
time is for a call that had already begun."""

IDLE_SESSION_S: Final = 86_400.0
"""A session that made no call for this long is forgotten if there are too many."""


_ENDED: Final = (
    "DELETE FROM limit_calls WHERE space = ? AND ends_at <= ?",
    "DELETE FROM limit_budgets WHERE space = ? AND window_ends_at <= ? AND window_ends_at > 0",
    "DELETE FROM limit_rates WHERE space = ? AND full_at <= ?",
)
"""Statements that delete what has ended, in the order in which gates lock rows."""


class BudgetCount(NamedTuple):
    """One count of a budget, as people see it."""

    limit: str
    """The id of the limit."""
    members: tuple[str, ...]
    """What is counted: nothing for the run, or a session, principal, server or tool."""
    total: int
    used: int
    """Calls that were made, as far as gates have reported it."""
    left: int
    """Calls that no gate has leased."""
    leased: int
    """At most this many calls are leased by running gates and not used yet."""
    lost: int
    """At most this many calls were leased by gates that died before using them."""
    window_ends_at: float
    """When the next window begins, on the store's clock; 0 without windows."""


class BreakerRow(NamedTuple):
    """The state of a breaker to be saved."""

    space: str
    key: str
    limit: str
    circuit: Circuit
    changed_at: float
    rev: int


class OpenBreaker(NamedTuple):
    """A breaker that refuses calls, as people see it."""

    limit: str
    members: tuple[str, ...]
    open_until: float


class LimitTables(Store):
    """The counts of all spaces of a store."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._tidied_at = 0.0

    def budgets(self, now: float) -> list[BudgetCount]:
        """Return all counts of budgets that are in use."""
        at = self._database.time(now)
        portions: dict[tuple[str, str, int], list[int]] = {}
        alive: dict[str, bool] = {}
        for space, key, owner, epoch, calls in self._database.read(
            "SELECT space, key, owner, epoch, calls FROM limit_portions WHERE calls > 0"
        ):
            if owner not in alive:
                alive[owner] = self._database.is_alive(owner)
            sums = portions.setdefault((space, key, epoch), [0, 0])
            sums[0 if alive[owner] else 1] += calls
        found = []
        for space, key, limit, total, taken, ends_at, epoch in self._database.read(
            "SELECT space, key, limit_id, total, taken, window_ends_at, epoch FROM limit_budgets "
            "ORDER BY limit_id, key"
        ):
            if not ends_at or at < ends_at:
                leased, lost = portions.get((space, key, epoch), (0, 0))
                used, left = taken - leased - lost, max(0, total - taken)
                members = _members(key)
                found.append(BudgetCount(limit, members, total, used, left, leased, lost, ends_at))
        return found

    def open_breakers(self, now: float) -> list[OpenBreaker]:
        """Return the breakers that refuse calls now."""
        rows = self._database.read(
            "SELECT limit_id, key, open_until FROM limit_breakers WHERE open_until > ? "
            "ORDER BY limit_id, key",
            (self._database.time(now),),
        )
        return [OpenBreaker(limit, _members(key), until) for limit, key, until in rows]

    def reset(self, limit: str, now: float) -> int:
        """Let a limit start anew in all spaces; return how many counts it had.

        What gates have leased and not used counts in the new budget as long as they can still
        use it. The current window of a budget goes on.
        """
        with self._database.write() as transaction:
            at = self._database.time(now)
            rows = transaction.execute(
                "SELECT space, key FROM limit_breakers WHERE limit_id = ?", (limit,)
            ).fetchall()
            # Rows are locked in the order in which gates lock them.
            for space, key in rows:
                rev = next_rev(transaction)
                closed = BreakerRow(space, key, limit, Circuit([]), at, rev)
                self.save_breaker(transaction, closed)
            delete = "DELETE FROM limit_calls WHERE limit_id = ?"
            count = len(rows) + transaction.execute(delete, (limit,)).rowcount
            count += self._reset_budgets(transaction, limit, at)
            # Portions of rates that are leased end within a second.
            delete = "DELETE FROM limit_rates WHERE limit_id = ?"
            count += transaction.execute(delete, (limit,)).rowcount
            # Gates remember refusals until something changes.
            next_rev(transaction)
        return count

    def _reset_budgets(self, transaction: Transaction, limit: str, at: float) -> int:
        # Locked first: no gate can lease between the sum and the update.
        rows = transaction.execute(
            "UPDATE limit_budgets SET taken = taken WHERE limit_id = ? RETURNING space, key, epoch",
            (limit,),
        ).fetchall()
        for space, key, epoch in rows:
            held = 0
            for owner, of_epoch, calls, confirmed_at in transaction.execute(
                "SELECT owner, epoch, calls, confirmed_at FROM limit_portions "
                "WHERE space = ? AND key = ?",
                (space, key),
            ).fetchall():
                is_usable = self._database.is_shared and at < confirmed_at + DROPPED_AFTER_S
                if is_usable or self._database.is_alive(owner):
                    held += calls if of_epoch == epoch else 0
                else:
                    transaction.execute(
                        "DELETE FROM limit_portions WHERE space = ? AND key = ? AND owner = ?",
                        (space, key, owner),
                    )
            transaction.execute(
                "UPDATE limit_budgets SET taken = ? WHERE space = ? AND key = ?", (held, space, key)
            )
        return len(rows)

    def save_breaker(self, transaction: Transaction, row: BreakerRow) -> None:
        """Save the state of a breaker. A closed one stays for a while, so that all gates see it."""
        transaction.execute(
            "INSERT INTO limit_breakers (space, key, limit_id, failures, open_until, trying_until, "
            "changed_at, rev) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, key) DO UPDATE "
            "SET failures = excluded.failures, open_until = excluded.open_until, "
            "trying_until = excluded.trying_until, changed_at = excluded.changed_at, "
            "rev = excluded.rev",
            (
                row.space,
                row.key,
                row.limit,
                json.dumps(row.circuit.failures),
                row.circuit.open_until,
                row.circuit.trying_until,
                row.changed_at,
                row.rev,
            ),
        )

    def tidy(self, space: str, at: float) -> None:
        """Remove what has ended, at most once per minute; after a failure, the next time does it."""
        if 0 <= at - self._tidied_at < TIDY_S:
            return
        self._tidied_at = at
        with suppress(StoreError), self._database.write() as transaction:
            self._remove_ended(transaction, space, at)
            for (limit,) in transaction.execute(
                "SELECT DISTINCT limit_id FROM limit_calls WHERE space = ?", (space,)
            ).fetchall():
                transaction.execute(
                    "DELETE FROM limit_calls WHERE space = ? AND limit_id = ? AND ends_at <= "
                    "(SELECT ends_at FROM limit_calls WHERE space = ? AND limit_id = ? "
                    "ORDER BY ends_at DESC LIMIT 1 OFFSET ?)",
                    (space, limit, space, limit, MAX_CALLS),
                )

    def _remove_ended(self, transaction: Transaction, space: str, at: float) -> None:
        for query in _ENDED:
            transaction.execute(query, (space, at))
        transaction.execute(
            "DELETE FROM limit_breakers WHERE space = ? AND open_until = 0 AND failures = '[]' "
            "AND changed_at <= ?",
            (space, at - TIDY_S),
        )
        transaction.execute(
            "DELETE FROM limit_portions WHERE space = ? AND NOT EXISTS (SELECT 1 FROM "
            "limit_budgets AS b WHERE b.space = limit_portions.space AND b.key = limit_portions.key "
            "AND b.epoch = limit_portions.epoch)",
            (space,),
        )

    def count(self, transaction: Transaction, table: str, space: str, limit: str) -> int:
        """Return how many counts a limit has."""
        query = f"SELECT count(*) FROM {table} WHERE space = ? AND limit_id = ?"  # noqa: S608 - a constant
        return int(transaction.execute(query, (space, limit)).fetchone()[0])

    def make_room(
        self, transaction: Transaction, space: str, limit: str, at: float, session: str
    ) -> None:
        """Remove what has ended from full tables, and sessions that are long over."""
        self._remove_ended(transaction, space, at)
        transaction.execute(
            "DELETE FROM limit_budgets WHERE space = ? AND limit_id = ? AND scope = ? "
            "AND used_at <= ?",
            (space, limit, session, at - IDLE_SESSION_S),
        )

    def remove_ended_runs(self) -> None:
        """Remove the counts of runs that are over; with SQLite, a space is named by its run."""
        with self._database.write() as transaction:
            for table in TABLES:
                query = f"SELECT DISTINCT space FROM {table} WHERE space <> ''"  # noqa: S608 - a constant
                for (space,) in transaction.execute(query).fetchall():
                    if not self._database.is_alive(space):
                        delete = f"DELETE FROM {table} WHERE space = ?"  # noqa: S608 - a constant
                        transaction.execute(delete, (space,))


def _members(key: str) -> tuple[str, ...]:
    """Return what a key counts: its parts after the limit's id and name."""
    parts: list[Any] = json.loads(key)
    return (OVERFLOW,) if parts[1:] == [OVERFLOW] else tuple(map(str, parts[2:]))
