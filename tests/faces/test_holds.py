"""Calls that wait for a person: every way in which such a call can end."""

from typing import Any

import pytest
from tests.faces.conftest import Start, WarmGates
from tests.faces.face import Face, Gate
from tests.faces.known_drift import part
from tests.faces.outcomes import MESSAGES, check_refused, text_of
from tests.faces.people import (
    PERSON,
    REASON,
    decide,
    pending,
    vote,
    wait_until_asked,
    wait_until_withdrawn,
)
from tests.faces.policies import MAIN
from tests.faces.record_view import CLIENT, CallRecord, check_calls

from thoughtgate.core.approval import Refusal


def by_person(*, approve: bool) -> dict[str, Any]:
    """Return what the record says of a person's answer."""
    vote = {"by": PERSON, "channel": "terminal", "approve": approve, "reason": REASON}
    return {
        "decided_by": PERSON,
        "channel": "terminal",
        "reason": REASON,
        "votes": [vote],
    }


def test_approved(gate: Gate) -> None:
    agent = gate.agent()
    arguments = {"mark": "hold-approved"}
    ident = agent.start_call("asked", arguments)
    assert wait_until_asked(gate, "hold-approved").client == CLIENT
    assert gate.received("hold-approved") == []
    decide(gate, "hold-approved", approve=True)
    assert text_of(agent.inbox.answer(ident)) == "done"
    assert len(gate.received("hold-approved")) == 1
    record = CallRecord("asked", arguments).held("people")
    record.answered("approved", executes=True, kind=None, **by_person(approve=True))
    check_calls(gate, "hold-approved", record.ended("OK"))


@pytest.mark.promise("held-calls-bounded")
def test_large_call_is_approved_and_arrives_whole(gate: Gate) -> None:
    agent = gate.agent()
    arguments = {"mark": "hold-large", "filler": "é" * 100_000, "list": [1, 1.5, True, None]}
    ident = agent.start_call("asked", arguments)
    wait_until_asked(gate, "hold-large")
    decide(gate, "hold-large", approve=True)
    assert text_of(agent.inbox.answer(ident)) == "done"
    [received] = gate.received("hold-large")
    assert received["params"]["arguments"] == arguments


def test_approved_by_cedar_workflow(gate: Gate) -> None:
    agent = gate.agent()
    arguments = {"mark": "hold-cedar"}
    ident = agent.start_call("cedar_asks", arguments)
    decide(gate, "hold-cedar", approve=True)
    assert text_of(agent.inbox.answer(ident)) == "done"
    record = CallRecord("cedar_asks", arguments)
    record.held("asks", gate="cedar", summary="a policy permits it")
    record.answered("approved", executes=True, kind=None, **by_person(approve=True))
    check_calls(gate, "hold-cedar", record.ended("OK"))


def test_rejected(gate: Gate) -> None:
    agent = gate.agent()
    arguments = {"mark": "hold-rejected"}
    ident = agent.start_call("asked", arguments)
    decide(gate, "hold-rejected", approve=False)
    check_refused(agent, agent.inbox.answer(ident), "approval_rejected", "approval", "asked")
    assert gate.received("hold-rejected") == []
    record = CallRecord("asked", arguments).held("people")
    record.answered(
        "rejected", executes=False, kind="approval_rejected", **by_person(approve=False)
    )
    record.refused("approval_rejected", MESSAGES["approval_rejected"])
    check_calls(gate, "hold-rejected", record)


def test_others_are_not_held_up(gate: Gate) -> None:
    agent = gate.agent()
    ident = agent.start_call("asked", {"mark": "hold-others"})
    wait_until_asked(gate, "hold-others")
    assert agent.ask("ping")["result"] == {}
    assert text_of(agent.call("echo", {"mark": "hold-beside"})) == "done"
    assert agent.names("tools/list", "tools")
    assert not agent.inbox.has_answer(ident)
    decide(gate, "hold-others", approve=False)
    agent.inbox.answer(ident)


def test_cancelled_by_the_agent(gate: Gate) -> None:
    agent = gate.agent()
    arguments = {"mark": "hold-cancelled"}
    ident = agent.start_call("asked", arguments)
    asked = wait_until_asked(gate, "hold-cancelled")
    agent.notify("notifications/cancelled", {"requestId": ident, "reason": "not needed"})
    wait_until_withdrawn(gate, "hold-cancelled")
    assert isinstance(vote(gate, asked, approve=True), Refusal)
    assert gate.received("hold-cancelled") == []
    check_calls(gate, "hold-cancelled", withdrawn(arguments, "the caller cancelled"))


def withdrawn(arguments: dict[str, Any], reason: str) -> CallRecord:
    """Return the record of a held call whose caller is gone."""
    record = CallRecord("asked", arguments).held("people").withdrawn(reason)
    error = {"class": "policy_block", "kind": "approval_withdrawn", "message": reason}
    return record.ended("CANCELLED", error)


def test_agent_hangs_up(face: Face, start: Start, warm_gates: WarmGates) -> None:
    # On stdio the agent takes the gate with it.
    gate = start(MAIN) if face.agent == "stdio" else warm_gates.get(face, "main", MAIN)
    agent = gate.agent()
    arguments = {"mark": "hold-left"}
    ident = agent.start_call("asked", arguments)
    asked = wait_until_asked(gate, "hold-left")
    agent.hang_up(ident)
    wait_until_withdrawn(gate, "hold-left")
    assert isinstance(vote(gate, asked, approve=True), Refusal)
    check_calls(gate, "hold-left", withdrawn(arguments, "the caller is gone"))
    assert gate.received("hold-left") == []


@pytest.mark.long_for("proxy-stdio-http")
def test_gate_restarts_while_held(start: Start) -> None:
    gate = start(MAIN)
    agent = gate.agent()
    arguments = {"mark": "hold-restart"}
    agent.start_call("asked", arguments)
    asked = wait_until_asked(gate, "hold-restart")
    gate.terminate()
    assert pending(gate, "hold-restart") is None
    gate.start()
    assert text_of(gate.agent().call("echo", {"mark": "hold-restarted"})) == "done"
    assert isinstance(vote(gate, asked, approve=True), Refusal)
    assert gate.received('hold-restart"') == []
    record = CallRecord("asked", arguments).held("people").withdrawn("the gate is stopping")
    record.refused("approval_withdrawn", MESSAGES["approval_withdrawn"])
    with part("held_call_of_a_stopping_gate_on_record", gate):
        check_calls(gate, 'hold-restart"', record)


def test_nobody_answers(gate: Gate) -> None:
    agent, ident, arguments = gate.early("asked_briefly")
    answer = agent.inbox.answer(ident)
    check_refused(agent, answer, "approval_timeout", "approval", "asked_briefly")
    assert gate.received(arguments["mark"]) == []
    record = CallRecord("asked_briefly", arguments).held("brief", "brief")
    more = {"workflow": "brief", "reason": "nobody answered in time"}
    record.answered("timeout", executes=False, kind="approval_timeout", **more)
    record.refused("approval_timeout", MESSAGES["approval_timeout"])
    check_calls(gate, arguments["mark"], record)


def test_silence_can_mean_yes(gate: Gate) -> None:
    agent, ident, arguments = gate.early("asked_lenient")
    assert text_of(agent.inbox.answer(ident)) == "done"
    assert len(gate.received(arguments["mark"])) == 1
    record = CallRecord("asked_lenient", arguments).held("lenient", "lenient")
    vote = {"by": "system:on_timeout", "channel": "system", "approve": True}
    record.answered(
        "approved",
        executes=True,
        kind=None,
        workflow="lenient",
        auto_approved=True,
        decided_by="system:on_timeout",
        channel="system",
        reason="nobody answered in time",
        votes=[{**vote, "reason": "nobody answered in time"}],
    )
    check_calls(gate, arguments["mark"], record.ended("OK"))
