"""Limits that several processes count together, with the counts in a store.

The store leases portions: a budget's portion is used up in memory, one call after the other, and
only the next portion needs the store. A portion is small while calls are rare and near the end of
a budget, where it is a single call. Nobody takes a portion from the process that leased it, so a
budget is never exceeded; what a killed process had left of its portion is lost.

Checking and counting are one step here (``take``): between two steps, another process could count.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple, Protocol

from thoughtgate.errors import StoreError
from thoughtgate.policy.call import Call, Verdict
from thoughtgate.policy.limits import (
    MAX_KEYS,
    RUN,
    TOOL_SCOPE,
    Breaker,
    Circuit,
    Limit,
    LimitState,
    Rate,
    call_key,
    count_key,
    refusal,
    room_for,
)

SHARE: Final = 16
"""A portion is at most this part of what is left, so that idle gates do not hold most of it."""

BUSY_S: Final = 1.0
"""A portion that was used up within this time was too small."""

IDLE_S: Final = 10.0
"""A portion that lasted longer than this was too large."""

GROWTH: Final = 4

PORTION_S: Final = 60.0
"""How long a portion of a budget may be used before the store must confirm it. Until then, a reset
counts it even if the gate seems to have died, and leased calls continue while the store is away."""

LAPSE_S: Final = 1.0
"""How long a leased part of a rate may be used."""

RETRY_S: Final = 1.0
"""Delay before the next try if the store is away, and how long its refusals are remembered."""

REPEAT_S: Final = 0.2
"""How long a refusal is remembered even if something in the store has changed: agents that repeat
a refused call must not keep the store busy."""


class BudgetAsk(NamedTuple):
    """Asks for a portion of a budget."""

    key: str
    limit: Limit
    needed: int
    """How many calls must be granted."""
    wanted: int
    """How many may be granted for later calls."""
    held: int
    """How many are left of the last portion."""
    row: str = ""
    """The key under which the store counts the last portion."""
    epoch: int = 0
    """The window of the last portion."""


class RateAsk(NamedTuple):
    """Asks for a portion of what a rate allows now."""

    key: str
    limit: Limit
    rate: Rate
    needed: int
    wanted: int


class DuplicateAsk(NamedTuple):
    """Asks to make a call that must not have been made before."""

    key: str
    limit: Limit


class TrialAsk(NamedTuple):
    """Asks to make the one call that tests an open breaker."""

    key: str
    limit: Limit
    breaker: Breaker


class Asked(NamedTuple):
    """Everything that calls need from the store; all of it is granted, or nothing."""

    trials: Sequence[TrialAsk] = ()
    duplicates: Sequence[DuplicateAsk] = ()
    budgets: Sequence[BudgetAsk] = ()
    rates: Sequence[RateAsk] = ()


class Portion(NamedTuple):
    """What the store granted of a budget or a rate."""

    calls: int
    ends_at: float = inf
    """Until when it may be used, on the store's clock."""
    epoch: int = 0
    """The window of the budget to which it belongs."""
    row: str = ""
    """The key under which the store counts it: a full table counts new keys together."""
    kept: int = 0
    """How many calls of the last portion may still be used."""


class Refused(NamedTuple):
    """Says that the store granted nothing."""

    kind: str
    """``breaker``, ``duplicate``, ``budget`` or ``rate_limited``."""
    key: str
    limit: Limit
    wait_s: float = 0.0


class Unused(NamedTuple):
    """What is left of a portion of a budget."""

    row: str
    epoch: int
    calls: int


class SharedCounts(Protocol):
    """The counts of all processes. Every operation may raise StoreError."""

    def time(self, now: float) -> float:
        """Return the store's time."""

    def elapsed(self) -> float:
        """Return seconds on a monotonic clock that also runs while the process is suspended."""

    def take(self, asked: Asked, now: float) -> Mapping[str, Portion] | Refused:
        """Grant everything that is asked for, by key, or nothing."""

    def look(self, asked: Asked, now: float) -> Refused | None:
        """Return the refusal that ``take`` would return now; nothing changes."""

    def circuits(self, now: float) -> Mapping[str, Circuit]:
        """Return the breakers with failures, at most a second old."""

    def known_circuits(self) -> Mapping[str, Circuit]:
        """Return the breakers with failures as far as they are known."""

    def count_end(
        self, key: str, limit: Limit, breaker: Breaker, now: float, *, failed: bool
    ) -> None:
        """Count how a call ended that a breaker covers."""

    def changes(self) -> Any:
        """Return a value that differs after a change by any process, such as a reset."""

    def give_back(self, unused: Sequence[Unused]) -> None:
        """Return what is left of portions."""

    def close(self) -> None:
        """Close the store."""


@dataclass(slots=True)
class _Lease:
    """The portion in hand of one key."""

    calls: int = 0
    ends_at: float = inf
    epoch: int = 0
    row: str = ""
    confirmed_until: float = -inf
    """Until when it may be used without asking the store, on the clock ``elapsed``."""
    wanted: int = 1
    leased_at: float = -inf
    refused: Refused | None = None
    """What the store said last, if that was a refusal; it is remembered for a moment."""
    refused_at: float = -inf
    refused_until: float = -inf
    refused_in: Any = None
    """The state of the store when it refused."""


class SharedLimitState(LimitState):
    """The limits of one process among several. Not locked."""

    is_shared = True

    def __init__(self, limits: Sequence[Limit], counts: SharedCounts) -> None:
        super().__init__(limits)
        self._counts = counts
        self._names = {limit.id: shared_name(limit) for limit in limits}
        self._budgets: dict[str, _Lease] = {}
        self._rates: dict[str, _Lease] = {}
        self.leases = (self._budgets, self._rates)
        """The portions in hand; the first part of each key is the id of the limit."""

    def check(self, call: Call, now: float) -> Verdict | None:
        """Return the refusal that the call would get now; it may ask the store."""
        return self._ask((call,), now, counts=False)

    def take(self, calls: Sequence[Call], now: float) -> Verdict | None:
        """Check and count calls that are to be forwarded, all or none, in one step."""
        return self._ask(calls, now, counts=True)

    def commit(self, call: Call, now: float) -> None:
        """Not used: a call must be checked and counted in one step."""
        raise AssertionError((call, now))

    def ended(self, call: Call, now: float, *, failed: bool) -> None:
        """Count how a forwarded call ended; success is told only if something failed before."""
        for limit in self.covering(call):
            if limit.breaker is None:
                continue
            circuits = self._counts.known_circuits()
            key = room_for(circuits, self._key(limit, call, TOOL_SCOPE))
            if failed or key in circuits:
                self._counts.count_end(key, limit, limit.breaker, now, failed=failed)

    def continue_from(self, before: LimitState) -> None:
        """Keep the portions of limits that are the same; the store has all other counts."""
        if not isinstance(before, SharedLimitState):
            return
        same = {limit.id for limit in set(self.limits) & set(before.limits)}
        for mine, theirs in zip(self.leases, before.leases, strict=True):
            for key in [key for key in theirs if json.loads(key)[0] in same]:
                mine[key] = theirs.pop(key)

    def close(self) -> None:
        """Return what is left of budgets, and close the store."""
        try:
            self.release()
        finally:
            self._counts.close()

    def release(self) -> None:
        """Return what is left of budgets; if the store is away, it counts as used."""
        unused = [
            Unused(lease.row, lease.epoch, lease.calls)
            for lease in self._budgets.values()
            if lease.calls > 0
        ]
        self._budgets.clear()
        if unused:
            with suppress(StoreError):
                self._counts.give_back(unused)

    def _ask(self, calls: Sequence[Call], now: float, *, counts: bool) -> Verdict | None:
        covering = [(limit, call) for call in calls for limit in self.covering(call)]
        if not covering:
            return None
        try:
            at = self._counts.time(now)
            found = self._trials(covering, now, at)
            if isinstance(found, Refused):
                return _verdict(found)
            used, budgets = self._budget_asks(covering, at)
            rates_used, rates = self._rate_asks(covering, at)
            duplicates = self._duplicate_asks(covering)
            asked = Asked(found, duplicates, budgets, rates)
            if any(asked):
                refused = self._obtain(asked, now, at, counts=counts)
                if refused is not None:
                    return _verdict(refused)
        except StoreError:
            return refusal(
                covering[0][0],
                "service_unavailable",
                "the store that counts calls cannot be reached",
                RETRY_S,
            )
        # Only after the store has granted everything: a refused call must not use up a portion.
        if counts:
            for leases, needed in ((self._budgets, used), (self._rates, rates_used)):
                for key, number in needed.items():
                    leases[key].calls -= number
        return None

    def _obtain(self, asked: Asked, now: float, at: float, *, counts: bool) -> Refused | None:
        """Ask the store, unless it has just refused the same."""
        leases: list[tuple[_Lease, Limit]] = [
            *((self._budgets[ask.key], ask.limit) for ask in asked.budgets),
            *((self._rates[ask.key], ask.limit) for ask in asked.rates),
        ]
        if leases:
            changes = self._counts.changes()
            for lease, limit in leases:
                is_recent = at < lease.refused_at + REPEAT_S or lease.refused_in == changes
                if at < lease.refused_until and is_recent and not limit.exact:
                    return lease.refused
        if not counts:
            return self._counts.look(asked, now)
        # Read before the request, so that a portion ends here no later than in the store.
        started = self._counts.elapsed()
        answer = self._counts.take(asked, now)
        if isinstance(answer, Refused):
            self._remember_refusal(answer, at)
            return answer
        for ask in asked.budgets:
            lease = self._budgets[ask.key]
            _receive(lease, answer[_BUDGET + ask.key], at)
            lease.confirmed_until = started + PORTION_S
        for one in asked.rates:
            _receive(self._rates[one.key], answer[_RATE + one.key], at)
        return None

    def _remember_refusal(self, refused: Refused, at: float) -> None:
        leases = {"budget": self._budgets, "rate_limited": self._rates}.get(refused.kind, {})
        lease = leases.get(refused.key)
        if lease is not None:
            lease.refused, lease.refused_at = refused, at
            lease.refused_until = at + min(refused.wait_s or RETRY_S, RETRY_S)
            # Looked at after the attempt, which is itself a change.
            lease.refused_in = self._counts.changes()

    def _trials(
        self, covering: Sequence[tuple[Limit, Call]], now: float, at: float
    ) -> list[TrialAsk] | Refused:
        trials: dict[str, TrialAsk] = {}
        for limit, call in covering:
            if limit.breaker is None:
                continue
            circuits = self._counts.circuits(now)
            key = room_for(circuits, self._key(limit, call, TOOL_SCOPE))
            circuit = circuits.get(key)
            if circuit is None or not circuit.open_until:
                continue
            wait_s = max(circuit.open_until, circuit.trying_until) - at
            if wait_s > 0:
                return Refused("breaker", key, limit, wait_s)
            trials[key] = TrialAsk(key, limit, limit.breaker)
        # Sorted, so that two processes never wait for each other's rows.
        return [trials[key] for key in sorted(trials)]

    def _duplicate_asks(self, covering: Sequence[tuple[Limit, Call]]) -> list[DuplicateAsk]:
        asks = {}
        for limit, call in covering:
            if limit.duplicate_s:
                text = f"{self._names[limit.id]} {call_key(limit, call)}"
                key = hashlib.sha256(text.encode()).hexdigest()
                asks[key] = DuplicateAsk(key, limit)
        # Sorted for the same reason as the trials.
        return [asks[key] for key in sorted(asks)]

    def _budget_asks(
        self, covering: Sequence[tuple[Limit, Call]], at: float
    ) -> tuple[Counter[str], list[BudgetAsk]]:
        needed: Counter[str] = Counter()
        limits = {}
        for limit, call in covering:
            if limit.budget is not None:
                key = self._lease_key(self._budgets, limit, call, needed)
                needed[key] += 1
                limits[key] = limit
        asks = []
        elapsed = self._counts.elapsed() if needed else 0.0
        for key in sorted(needed):
            lease, limit = self._budgets[key], limits[key]
            if at >= lease.ends_at:
                # What is left belongs to a window that is over.
                lease.calls = 0
            if lease.calls < needed[key] or elapsed >= lease.confirmed_until:
                wanted = 0 if limit.exact else _next_wanted(lease, at)
                held = lease.calls
                ask = BudgetAsk(key, limit, needed[key], wanted, held, lease.row, lease.epoch)
                asks.append(ask)
        return needed, asks

    def _rate_asks(
        self, covering: Sequence[tuple[Limit, Call]], at: float
    ) -> tuple[Counter[str], list[RateAsk]]:
        needed: Counter[str] = Counter()
        rates = {}
        for limit, call in covering:
            if limit.rate is not None:
                key = self._lease_key(self._rates, limit, call, needed)
                needed[key] += 1
                rates[key] = (limit, limit.rate)
        asks = []
        for key in sorted(needed):
            lease, (limit, rate) = self._rates[key], rates[key]
            if at >= lease.ends_at:
                if lease.calls:
                    # It was not used up before it lapsed, so it was too large.
                    lease.wanted = max(1, lease.wanted // GROWTH)
                lease.calls = 0
            if lease.calls < needed[key]:
                wanted = 0 if limit.exact else _next_wanted(lease, at)
                asks.append(RateAsk(key, limit, rate, needed[key], wanted))
        return needed, asks

    def _key(self, limit: Limit, call: Call, usual: str) -> str:
        """Return the key of a limit that is the same in all processes with this limit."""
        ident, *members = json.loads(count_key(limit, call, usual))
        return json.dumps([ident, self._names[ident], *members])

    def _lease_key(
        self, leases: dict[str, _Lease], limit: Limit, call: Call, needed: Container[str]
    ) -> str:
        """Return the key of a lease, which exists then; those in ``needed`` are not removed."""
        key = self._key(limit, call, RUN)
        if key not in leases:
            if len(leases) >= MAX_KEYS:
                used_up = [name for name, lease in leases.items() if not lease.calls]
                for other in used_up:
                    # The leases of this request are used again below.
                    if other not in needed:
                        del leases[other]
            key = room_for(leases, key)
            leases.setdefault(key, _Lease())
        return key


_BUDGET: Final = "budget "
_RATE: Final = "rate "


def budget_answer(key: str) -> str:
    """Return the key of a budget's portion in the answer of ``take``."""
    return _BUDGET + key


def rate_answer(key: str) -> str:
    """Return the key of a rate's portion in the answer of ``take``."""
    return _RATE + key


def shared_name(limit: Limit) -> str:
    """Return a digest that tells unnamed limits of different configs apart; empty for a named one.

    Gates with different configs may share a store, and the first limit of each is ``limits[0]``.
    """
    if "limits[" not in limit.id:
        return ""
    chosen = limit.selector
    parts = [
        [glob.pattern for glob in chosen.servers],
        [glob.pattern for glob in chosen.names],
        sorted(chosen.kinds),
        sorted(chosen.words),
        limit.scope,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def portion_of(left: int, needed: int, wanted: int) -> int:
    """Return how many calls are granted of those that are left; 0 if there are not enough."""
    return max(needed, min(wanted, left // SHARE)) if needed <= left else 0


def refilled(rate: Rate, tokens: float, since: float, now: float) -> float:
    """Return what a rate allows after a time; a clock set back adds nothing."""
    gained = max(0.0, now - since) * rate.calls / rate.period_s
    return min(float(rate.calls), tokens + gained)


def _next_wanted(lease: _Lease, at: float) -> int:
    """Return how many calls to ask for: more if the last portion was used up quickly."""
    lasted_s = at - lease.leased_at
    if lasted_s < BUSY_S:
        return lease.wanted * GROWTH
    return max(1, lease.wanted // GROWTH) if lasted_s > IDLE_S else lease.wanted


def _receive(lease: _Lease, portion: Portion, at: float) -> None:
    if portion.calls:
        lease.wanted, lease.leased_at = portion.calls, at
    lease.calls = portion.kept + portion.calls
    lease.ends_at, lease.epoch, lease.row = portion.ends_at, portion.epoch, portion.row
    lease.refused, lease.refused_until = None, -inf


_REASONS: Final = {
    "breaker": "it failed too often",
    "duplicate": "the same call was just made",
}


def _verdict(refused: Refused) -> Verdict:
    limit = refused.limit
    reason = _REASONS.get(refused.kind)
    if reason is None and refused.kind == "budget":
        reason = f"{limit.budget} calls are spent"
    elif reason is None:
        reason = f"more than {limit.rate.calls if limit.rate else 0} calls"
    return refusal(limit, refused.kind, reason, refused.wait_s)
