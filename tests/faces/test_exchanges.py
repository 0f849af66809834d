"""What passes beside calls and answers: progress, cancellation, requests of the server."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.faces.face import Gate
from tests.faces.outcomes import text_of
from tests.faces.record_view import CallRecord, check_calls
from tests.faces.servers import FLOOD

ASKED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sampling/createMessage": (
        {"messages": [], "maxTokens": 1},
        {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"},
    ),
    "elicitation/create": (
        {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}},
        {"action": "accept", "content": {}},
    ),
    "roots/list": ({}, {"roots": [{"uri": "file:///tmp"}]}),
}
"""Method -> what the server asks, what the agent answers."""


@pytest.mark.parametrize("method", ASKED)
def test_server_asks_the_agent(gate: Gate, method: str) -> None:
    agent = gate.agent()
    params, result = ASKED[method]
    mark = f"asks-{method}"
    arguments = {"do": "ask", "method": method, "params": params, "mark": mark}
    ident = agent.start_call("echo", arguments)
    asked = agent.inbox.message(method)
    while "message" in params and asked["params"]["message"] != params["message"]:
        # The gate says in the same way that a call of another scenario waits.
        asked = agent.inbox.message(method)
    assert {key: asked.get("params", {}).get(key) for key in params} == params
    agent.respond(asked["id"], result)
    assert json.loads(text_of(agent.inbox.answer(ident))) == result
    expected = CallRecord("echo", arguments).allowed("open").ended("OK")
    check_calls(gate, mark, expected)


@pytest.mark.parametrize("modern", [True], ids=["2026-07-28"])
@pytest.mark.parametrize("method", ASKED)
def test_server_asks_in_its_result(gate: Gate, method: str, *, modern: bool) -> None:
    agent = gate.agent()
    params, result = ASKED[method]
    mark = f"asks-modern-{method}"
    arguments = {"do": "ask", "method": method, "params": params, "mark": mark}
    first = agent.call("echo", arguments, modern=True)["result"]
    assert first["resultType"] == "input_required"
    ((name, wanted),) = first["inputRequests"].items()
    assert (wanted["method"], wanted.get("params") or {}) == (method, params)
    more = {"inputResponses": {name: result}}
    if "requestState" in first:
        more["requestState"] = first["requestState"]
    answer = agent.call("echo", arguments, modern=True, **more)
    assert json.loads(text_of(answer)) == result


@pytest.mark.parametrize("token", ["a-token", 7], ids=["text", "number"])
def test_progress(gate: Gate, token: Any) -> None:
    agent = gate.agent()
    arguments = {"do": "progress", "mark": f"progress-{token}"}
    answer = agent.call("echo", arguments, _meta={"progressToken": token})
    assert text_of(answer) == "done"
    steps = [agent.inbox.message("notifications/progress")["params"] for _ in range(2)]
    assert [(one["progressToken"], one["progress"]) for one in steps] == [(token, 1), (token, 2)]


def test_cancelled(gate: Gate, tmp_path: Path) -> None:
    agent = gate.agent()
    until = tmp_path / "go"
    arguments = {"do": "wait", "until": str(until), "mark": "cancelled-call"}
    ident = agent.start_call("echo", arguments)
    gate.wait(lambda: gate.received("cancelled-call"), "the call at the server")
    agent.notify("notifications/cancelled", {"requestId": ident, "reason": "enough"})
    (call,) = gate.received("cancelled-call")

    def told() -> bool:
        return any(
            one.get("method") == "notifications/cancelled"
            and one["params"]["requestId"] == call["id"]
            for one in gate.received()
        )

    gate.wait(told, "the cancellation at the server")
    expected = CallRecord("echo", arguments).allowed("open").ended("CANCELLED")
    check_calls(gate, "cancelled-call", expected)
    assert not agent.inbox.has_answer(ident)


def test_server_floods(gate: Gate) -> None:
    agent = gate.agent()
    agent.inbox.messages.clear()
    assert text_of(agent.call("echo", {"do": "flood", "mark": "flood"})) == "done"

    def told() -> int:
        return sum(one["method"] == "notifications/message" for one in agent.inbox.messages)

    agent.inbox.wait(lambda: told() >= FLOOD, "all messages of the server")
    assert told() == FLOOD
    agent.inbox.messages.clear()


@pytest.mark.not_for("the proxy behind the shim drops it, and keeps no record", "wrap-http")
def test_stray_answer_of_the_server_is_dropped(gate: Gate) -> None:
    agent = gate.agent()
    arguments = {"do": "stray", "mark": "stray"}
    start = len(gate.records())
    assert text_of(agent.call("echo", arguments)) == "done"
    assert not agent.inbox.has_answer("never-asked")

    def refused() -> list[dict[str, Any]]:
        kinds = [one for one in gate.records()[start:] if one["type"] == "frame_refused"]
        return [one["frame"] for one in kinds]

    gate.wait(refused, "the refused frame on record")
    (frame,) = refused()
    assert (frame["direction"], frame["check"]) == ("server_to_agent", "unknown_response")


def test_server_is_too_slow(gate: Gate) -> None:
    agent, ident, arguments = gate.early("extra")
    answer = agent.inbox.answer(ident)
    assert answer["error"]["data"]["kind"] in {"tool_call_timeout", "upstream_timeout"}
    expected = CallRecord("extra", arguments).allowed("open")
    error = {
        "class": "timeout",
        "kind": "tool_call_timeout",
        "message": "no answer in time",
        "cause": "answer_timeout",
    }
    check_calls(gate, arguments["mark"], expected.ended("TIMEOUT", error))
