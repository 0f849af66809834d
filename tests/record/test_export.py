import json
from typing import Any

import pytest
from tests.support.records import RUN, answered, decided

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import Record
from thoughtgate.record.call_rows import CALL_COLUMNS, parse_time
from thoughtgate.record.export import (
    CSV_CALLS,
    approved_call,
    flat_event,
    written_time,
)


def event_of(record: Record) -> dict[str, Any]:
    return dict(json.loads(Envelope(RUN).wrap(record) + b"}"))


def flat(record: Record) -> dict[str, object] | None:
    return flat_event(event_of(record))


@pytest.mark.requirement("FR16")
def test_a_verdict_is_a_flat_tool_call() -> None:
    assert flat(decided("c", action="BLOCK", tool="wipe")) == {
        "version": 1,
        "timestamp": "2025-10-09T08:53:20.000Z",
        "event": "tool_call",
        "tool_name": "wipe",
        "allowed": False,
        "session_id": "1",
        "upstream": "files",
    }


def test_what_the_development_profile_let_through_was_allowed() -> None:
    observed = flat(decided("c", action="BLOCK", enforced=False))
    assert observed is not None
    assert observed["allowed"] is True


@pytest.mark.parametrize(
    ("action", "executes", "allowed"),
    [("HOLD", True, True), ("HOLD", False, False), ("BLOCK", True, False)],
)
def test_a_held_call_was_allowed_when_it_was_made(
    action: str, *, executes: bool, allowed: bool
) -> None:
    made = approved_call(event_of(answered("c", executes=executes)))
    approved = frozenset() if made is None else frozenset({made})
    shaped = flat_event(event_of(decided("c", action=action)), approved)
    assert shaped is not None
    assert shaped["allowed"] is allowed


def test_only_an_answer_tells_that_a_held_call_was_made() -> None:
    assert approved_call(event_of(answered("c"))) == ("c", "shim")
    assert approved_call(event_of(decided("c"))) is None
    assert approved_call({}) is None


def test_types_the_flat_contract_does_not_know_are_left_out() -> None:
    assert flat_event({"type": "message"}) is None
    assert flat_event({}) is None


def test_counts_stay_within_the_contract() -> None:
    event = {"type": "tools_list", "list": {"offered": 2**40, "returned": "x"}}
    shaped = flat_event(event)
    assert shaped is not None
    assert shaped["tools_upstream"] == 2**32 - 1
    assert shaped["tools_returned"] == 0
    assert shaped["session_id"] == "0"


def test_agents_that_came_and_were_turned_away_are_flat_too() -> None:
    connected = flat_event({"type": "agent_connected"})
    rejected = flat_event({"type": "agent_auth_rejected", "agent": {"reason": "token wrong"}})
    assert connected is not None
    assert connected["identity"] is None
    assert connected["method"] == "none"
    assert rejected is not None
    assert rejected["reason"] == "token wrong"


def test_the_columns_of_the_table_exist() -> None:
    assert set(CSV_CALLS) <= {column.name for column in CALL_COLUMNS}


@pytest.mark.parametrize("milli", range(0, 1000, 7))
def test_a_time_is_written_as_the_record_had_it(milli: int) -> None:
    stamp = f"2025-10-09T08:53:22.{milli:03d}Z"
    assert written_time(parse_time(stamp)) == stamp


def test_a_time_that_is_not_known_is_none() -> None:
    assert written_time(None) is None
    assert written_time(0.0) is None
