"""The life of a server as a table."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.core.server_lifecycle import (
    BROKE,
    CAME_UP,
    DISABLED,
    ENDED,
    FAILED,
    FOLLOWING,
    HALTED,
    MAX_BACKOFF_S,
    MAX_FAILURES,
    NEEDS_LOGIN,
    RUNNING,
    STABLE_S,
    STARTING,
    STOPPED,
    STOPPING,
    TOLD_TO_START,
    TOLD_TO_STOP,
    TRANSITIONS,
    UNUSED,
    WAITING,
    WANTED,
    Supervision,
    advance,
    backoff_s,
)

EVENTS = sorted({event for _, event in TRANSITIONS})


def after(*events: str, start: Supervision | None = None) -> Supervision:
    standing = start or Supervision()
    for at, event in enumerate(events):
        moved = advance(standing, event, float(at))
        assert moved is not None, (standing, event)
        standing = moved
    return standing


def test_a_server_is_started_when_it_is_wanted_and_stopped_when_unused() -> None:
    assert after(WANTED).state == STARTING
    assert after(WANTED, CAME_UP).state == RUNNING
    assert after(WANTED, CAME_UP, UNUSED).state == STOPPING
    assert after(WANTED, CAME_UP, UNUSED, ENDED).state == STOPPED
    assert after(WANTED, CAME_UP, UNUSED, ENDED, WANTED).state == STARTING


def test_a_server_that_needs_a_login_waits_for_the_next_call() -> None:
    refused = advance(after(WANTED), NEEDS_LOGIN, 5.0, "sign in")

    assert refused == Supervision(STOPPED, since=5.0, reason="sign in")
    assert after(WANTED, CAME_UP, start=refused).state == RUNNING


def test_a_server_stopped_by_hand_is_started_by_hand_alone() -> None:
    halted = after(WANTED, CAME_UP, TOLD_TO_STOP, ENDED)

    assert halted.state == HALTED
    assert advance(halted, WANTED, 9.0) is None
    assert after(TOLD_TO_START, start=halted).state == STARTING
    assert after(TOLD_TO_STOP).state == HALTED


def test_a_server_that_breaks_waits_longer_each_time_and_then_fails() -> None:
    standing = Supervision()
    pauses = []
    for _ in range(MAX_FAILURES):
        standing = after(WANTED, BROKE, start=standing)
        assert standing.state == WAITING
        pauses.append(standing.retry_at - 1.0)

    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert after(WANTED, BROKE, start=standing).state == FAILED


def test_a_server_that_ran_for_long_has_its_failures_forgiven() -> None:
    running = Supervision(RUNNING, failures=4, since=0.0)

    late = advance(running, BROKE, STABLE_S, "gone")
    soon = advance(running, BROKE, STABLE_S - 1, "gone")

    assert late is not None
    assert soon is not None
    assert (late.failures, late.reason) == (1, "gone")
    assert soon.failures == 5


def test_a_start_by_hand_forgives_failures() -> None:
    failed = Supervision(FAILED, failures=6)

    assert after(TOLD_TO_START, start=failed).failures == 0
    assert after(WANTED, start=failed).failures == 6


def test_a_disabled_server_never_moves() -> None:
    assert all(advance(Supervision(DISABLED), event, 0.0) is None for event in EVENTS)


def test_the_back_off_is_bounded() -> None:
    assert backoff_s(0) == 0.5
    assert backoff_s(10_000) == MAX_BACKOFF_S


@pytest.mark.parametrize("state", [STARTING, RUNNING, STOPPING])
def test_a_server_that_may_have_a_process_is_up(state: str) -> None:
    assert Supervision(state).is_up
    assert not Supervision(WAITING).is_up


@given(st.lists(st.sampled_from(EVENTS), max_size=60))
@settings(max_examples=200, deadline=None)
def test_whatever_happens_the_state_is_one_of_the_table(events: list[str]) -> None:
    standing = Supervision()
    for at, event in enumerate(events):
        before = standing
        standing = advance(standing, event, float(at)) or standing
        assert standing is before or standing.state in FOLLOWING[before.state]
        assert standing.state in {*TRANSITIONS.values(), STOPPED, HALTED, FAILED}
        assert standing.failures <= MAX_FAILURES + 60
        if standing.state in {WAITING, FAILED}:
            assert standing.retry_at > standing.since
