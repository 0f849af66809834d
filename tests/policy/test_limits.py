"""Limits: what is refused, what is counted, and in which order they speak."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.errors import KINDS
from thoughtgate.policy import limits as limits_module
from thoughtgate.policy.call import Call, Verdict
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.limits import SCOPES, Breaker, Limit, LimitState, Rate
from thoughtgate.policy.selectors import Selector

CALL = Call("s", "tool", "x", {"a": 1})


def state(*limits: Limit) -> LimitState:
    return LimitState(limits)


def forward(counted: LimitState, call: Call = CALL, now: float = 0.0) -> Verdict | None:
    """Check and, when nothing refuses, commit: what the gate does with a call."""
    verdict = counted.check(call, now)
    if verdict is None:
        counted.commit(call, now)
    return verdict


def kind(verdict: Verdict | None) -> str:
    return verdict.kind if verdict else "passes"


@pytest.mark.requirement("POL-003")
def test_a_budget_passes_as_many_calls_as_it_says() -> None:
    counted = state(Limit("b", budget=3))
    assert [kind(forward(counted)) for _ in range(5)] == ["passes"] * 3 + ["budget"] * 2


def test_a_budget_of_nothing_refuses_at_once_and_waiting_does_not_help() -> None:
    verdict = forward(state(Limit("b", budget=0)))
    assert verdict == Verdict("deny", "limits", "budget", "0 calls are spent", "b")


def test_a_window_begins_with_its_first_call_and_the_next_one_after_it() -> None:
    counted = state(Limit("b", budget=2, window_s=60.0))
    assert [kind(forward(counted, now=at)) for at in (10.0, 50.0, 60.0)] == [
        "passes",
        "passes",
        "budget",
    ]
    verdict = counted.check(CALL, 60.0)
    assert verdict is not None
    assert verdict.retry_after_s == pytest.approx(10.0)
    assert [kind(forward(counted, now=at)) for at in (70.0, 129.0, 129.0)] == [
        "passes",
        "passes",
        "budget",
    ]
    assert forward(counted, now=1000.0) is None


@pytest.mark.requirement("POL-004")
def test_a_rate_refuses_what_comes_too_fast_and_says_when_to_come_back() -> None:
    counted = state(Limit("r", rate=Rate(2, 60.0)))
    assert [kind(forward(counted, now=0.0)) for _ in range(3)] == [
        "passes",
        "passes",
        "rate_limited",
    ]
    verdict = counted.check(CALL, 10.0)
    assert verdict is not None
    assert verdict.retry_after_s == pytest.approx(20.0)
    assert forward(counted, now=30.0) is None
    assert kind(forward(counted, now=31.0)) == "rate_limited"


def test_a_clock_that_goes_back_gives_no_tokens() -> None:
    counted = state(Limit("r", rate=Rate(1, 10.0)))
    assert forward(counted, now=100.0) is None
    assert kind(forward(counted, now=50.0)) == "rate_limited"
    assert kind(forward(counted, now=101.0)) == "rate_limited"
    assert forward(counted, now=110.0) is None


@pytest.mark.requirement("POL-006")
def test_the_same_call_again_is_a_duplicate_until_the_time_is_over() -> None:
    counted = state(Limit("d", duplicate_s=30.0))
    assert forward(counted, now=0.0) is None
    verdict = forward(counted, now=10.0)
    assert kind(verdict) == "duplicate"
    assert verdict is not None
    assert verdict.retry_after_s == pytest.approx(20.0)
    assert forward(counted, CALL._replace(arguments={"a": 2}), 10.0) is None
    assert forward(counted, CALL._replace(name="y"), 10.0) is None
    assert forward(counted, now=30.0) is None


def test_a_given_hash_stands_for_the_arguments() -> None:
    counted = state(Limit("d", duplicate_s=30.0))
    assert forward(counted, CALL._replace(args_hash="h")) is None
    assert kind(forward(counted, CALL._replace(args_hash="h", arguments={}))) == "duplicate"


@pytest.mark.requirement("POL-005")
def test_a_breaker_opens_after_failures_tries_once_and_closes_or_opens_again() -> None:
    counted = state(Limit("k", breaker=Breaker(2, 60.0, 30.0)))
    for now in (0.0, 1.0):
        assert forward(counted, now=now) is None
        counted.ended(CALL, now, failed=True)
    verdict = forward(counted, now=2.0)
    assert kind(verdict) == "breaker"
    assert verdict is not None
    assert verdict.retry_after_s == pytest.approx(29.0)
    assert forward(counted, CALL._replace(name="y"), 2.0) is None

    assert forward(counted, now=31.0) is None
    assert kind(forward(counted, now=32.0)) == "breaker"
    counted.ended(CALL, 33.0, failed=True)
    assert kind(forward(counted, now=62.0)) == "breaker"

    assert forward(counted, now=63.0) is None
    counted.ended(CALL, 64.0, failed=False)
    assert forward(counted, now=64.0) is None


def test_failures_far_apart_do_not_open_a_breaker() -> None:
    counted = state(Limit("b", budget=9), Limit("k", breaker=Breaker(2, 60.0, 30.0)))
    for now in (0.0, 61.0, 122.0):
        counted.ended(CALL, now, failed=True)
    assert counted.check(CALL, 122.0) is None
    counted.ended(CALL, 64.0, failed=False)


def test_a_try_whose_end_nobody_tells_does_not_block_for_ever() -> None:
    counted = state(Limit("k", breaker=Breaker(1, 60.0, 10.0)))
    counted.ended(CALL, 0.0, failed=True)
    assert forward(counted, now=10.0) is None
    assert kind(forward(counted, now=15.0)) == "breaker"
    assert forward(counted, now=20.0) is None


def test_a_breaker_speaks_before_a_duplicate_a_budget_and_a_rate() -> None:
    limits = [
        Limit("rate", rate=Rate(1, 60.0)),
        Limit("budget", budget=1),
        Limit("duplicate", duplicate_s=60.0),
        Limit("breaker", breaker=Breaker(1, 60.0, 30.0)),
    ]
    spoken = []
    while limits:
        counted = LimitState(limits)
        assert forward(counted) is None
        counted.ended(CALL, 0.0, failed=True)
        spoken.append(kind(counted.check(CALL, 0.0)))
        limits.pop()
    assert spoken == ["breaker", "duplicate", "budget", "rate_limited"]
    assert set(spoken) <= set(KINDS)


def test_every_limit_that_covers_a_call_counts_it() -> None:
    counted = state(Limit("wide", budget=2), Limit("narrow", budget=1))
    assert forward(counted) is None
    verdict = forward(counted)
    assert verdict is not None
    assert verdict.rule == "narrow"


def test_a_refused_call_costs_nothing() -> None:
    counted = state(Limit("d", duplicate_s=30.0), Limit("b", budget=2))
    assert forward(counted) is None
    for _ in range(5):
        assert kind(forward(counted)) == "duplicate"
    assert forward(counted, CALL._replace(arguments={})) is None


def test_a_limit_counts_only_what_it_covers() -> None:
    counted = state(Limit("b", Selector(names=compile_globs(["y*"])), budget=0))
    assert forward(counted) is None
    assert kind(forward(counted, CALL._replace(name="yes"))) == "budget"
    assert state().check(CALL, 0.0) is None


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_says_what_is_counted_together(scope: str) -> None:
    counted = state(Limit("b", budget=1, scope=scope))
    call = CALL._replace(session="1", principal="p")
    assert forward(counted, call) is None
    assert kind(forward(counted, call)) == "budget"
    other = {
        "run": None,
        "session": call._replace(session="2"),
        "principal": call._replace(principal="q"),
        "server": call._replace(server="t"),
        "tool": call._replace(name="y"),
    }[scope]
    if other is not None:
        assert forward(counted, other) is None


def test_counts_pass_to_the_limits_that_still_exist() -> None:
    limits = (
        Limit("b", budget=1),
        Limit("r", rate=Rate(1, 60.0)),
        Limit("d", duplicate_s=60.0),
        Limit("k", breaker=Breaker(1, 60.0, 30.0)),
    )
    first = LimitState(limits)
    assert forward(first) is None
    first.ended(CALL, 0.0, failed=True)
    for limit in limits:
        again = state(limit)
        again.continue_from(first)
        assert again.check(CALL, 1.0) is not None
    assert [len(table) for table in again.tables] == [0, 0, 0, 1, 0]


def test_a_full_table_makes_newcomers_share_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 3)
    counted = state(Limit("b", budget=1, scope="session"))
    sessions = [CALL._replace(session=str(number)) for number in range(6)]
    assert [kind(forward(counted, one)) for one in sessions] == ["passes"] * 4 + ["budget"] * 2
    assert kind(forward(counted, sessions[0])) == "budget"


def test_a_full_table_of_rates_drops_what_is_full_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 2)
    counted = state(Limit("r", rate=Rate(1, 10.0), scope="session"))
    for number in range(2):
        assert forward(counted, CALL._replace(session=str(number)), 0.0) is None
    assert forward(counted, CALL._replace(session="2"), 5.0) is None
    assert kind(forward(counted, CALL._replace(session="3"), 5.0)) == "rate_limited"
    assert forward(counted, CALL._replace(session="4"), 20.0) is None


def test_a_full_table_of_duplicates_drops_the_over_and_then_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 2)
    counted = state(Limit("d", duplicate_s=10.0))
    calls = [CALL._replace(args_hash=str(number)) for number in range(4)]
    assert forward(counted, calls[0], 0.0) is None
    assert forward(counted, calls[1], 5.0) is None
    assert forward(counted, calls[2], 12.0) is None
    assert kind(forward(counted, calls[1], 12.0)) == "duplicate"
    assert forward(counted, calls[3], 13.0) is None
    assert kind(forward(counted, calls[3], 13.0)) == "duplicate"
    assert forward(counted, calls[1], 13.0) is None


@pytest.mark.promise("project-policy-only-tightens")
def test_a_limit_that_fills_the_table_drops_no_duplicate_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 3)
    mine = Limit("d", Selector(names=compile_globs(["deploy"])), duplicate_s=10.0)
    counted = state(mine, Limit("project:d", duplicate_s=100.0))
    deploy = CALL._replace(name="deploy")
    assert forward(counted, deploy) is None
    for number in range(9):
        assert forward(counted, CALL._replace(args_hash=str(number)), 1.0) is None
    assert counted.check(deploy, 9.0) == limits_module.refusal(
        mine, "duplicate", "the same call was just made", 1.0
    )


def test_names_remembered_for_limits_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 2)
    counted = state(Limit("b", budget=100))
    for number in range(5):
        assert forward(counted, CALL._replace(name=str(number))) is None
    assert len(counted._covering) <= 2


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 5), st.booleans()), max_size=60), st.integers(1, 5))
def test_a_rate_never_passes_more_than_it_says(steps: list[Any], calls: int) -> None:
    counted = state(Limit("r", rate=Rate(calls, 10.0)))
    now = 0.0
    passed = []
    for step, _ in steps:
        now += step
        if forward(counted, now=now) is None:
            passed.append(now)
    # A bucket may be full when a period begins, so at most twice the count fits into one.
    assert all(sum(start <= at < start + 10.0 for at in passed) <= 2 * calls for start in passed)


def test_a_full_table_keeps_a_rate_that_is_not_full_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 4)
    slow = Limit("slow", Selector(names=compile_globs(["transfer"])), rate=Rate(1, 3600.0))
    fast = Limit("fast", rate=Rate(1000, 1.0), scope="tool")
    counted = state(slow, fast)
    transfer = CALL._replace(name="transfer")
    assert forward(counted, transfer) is None
    for number in range(8):
        forward(counted, CALL._replace(name=f"x{number}"), now=float(number * 2))
    assert kind(counted.check(transfer, 20.0)) == "rate_limited"


def test_a_full_table_of_breakers_drops_what_no_longer_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 3)
    counted = state(Limit("k", breaker=Breaker(1, 10.0, 5.0)))
    for number in range(3):
        counted.ended(CALL._replace(name=f"x{number}"), 0.0, failed=True)
    counted.ended(CALL._replace(name="late"), 100.0, failed=True)
    assert kind(counted.check(CALL._replace(name="late"), 101.0)) == "breaker"
    assert counted.check(CALL._replace(name="other"), 101.0) is None


def test_a_full_table_keeps_a_breaker_whose_failures_still_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits_module, "MAX_KEYS", 2)
    counted = state(Limit("k", breaker=Breaker(2, 60.0, 30.0)))
    calls = [CALL._replace(name=name) for name in ("over", "current", "new")]
    for call, now in zip(calls, (0.0, 50.0, 100.0), strict=True):
        counted.ended(call, now, failed=True)

    counted.ended(calls[1], 101.0, failed=True)
    assert kind(counted.check(calls[1], 102.0)) == "breaker"
    assert counted.check(calls[0], 102.0) is None


def test_long_names_are_counted_apart_but_not_kept() -> None:
    counted = state(
        Limit("a", Selector(), budget=1, scope="tool"), Limit("b", Selector(), duplicate_s=9.0)
    )
    for letter in "xy":
        call = CALL._replace(name=letter * 100_000)
        assert kind(forward(counted, call)) == "passes"
        assert kind(forward(counted, call)) != "passes"
    assert not counted._covering
    assert sum(len(key) for table in counted.tables for key in table) < 10_000


@pytest.mark.promise("readings-uri")
def test_another_spelling_of_a_uri_counts_towards_the_same_limit() -> None:
    selector = Selector(names=compile_globs(["file:///data/*"]))
    counted = state(Limit("b", selector=selector, budget=1))
    uris = ("file:///data/x", "file:/data/x", "file:///tmp/../data/y", "note://data/x")

    kinds = [kind(forward(counted, Call("s", "resource", uri, {}))) for uri in uris]

    assert kinds == ["passes", "budget", "budget", "passes"]


def test_requests_of_a_server_count_only_where_their_kind_is_named() -> None:
    asked = Call("s", "sampling", "sampling/createMessage", {})
    assert [kind(forward(state(Limit("b", budget=0)), asked))] == ["passes"]
    named = Limit("b", Selector(kinds=frozenset({"sampling"})), budget=0)
    assert kind(forward(state(named), asked)) == "budget"
