"""Requests of the server to the agent, and annotations, are judged alike through every face."""

import json
from typing import Any

import pytest
from tests.faces.conftest import Start
from tests.faces.face import STDIO_AGENT, Gate, Setup
from tests.faces.outcomes import text_of
from tests.faces.people import decide, wait_until_asked, wait_until_withdrawn

POLICY: dict[str, Any] = {
    "default": "deny",
    "rules": [
        {"id": "no-roots", "roots": "*", "action": "deny"},
        {"id": "ask-sampling", "sampling": "*", "action": "approve"},
        {
            "id": "destroys",
            "kind": "tool",
            "annotations": {"destructiveHint": True},
            "action": "deny",
        },
        {"id": "open", "tool": "*", "action": "forward"},
    ],
}
SETUP = Setup(POLICY)
SAMPLING = {"messages": [], "maxTokens": 1, "systemPrompt": "the-sampling"}


def calls(gate: Gate, kind: str) -> list[dict[str, Any]]:
    """Return what the record says of the calls of one kind."""
    starts = [one["call"] for one in gate.records() if one["type"] == "tool_call_start"]
    return [one for one in starts if one["kind"] == kind]


def ended(gate: Gate, call: dict[str, Any]) -> dict[str, Any]:
    """Return the event that ends a call."""

    def find() -> dict[str, Any] | None:
        ends = [one for one in gate.records() if one["type"] == "tool_call_end"]
        return next((one for one in ends if one["call"]["call_id"] == call["call_id"]), None)

    found: dict[str, Any] = gate.wait(find, "the end of the call on record")
    return found


@pytest.mark.promise("server-requests")
def test_denied_and_held(start: Start) -> None:
    gate = start(SETUP)
    agent = gate.agent()
    arguments = {"do": "ask", "method": "roots/list", "params": {}, "mark": "roots-denied"}
    answer = agent.call("echo", arguments)
    # A server that puts its requests into results gets no answer: the call itself fails.
    assert "error" in answer or json.loads(text_of(answer)) == {"refused": True}
    (roots,) = calls(gate, "roots")
    assert roots["direction"] == "server_to_agent"
    assert ended(gate, roots)["error"]["kind"] == "governance_denied"

    arguments = {
        "do": "ask",
        "method": "sampling/createMessage",
        "params": SAMPLING,
        "mark": "sampling-held",
    }
    ident = agent.start_call("echo", arguments)
    asked = wait_until_asked(gate, "the-sampling")
    assert asked.kind == "sampling"
    decide(gate, "the-sampling", approve=True)
    request = agent.inbox.message("sampling/createMessage")
    agent.respond(request["id"], {"role": "assistant", "content": [], "model": "m"})
    assert json.loads(text_of(agent.inbox.answer(ident)))["model"] == "m"
    (sampling,) = calls(gate, "sampling")
    assert ended(gate, sampling)["status"] == "OK"


@pytest.mark.not_for("on pipes there is one stream, which ends with the agent", *STDIO_AGENT)
@pytest.mark.not_for("the agent is asked on its GET stream, which stays open", "proxy-http-stdio")
def test_held_until_the_stream_ends(start: Start) -> None:
    """The server is answered as soon as the agent can no longer be asked."""
    gate = start(SETUP)
    agent = gate.agent()
    arguments = {"do": "ask", "method": "sampling/createMessage", "params": SAMPLING}
    ident = agent.start_call("echo", {**arguments, "mark": "hung-up"})
    wait_until_asked(gate, "the-sampling")
    agent.hang_up(ident)
    wait_until_withdrawn(gate, "the-sampling")
    (sampling,) = calls(gate, "sampling")
    assert ended(gate, sampling)["error"]["kind"] == "approval_withdrawn"
    if gate.face.name == "proxy-http-http":
        # serve speaks the newest revision to this server, which asks in its result.
        gate.wait(lambda: refusals(gate), "the error that answers the server")


def refusals(gate: Gate) -> list[dict[str, Any]]:
    """Return the errors that the server has received."""
    bodies = [one["body"] for one in gate.received_entries()]
    return [one for one in bodies if "error" in one and "method" not in one]


@pytest.mark.promise("server-requests")
@pytest.mark.parametrize("approve", [True, False], ids=["approved", "denied"])
def test_held_in_a_result(start: Start, *, approve: bool) -> None:
    gate = start(SETUP)
    agent = gate.agent()
    arguments = {"do": "ask", "method": "sampling/createMessage", "params": SAMPLING}
    ident = agent.start_call("echo", {**arguments, "mark": "in-a-result"}, modern=True)
    wait_until_asked(gate, "the-sampling")
    decide(gate, "the-sampling", approve=approve)
    answer = agent.inbox.answer(ident)
    if approve:
        assert answer["result"]["resultType"] == "input_required"
    else:
        assert answer["error"]["data"]["kind"] == "approval_rejected"


@pytest.mark.promise("server-requests")
def test_denied_in_a_result(start: Start) -> None:
    gate = start(SETUP)
    agent = gate.agent()
    arguments = {"do": "ask", "method": "roots/list", "params": {}, "mark": "roots-modern"}
    assert "error" in agent.call("echo", arguments, modern=True)
    (roots,) = calls(gate, "roots")
    assert ended(gate, roots)["error"]["kind"] == "governance_denied"


@pytest.mark.promise("annotations")
@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
def test_annotations_count_before_any_list(start: Start, *, modern: bool) -> None:
    gate = start(SETUP)
    agent = gate.agent()
    answer = agent.call("destructive", {"mark": "never-listed"}, modern=modern)
    assert answer["error"]["data"]["kind"] == "governance_denied"
    assert gate.received("never-listed") == []
    assert text_of(agent.call("echo", {"mark": "harmless"}, modern=modern)) == "done"
