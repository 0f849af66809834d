"""Every kind of event in words."""

from typing import Any

import pytest
from tests.support.audit_cli import sample_events
from tests.support.records import RUN

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import Record, frame_refused, message_seen
from thoughtgate.web.call_pages.event_summary import summarize


def event(record: Record) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(Envelope(RUN).wrap(record) + b"}")
    return found


@pytest.mark.parametrize("record", sample_events(), ids=lambda record: record.type)
def test_every_event_has_a_title_and_a_time(record: Record) -> None:
    told = summarize(event(record))

    assert told.title
    assert told.at > 0
    assert told.kind == record.type


def test_a_verdict_tells_the_rule_and_the_reason() -> None:
    decision = {
        "action": "BLOCK",
        "rule_id": "rules[1]",
        "enforced": False,
        "explain": {"summary": "no bulk"},
    }
    told = summarize(
        {
            "type": "tool_call_decision",
            "call": {"tool_name": "big", "call_id": "r.1"},
            "decision": decision,
        }
    )

    assert (told.word, told.detail, told.tool, told.call_id) == (
        "BLOCK",
        "rules[1]: no bulk",
        "big",
        "r.1",
    )
    assert not told.enforced


def test_an_answer_tells_who_and_why() -> None:
    approval = {"outcome": "rejected", "decided_by": "console:ann", "reason": "not today"}

    assert (
        summarize({"type": "approval_decided", "approval": approval}).detail
        == "by console:ann: not today"
    )


def test_an_end_tells_how_long_and_what_went_wrong() -> None:
    ended = {
        "type": "tool_call_end",
        "status": "ERROR",
        "latency_ms": 7,
        "error": {"kind": "rate_limited"},
        "is_error": True,
    }

    assert summarize(ended).detail == "7 ms, rate_limited, the tool reports an error"


def test_a_message_tells_its_direction() -> None:
    told = summarize(event(message_seen(1.0, "s", "1", "agent_to_server", "request", "ping", 40)))

    assert told.detail == "→ request ping, 40 bytes"


def test_a_refused_frame_tells_the_check() -> None:
    record = frame_refused(
        1.0, "s", "1", direction="agent_to_server", check="raw_cr", kind="parse_error", size=9
    )

    assert summarize(event(record)).detail == "raw_cr, 9 bytes"


def test_a_console_attack_tells_what_was_tried() -> None:
    told = summarize(
        {"type": "agent_auth_rejected", "agent": {"method": "console", "reason": "wrong host at /"}}
    )

    assert (told.word, told.detail) == ("refused", "console: wrong host at /")


def test_a_list_names_what_is_hidden() -> None:
    listed = {
        "method": "tools/list",
        "offered": 3,
        "returned": 2,
        "hidden": ["env"],
        "enforced": True,
    }

    assert (
        summarize({"type": "tools_list", "list": listed}).detail
        == "tools/list: 2 of 3 shown; hidden: env"
    )


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"type": 5},
        {"type": "new_kind", "call": [], "decision": "x"},
        {"type": "tools_list", "list": {"hidden": 5}},
    ],
)
def test_an_odd_event_is_told_all_the_same(odd: dict[str, Any]) -> None:
    assert summarize(odd).detail is not None
