"""Shared limits: what holds however many processes count, on both engines."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.errors import StoreError
from thoughtgate.policy.call import FORWARD, Call, Verdict
from thoughtgate.policy.limits import Breaker, Limit, Rate
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.shared_limits import SharedLimitState
from thoughtgate.stores import limits as limits_module
from thoughtgate.stores.limit_tables import LimitTables
from thoughtgate.stores.limits import LimitStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.wire.methods import Named

NOW = 1_800_000_000.0
CALL = Call("s", "tool", "x", {"a": 1})

Open = Callable[..., "Gate"]


class Gate:
    """One process that counts."""

    def __init__(self, location: StoreLocation, owner: str, *limits: Limit) -> None:
        self.database = open_database(location)
        self.store = LimitStore(self.database, "run", owner)
        self.state = SharedLimitState(limits, self.store)

    def forward(self, call: Call = CALL, now: float = NOW) -> str:
        """Return ``passes`` or the kind of the refusal."""
        return kind(self.state.take((call,), now))


def kind(verdict: Verdict | None) -> str:
    return verdict.kind if verdict else "passes"


@pytest.fixture
def gate(location: StoreLocation) -> Iterator[Open]:
    opened: list[Gate] = []

    def add(*limits: Limit) -> Gate:
        one = Gate(location, f"gate|{len(opened)}", *limits)
        opened.append(one)
        return one

    yield add
    for one in opened:
        one.database.close()


@pytest.mark.parametrize("exact", [False, True])
def test_a_budget_holds_over_all_gates_to_the_last_call(gate: Open, exact: bool) -> None:
    limit = Limit("b", budget=100, exact=exact)
    gates = [gate(limit) for _ in range(3)]
    passed = sum(one.forward() == "passes" for _ in range(60) for one in gates)
    assert passed == 100
    refused = gates[0].state.take((CALL,), NOW)
    assert refused == Verdict("deny", "limits", "budget", "100 calls are spent", "b")


def test_a_limit_per_session_counts_the_session_at_every_gate(gate: Open) -> None:
    limit = Limit("b", budget=4, scope="session")
    policy = Policy(default=FORWARD, limits=(limit,))

    def judge_of(run: str, state: SharedLimitState) -> Judge:
        return Judge(policy, run, count=lambda _: state)

    judges = [judge_of(run, gate(limit).state) for run in ("run-1", "run-2")]

    def forwarded(session_name: str) -> int:
        # Each run numbers its sessions from one.
        asked = CallRequest("s", "1", "local", "tools/call", (Named("tool", "x", {}),), 50, "", NOW)
        asked = asked._replace(session_name=session_name)
        rulings = [judge.judge(asked) for _ in range(5) for judge in judges]
        return sum(one.verdict.action == FORWARD for one in rulings)

    assert forwarded("one HTTP session") == 4
    assert forwarded("another") == 4
    # Without a name, as on stdio, the two are different sessions.
    assert forwarded("") == 8


def test_a_gate_that_is_killed_loses_its_portion_and_nobody_exceeds_the_budget(gate: Open) -> None:
    limit = Limit("b", budget=1000)
    killed, other = gate(limit), gate(limit)
    first = 0
    while not killed.state.leases[0] or first % 50 != 49:
        first += killed.forward() == "passes"
    left = sum(lease.calls for lease in killed.state.leases[0].values())
    assert left > 0
    second = sum(other.forward() == "passes" for _ in range(1200))
    assert first + second + left == 1000


def test_a_busy_gate_asks_once_per_portion(gate: Open) -> None:
    one = gate(Limit("b", budget=10_000))
    assert [one.forward() for _ in range(1000)] == ["passes"] * 1000
    assert one.store.transactions <= 15


def test_an_idle_gate_leases_single_calls(gate: Open) -> None:
    one = gate(Limit("b", budget=10_000))
    for minute in range(5):
        assert one.forward(now=NOW + 60 * minute) == "passes"
    assert sum(lease.calls for lease in one.state.leases[0].values()) == 0


def test_a_gate_that_stops_returns_what_it_has_not_used(gate: Open) -> None:
    limit = Limit("b", budget=1000)
    stopped, other = gate(limit), gate(limit)
    for _ in range(30):
        stopped.forward()
    assert sum(lease.calls for lease in stopped.state.leases[0].values()) > 0
    stopped.state.close()
    assert sum(other.forward() == "passes" for _ in range(1200)) == 970


def test_a_window_begins_with_its_first_call_and_is_renewed(gate: Open) -> None:
    limit = Limit("b", budget=200, window_s=60.0)
    one, other = gate(limit), gate(limit)
    assert sum(one.forward() == "passes" for _ in range(250)) == 200
    refused = other.state.take((CALL,), NOW + 20)
    assert refused is not None
    assert refused.retry_after_s == pytest.approx(40.0, abs=1)
    assert other.forward(now=NOW + 61) == "passes"
    # What a gate leased in the first window does not count in the second.
    assert sum(one.forward(now=NOW + 62) == "passes" for _ in range(250)) <= 199
    assert one.forward(now=NOW + 200) == "passes"


def test_a_portion_of_an_old_window_is_not_used_in_the_next(gate: Open) -> None:
    limit = Limit("b", budget=200, window_s=60.0)
    one, other = gate(limit), gate(limit)
    for _ in range(10):
        one.forward()
    assert sum(lease.calls for lease in one.state.leases[0].values()) > 0
    later = NOW + 61
    passed = sum(other.forward(now=later) == "passes" for _ in range(250))
    passed += sum(one.forward(now=later) == "passes" for _ in range(250))
    assert passed == 200


def test_a_rate_holds_over_all_gates(gate: Open) -> None:
    limit = Limit("r", rate=Rate(60, 60.0))
    one, other = gate(limit), gate(limit)
    gates = (one, other)
    assert sum(each.forward() == "passes" for _ in range(50) for each in gates) == 60
    refused = one.state.take((CALL,), NOW)
    assert refused is not None
    assert refused.kind == "rate_limited"
    assert refused.retry_after_s == pytest.approx(1.0, abs=0.1)
    assert sum(each.forward(now=NOW + 5.01) == "passes" for _ in range(9) for each in gates) == 5


def test_what_is_leased_of_a_rate_lapses_after_a_second(gate: Open) -> None:
    one = gate(Limit("r", rate=Rate(6000, 60.0)))
    for _ in range(4):
        assert one.forward() == "passes"
    (lease,) = one.state.leases[1].values()
    assert lease.calls > 0
    before = one.store.transactions
    assert one.forward(now=NOW + 1.01) == "passes"
    assert one.store.transactions == before + 1


def test_a_duplicate_is_refused_at_every_gate_until_its_time_is_over(gate: Open) -> None:
    limit = Limit("d", duplicate_s=30.0)
    one, other = gate(limit), gate(limit)
    assert one.forward() == "passes"
    assert [one.forward(), other.forward()] == ["duplicate"] * 2
    assert other.forward(CALL._replace(arguments={"a": 2})) == "passes"
    refused = other.state.check(CALL, NOW + 10)
    assert refused is not None
    assert refused.retry_after_s == pytest.approx(20.0, abs=0.1)
    assert other.forward(now=NOW + 31) == "passes"
    assert one.forward(now=NOW + 32) == "duplicate"


def test_a_breaker_that_opens_at_one_gate_refuses_at_the_other(gate: Open) -> None:
    limit = Limit("k", breaker=Breaker(2, 60.0, 30.0))
    one, other = gate(limit), gate(limit)
    assert [one.forward(), other.forward()] == ["passes"] * 2
    one.state.ended(CALL, NOW, failed=True)
    other.state.ended(CALL, NOW, failed=True)
    assert one.forward(now=NOW + 1) == "breaker"
    assert other.forward(now=NOW + 1) == "breaker"
    # One call at one gate tries; its success closes the breaker everywhere.
    assert [one.forward(now=NOW + 31), other.forward(now=NOW + 31)] == ["passes", "breaker"]
    assert one.forward(now=NOW + 31) == "breaker"
    one.state.ended(CALL, NOW + 32, failed=False)
    assert other.forward(now=NOW + 33) == "passes"


def test_a_trial_that_fails_keeps_the_breaker_open(gate: Open) -> None:
    limit = Limit("k", breaker=Breaker(1, 60.0, 30.0))
    one, other = gate(limit), gate(limit)
    one.forward()
    one.state.ended(CALL, NOW, failed=True)
    assert other.forward(now=NOW + 31) == "passes"
    other.state.ended(CALL, NOW + 32, failed=True)
    assert one.forward(now=NOW + 40) == "breaker"
    assert one.forward(now=NOW + 63) == "passes"


def test_a_breaker_that_was_closed_meanwhile_needs_no_trial(gate: Open) -> None:
    limit = Limit("k", breaker=Breaker(1, 60.0, 30.0))
    one, other = gate(limit), gate(limit)
    one.forward()
    one.state.ended(CALL, NOW, failed=True)
    assert other.state.check(CALL, NOW + 30.95) is None
    one.forward(now=NOW + 31)
    one.state.ended(CALL, NOW + 31, failed=False)
    # The other gate has not looked since: it asks for a trial.
    assert other.forward(now=NOW + 31) == "passes"


def test_calls_that_succeed_cost_no_transaction(gate: Open) -> None:
    one = gate(Limit("k", breaker=Breaker(2, 60.0, 30.0)))
    for _ in range(100):
        assert one.forward() == "passes"
        one.state.ended(CALL, NOW, failed=False)
    assert one.store.transactions == 1


def test_nothing_is_counted_if_one_limit_refuses(gate: Open) -> None:
    limits = (Limit("b", budget=10), Limit("r", rate=Rate(1, 60.0)))
    one, other = gate(*limits), gate(*limits)
    assert one.forward() == "passes"
    assert [other.forward(now=NOW + second) for second in range(3)] == ["rate_limited"] * 3
    assert [count.used for count in LimitTables(one.database).budgets(NOW)] == [1]


def test_several_calls_of_one_request_are_counted_all_or_none(gate: Open) -> None:
    one = gate(Limit("b", budget=5))
    assert kind(one.state.take((CALL,) * 3, NOW)) == "passes"
    assert kind(one.state.take((CALL,) * 3, NOW)) == "budget"
    assert kind(one.state.take((CALL,) * 2, NOW + 2)) == "passes"


def test_looking_counts_nothing(gate: Open) -> None:
    limits = (
        Limit("b", budget=1),
        Limit("r", rate=Rate(1, 60.0)),
        Limit("d", duplicate_s=5.0),
    )
    one = gate(*limits)
    assert [kind(one.state.check(CALL, NOW)) for _ in range(3)] == ["passes"] * 3
    assert one.forward() == "passes"
    assert kind(one.state.check(CALL, NOW)) == "duplicate"
    other = CALL._replace(arguments={})
    assert kind(gate(*limits).state.check(other, NOW)) == "budget"
    assert kind(gate(limits[1]).state.check(other, NOW)) == "rate_limited"


def test_scopes_count_apart(gate: Open) -> None:
    one = gate(Limit("b", budget=1, scope="principal"))
    assert one.forward(CALL._replace(principal="ann")) == "passes"
    assert one.forward(CALL._replace(principal="bob")) == "passes"
    assert one.forward(CALL._replace(principal="ann")) == "budget"


def test_a_full_table_counts_new_keys_together(gate: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 3)
    limit = Limit("b", budget=2, rate=Rate(2, 1e6), scope="session")
    one = gate(limit)
    sessions = [CALL._replace(session=f"s{number}") for number in range(6)]
    assert [one.forward(call) for call in sessions[:5]] == ["passes"] * 5
    assert one.forward(sessions[5]) == "budget"
    assert one.forward(sessions[0]) == "passes"
    # After a day, old sessions make room.
    assert one.forward(sessions[5], now=NOW + 2e6) == "passes"


def test_a_limit_without_a_name_is_not_confused_with_that_of_another_config(gate: Open) -> None:
    from thoughtgate.policy.globs import compile_globs
    from thoughtgate.policy.selectors import Selector

    one = gate(Limit("limits[0]", Selector(names=compile_globs(["x*"])), budget=1))
    other = gate(Limit("limits[0]", Selector(names=compile_globs(["x"])), budget=1))
    same = gate(Limit("limits[0]", Selector(names=compile_globs(["x"])), budget=1))
    assert [one.forward(), other.forward(), same.forward()] == ["passes", "passes", "budget"]


def test_a_store_that_is_away_refuses_what_is_not_leased(
    gate: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = (Limit("b", budget=10_000), Limit("k", breaker=Breaker(2, 60.0, 30.0)))
    budget, breaker = gate(limits[0]), gate(limits[1])
    for _ in range(6):
        assert budget.forward() == "passes"
    assert breaker.forward() == "passes"

    def away(*_: object, **__: object) -> None:
        raise StoreError("away")

    for one in (budget, breaker):
        monkeypatch.setattr(one.database, "write", away)
        monkeypatch.setattr(one.database, "read", away)
    (lease,) = budget.state.leases[0].values()
    left = lease.calls
    assert left > 0
    assert [budget.forward() for _ in range(left)] == ["passes"] * left
    refused = budget.state.take((CALL,), NOW)
    assert refused is not None
    assert (refused.kind, refused.retry_after_s, refused.rule) == ("service_unavailable", 1.0, "b")
    # The state of breakers is good for a second; what fails meanwhile counts at this gate.
    for _ in range(2):
        breaker.state.ended(CALL, NOW, failed=True)
    assert breaker.forward() == "breaker"
    assert breaker.forward(now=NOW + 2) == "service_unavailable"
    budget.state.release()


def test_a_failure_after_the_last_portion_was_reported_is_told_once(gate: Open) -> None:
    limit = Limit("b", budget=200)
    one, other = gate(limit), gate(limit)
    for _ in range(6):
        one.forward()
    (lease,) = one.state.leases[0].values()
    assert lease.calls > 0
    while other.forward() == "passes":
        pass
    while one.forward() == "passes":
        pass
    (count,) = LimitTables(one.database).budgets(NOW)
    assert (count.used, count.left, count.leased + count.lost) == (200, 0, 0)
    before = one.store.transactions
    assert one.forward(now=NOW + 5) == "budget"
    assert one.store.transactions == before + 1


def test_gates_that_race_exceed_nothing_and_do_not_wait_for_each_other(gate: Open) -> None:
    limits = (
        Limit("b", budget=150),
        Limit("a", budget=10_000),
        Limit("r", rate=Rate(10_000, 3600.0)),
        Limit("d", duplicate_s=600.0),
    )
    gates = [gate(*limits) for _ in range(4)]
    made = count()

    def calls(one: Gate) -> Counter[str]:
        # Every call is made at two gates.
        numbers = [next(made) // 2 for _ in range(150)]
        return Counter(
            one.forward(CALL._replace(arguments={"n": number}), NOW + number / 100)
            for number in numbers
        )

    with ThreadPoolExecutor(4) as pool:
        counted = sum(pool.map(calls, gates), Counter[str]())
    assert set(counted) <= {"passes", "budget", "duplicate"}
    # A gate may have made its last call with a part of its portion in hand.
    leases = [lease for one in gates for lease in one.state.leases[0].items()]
    in_hand = sum(lease.calls for key, lease in leases if key.startswith('["b"'))
    assert counted["passes"] + in_hand == 150
    (other, budget) = LimitTables(gates[0].database).budgets(NOW)
    assert (other.limit, budget.limit, budget.left) == ("a", "b", 0)
    assert budget.leased + budget.lost >= in_hand


def test_a_refusal_is_remembered_for_a_second_unless_something_changes(gate: Open) -> None:
    one = gate(Limit("b", budget=1))
    assert [one.forward() for _ in range(3)] == ["passes", "budget", "budget"]
    before = one.store.transactions
    assert [one.forward() for _ in range(20)] == ["budget"] * 20
    assert one.store.transactions <= before + 1
    assert LimitTables(one.database).reset("b", time.time()) == 1
    assert one.forward(now=NOW + 1.1) == "passes"
