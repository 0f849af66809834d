"""Frames that are refused, and batches."""

from pathlib import Path
from typing import Any

import pytest
from tests.faces.agents import HttpAgent
from tests.faces.face import HTTP_AGENT, SERVER, STDIO_AGENT, Gate
from tests.faces.known_drift import part
from tests.faces.outcomes import text_of
from tests.faces.people import decide, wait_until_asked
from tests.faces.record_view import (
    CallRecord,
    calls_on_record,
    check_calls,
    event,
    wait_for_event,
)

REFUSED: dict[str, tuple[str, str, int, str]] = {
    # what is wrong: the frame, the kind, the code, the check
    "duplicate key": (
        '{"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"name":"echo","name":"denied","arguments":{"mark":"ID"}}}',
        "invalid_request", -32600, "duplicate_key",
    ),
    "raw carriage return": (
        '{"jsonrpc":"2.0","id":"ID","method":"tools/call",\r"params":{"name":"echo","arguments":{"mark":"ID"}}}',
        "invalid_request", -32600, "raw_cr",
    ),
    "key in other case": (
        '{"jsonrpc":"2.0","id":"ID","method":"tools/call","Params":{"name":"denied"},"params":{"name":"echo","arguments":{"mark":"ID"}}}',
        "invalid_request", -32600, "ambiguous_key",
    ),
    "wrong version": (
        '{"jsonrpc":"1.0","id":"ID","method":"tools/call","params":{"name":"echo","arguments":{"mark":"ID"}}}',
        "invalid_request", -32600, "wrong_version",
    ),
    "no name": (
        '{"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"arguments":{"mark":"ID"}}}',
        "invalid_params", -32602, "wrong_params",
    ),
    "arguments that are no object": (
        '{"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"name":"echo","arguments":["ID"]}}',
        "invalid_params", -32602, "wrong_params",
    ),
}  # fmt: skip


def refuse(gate: Gate, wrong: str) -> dict[str, Any]:
    """Send a frame that must be refused, check answer and record, and return the answer."""
    agent = gate.agent()
    text, kind, code, check = REFUSED[wrong]
    start = len(gate.records())
    ident = f"refused-{check}-{len(text)}"
    sent = text.replace("ID", ident).encode()
    agent.send_raw(sent)
    agent.inbox.wait(
        lambda: agent.inbox.has_answer(ident) or agent.inbox.has_answer(None), "the refusal"
    )
    answer = agent.inbox.answer(ident if agent.inbox.has_answer(ident) else None)
    assert (answer["error"]["code"], answer["error"]["data"]["kind"]) == (code, kind)
    found = wait_for_event(gate, start, "frame_refused", lambda one: one["frame"]["check"] == check)
    frame = {"direction": "agent_to_server", "check": check, "kind": kind, "enforced": True}
    frame["first_bytes"] = sent[:32].hex()
    # Whether the method could be read depends on what is wrong with the frame.
    frame |= {key: value for key, value in found["frame"].items() if key == "method"}
    # serve refuses a frame before it is known for which server it is.
    server = "" if gate.face.product == "serve" else SERVER
    assert found == event("frame_refused", server, frame=frame)
    assert gate.received(ident) == []
    return answer


@pytest.mark.parametrize("wrong", ["duplicate key", "key in other case", "wrong version"])
def test_frame_refused(gate: Gate, wrong: str) -> None:
    answer = refuse(gate, wrong)
    with part("check_of_a_refused_frame", gate):
        assert answer["error"]["data"].get("check") == REFUSED[wrong][3]


@pytest.mark.parametrize("wrong", ["no name", "arguments that are no object"])
def test_call_refused_as_a_frame(gate: Gate, wrong: str) -> None:
    answer = refuse(gate, wrong)
    assert answer["error"]["data"]["check"] == REFUSED[wrong][3]


@pytest.mark.not_for("a body over HTTP is not read by lines", *HTTP_AGENT)
def test_raw_carriage_return(gate: Gate) -> None:
    answer = refuse(gate, "raw carriage return")
    assert answer["error"]["data"]["check"] == "raw_cr"


def test_call_without_an_id(gate: Gate) -> None:
    agent = gate.agent()
    start = len(gate.records())
    params = {"name": f"{agent.prefix}echo", "arguments": {"mark": "no-id"}}
    agent.send({"jsonrpc": "2.0", "method": "tools/call", "params": params})
    found = wait_for_event(
        gate, start, "frame_refused", lambda one: one["frame"]["check"] == "missing_id"
    )
    assert found["frame"]["direction"] == "agent_to_server"
    if gate.face.agent == "stdio":
        assert agent.inbox.answer(None)["error"]["code"] == -32600
    assert agent.ask("ping")["result"] == {}
    assert gate.received("no-id") == []


def test_stray_answer_of_the_agent(gate: Gate) -> None:
    agent = gate.agent()
    start = len(gate.records())
    agent.send({"jsonrpc": "2.0", "id": "nobody-asked", "result": {}})
    found = wait_for_event(
        gate, start, "frame_refused", lambda one: one["frame"]["check"] == "unknown_response"
    )
    assert found["frame"]["direction"] == "agent_to_server"
    assert agent.ask("ping")["result"] == {}
    assert gate.received("nobody-asked") == []


def call(ident: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a call as part of a batch."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


@pytest.mark.not_for("over HTTP batches belong to revision 2025-03-26", *HTTP_AGENT)
def test_batch_on_stdio(gate: Gate) -> None:
    agent = gate.agent()
    start = len(gate.records())
    agent.send([call("b-1", f"{agent.prefix}echo", {"mark": "stdio-batch"})])
    answer = agent.inbox.answer(None)
    assert (answer["error"]["code"], answer["error"]["data"]["check"]) == (-32600, "batch")
    found = wait_for_event(
        gate, start, "frame_refused", lambda one: one["frame"]["check"] == "batch"
    )
    assert found["frame"]["kind"] == "invalid_request"
    assert gate.received("stdio-batch") == []


OVER_HTTP = pytest.mark.not_for("stdio has no batches: see batch_on_stdio", *STDIO_AGENT)


@OVER_HTTP
def test_batch(gate: Gate) -> None:
    agent = gate.agent("2025-03-26")
    assert isinstance(agent, HttpAgent)
    allowed, denied = {"mark": "batch-allowed"}, {"mark": "batch-denied"}
    batch = [
        call("b-1", f"{agent.prefix}echo", allowed),
        call("b-2", f"{agent.prefix}denied", denied),
    ]
    answers = {one["id"]: one for one in posted(agent, batch)}
    assert text_of(answers["b-1"]) == "done"
    assert answers["b-2"]["error"]["data"]["kind"] == "governance_denied"
    assert gate.received("batch-denied") == []
    check_calls(gate, "batch-allowed", CallRecord("echo", allowed).allowed("open").ended("OK"))


def posted(agent: HttpAgent, batch: Any) -> list[dict[str, Any]]:
    """POST a batch and return the responses, one by one."""
    answer = agent.post(batch)
    assert answer.status == 200, (answer.status, answer.messages)
    flat: list[dict[str, Any]] = []
    for one in answer.messages:
        flat += one if isinstance(one, list) else [one]
    return [one for one in flat if "method" not in one]


@OVER_HTTP
def test_batch_waits_for_a_person(gate: Gate) -> None:
    agent = gate.agent("2025-03-26")
    free, asked = {"mark": "batch-free"}, {"mark": "batch-asked"}
    batch = [
        call("h-1", f"{agent.prefix}echo", free),
        call("h-2", f"{agent.prefix}asked", asked),
    ]
    agent.send(batch)
    wait_until_asked(gate, "batch-asked")
    assert gate.received("batch-free") == []
    decide(gate, "batch-asked", approve=True)
    assert text_of(agent.inbox.answer("h-1")) == "done"
    assert text_of(agent.inbox.answer("h-2")) == "done"


@OVER_HTTP
def test_batch_beside_a_notification_that_holds_a_result(gate: Gate, tmp_path: Path) -> None:
    agent = gate.agent("2025-03-26")
    until = tmp_path / "go"
    slow = {"mark": "notice-slow", "do": "result_notice", "until": str(until)}
    batch = [
        call("n-1", f"{agent.prefix}echo", slow),
        call("n-2", f"{agent.prefix}echo", {"mark": "notice-fast"}),
    ]
    agent.send(batch)
    gate.wait(lambda: is_over(gate, "notice-fast"), "the end of the fast call on record")
    until.touch()
    assert text_of(agent.inbox.answer("n-2")) == "done"
    assert text_of(agent.inbox.answer("n-1")) == "done"


def is_over(gate: Gate, mark: str) -> bool:
    """Tell whether the one call that carries a mark has ended."""
    calls = calls_on_record(gate, mark)
    return bool(calls) and calls[0][-1]["type"] == "tool_call_end"
