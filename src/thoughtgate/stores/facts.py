"""Facts of principals in the shared store, known to every gate that shares it.

A gate keeps what it knows in memory and reads the store again when something in it has changed:
at once with SQLite, after a notification with PostgreSQL. Establishing a fact is a write before
the call is forwarded, so that no other gate decides on less than what the agent may have seen. A
fact is stored for a little longer than its window, so that a busy agent rarely has to renew it.
"""

import contextlib
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from thoughtgate.errors import StoreError
from thoughtgate.policy.facts import ESTABLISHED, EVERYONE
from thoughtgate.stores.database import Database, Transaction, next_rev

MAX_PRINCIPALS: Final = 10_000
"""Principals with facts; if there are more, further facts hold for every principal."""

SLACK: Final = 0.1
"""By which part of its window a fact is stored longer than the window."""

PAUSE_S: Final = 0.05
"""Time between two reads of a database while other things in it keep changing."""

KEEP_S: Final = 60.0
"""How long a fact that has ended is kept, so that every gate sees that it was cleared."""


# The condition keeps a fact that another gate has established for longer.
_SAVE: Final = (
    "INSERT INTO facts (principal, fact, cause, established_at, expires_at, rev) "
    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (principal, fact) DO UPDATE SET "
    "cause = excluded.cause, established_at = excluded.established_at, "
    "expires_at = excluded.expires_at, rev = excluded.rev "
    "WHERE facts.expires_at < excluded.expires_at"
)


class HeldFact(NamedTuple):
    """A fact that holds for a principal."""

    principal: str
    """Empty if it holds for everyone."""
    fact: str
    cause: str
    """The server whose result established it last, or the check that found it."""
    established_at: float
    expires_at: float


class FactStore:
    """The facts of all principals, as this process knows them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ends: dict[tuple[str, str], float] = {}
        """When each known fact ends, on the store's clock."""
        self._unsaved: set[tuple[str, str]] = set()
        """Facts that could not be stored: the next call that establishes them tries again."""
        self._rev = -1
        self._state: Any = None
        self._read_at = 0.0

    def of(self, principal: str, at: float) -> frozenset[str] | None:
        """Return the facts that hold for a principal; None if the store cannot be read."""
        if self._database.is_away:
            # Other gates may have established facts that this one cannot see.
            return None
        try:
            self._refresh(at)
        except StoreError:
            return None
        now = self._database.time(at)
        return frozenset(fact for fact in ESTABLISHED if self._end(principal, fact) > now)

    def establish(
        self, principal: str, facts: Iterable[str], at: float, *, window_s: float, cause: str
    ) -> None:
        """Let facts hold for a principal for at least a window, at every gate.

        Raises:
            StoreError: the store cannot be written; the facts then hold in this process only.
        """
        with contextlib.suppress(StoreError):  # writing then fails as well, if something is due
            self._refresh(at)  # somebody may have cleared a fact, which must be stored again
        until = self._database.time(at) + window_s
        due = [
            fact
            for fact in sorted(facts)
            if self._end(principal, fact) < until or (principal, fact) in self._unsaved
        ]
        if not due:
            return
        # Noted here before it is stored, so that it holds in this process even if storing fails.
        for fact in due:
            self._ends[(principal, fact)] = max(self._end(principal, fact), until)
            self._unsaved.add((principal, fact))
        with self._database.write() as transaction:
            now = self._database.time(at)
            until = now + window_s * (1 + SLACK)
            transaction.execute("DELETE FROM facts WHERE expires_at < ?", (now - KEEP_S,))
            holder = self._holder(transaction, principal)
            for fact in due:
                row = (holder, fact, cause, now, until, next_rev(transaction))
                transaction.execute(_SAVE, row)
        for fact in due:
            self._ends[(holder, fact)] = until
            self._unsaved.discard((principal, fact))

    def listed(self, at: float) -> list[HeldFact]:
        """Return all facts that hold, by principal, with times of this machine's clock.

        Raises:
            StoreError: the store cannot be read.
        """
        ahead_s = self._database.time(at) - at
        rows = self._database.read(
            "SELECT principal, fact, cause, established_at, expires_at FROM facts "
            "WHERE expires_at > ? ORDER BY principal, fact",
            (at + ahead_s,),
        )
        return [
            HeldFact(principal, fact, cause, since - ahead_s, until - ahead_s)
            for principal, fact, cause, since, until in rows
        ]

    def clear(self, principal: str, facts: Iterable[str], at: float) -> int:
        """End facts of a principal at every gate; return how many there were.

        Raises:
            StoreError: the store cannot be written, so they still hold.
        """
        count = 0
        with self._database.write() as transaction:
            now = self._database.time(at)
            for fact in facts:
                # Not deleted yet: other gates learn of it by reading the rows that have changed.
                cleared = transaction.execute(
                    "UPDATE facts SET expires_at = ?, rev = ? "
                    "WHERE principal = ? AND fact = ? AND expires_at > ?",
                    (now, next_rev(transaction), principal, fact, now),
                )
                count += cleared.rowcount
        return count

    def _end(self, principal: str, fact: str) -> float:
        """Return when a fact ends for a principal, as far as this process knows."""
        ends = self._ends
        return max(ends.get((principal, fact), 0.0), ends.get((EVERYONE, fact), 0.0))

    def _refresh(self, at: float) -> None:
        """Read what has changed since the last time, if anything has."""
        state = self._database.state()
        if state == self._state:
            return
        if self._database.is_shared and 0 <= at - self._read_at < PAUSE_S:
            return
        rows = self._database.read(
            "SELECT principal, fact, expires_at, rev FROM facts WHERE rev > ? ORDER BY rev",
            (self._rev,),
        )
        for principal, fact, expires_at, rev in rows:
            key = (principal, fact)
            unsaved = self._ends.get(key, 0.0) if key in self._unsaved else 0.0
            self._ends[key] = max(expires_at, unsaved)
            self._rev = rev
        if len(self._ends) > 2 * MAX_PRINCIPALS:
            now = self._database.time(at)
            self._ends = {key: end for key, end in self._ends.items() if end > now}
        self._state, self._read_at = state, at

    @staticmethod
    def _holder(transaction: Transaction, principal: str) -> str:
        """Return the principal, or everyone if there are too many principals with facts."""
        known = "SELECT 1 FROM facts WHERE principal = ?"
        if transaction.execute(known, (principal,)).fetchone() is not None:
            return principal
        total = transaction.execute("SELECT count(*) FROM facts").fetchone()[0]
        return principal if total < MAX_PRINCIPALS else EVERYONE
