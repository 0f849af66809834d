"""Shared limits: what is asked of a store, what is used from memory, and what a refusal says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from thoughtgate.errors import StoreError
from thoughtgate.policy import limits as limits_module
from thoughtgate.policy import shared_limits as module
from thoughtgate.policy.call import Call, Verdict
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.limits import Breaker, Circuit, Limit, LimitState, Rate
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.shared_limits import (
    PORTION_S,
    Asked,
    BudgetAsk,
    Portion,
    Refused,
    SharedLimitState,
    Unused,
    budget_answer,
    portion_of,
    rate_answer,
    refilled,
    shared_name,
)

CALL = Call("s", "tool", "x", {"a": 1})


class Counts:
    """Counts that a test sets."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.looked: list[Asked] = []
        self.refuses: Refused | None = None
        self.is_away = False
        self.portion = 0
        """How many calls are granted; 0 for what is needed."""
        self.ends_at = 1000.0
        self.epoch = 1
        self.elapsed_s = 0.0
        self.keeps = True
        """Whether the rest of portions is confirmed."""
        self.open: dict[str, Circuit] = {}
        self.ended: list[tuple[str, bool]] = []
        self.returned: list[Unused] = []
        self.version = 0
        self.is_closed = False

    def time(self, now: float) -> float:
        return now

    def elapsed(self) -> float:
        return self.elapsed_s

    def take(self, asked: Asked, now: float) -> Mapping[str, Portion] | Refused:
        del now
        self._reach()
        self.asked.append(asked)
        if self.refuses:
            return self.refuses
        granted = {budget_answer(ask.key): self._budget(ask) for ask in asked.budgets}
        return granted | {
            rate_answer(ask.key): Portion(self.portion or ask.needed, self.ends_at)
            for ask in asked.rates
        }

    def _budget(self, ask: BudgetAsk) -> Portion:
        kept = ask.held if self.keeps and ask.epoch == self.epoch else 0
        calls = 0 if kept >= ask.needed else self.portion or ask.needed
        return Portion(calls, self.ends_at, self.epoch, "row", kept)

    def look(self, asked: Asked, now: float) -> Refused | None:
        del now
        self._reach()
        self.looked.append(asked)
        return self.refuses

    def circuits(self, now: float) -> Mapping[str, Circuit]:
        del now
        self._reach()
        return self.open

    def known_circuits(self) -> Mapping[str, Circuit]:
        return self.open

    def count_end(
        self, key: str, limit: Limit, breaker: Breaker, now: float, *, failed: bool
    ) -> None:
        del limit, breaker, now
        self.ended.append((key, failed))

    def changes(self) -> Any:
        return self.version

    def give_back(self, unused: Sequence[Unused]) -> None:
        self._reach()
        self.returned += unused

    def close(self) -> None:
        self.is_closed = True

    def _reach(self) -> None:
        if self.is_away:
            raise StoreError("away")


def kind(verdict: Verdict | None) -> str:
    return verdict.kind if verdict else "passes"


def test_a_portion_is_used_up_before_the_store_is_asked_again() -> None:
    counts = Counts()
    counts.portion = 3
    state = SharedLimitState([Limit("b", budget=100)], counts)
    assert [state.take((CALL,), 0.0) for _ in range(4)] == [None] * 4
    assert [ask.budgets[0].wanted for ask in counts.asked] == [1, 12]


def test_a_portion_becomes_smaller_while_calls_are_rare() -> None:
    counts = Counts()
    counts.portion = 16
    state = SharedLimitState([Limit("b", budget=100)], counts)
    for _ in range(17):
        state.take((CALL,), 0.0)
    (lease,) = state.leases[0].values()
    for at in (5.0, 100.0):
        lease.calls = 0
        state.take((CALL,), at)
    assert [ask.budgets[0].wanted for ask in counts.asked] == [1, 64, 16, 4]


def test_a_call_that_no_limit_covers_asks_nobody() -> None:
    counts = Counts()
    counts.is_away = True
    limit = Limit("b", Selector(names=compile_globs(["y"])), budget=1, breaker=Breaker(1, 1, 1))
    state = SharedLimitState([limit], counts)
    assert state.take((CALL,), 0.0) is None
    assert state.check(CALL, 0.0) is None
    state.ended(CALL, 0.0, failed=True)
    assert counts.ended == []


def test_exact_limits_lease_nothing() -> None:
    counts = Counts()
    limits = [Limit("b", budget=9, exact=True), Limit("r", rate=Rate(9, 1.0), exact=True)]
    state = SharedLimitState(limits, counts)
    for _ in range(3):
        assert state.take((CALL,), 0.0) is None
    assert [(one.budgets[0].wanted, one.rates[0].wanted) for one in counts.asked] == [(0, 0)] * 3


def test_what_is_left_of_a_window_that_is_over_is_dropped() -> None:
    counts = Counts()
    counts.portion, counts.ends_at = 5, 60.0
    state = SharedLimitState([Limit("b", budget=100, window_s=60.0)], counts)
    state.take((CALL,), 0.0)
    assert state.take((CALL,), 60.0) is None
    assert len(counts.asked) == 2


def test_a_window_that_the_store_began_replaces_what_is_left() -> None:
    counts = Counts()
    counts.portion = 2
    state = SharedLimitState([Limit("b", budget=100)], counts)
    state.take((CALL,), 0.0)
    counts.epoch = 2
    assert state.take((CALL, CALL), 0.0) is None
    (lease,) = state.leases[0].values()
    assert (lease.calls, lease.epoch) == (0, 2)


def test_a_portion_that_was_not_confirmed_for_long_is_confirmed_before_it_is_used() -> None:
    counts = Counts()
    counts.portion = 5
    state = SharedLimitState([Limit("b", budget=100)], counts)
    assert state.take((CALL,), 0) is None
    counts.elapsed_s = PORTION_S
    assert state.take((CALL,), 1) is None
    assert [ask.held for asked in counts.asked for ask in asked.budgets] == [0, 4]
    # Confirmed: the rest is used without asking.
    assert [state.take((CALL,), 1) for _ in range(3)] == [None] * 3
    assert len(counts.asked) == 2


def test_a_portion_that_was_dropped_is_not_used() -> None:
    counts = Counts()
    counts.portion = 5
    state = SharedLimitState([Limit("b", budget=100)], counts)
    assert state.take((CALL,), 0) is None
    counts.elapsed_s, counts.keeps = PORTION_S, False
    assert state.take((CALL,), 0) is None
    assert sum(lease.calls for lease in state.leases[0].values()) == 4
    counts.elapsed_s, counts.is_away = 2 * PORTION_S, True
    assert kind(state.take((CALL,), 0)) == "service_unavailable"


def test_several_calls_need_several_of_a_portion() -> None:
    counts = Counts()
    state = SharedLimitState([Limit("b", budget=9, rate=Rate(9, 1.0))], counts)
    assert state.take((CALL, CALL), 0.0) is None
    (asked,) = counts.asked
    assert (asked.budgets[0].needed, asked.rates[0].needed) == (2, 2)


def test_what_lapses_of_a_rate_makes_the_next_portion_smaller() -> None:
    counts = Counts()
    counts.portion, counts.ends_at = 16, 1.0
    state = SharedLimitState([Limit("r", rate=Rate(1000, 1.0))], counts)
    state.take((CALL,), 0.0)
    state.take((CALL,), 2.0)
    assert [ask.rates[0].wanted for ask in counts.asked] == [1, 4]
    (lease,) = state.leases[1].values()
    lease.calls = 0
    state.take((CALL,), 3.0)
    assert counts.asked[-1].rates[0].wanted == 16


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        ("budget", "7 calls are spent"),
        ("rate_limited", "more than 5 calls"),
        ("duplicate", "the same call was just made"),
        ("breaker", "it failed too often"),
    ],
)
def test_a_refusal_names_the_limit_and_the_time_to_wait(refused: str, reason: str) -> None:
    counts = Counts()
    limit = Limit("all", budget=7, rate=Rate(5, 1.0), duplicate_s=1.0)
    counts.refuses = Refused(refused, "key", limit, 2.5)
    state = SharedLimitState([limit], counts)
    said = Verdict("deny", "limits", refused, reason, "all", retry_after_s=2.5)
    assert state.take((CALL,), 0.0) == said
    assert state.check(CALL, 0.0) == said


@pytest.mark.parametrize("limit", [Limit("l", budget=1), Limit("l", rate=Rate(1, 60.0))])
def test_a_refusal_is_remembered_until_something_changes_or_a_second_is_over(limit: Limit) -> None:
    counts = Counts()
    state = SharedLimitState([limit], counts)
    assert state.take((CALL,), 0.0) is None
    key = next(iter(state.leases[0] or state.leases[1]))
    counts.refuses = Refused("budget" if limit.budget else "rate_limited", key, limit)
    for _ in range(3):
        assert state.take((CALL,), 0.0) is not None
    assert len(counts.asked) == 2
    counts.version += 1
    assert state.take((CALL,), 0.1) is not None
    assert len(counts.asked) == 2
    assert state.take((CALL,), 0.3) is not None
    assert state.take((CALL,), 1.2) is not None
    assert len(counts.asked) == 3
    assert state.take((CALL,), 1.5) is not None
    assert len(counts.asked) == 4


def test_an_exact_limit_asks_also_after_a_refusal() -> None:
    counts = Counts()
    limit = Limit("l", budget=1, exact=True)
    state = SharedLimitState([limit], counts)
    state.take((CALL,), 0.0)
    counts.refuses = Refused("budget", next(iter(state.leases[0])), limit)
    for _ in range(3):
        assert kind(state.take((CALL,), 0.0)) == "budget"
    assert len(counts.asked) == 4


def test_without_the_store_only_leased_calls_pass() -> None:
    counts = Counts()
    counts.portion = 2
    state = SharedLimitState([Limit("b", budget=100)], counts)
    state.take((CALL,), 0.0)
    counts.is_away = True
    assert state.take((CALL,), 0.0) is None
    refused = state.take((CALL,), 0.0)
    assert refused is not None
    assert (refused.kind, refused.rule, refused.retry_after_s) == ("service_unavailable", "b", 1.0)


def test_one_call_tries_a_breaker_whose_time_is_over() -> None:
    counts = Counts()
    limit = Limit("k", breaker=Breaker(1, 60.0, 30.0))
    state = SharedLimitState([limit, Limit("b", budget=9)], counts)
    state.ended(CALL, 0.0, failed=False)
    assert counts.ended == []
    state.ended(CALL, 0.0, failed=True)
    ((key, failed),) = counts.ended
    assert failed
    counts.open[key] = Circuit([1.0])
    assert state.take((CALL,), 1.0) is None
    counts.open[key] = Circuit([], open_until=30.0)
    refused = state.take((CALL,), 10.0)
    assert refused is not None
    assert (refused.kind, refused.retry_after_s) == ("breaker", 20.0)
    assert state.take((CALL, CALL), 31.0) is None
    assert [trial.key for trial in counts.asked[-1].trials] == [key]
    state.ended(CALL, 32.0, failed=False)
    assert counts.ended[-1] == (key, False)


def test_one_call_of_a_request_is_its_own_duplicate_only_once() -> None:
    counts = Counts()
    state = SharedLimitState([Limit("d", duplicate_s=5.0)], counts)
    other = CALL._replace(name="y")
    assert state.take((CALL, CALL, other), 0.0) is None
    keys = [ask.key for ask in counts.asked[0].duplicates]
    assert len(keys) == 2
    assert keys == sorted(keys)


def test_a_full_table_forgets_what_is_used_up_and_then_counts_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_KEYS", 2)
    monkeypatch.setattr(limits_module, "MAX_KEYS", 2)
    counts = Counts()
    state = SharedLimitState([Limit("b", budget=9, scope="session")], counts)
    for number in range(3):
        state.take((CALL._replace(session=f"s{number}"),), 0.0)
    assert len(state.leases[0]) == 1
    counts.portion = 2
    for number in range(3, 6):
        state.take((CALL._replace(session=f"s{number}"),), 0.0)
    assert list(state.leases[0])[-1] == '["b", "*overflow*"]'


def test_a_full_table_keeps_what_the_same_call_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEYS", 1)
    monkeypatch.setattr(limits_module, "MAX_KEYS", 1)
    limits = [Limit("a", budget=9, scope="session"), Limit("b", budget=9, scope="session")]
    state = SharedLimitState(limits, Counts())
    for number in range(3):
        assert state.take((CALL._replace(session=f"s{number}"),), 0.0) is None


def test_a_portion_in_hand_is_enough_for_a_look() -> None:
    counts = Counts()
    counts.portion = 3
    state = SharedLimitState([Limit("b", budget=9, rate=Rate(9, 1.0))], counts)
    state.take((CALL,), 0.0)
    assert state.check(CALL, 0.0) is None
    assert state.take((CALL,), 0.0) is None
    assert (len(counts.asked), counts.looked) == (1, [])
    (lease,) = state.leases[1].values()
    assert lease.calls == 1


def test_looking_returns_nothing_if_the_store_would_grant_it() -> None:
    counts = Counts()
    state = SharedLimitState([Limit("b", budget=9)], counts)
    assert state.check(CALL, 0.0) is None
    assert (counts.asked, len(counts.looked)) == ([], 1)


def test_a_reload_keeps_the_portions_of_limits_that_are_the_same() -> None:
    counts = Counts()
    counts.portion = 5
    same, changed = Limit("same", budget=9), Limit("changed", budget=9)
    before = SharedLimitState([same, changed], counts)
    before.take((CALL,), 0.0)
    after = SharedLimitState([same, replace(changed, budget=8)], counts)
    after.continue_from(before)
    before.release()
    assert [key.split('"')[1] for key in after.leases[0]] == ["same"]
    assert counts.returned == [Unused("row", 1, 4)]
    memory = LimitState([same])
    memory.take((CALL,), 0.0)
    SharedLimitState([same], counts).continue_from(memory)
    memory.release()
    memory.close()


def test_what_is_left_is_returned_in_the_end_if_the_store_can_be_reached() -> None:
    for is_away in (False, True):
        counts = Counts()
        counts.portion = 5
        state = SharedLimitState([Limit("b", budget=9)], counts)
        state.take((CALL,), 0.0)
        counts.is_away = is_away
        state.close()
        assert counts.is_closed
        assert counts.returned == ([] if is_away else [Unused("row", 1, 4)])
        state.release()
        assert len(counts.returned) <= 1


def test_calls_are_never_counted_without_being_checked() -> None:
    with pytest.raises(AssertionError):
        SharedLimitState([Limit("b", budget=9)], Counts()).commit(CALL, 0.0)


def test_a_portion_is_a_small_part_of_what_is_left_and_never_more_than_that() -> None:
    assert portion_of(10_000, 1, 10_000) == 625
    assert portion_of(10_000, 1, 8) == 8
    assert portion_of(15, 1, 100) == 1
    assert portion_of(3, 3, 100) == 3
    assert portion_of(2, 3, 100) == 0
    assert portion_of(0, 1, 100) == 0


def test_a_rate_is_refilled_and_a_clock_set_back_adds_nothing() -> None:
    rate = Rate(10, 10.0)
    assert refilled(rate, 0.0, 100.0, 103.0) == 3.0
    assert refilled(rate, 9.0, 100.0, 200.0) == 10.0
    assert refilled(rate, 2.0, 100.0, 50.0) == 2.0


def test_limits_without_a_name_are_told_apart_by_what_they_select() -> None:
    named = Limit("searches", Selector(names=compile_globs(["x"])))
    assert shared_name(named) == ""
    one = Limit("limits[0]", Selector(names=compile_globs(["x"]), kinds=frozenset({"tool"})))
    assert shared_name(one) == shared_name(replace(one, budget=5))
    assert shared_name(one) != shared_name(replace(one, scope="session"))
