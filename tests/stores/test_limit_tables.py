"""The tables of shared limits as a whole, on both engines."""

import time
from collections.abc import Iterator

import pytest

from thoughtgate.policy.call import Call
from thoughtgate.policy.limits import Breaker, Limit, Rate
from thoughtgate.policy.shared_limits import PORTION_S, SharedLimitState
from thoughtgate.stores import limit_tables
from thoughtgate.stores.database import Database
from thoughtgate.stores.gates import GateStore
from thoughtgate.stores.limit_tables import DROPPED_AFTER_S, LimitTables
from thoughtgate.stores.limits import LimitStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.process_owner import own_name

NOW = 1_800_000_000.0
CALL = Call("s", "tool", "x", {"a": 1})
DEAD = "gate|-|-|-|1|-"


@pytest.fixture
def database(location: StoreLocation) -> Iterator[Database]:
    opened = open_database(location)
    yield opened
    opened.close()


def _gate(database: Database, owner: str, *limits: Limit, space: str = "") -> SharedLimitState:
    return SharedLimitState(limits, LimitStore(database, space, owner))


def _passes(state: SharedLimitState, count: int, now: float = NOW, call: Call = CALL) -> int:
    return sum(state.take((call,), now) is None for _ in range(count))


def _left(state: SharedLimitState) -> int:
    return sum(lease.calls for lease in state.leases[0].values())


def _dead(monkeypatch: pytest.MonkeyPatch, database: Database) -> None:
    monkeypatch.setattr(database, "is_alive", lambda owner: owner != DEAD)


def test_a_budget_is_listed_with_what_is_used_left_leased_and_lost(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dead(monkeypatch, database)
    limit = Limit("b", budget=1000, window_s=60.0)
    alive, dead = _gate(database, own_name(), limit), _gate(database, DEAD, limit)
    # Up to where a new portion was just leased, and nothing of it is used but one call.
    _passes(alive, 6)
    _passes(dead, 6)
    tables = LimitTables(database)
    (count,) = tables.budgets(NOW)
    assert (count.limit, count.members, count.total) == ("b", (), 1000)
    assert count.leased >= _left(alive) > 0
    assert count.lost >= _left(dead) > 0
    assert count.used + count.left + count.leased + count.lost == 1000
    assert count.window_ends_at == pytest.approx(NOW + 60, abs=1)
    assert tables.budgets(NOW + 61) == []


def test_a_gate_is_alive_while_it_renews_its_row(database: Database) -> None:
    limit = Limit("b", budget=1000)
    GateStore(database).renew(own_name(), time.time(), {}, time.time())
    _passes(_gate(database, own_name(), limit), 6, time.time())
    (count,) = LimitTables(database).budgets(time.time())
    assert (count.leased > 0, count.lost) == (True, 0)


def test_counts_name_what_they_count(database: Database) -> None:
    limit = Limit("b", budget=5, scope="tool")
    _passes(_gate(database, DEAD, limit), 1)
    (count,) = LimitTables(database).budgets(NOW)
    assert count.members == ("s", "tool", "x")


def test_a_reset_starts_every_kind_of_limit_anew(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dead(monkeypatch, database)
    limit = Limit(
        "all",
        budget=2,
        rate=Rate(2, 600.0),
        duplicate_s=600.0,
        breaker=Breaker(1, 60.0, 600.0),
    )
    state = _gate(database, own_name(), limit)
    assert _passes(state, 1) == 1
    state.ended(CALL, NOW, failed=True)
    tables = LimitTables(database)
    (opened,) = tables.open_breakers(NOW)
    assert (opened.limit, opened.members) == ("all", ("s", "tool", "x"))
    assert _passes(state, 1, NOW + 1) == 0
    assert tables.reset("other", NOW + 1) == 0
    assert tables.reset("all", NOW + 1) == 4
    assert tables.open_breakers(NOW) == []
    assert _passes(state, 1, NOW + 2) == 1
    assert [count.used for count in tables.budgets(NOW)] == [1]


def test_a_reset_counts_what_running_gates_can_still_use(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dead(monkeypatch, database)
    limit = Limit("b", budget=1000)
    alive, dead, other = (_gate(database, name, limit) for name in (own_name(), DEAD, "gate|o"))
    _passes(alive, 6)
    _passes(dead, 6)
    held = _left(alive)
    assert held > 0
    assert LimitTables(database).reset("b", NOW + DROPPED_AFTER_S) == 1
    passed = _passes(other, 1200) + _passes(alive, 1200)
    # At most: the gate had not reported how much of its portion it has used.
    assert 1000 - 16 <= passed <= 1000
    (count,) = LimitTables(database).budgets(NOW)
    assert count.lost == 0


def test_a_gate_that_seemed_dead_uses_no_portion_that_a_reset_has_given_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dead(monkeypatch, database)
    limit = Limit("b", budget=1000)
    counts = LimitStore(database, "", DEAD)
    paused, other = SharedLimitState([limit], counts), _gate(database, own_name(), limit)
    _passes(paused, 6)
    assert _left(paused) > 0
    assert LimitTables(database).reset("b", NOW + DROPPED_AFTER_S) == 1
    begun = counts.elapsed()
    monkeypatch.setattr(counts, "elapsed", lambda: begun + PORTION_S)
    assert _passes(other, 990) == 990
    assert _passes(paused, 100) + _passes(other, 100) == 10


def test_a_portion_that_a_reset_has_dropped_is_not_returned(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dead(monkeypatch, database)
    limit = Limit("b", budget=1000)
    paused, other = _gate(database, DEAD, limit), _gate(database, own_name(), limit)
    _passes(paused, 6)
    assert LimitTables(database).reset("b", NOW + DROPPED_AFTER_S) == 1
    paused.release()
    assert _passes(other, 1100) == 1000


def test_a_shared_portion_counts_until_its_gate_may_not_use_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dead(monkeypatch, database)
    limit = Limit("b", budget=1000)
    paused, other = _gate(database, DEAD, limit), _gate(database, own_name(), limit)
    _passes(paused, 6)
    left = _left(paused)
    assert LimitTables(database).reset("b", NOW + 1) == 1
    passed = _passes(other, 1100)
    if database.is_shared:  # with SQLite, it is known that the process has ended
        passed += _passes(paused, left)
    assert passed <= 1000


def test_what_has_ended_is_removed_once_per_minute(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit_tables, "MAX_CALLS", 3)
    limits = (
        Limit("b", budget=100, window_s=5.0),
        Limit("r", rate=Rate(10, 5.0)),
        Limit("d", duplicate_s=5.0),
        Limit("k", breaker=Breaker(1, 5.0, 5.0)),
        Limit("long", duplicate_s=5000.0),
    )
    state = _gate(database, DEAD, *limits)
    for number in range(6):
        state.take((CALL._replace(arguments={"n": number}),), NOW + number / 100)
    state.ended(CALL, NOW, failed=True)
    state.ended(CALL, NOW, failed=False)
    rest = CALL._replace(name="y", arguments={"n": "rest"})
    assert state.take((rest,), NOW + 100) is None

    def rows(table: str) -> int:
        return len(database.read(f"SELECT key FROM {table}"))

    tables = ("limit_calls", "limit_budgets", "limit_portions", "limit_rates", "limit_breakers")
    assert {table: rows(table) for table in tables} == {
        "limit_calls": 4,
        "limit_budgets": 1,
        "limit_portions": 0,
        "limit_rates": 1,
        "limit_breakers": 0,
    }


def test_the_counts_of_runs_that_are_over_are_removed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _dead(monkeypatch, database)
    limit = Limit("b", budget=100, rate=Rate(1, 1.0))
    for space in (DEAD, own_name(), ""):
        _passes(_gate(database, own_name(), limit, space=space), 1)
    LimitTables(database).remove_ended_runs()
    assert len(LimitTables(database).budgets(NOW)) == 2
