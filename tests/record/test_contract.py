import json
from typing import Any

import pytest
from tests.support.audit_cli import sample_events
from tests.support.records import RUN, T0

from thoughtgate.core import record_events as record
from thoughtgate.core.approval import Decision, Vote
from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.errors import STOPPED_BY_HAND
from thoughtgate.policy.call import APPROVE
from thoughtgate.policy.policy import Policy
from thoughtgate.record import evidence
from thoughtgate.record.contract import ENVELOPE, EVENTS, FREE_FORM
from thoughtgate.record.evidence import (
    checkpoint,
    record_cut,
    record_gap,
    record_opened,
    record_repaired,
    torn_bytes,
)
from thoughtgate.wire.methods import Named

BY_NAME = {event.name: event for event in EVENTS}
CALL = {"call_id": "run.1", "server_name": "s", "tool_name": "t", "args_hash": "a"}
OWN = [
    record.config_changed(T0, "s", "server_added", "/f", governed=True, reason="x"),
    *(
        record.content_found(
            T0,
            "s",
            "1",
            CALL,
            findings=[("secret-key", "hard", "/a:1-5")],
            direction=record.SERVER_TO_AGENT,
            action="redact",
            enforced=enforced,
        )
        for enforced in (True, False)
    ),
    record_opened(T0, number=2, previous_file="a", previous_chain="b"),
    record_gap(T0, 1, "full"),
    record_cut(T0, 100),
    record_repaired(T0, torn_bytes(b"x")),
    checkpoint(T0, b"k", "c", closing=True),
]
FULL = Run("r", principal="kim", workload={"user": "kim"})


def paths(value: Any, prefix: str = "") -> set[str]:
    if isinstance(value, list):
        return {prefix}.union(*(paths(one, f"{prefix}[]") for one in value if type(one) is dict))
    if prefix in FREE_FORM or not isinstance(value, dict):
        return {prefix}
    found: set[str] = set()
    for name, inner in value.items():
        found |= paths(inner, f"{prefix}.{name}" if prefix else name)
    return found


@pytest.mark.requirement("NFR-M3", "EVT-002")
@pytest.mark.parametrize("event", [*sample_events(), *OWN], ids=lambda event: event.type)
@pytest.mark.parametrize("run", [RUN, FULL], ids=["plain", "full"])
def test_an_event_has_what_the_contract_says_and_nothing_else(
    event: record.Record, run: Run
) -> None:
    line = json.loads(Envelope(run).wrap(event) + b',"chain":""}')
    members = (*ENVELOPE, *BY_NAME[event.type].members)
    found = paths(line)
    assert found <= {one.path for one in members}
    assert {one.path for one in members if not one.optional} <= found


def test_no_event_has_room_for_a_result() -> None:
    assert not [one.path for one in BY_NAME[record.CALL_END].members if "result" in one.path]


def test_every_type_that_exists_is_in_the_contract() -> None:
    named = {
        value
        for module in (record, evidence)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str) and ("_" in value or value == "message")
    }
    causes = {record.OUTCOME_UNKNOWN, STOPPED_BY_HAND}
    others = {record.AGENT_TO_SERVER, record.SERVER_TO_AGENT, *causes}
    assert {name for name in named if name.islower()} - others <= set(BY_NAME)


SECRET = "hunter2-hunter2-hunter2"


def judged() -> list[record.Record]:
    """What the real judge puts on record for a call that is held, approved and answered."""
    policy = Policy(default=APPROVE, version="v1")
    judge = Judge(policy, "run-1")
    named = (Named("tool", "transfer", {"amount": 5, "token": SECRET}),)
    question = CallRequest("bank", "1", "local", "tools/call", named, 90, "mcp_stdio", T0)
    ruling = judge.judge(question)
    asked = judge.asked(ruling.call_id, "default", {"approval_id": "a1"}, T0)
    said = f"token={SECRET}"
    votes = (Vote("console:kim", approve=True, at=T0 + 1, reason=said),)
    decision = Decision(approved=True, by="kim", channel="console", reason=said, votes=votes)
    settled = judge.settle(ruling.call_id, decision, T0 + 1)
    end = record.call_ended(
        T0 + 2,
        "bank",
        "1",
        call_id=ruling.call_id,
        tool="transfer",
        status=record.OK,
        latency_ms=2000,
        size=10,
    )
    assert asked is not None
    return [*ruling.records, asked, *settled.records, judge.note(end)]


@pytest.mark.requirement("SEC-002")
def test_what_the_judge_records_keeps_the_contract_and_no_secret() -> None:
    envelope = Envelope(RUN)
    seen = []
    for one in judged():
        line = envelope.wrap(one) + b',"chain":""}'
        assert SECRET.encode() not in line
        found = paths(json.loads(line))
        members = (*ENVELOPE, *BY_NAME[one.type].members)
        assert found <= {member.path for member in members}
        assert {member.path for member in members if not member.optional} <= found
        seen.append(one.type)
    assert seen == [
        record.CALL_START,
        record.CALL_DECISION,
        record.APPROVAL_REQUESTED,
        record.APPROVAL_DECIDED,
        record.CALL_END,
    ]
    start = next(one for one in judged() if one.type == record.CALL_START)
    assert '"token":"[secret, ' in start.body["call"]["preview"]["args_preview"]
