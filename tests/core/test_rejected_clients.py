"""RejectedClients cannot push others' events out of the record, and every one of theirs counts."""

from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.core.record_events import AGENT_TO_SERVER, Record, frame_refused, message_seen
from thoughtgate.core.rejected_clients import (
    MAX_EACH,
    WINDOW_S,
    RejectedClients,
    is_rejected_client,
)


def rejected(at: float, reason: str = "token wrong") -> Record:
    agent = {"method": "bearer", "reason": reason}
    return Record("agent_auth_rejected", at, "up", "0", {"agent": agent})


def refused(at: float, check: str = "http") -> Record:
    return frame_refused(
        at, "up", "0", direction=AGENT_TO_SERVER, check=check, kind="invalid_request", size=3
    )


def test_events_of_strangers_are_told_from_those_of_agents() -> None:
    assert is_rejected_client(rejected(1.0))
    assert is_rejected_client(refused(1.0))
    assert not is_rejected_client(refused(1.0, "duplicate_key"))
    assert not is_rejected_client(
        message_seen(1.0, "up", "1", AGENT_TO_SERVER, "request", "ping", 1)
    )


def test_a_few_are_written_as_they_come() -> None:
    strangers = RejectedClients()
    for number in range(MAX_EACH):
        one = rejected(1.0 + number * 0.001)
        assert strangers.take(one) == [one]
    assert not strangers.is_behind
    assert strangers.rest() == []


def test_a_flood_is_one_event_that_tells_the_last_and_how_many() -> None:
    strangers = RejectedClients()
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
    strangers = RejectedClients()
    for _ in range(MAX_EACH * 2):
        strangers.take(refused(1.0))
    assert strangers.take(rejected(1.0)) == [rejected(1.0)]
    (told,) = strangers.rest()
    assert told.body["frame"]["repeated"] == MAX_EACH


def test_a_new_minute_begins_with_what_the_last_one_owes() -> None:
    strangers = RejectedClients()
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
    strangers, caused, written = RejectedClients(), [0, 0], [0, 0]

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
