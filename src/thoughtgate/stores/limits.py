"""The counts of limits that several processes share: budgets, rates, duplicates and breakers.

``take`` grants everything that some calls need, or nothing, in one transaction. It locks the row
of each count by updating it, so gates that count different things do not wait for each other.
Counts belong to a space: all gates of a PostgreSQL database share one, and with SQLite all
processes of one run. All times in rows are the store's.
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final, NamedTuple

from thoughtgate.errors import StoreError
from thoughtgate.policy.limits import (
    MAX_KEYS,
    SESSION,
    Breaker,
    Circuit,
    Limit,
    count_failure,
    overflow_key,
)
from thoughtgate.policy.shared_limits import (
    LAPSE_S,
    Asked,
    BudgetAsk,
    DuplicateAsk,
    Portion,
    RateAsk,
    Refused,
    TrialAsk,
    Unused,
    budget_answer,
    portion_of,
    rate_answer,
    refilled,
)
from thoughtgate.stores.database import Database, Store, Transaction, next_rev
from thoughtgate.stores.limit_tables import BreakerRow, LimitTables

CLOCK_S: Final = 5.0
"""How often the store's clock is read, which an exclusive transaction does."""

REFRESH_S: Final = 1.0
"""How old the known state of breakers may be."""

_ELAPSED: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that also runs while the machine sleeps: on Linux the monotonic clock stops then, but the
clocks of other gates do not."""

_FIND_PORTION: Final = (
    "SELECT 1 FROM limit_portions WHERE space = ? AND key = ? AND owner = ? AND epoch = ?"
)
_LOCK_BUDGET: Final = "UPDATE limit_budgets SET taken = taken WHERE space = ? AND key = ?"

PAUSE_S: Final = 0.1
"""Time between two reads of the breakers while other things in the store keep changing."""


class _RefusedError(Exception):
    """Ends a transaction in which something could not be granted."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.kind)
        self.refused = refused


class _Budget(NamedTuple):
    """A row of ``limit_budgets``, brought up to now."""

    taken: int
    window_ends_at: float
    epoch: int


class LimitStore(Store):
    """The counts of one space, for one process."""

    def __init__(self, database: Database, space: str, owner: str) -> None:
        """Count in ``space`` for the process ``owner``."""
        super().__init__(database)
        self._space = space
        self._owner = owner
        self._tables = LimitTables(database)
        self._clocked_at = 0.0
        self._circuits: dict[str, Circuit] = {}
        self._circuits_rev = 0
        self._circuits_at = 0.0
        self._circuits_state: Any = None
        self._told: dict[str, int] = {}
        """What is left of this process's portions, as the store knows it."""
        self.transactions = 0
        """How often the store was asked, for measurements."""

    # What the limits of a process use.

    def elapsed(self) -> float:
        """Return seconds on a clock that cannot be set and that runs while the machine sleeps."""
        return time.clock_gettime(_ELAPSED)

    def changes(self) -> Any:
        """Return a value that differs after a change by any process."""
        return self._database.state()

    def take(self, asked: Asked, now: float) -> Mapping[str, Portion] | Refused:
        """Grant everything that is asked for, by key, or nothing."""
        told: dict[str, int] = {}
        answer: dict[str, Portion] = {}
        try:
            with self._write(now) as transaction:
                at = self._database.time(now)
                # In the order in which refusals prevail, each sorted by key: two processes
                # never wait for rows of each other.
                for trial in asked.trials:
                    self._try(transaction, trial, at)
                for duplicate in asked.duplicates:
                    self._insert(transaction, duplicate, at)
                for budget in asked.budgets:
                    portion = self._lease(transaction, budget, at)
                    self._tell_rest(transaction, budget, portion, told, at)
                    answer[budget_answer(budget.key)] = portion
                for rate in asked.rates:
                    answer[rate_answer(rate.key)] = self._draw(transaction, rate, at)
        except _RefusedError as error:
            self._report(asked.budgets, error.refused)
            return error.refused
        self._told |= told
        for trial in asked.trials:
            if trial.key in self._circuits:
                self._circuits[trial.key].trying_until = at + trial.breaker.cooldown_s
        self._tables.tidy(self._space, at)
        return answer

    def look(self, asked: Asked, now: float) -> Refused | None:
        """Return the refusal that ``take`` would return now; nothing changes."""
        at = self._database.time(now)
        for duplicate in asked.duplicates:
            for (ends_at,) in self._find("limit_calls", "ends_at", duplicate.key):
                if ends_at > at:
                    return Refused("duplicate", duplicate.key, duplicate.limit, ends_at - at)
        for budget in asked.budgets:
            if refused := self._look_at_budget(budget, at):
                return refused
        for rate in asked.rates:
            for tokens, filled_at in self._find("limit_rates", "tokens, filled_at", rate.key):
                left = refilled(rate.rate, tokens, filled_at, at)
                if left < rate.needed:
                    return _too_fast(rate, left)
        return None

    def _look_at_budget(self, ask: BudgetAsk, at: float) -> Refused | None:
        if ask.held >= ask.needed and self._is_ours(ask):
            return None
        rows = self._find("limit_budgets", "taken, window_ends_at, epoch", ask.key)
        for row in rows or [(0, 0.0, 0)]:
            current = _current(_Budget(*row), ask.limit, at)
            if ask.needed > (ask.limit.budget or 0) - current.taken:
                return _spent(ask, current, at)
        return None

    def give_back(self, unused: Sequence[Unused]) -> None:
        """Return what is left of portions; only the process that leased them may do so."""
        with self._write(0.0) as transaction:
            for row, epoch, calls in sorted(unused):
                # Locked first, as everywhere; then a reset that dropped the portion is seen.
                transaction.execute(_LOCK_BUDGET, (self._space, row))
                if self._forget_portion(transaction, row, epoch):
                    transaction.execute(
                        "UPDATE limit_budgets SET taken = taken - ? "
                        "WHERE space = ? AND key = ? AND epoch = ?",
                        (calls, self._space, row, epoch),
                    )
        for row, _, _ in unused:
            self._told.pop(row, None)

    def close(self) -> None:
        """Close the store; portions that are used up are no longer listed."""
        try:
            if self._told:
                with self._write(0.0) as transaction:
                    for row in sorted(self._told):
                        self._forget_portion(transaction, row)
        finally:
            self._database.close()

    # Breakers: their state is kept here, and read again when something has changed.

    def known_circuits(self) -> Mapping[str, Circuit]:
        """Return the breakers with failures as far as they are known."""
        return self._circuits

    def circuits(self, now: float) -> Mapping[str, Circuit]:
        """Return the breakers with failures, at most a second old."""
        age_s = now - self._circuits_at
        state = self._database.state()
        if 0 <= age_s < (REFRESH_S if state == self._circuits_state else PAUSE_S):
            return self._circuits
        self.transactions += 1
        rows = self._database.read(
            "SELECT key, failures, open_until, trying_until, rev FROM limit_breakers "
            "WHERE space = ? AND rev > ? ORDER BY rev",
            (self._space, self._circuits_rev),
        )
        for key, failures, open_until, trying_until, rev in rows:
            self._know(key, Circuit(json.loads(failures), open_until, trying_until))
            self._circuits_rev = rev
        self._circuits_at, self._circuits_state = now, state
        return self._circuits

    def count_end(
        self, key: str, limit: Limit, breaker: Breaker, now: float, *, failed: bool
    ) -> None:
        """Count how a call ended; while the store cannot be reached, only this process knows it."""
        try:
            with self._database.write() as transaction:
                self.transactions += 1
                at = self._database.time(now)
                circuit = self._circuit(transaction, key)
                circuit = _ended(circuit, breaker, at, failed=failed)
                rev = next_rev(transaction)
                row = BreakerRow(self._space, key, limit.id, circuit, at, rev)
                self._tables.save_breaker(transaction, row)
        except StoreError:
            before = self._circuits.get(key) or Circuit([])
            circuit = _ended(before, breaker, self._database.time(now), failed=failed)
        self._know(key, circuit)

    def _know(self, key: str, circuit: Circuit) -> None:
        if circuit.failures or circuit.open_until:
            self._circuits[key] = circuit
        else:
            self._circuits.pop(key, None)

    def _circuit(self, transaction: Transaction, key: str) -> Circuit:
        query = (
            "SELECT failures, open_until, trying_until FROM limit_breakers "
            "WHERE space = ? AND key = ?"
        )
        row = transaction.execute(query, (self._space, key)).fetchone()
        return Circuit(json.loads(row[0]), row[1], row[2]) if row else Circuit([])

    # One kind of limit each; all raise _RefusedError if they cannot grant it.

    def _try(self, transaction: Transaction, ask: TrialAsk, at: float) -> None:
        changed = transaction.execute(
            "UPDATE limit_breakers SET trying_until = ? WHERE space = ? AND key = ? "
            "AND open_until > 0 AND open_until <= ? AND trying_until <= ?",
            (at + ask.breaker.cooldown_s, self._space, ask.key, at, at),
        )
        if changed.rowcount:
            return
        circuit = self._circuit(transaction, ask.key)
        if circuit.open_until:
            wait_s = max(circuit.open_until, circuit.trying_until) - at
            raise _RefusedError(Refused("breaker", ask.key, ask.limit, max(wait_s, 0.001)))

    def _insert(self, transaction: Transaction, ask: DuplicateAsk, at: float) -> None:
        changed = transaction.execute(
            "INSERT INTO limit_calls (space, key, limit_id, ends_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (space, key) DO UPDATE SET ends_at = excluded.ends_at "
            "WHERE limit_calls.ends_at <= ?",
            (self._space, ask.key, ask.limit.id, at + ask.limit.duplicate_s, at),
        )
        if changed.rowcount:
            return
        query = "SELECT ends_at FROM limit_calls WHERE space = ? AND key = ?"
        row = transaction.execute(query, (self._space, ask.key)).fetchone()
        wait_s = row[0] - at if row else 0.0
        raise _RefusedError(Refused("duplicate", ask.key, ask.limit, max(wait_s, 0.001)))

    def _lease(self, transaction: Transaction, ask: BudgetAsk, at: float) -> Portion:
        limit = ask.limit
        lock = (
            "UPDATE limit_budgets SET used_at = ? WHERE space = ? AND key = ? "
            "RETURNING taken, window_ends_at, epoch"
        )
        new = (
            "INSERT INTO limit_budgets (space, key, limit_id, scope, total, taken, window_ends_at, "
            "epoch, used_at) VALUES (?, ?, ?, ?, ?, 0, 0, ?, ?) ON CONFLICT (space, key) DO NOTHING"
        )
        key = ask.key
        row = transaction.execute(lock, (at, self._space, key)).fetchone()
        if row is None:
            key = self._row_key(transaction, "limit_budgets", key, limit, at)
            values = (self._space, key, limit.id, limit.scope, limit.budget, _epoch(at), at)
            transaction.execute(new, values)
            row = transaction.execute(lock, (at, self._space, key)).fetchone()
        current = _current(_Budget(*row), limit, at)
        kept = self._confirm(transaction, ask, key) if current.epoch == ask.epoch else 0
        if kept >= ask.needed:
            return Portion(0, current.window_ends_at or float("inf"), current.epoch, key, kept)
        granted = portion_of((limit.budget or 0) - current.taken, ask.needed, ask.wanted)
        if not granted:
            raise _RefusedError(_spent(ask, current, at))
        ends_at = current.window_ends_at
        if limit.window_s and not ends_at:
            ends_at = at + limit.window_s
        transaction.execute(
            "UPDATE limit_budgets SET total = ?, taken = ?, window_ends_at = ?, epoch = ? "
            "WHERE space = ? AND key = ?",
            (limit.budget, current.taken + granted, ends_at, current.epoch, self._space, key),
        )
        return Portion(granted, ends_at or float("inf"), current.epoch, key, kept)

    def _confirm(self, transaction: Transaction, ask: BudgetAsk, row: str) -> int:
        """Return how much of the last portion may be used: nothing if a reset has dropped it."""
        if not ask.held or ask.row != row:
            return 0
        values = (self._space, row, self._owner, ask.epoch)
        return ask.held if transaction.execute(_FIND_PORTION, values).fetchone() else 0

    def _is_ours(self, ask: BudgetAsk) -> bool:
        """Tell whether the last portion of a budget may still be used."""
        self.transactions += 1
        values = (self._space, ask.row, self._owner, ask.epoch)
        return bool(self._database.read(_FIND_PORTION, values))

    def _tell_rest(
        self,
        transaction: Transaction,
        ask: BudgetAsk,
        portion: Portion,
        told: dict[str, int],
        at: float,
    ) -> None:
        """Store how much of a portion is left after the calls for which it was requested."""
        rest = portion.kept + portion.calls - ask.needed
        if not rest:
            if self._told.get(portion.row):
                self._forget_portion(transaction, portion.row)
                told[portion.row] = 0
            return
        transaction.execute(
            "INSERT INTO limit_portions (space, key, owner, limit_id, epoch, calls, confirmed_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, key, owner) DO UPDATE SET "
            "epoch = excluded.epoch, calls = excluded.calls, confirmed_at = excluded.confirmed_at",
            (self._space, portion.row, self._owner, ask.limit.id, portion.epoch, rest, at),
        )
        told[portion.row] = rest

    def _report(self, budgets: Sequence[BudgetAsk], refused: Refused) -> None:
        """Say that our last portion of a budget is used up, once, so that a reset ignores it."""
        for ask in budgets:
            if refused.kind == "budget" and ask.key == refused.key and self._told.get(ask.key):
                with suppress(StoreError), self._write(0.0) as transaction:
                    transaction.execute(
                        "UPDATE limit_portions SET calls = ? "
                        "WHERE space = ? AND key = ? AND owner = ?",
                        (ask.held, self._space, ask.key, self._owner),
                    )
                    self._told[ask.key] = ask.held

    def _draw(self, transaction: Transaction, ask: RateAsk, at: float) -> Portion:
        lock = (
            "UPDATE limit_rates SET full_at = full_at WHERE space = ? AND key = ? "
            "RETURNING tokens, filled_at"
        )
        new = (
            "INSERT INTO limit_rates (space, key, limit_id, scope, tokens, filled_at, full_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, key) DO NOTHING"
        )
        key, limit, rate = ask.key, ask.limit, ask.rate
        row = transaction.execute(lock, (self._space, key)).fetchone()
        if row is None:
            key = self._row_key(transaction, "limit_rates", key, limit, at)
            values = (self._space, key, limit.id, limit.scope, float(rate.calls), at, at)
            transaction.execute(new, values)
            row = transaction.execute(lock, (self._space, key)).fetchone()
        tokens, filled_at = row
        left = refilled(rate, tokens, filled_at, at)
        granted = portion_of(int(left), ask.needed, ask.wanted)
        if not granted:
            raise _RefusedError(_too_fast(ask, left))
        left -= granted
        # Never back: otherwise a clock that is set back and forth would refill it.
        filled_at = max(at, filled_at)
        full_at = filled_at + (rate.calls - left) * rate.period_s / rate.calls
        transaction.execute(
            "UPDATE limit_rates SET tokens = ?, filled_at = ?, full_at = ? "
            "WHERE space = ? AND key = ?",
            (left, filled_at, full_at, self._space, key),
        )
        return Portion(granted, at + LAPSE_S, 0, key)

    def _row_key(
        self, transaction: Transaction, table: str, key: str, limit: Limit, at: float
    ) -> str:
        """Return the key itself, or the one that new keys share when there are too many."""
        if self._tables.count(transaction, table, self._space, limit.id) < MAX_KEYS:
            return key
        self._tables.make_room(transaction, self._space, limit.id, at, SESSION)
        if self._tables.count(transaction, table, self._space, limit.id) < MAX_KEYS:
            return key
        return overflow_key(key)

    def _forget_portion(self, transaction: Transaction, row: str, epoch: int = -1) -> bool:
        """Remove a portion, or only one of a window; False if there was none."""
        found = transaction.execute(
            "DELETE FROM limit_portions WHERE space = ? AND key = ? AND owner = ? "
            "AND (epoch = ? OR ? < 0)",
            (self._space, row, self._owner, epoch, epoch),
        )
        return found.rowcount > 0

    def _find(self, table: str, columns: str, key: str) -> list[Any]:
        self.transactions += 1
        query = f"SELECT {columns} FROM {table} WHERE space = ? AND key = ?"  # noqa: S608 - constants
        return self._database.read(query, (self._space, key))

    def _write(self, now: float) -> AbstractContextManager[Transaction]:
        """Begin a transaction; now and then an exclusive one, which reads the store's clock."""
        self.transactions += 1
        is_old = bool(now) and not 0 <= now - self._clocked_at < CLOCK_S
        if is_old:
            self._clocked_at = now
        return self._database.write(exclusive=is_old)


def _current(row: _Budget, limit: Limit, at: float) -> _Budget:
    """Return a budget's count as it is now: nothing is taken in a window that has not begun."""
    taken, ends_at, epoch = row
    if not limit.window_s:
        return _Budget(taken, 0.0, epoch)
    # A window that was made shorter in the config also ends earlier.
    ends_at = min(ends_at, at + limit.window_s)
    return _Budget(taken, ends_at, epoch) if at < ends_at else _Budget(0, 0.0, _epoch(at))


def _epoch(at: float) -> int:
    """Return a number for a window that begins now; no other window of the budget has it."""
    return int(at * 1000)


def _spent(ask: BudgetAsk, row: _Budget, at: float) -> Refused:
    return Refused("budget", ask.key, ask.limit, max(0.0, row.window_ends_at - at))


def _too_fast(ask: RateAsk, left: float) -> Refused:
    wait_s = (ask.needed - left) * ask.rate.period_s / ask.rate.calls
    return Refused("rate_limited", ask.key, ask.limit, wait_s)


def _ended(circuit: Circuit, breaker: Breaker, at: float, *, failed: bool) -> Circuit:
    """Return a breaker after a call has ended: a success closes it."""
    if not failed:
        return Circuit([])
    count_failure(circuit, breaker, at)
    return circuit
