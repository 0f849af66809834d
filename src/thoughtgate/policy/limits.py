"""Limits: rates, budgets, duplicate calls and breakers, counted in memory.

Limits are checked after access was granted (``check`` counts nothing), and counted when the call
is forwarded (``commit``); circuit breakers also count how it ended. All limits that cover a call
are checked; if several refuse, a breaker takes precedence over a duplicate, a duplicate over a
budget, and a budget over a rate. All tables are bounded; in a full table, new keys share one
count, so that no existing count is lost early.

``shared_limits`` has the same limits for several processes, with counts in a store.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from thoughtgate.policy.call import DENY, MAX_KEPT, RESOURCE, SERVER_KINDS, Call, Verdict
from thoughtgate.policy.selectors import Selector
from thoughtgate.wire.readings import uri_readings

RUN: Final = "run"
SESSION: Final = "session"
PRINCIPAL: Final = "principal"
SERVER: Final = "server"
TOOL_SCOPE: Final = "tool"
SCOPES: Final = (RUN, SESSION, PRINCIPAL, SERVER, TOOL_SCOPE)

MAX_KEYS: Final = 10_000
"""Maximum entries of a table: far more than active sessions and tools, about a megabyte."""

THROTTLES: Final = frozenset({"rate_limited", "budget", "duplicate", "breaker"})
"""Kinds of refusal for a call that may succeed later: they say nothing against the call itself."""

OVERFLOW: Final = "*overflow*"
"""The key that new entries share when a table is full."""


class Rate(NamedTuple):
    """At most ``calls`` per ``period_s``, as a token bucket that is refilled continuously."""

    calls: int
    period_s: float


class Breaker(NamedTuple):
    """After ``failures`` within ``within_s``, refuse for ``cooldown_s``, then let one call try."""

    failures: int
    within_s: float
    cooldown_s: float


@dataclass(frozen=True, slots=True)
class Limit:
    """One entry of ``limits``."""

    id: str
    """The name from the config, or ``limits[N]``."""
    selector: Selector = field(default_factory=Selector)
    """Which calls it counts."""
    rate: Rate | None = None
    """Maximum calls per period."""
    budget: int | None = None
    """Maximum calls in total: of a window, or of the run if there is none."""
    window_s: float = 0.0
    """For a budget: how long a window lasts from its first call; 0 for no windows."""
    exact: bool = False
    """Whether each call asks a shared store, instead of using a portion that the gate has leased."""
    duplicate_s: float = 0.0
    """Seconds during which the same call with the same arguments is refused; 0 for never."""
    breaker: Breaker | None = None
    """Failures after which calls of a tool are refused for a while."""
    scope: str = ""
    """What is counted together; by default the run, and for breakers and duplicates the tool."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class Circuit:
    """The state of a circuit breaker."""

    failures: list[float]
    """When calls failed, as far as they count."""
    open_until: float = 0.0
    """Until when calls are refused; 0 if it is closed."""
    trying_until: float = 0.0
    """Until when the one call that tests an open breaker may take."""


class LimitState:
    """The current counts. Not locked: the caller must check and commit in one step."""

    is_shared = False
    """Whether ``take`` checks and counts in one step, because other processes count too."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self.limits = tuple(limits)
        self._covering: dict[tuple[str, str, str], tuple[Limit, ...]] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._spent: dict[str, int] = {}
        self._seen: dict[str, float] = {}
        self._circuits: dict[str, Circuit] = {}
        self._windows: dict[str, float] = {}
        """When the current window of a budget ends."""
        self.tables: tuple[dict[str, Any], ...]
        """All counts; the first part of each key is the id of the limit."""
        self.tables = (self._buckets, self._spent, self._seen, self._circuits, self._windows)

    def check(self, call: Call, now: float) -> Verdict | None:
        """Return the refusal that the call would get now, or None; nothing is counted."""
        covering = self.covering(call)
        if not covering:
            return None
        for look in (self._broken, self._repeated, self._overspent, self._too_fast):
            for limit in covering:
                verdict = look(limit, call, now)
                if verdict is not None:
                    return verdict
        return None

    def commit(self, call: Call, now: float) -> None:
        """Count a call that is being forwarded."""
        for limit in self.covering(call):
            if limit.rate:
                self._bucket(limit, limit.rate, call, now).tokens -= 1
            if limit.budget is not None:
                key = room_for(self._spent, count_key(limit, call, RUN))
                if limit.window_s and now >= self._windows.get(key, 0.0):
                    self._windows[key] = now + limit.window_s
                    self._spent[key] = 0
                # Counted here, not in ``check``: a refused call must cost nothing.
                self._spent[key] = self._spent.get(key, 0) + 1
            if limit.duplicate_s:
                self._remember(limit, call, now)
            if limit.breaker:
                circuit = self._circuits.get(self._circuit_key(limit, call))
                if circuit is not None and circuit.open_until:
                    # Only one call may test an open breaker; if its result never arrives,
                    # another may try after the same time.
                    circuit.trying_until = now + limit.breaker.cooldown_s

    def take(self, calls: Sequence[Call], now: float) -> Verdict | None:
        """Count calls that are to be forwarded, all or none; return the refusal, if any."""
        # Never refused here: no other process counts, and the caller has just checked.
        for call in calls:
            self.commit(call, now)
        return None

    def release(self) -> None:
        """Return what was leased; counts in memory have nothing to return."""

    def close(self) -> None:
        """End the counting; counts in memory have nothing to end."""

    def ended(self, call: Call, now: float, *, failed: bool) -> None:
        """Count how a forwarded call ended: failures open a breaker, a success closes it."""
        for limit in self.covering(call):
            if limit.breaker and not failed:
                self._circuits.pop(self._circuit_key(limit, call), None)
            elif limit.breaker:
                if len(self._circuits) >= MAX_KEYS:
                    self._forget_circuits(now)
                key = self._circuit_key(limit, call)
                circuit = self._circuits.setdefault(key, Circuit([]))
                count_failure(circuit, limit.breaker, now)

    def continue_from(self, before: "LimitState") -> None:
        """Take over the counts of the limits that still exist, from the state before a reload."""
        ids = {limit.id for limit in self.limits}
        for mine, theirs in zip(self.tables, before.tables, strict=True):
            mine.update((key, one) for key, one in theirs.items() if json.loads(key)[0] in ids)

    def covering(self, call: Call) -> tuple[Limit, ...]:
        """Return the limits that count a call."""
        if not self.limits:
            return ()
        key = (call.server, call.kind, call.name)
        known = self._covering.get(key)
        if known is None:
            # A resource counts in every reading, so that no spelling of its URI escapes a limit.
            readings = uri_readings(call.name) if call.kind == RESOURCE else ()
            keys = [key, *((call.server, call.kind, name) for name in readings or ())]
            known = tuple(
                limit for limit in self.limits if any(_counts(limit, *one) for one in keys)
            )
            if len(self._covering) >= MAX_KEYS:
                self._covering.clear()
            # Callers choose names: long ones would let them fill the memory.
            if len(call.name) <= MAX_KEPT:
                self._covering[key] = known
        return known

    def _circuit_key(self, limit: Limit, call: Call) -> str:
        return room_for(self._circuits, count_key(limit, call, TOOL_SCOPE))

    def _broken(self, limit: Limit, call: Call, now: float) -> Verdict | None:
        if not limit.breaker:
            return None
        circuit = self._circuits.get(self._circuit_key(limit, call))
        if circuit is None:
            return None
        wait_s = max(circuit.open_until, circuit.trying_until) - now
        return refusal(limit, "breaker", "it failed too often", wait_s) if wait_s > 0 else None

    def _repeated(self, limit: Limit, call: Call, now: float) -> Verdict | None:
        if not limit.duplicate_s:
            return None
        wait_s = self._seen.get(call_key(limit, call), now) - now
        if wait_s <= 0:
            return None
        return refusal(limit, "duplicate", "the same call was just made", wait_s)

    def _overspent(self, limit: Limit, call: Call, now: float) -> Verdict | None:
        if limit.budget is None:
            return None
        key = room_for(self._spent, count_key(limit, call, RUN))
        left_s = self._windows.get(key, 0.0) - now if limit.window_s else 0.0
        spent = 0 if limit.window_s and left_s <= 0 else self._spent.get(key, 0)
        if spent < limit.budget:
            return None
        return refusal(limit, "budget", f"{limit.budget} calls are spent", max(left_s, 0.0))

    def _too_fast(self, limit: Limit, call: Call, now: float) -> Verdict | None:
        if limit.rate is None:
            return None
        tokens = self._bucket(limit, limit.rate, call, now).tokens
        if tokens >= 1:
            return None
        wait_s = (1 - tokens) * limit.rate.period_s / limit.rate.calls
        return refusal(limit, "rate_limited", f"more than {limit.rate.calls} calls", wait_s)

    def _bucket(self, limit: Limit, rate: Rate, call: Call, now: float) -> _Bucket:
        """Return the bucket of a call, refilled until now; a clock set back adds nothing."""
        key = count_key(limit, call, RUN)
        if key not in self._buckets and len(self._buckets) >= MAX_KEYS:
            self._forget_buckets(now)
        bucket = self._buckets.setdefault(
            room_for(self._buckets, key), _Bucket(float(rate.calls), now)
        )
        gained = max(0.0, now - bucket.at) * rate.calls / rate.period_s
        bucket.tokens = min(float(rate.calls), bucket.tokens + gained)
        # Never back: otherwise a clock that is set back and forth would refill the bucket.
        bucket.at = max(now, bucket.at)
        return bucket

    def _forget_buckets(self, now: float) -> None:
        """Drop the buckets that are full again: a new bucket would be equal."""
        periods = {limit.id: limit.rate.period_s for limit in self.limits if limit.rate}
        for key, bucket in list(self._buckets.items()):
            if now - bucket.at > periods.get(json.loads(key)[0], 0.0):
                del self._buckets[key]

    def _forget_circuits(self, now: float) -> None:
        """Drop the breakers that are closed and whose failures no longer count."""
        windows = {limit.id: limit.breaker.within_s for limit in self.limits if limit.breaker}
        for key, circuit in list(self._circuits.items()):
            last = max(circuit.open_until, circuit.trying_until, *circuit.failures[-1:])
            if now - last >= windows.get(json.loads(key)[0], 0.0):
                del self._circuits[key]

    def _remember(self, limit: Limit, call: Call, now: float) -> None:
        if len(self._seen) >= MAX_KEYS:
            for key in [key for key, until in self._seen.items() if until <= now]:
                del self._seen[key]
        if len(self._seen) >= MAX_KEYS:
            # Still full: forget the oldest entry. The worst effect is one duplicate that passes, and
            # only of the limit that fills the table: it may be that of a project's policy.
            own = json.dumps([limit.id])[:-1] + ","
            oldest = next((one for one in self._seen if one.startswith(own)), None)
            del self._seen[next(iter(self._seen)) if oldest is None else oldest]
        key = call_key(limit, call)
        # Inserted again at the end, so that the first entry stays the oldest.
        self._seen.pop(key, None)
        self._seen[key] = now + limit.duplicate_s


def refusal(limit: Limit, kind: str, reason: str, wait_s: float = 0.0) -> Verdict:
    """Return the refusal of a call by a limit; ``wait_s`` is 0 if waiting does not help."""
    return Verdict(DENY, "limits", kind, reason, limit.id, retry_after_s=wait_s)


def count_failure(circuit: Circuit, breaker: Breaker, now: float) -> None:
    """Count a failed call; it may open the breaker."""
    if circuit.open_until and now >= circuit.open_until:  # the call that was let through to try
        circuit.failures = []
        circuit.open_until = now + breaker.cooldown_s
        circuit.trying_until = 0.0
        return
    circuit.failures = [at for at in circuit.failures if now - at < breaker.within_s]
    circuit.failures.append(now)
    if len(circuit.failures) >= breaker.failures:
        circuit.failures = []
        circuit.open_until = now + breaker.cooldown_s


def _counts(limit: Limit, server: str, kind: str, name: str) -> bool:
    """Tell whether a limit counts a call; a server's requests only if the limit names their kind.

    Otherwise a server could use up the agent's budget.
    """
    if kind in SERVER_KINDS and kind not in limit.selector.kinds:
        return False
    return limit.selector.covers(server, kind, name)


def count_key(limit: Limit, call: Call, usual: str) -> str:
    """Return the key under which a limit counts a call; ``usual`` is the default scope."""
    scope = limit.scope or usual
    members = {
        RUN: (),
        SESSION: (call.session_key or call.session,),
        PRINCIPAL: (call.principal,),
        SERVER: (call.server,),
        TOOL_SCOPE: (call.server, call.kind, _short(call.name)),
    }[scope]
    return json.dumps([limit.id, *members])


def call_key(limit: Limit, call: Call) -> str:
    """Key of one exact call, within the scope of a limit."""
    # Arguments without a canonical form have no ``args_hash``, but can be repeated as well.
    args_hash = call.args_hash or _digest(call.arguments)
    name = _short(call.name)
    return json.dumps(
        [limit.id, count_key(limit, call, TOOL_SCOPE), call.server, call.kind, name, args_hash]
    )


def _short(name: str) -> str:
    """Return the name, or a digest in place of one that is too long to keep."""
    return name if len(name) <= MAX_KEPT else hashlib.sha256(name.encode()).hexdigest()


def _digest(arguments: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()


def room_for(table: Mapping[str, Any], key: str) -> str:
    """Return the key itself, or the shared key if it is new and the table is full."""
    if key in table or len(table) < MAX_KEYS:
        return key
    return overflow_key(key)


def overflow_key(key: str) -> str:
    """Return the key that the new keys of a limit share when a table is full."""
    return json.dumps([json.loads(key)[0], OVERFLOW])
