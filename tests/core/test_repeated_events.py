"""Traffic cannot push other events out of the record, and every one of its events counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    SERVER_TO_AGENT,
    Record,
    call_ended,
    frame_refused,
    message_seen,
)
from thoughtgate.core.repeated_events import (
    MAX_DETAILS,
    MAX_EACH,
    MAX_KEYS,
    WINDOW_S,
    RepeatedEvents,
    is_repeatable,
)


def rejected(at: float, reason: str = "token wrong") -> Record:
    agent = {"method": "bearer", "reason": reason}
    return Record("agent_auth_rejected", at, "up", "0", {"agent": agent})


def refused(at: float, check: str = "http") -> Record:
    return frame_refused(
        at, "up", "0", direction=AGENT_TO_SERVER, check=check, kind="invalid_request", size=3
    )


def notice(at: float, method: str = "notifications/progress", session: str = "1") -> Record:
    return message_seen(at, "up", session, SERVER_TO_AGENT, "notification", method, 10)


def test_events_of_calls_and_runs_are_never_folded() -> None:
    assert is_repeatable(rejected(1.0))
    assert is_repeatable(refused(1.0, "duplicate_key"))
    assert is_repeatable(notice(1.0))
    assert is_repeatable(Record("tools_list", 1.0, "up", "1", {"list": {"method": "tools/list"}}))
    for kind in (
        "run_start",
        "run_end",
        "tool_call_start",
        "tool_call_decision",
        "approval_requested",
        "approval_decided",
        "policy_changed",
    ):
        assert not is_repeatable(Record(kind, 1.0, "up", "1", {}))
    ended = call_ended(1.0, "up", "1", call_id="c", tool="t", status="OK", latency_ms=1, size=1)
    assert not is_repeatable(ended)


@pytest.mark.promise("traffic-cannot-erase-calls")
def test_a_server_that_sends_notifications_in_a_loop_causes_one_event_per_minute() -> None:
    events = RepeatedEvents()
    written = [one for _ in range(10_000) for one in events.take(notice(1.0))]
    assert len(written) == MAX_EACH
    (told,) = events.due(1.0 + WINDOW_S)
    assert told.body["message"]["repeated"] == 10_000 - MAX_EACH
    assert told.body["message"]["repeated_bytes"] == 10 * (10_000 - MAX_EACH)
    assert told.body["message"]["method"] == "notifications/progress"


def test_a_flood_of_the_server_does_not_hide_what_the_agent_or_another_session_sends() -> None:
    events = RepeatedEvents()
    for _ in range(MAX_EACH * 2):
        events.take(notice(1.0))
    asked = message_seen(1.0, "up", "1", AGENT_TO_SERVER, "request", "notifications/progress", 1)
    for record in (asked, notice(1.0, session="2"), notice(1.0, "ping"), refused(1.0, "raw_cr")):
        assert events.take(record) == [record]


def test_new_names_of_methods_are_counted_together_after_a_while() -> None:
    events = RepeatedEvents()
    written = [one for n in range(5000) for one in events.take(notice(1.0, f"m/{n}"))]
    assert len(written) == MAX_DETAILS + MAX_EACH
    (told,) = events.rest()
    assert told.body["message"]["repeated"] == 5000 - len(written)


def test_new_sessions_are_counted_together_after_a_while() -> None:
    events = RepeatedEvents()
    written = [one for n in range(10_000) for one in events.take(notice(1.0, session=str(n)))]
    assert len(written) == MAX_KEYS + MAX_EACH
    assert len(events.rest()) == 1


def test_a_few_are_written_as_they_come() -> None:
    strangers = RepeatedEvents()
    for number in range(MAX_EACH):
        one = rejected(1.0 + number * 0.001)
        assert strangers.take(one) == [one]
    assert not strangers.is_behind
    assert strangers.rest() == []


def test_a_flood_is_one_event_that_tells_the_last_and_how_many() -> None:
    strangers = RepeatedEvents()
    for _ in range(MAX_EACH):
        strangers.take(rejected(1.0))
    for number in range(500):
        assert strangers.take(rejected(2.0 + number * 0.01, f"try {number}")) == []
    assert strangers.due(10.0) == []
    (told,) = strangers.due(1.0 + WINDOW_S)
    assert told.body["agent"] == {"method": "bearer", "reason": "try 499", "repeated": 500}
    assert told.at == 2.0 + 499 * 0.01
    assert not strangers.is_behind


def test_garbage_does_not_hide_who_was_turned_away() -> None:
    strangers = RepeatedEvents()
    for _ in range(MAX_EACH * 2):
        strangers.take(refused(1.0))
    assert strangers.take(rejected(1.0)) == [rejected(1.0)]
    (told,) = strangers.rest()
    assert told.body["frame"]["repeated"] == MAX_EACH


def test_a_new_minute_begins_with_what_the_last_one_owes() -> None:
    strangers = RepeatedEvents()
    for _ in range(MAX_EACH + 3):
        strangers.take(rejected(1.0))
    told, new = strangers.take(rejected(1.0 + WINDOW_S))
    assert told.body["agent"]["repeated"] == 3
    assert "repeated" not in new.body["agent"]


@given(
    st.lists(
        st.tuples(
            st.floats(-30, 200), st.booleans(), st.sampled_from(["take", "take", "due", "rest"])
        ),
        max_size=40,
    ),
    st.integers(1, 90),
)
def test_however_they_come_none_is_lost_and_none_counts_twice(
    moments: list[tuple[float, bool, str]], burst: int
) -> None:
    strangers, caused, written = RepeatedEvents(), [0, 0], [0, 0]

    def write(records: list[Record]) -> None:
        for record in records:
            is_frame = "frame" in record.body
            said = record.body["frame" if is_frame else "agent"]
            written[is_frame] += said.get("repeated", 1)

    for at, is_frame, step in moments:
        if step == "due":
            write(strangers.due(at))
        elif step == "rest":
            write(strangers.rest())
        else:
            for _ in range(burst):
                caused[is_frame] += 1
                write(strangers.take(refused(at) if is_frame else rejected(at)))
    write(strangers.rest())
    assert written == caused


def test_folded_errors_keep_their_first_and_last_id() -> None:
    events = RepeatedEvents()
    for number in range(1, MAX_EACH + 4):
        record = refused(1.0)
        record.body["frame"]["correlation_id"] = f"run.e{number}"
        events.take(record)
    (folded,) = events.rest()
    frame = folded.body["frame"]
    assert frame["first_correlation_id"] == f"run.e{MAX_EACH + 1}"
    assert frame["correlation_id"] == f"run.e{MAX_EACH + 3}"
    assert frame["repeated"] == 3
