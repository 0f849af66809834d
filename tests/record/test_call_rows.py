import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.audit_cli import sample_events
from tests.support.records import RUN, T0, answered, asked, call

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import Record, content_found
from thoughtgate.record.call_rows import (
    CALL_COLUMNS,
    RecordRows,
    event_time,
    member,
    number,
    parse_time,
    text,
)


def rows(records: list[Record]) -> RecordRows:
    envelope, result = Envelope(RUN), RecordRows()
    for record in records:
        result.add(json.loads(envelope.wrap(record) + b"}"))
    return result


def test_calls_fold_into_rows_and_other_traffic_into_sums() -> None:
    result = rows(sample_events())
    assert len(result.calls) == 3
    held = result.calls["run-1.2", "shim"]
    assert held["decision"] == "HOLD"
    assert held["approval"] == "approved"
    assert held["status"] == "OK"
    assert result.traffic[
        "run-1", "files", int(T0 // 60), "message", "agent_to_server", "initialize"
    ] == [1, 90]
    assert result.events == 19


def test_rows_have_only_columns_that_exist() -> None:
    result = rows(sample_events())
    names = {column.name for column in CALL_COLUMNS}
    assert all(row.keys() <= names for row in result.calls.values())


def test_a_call_with_every_event_fills_every_column() -> None:
    result = answered("run-1.1")
    result.body["approval"]["about"] = "result"
    records = [
        *call(1)[:2],
        asked("run-1.1"),
        answered("run-1.1"),
        found("run-1.1", "agent_to_server"),
        found("run-1.1", "server_to_agent"),
        result,
        call(1)[2],
    ]
    (row,) = rows(records).calls.values()
    assert row.keys() == {column.name for column in CALL_COLUMNS}


def found(call_id: str, direction: str) -> Record:
    said = {"call_id": call_id, "server_name": "files", "tool_name": "read_file", "args_hash": "a"}
    return content_found(
        T0,
        "files",
        "1",
        said,
        findings=[("secret-key", "hard", "/a:1-5")],
        direction=direction,
        action="hold",
        enforced=True,
    )


def test_a_released_result_changes_nothing_about_the_approval_of_its_call() -> None:
    released = answered("run-1.1")
    released.body["approval"] |= {"about": "result", "outcome": "rejected", "executes": False}
    records = [*call(1)[:2], asked("run-1.1"), answered("run-1.1"), released, call(1)[2]]
    (row,) = rows(records).calls.values()
    assert (row["approval"], row["executes"], row["result_approval"]) == ("approved", 1, "rejected")


def test_findings_are_kept_by_direction_and_only_for_calls() -> None:
    (row,) = rows([*call(1), found("run-1.1", "server_to_agent")]).calls.values()
    assert json.loads(row["result_findings"]) == [
        {"check": "secret-key", "tier": "hard", "where": "/a:1-5"}
    ]
    assert row["result_action"] == "hold"
    assert "argument_findings" not in row
    assert not rows([found("run-1.e7", "server_to_agent")]).calls


def test_order_does_not_matter() -> None:
    envelope = Envelope(RUN)
    events = [json.loads(envelope.wrap(record) + b"}") for record in call(1)]
    forwards, backwards = RecordRows(), RecordRows()
    for event, other in zip(events, reversed(events), strict=True):
        forwards.add(event)
        backwards.add(other)
    assert forwards.calls == backwards.calls


def test_a_row_says_where_its_events_stand_in_the_run() -> None:
    (row,) = rows([*call(1)[:2], answered("run-1.1"), call(1)[2]]).calls.values()
    assert (row["start_event"], row["approval_event"], row["end_event"]) == (1, 3, 4)


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("2025-10-09T08:53:20.000Z", T0),
        ("2025-10-09T08:53:20.123Z", T0 + 0.123),
        ("2025-10-09T08:53:20.123456789Z", T0 + 0.123456),
        ("2025-10-09T08:53:20Z", T0),
        ("2025-10-09T10:53:20+02:00", T0),
        ("2025-10-09T08:53:20", None),
        ("2025-99-09T08:53:20.000Z", None),
        ("rubbish", None),
        ("", None),
    ],
)
def test_times_of_any_precision_are_read(stamp: str, at: float | None) -> None:
    assert parse_time(stamp) == (None if at is None else pytest.approx(at, abs=1e-6))


def test_members_of_a_wrong_type_are_absent() -> None:
    said = {"text": 1, "number": "1", "flag": True, "big": 2**70, "member": [], "lone": "\ud800"}
    assert text(said, "text") is None
    assert number(said, "number") is None
    assert number(said, "flag") is None
    assert number(said, "big") is None
    assert member(said, "member") == {}
    assert text(said, "lone") == "\\ud800"
    assert event_time({}) == 0.0
    assert event_time({"ts": "rubbish"}) == 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)
TYPES = st.sampled_from([record.type for record in sample_events()])
NAMES = st.sampled_from(["call", "decision", "approval", "run", "message", "frame", "list", "ts"])


@settings(max_examples=150, deadline=None)
@given(TYPES, st.dictionaries(NAMES, JSON))
def test_no_event_however_odd_makes_folding_fail(kind: str, members: dict[str, object]) -> None:
    result = RecordRows()
    result.add({"type": kind, **members})
    assert result.events == 1
