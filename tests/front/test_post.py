"""Held calls over HTTP: they wait, run once approved, and never without their caller."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_gate import (
    MODERN_META,
    Answer,
    Gate,
    call_of,
    config_for,
    decide,
    http_post,
    modern_call_of,
    modern_headers,
    pending,
    read_until,
)
from tests.support.http_upstream import HttpUpstream, Received, Reply, text_result
from tests.support.waiting import wait_for

from thoughtgate.front import post as gateway_post

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
RULES = "rules:\n  - {tool: 'pay*', action: approve}\n"


def _script(received: Received) -> Reply:
    if "id" not in received.message:
        return Reply(202)
    return text_result(received, "done")


@pytest.fixture
def upstream() -> Iterator[HttpUpstream]:
    with HttpUpstream(_script) as running:
        yield running


@pytest.fixture
def gate(upstream: HttpUpstream, tmp_path: Path) -> Iterator[Gate]:
    with Gate(tmp_path, config_for(upstream.url, RULES)) as running:
        yield running


class _Call:
    """A call that is being made in a thread."""

    def __init__(self, gate: Gate, message: Any, headers: dict[str, str] | None = None) -> None:
        self._answers: list[Answer] = []
        self._thread = threading.Thread(
            target=lambda: self._answers.append(gate.post(message, headers))
        )
        self._thread.start()

    @property
    def answer(self) -> Answer:
        """The answer, once it is there."""
        self._thread.join(10)
        return self._answers[0]


@pytest.mark.requirement("S004-LIVE-1")
def test_an_approved_call_runs_and_its_result_is_returned(
    gate: Gate, upstream: HttpUpstream
) -> None:
    call = _Call(gate, call_of("pay"))
    wait_for(lambda: pending(gate) == 1, what="the question")
    assert upstream.received == []
    decide(gate, approve=True)
    assert call.answer.json["result"]["content"][0]["text"] == "done"
    assert len(upstream.calls("pay")) == 1
    kinds = [one["type"] for one in gate.records() if "call" in one]
    assert kinds == [
        "tool_call_start",
        "tool_call_decision",
        "approval_requested",
        "approval_decided",
        "tool_call_end",
    ]


@pytest.mark.requirement("S004-LIVE-5")
def test_a_rejected_call_is_refused(gate: Gate, upstream: HttpUpstream) -> None:
    call = _Call(gate, call_of("pay"))
    decide(gate, approve=False)
    assert call.answer.error["code"] == -32007
    assert upstream.received == []


@pytest.mark.requirement("S004-LIVE-3")
def test_a_call_that_nobody_answers_times_out(upstream: HttpUpstream, tmp_path: Path) -> None:
    extra = RULES + "approval: {default: {timeout: 5s}}\n"
    with Gate(tmp_path, config_for(upstream.url, extra)) as gate:
        answer = gate.call("pay")
        assert answer.error["code"] == -32008
        assert answer.error["data"]["kind"] == "approval_timeout"
        assert upstream.received == []


@pytest.mark.requirement("S004-LIVE-2", "S004-LIVE-4")
def test_a_call_whose_caller_left_is_withdrawn_and_never_runs(
    gate: Gate, upstream: HttpUpstream
) -> None:
    with gate.raw() as connection:
        connection.sendall(http_post(call_of("pay"), headers={"host": f"127.0.0.1:{gate.port}"}))
        wait_for(lambda: pending(gate) == 1, what="the question")
    wait_for(lambda: pending(gate) == 0, what="the withdrawal")
    end = wait_for(lambda: gate.records("tool_call_end"), what="the end on record")[0]
    assert end["status"] == "CANCELLED"
    decided = gate.records("approval_decided")[0]["approval"]
    assert decided["outcome"] == "withdrawn"
    assert decided["executes"] is False
    assert upstream.received == []


def test_other_calls_flow_while_one_is_held(gate: Gate) -> None:
    call = _Call(gate, call_of("pay", ident=1))
    wait_for(lambda: pending(gate) == 1, what="the question")
    assert gate.call("echo", ident=2).status == 200
    decide(gate, approve=True)
    assert call.answer.status == 200


@pytest.mark.requirement("S004-F-006.3")
def test_a_held_call_tells_progress_with_the_callers_own_token(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    from thoughtgate.core import session_replies

    monkeypatch.setattr(session_replies, "PROGRESS_EVERY_S", 0.2)
    message = call_of("pay")
    message["params"]["_meta"] = {"progressToken": "mine"}
    with gate.raw() as connection:
        connection.sendall(http_post(message, headers={"host": f"127.0.0.1:{gate.port}"}))
        told = read_until(connection, b'"progressToken"')
        assert b"text/event-stream" in told
        assert b'"progressToken":"mine"' in told
        decide(gate, approve=True)
        assert b'"text": "done"' in read_until(connection, b'"done"')


def test_a_held_call_keeps_its_stream_alive_with_comments(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_post, "KEEP_ALIVE_S", 0.1)
    with gate.raw() as connection:
        connection.sendall(http_post(call_of("pay"), headers={"host": f"127.0.0.1:{gate.port}"}))
        assert b": waiting for approval" in read_until(connection, b": waiting")
        decide(gate, approve=True)
        assert b"event: message" in read_until(connection, b'"done"')


def _child_config() -> str:
    args = '["-m", "thoughtgate.testing.sample_server"]'
    server = f'command: "{sys.executable}", args: {args}'
    return f"schema: 1\ndefault: forward\nservers:\n  kid: {{{server}}}\n"


def test_a_call_that_a_stdio_server_is_slow_to_answer_is_kept_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_post, "KEEP_ALIVE_S", 0.1)
    with Gate(tmp_path, _child_config()) as gate, gate.raw() as connection:
        opened = gate.post({**INITIALIZE, "params": {"protocolVersion": "2025-06-18"}})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        slow = call_of("slow", {"seconds": 3})
        connection.sendall(http_post(slow, headers={**session, "connection": "close"}))
        told = read_until(connection, b"slept")
        plain = gate.call("slow", {"seconds": 2}, headers={**session, "accept": "application/json"})

    assert b": still here\n\n" in told
    assert told.count(b"mcp-session-id") == 0
    assert b"event: message" in told
    assert plain.headers["content-type"] == "application/json"


def test_a_stream_that_the_server_owns_is_left_to_the_server(
    upstream: HttpUpstream, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_post, "KEEP_ALIVE_S", 0.1)
    ticked, go = threading.Event(), threading.Event()
    ticks = gateway_post.Post.keep_alive

    def keep_alive(post: gateway_post.Post, at: float) -> None:
        ticks(post, at)
        ticked.set()

    def slow(received: Received) -> Reply:
        reply = _script(received)
        reply.wait = go
        return reply

    monkeypatch.setattr(gateway_post.Post, "keep_alive", keep_alive)
    upstream.script = slow
    call = _Call(gate, call_of("echo"))
    assert ticked.wait(10)
    go.set()
    assert call.answer.headers["content-type"] == "application/json"


def test_only_the_answer_to_initialize_names_the_session(
    upstream: HttpUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_session(received: Received) -> Reply:
        reply = _script(received)
        if received.message.get("method") == "initialize":
            reply.headers = {"mcp-session-id": "s"}
        return reply

    monkeypatch.setattr(gateway_post, "KEEP_ALIVE_S", 0.1)
    upstream.script = with_session
    with Gate(tmp_path, config_for(upstream.url, RULES)) as gate:
        session = {"mcp-session-id": gate.post(INITIALIZE).headers["mcp-session-id"]}
        with gate.raw() as connection:
            connection.sendall(http_post(call_of("pay"), headers=session))
            head = read_until(connection, b": waiting")
            decide(gate, approve=True)
            read_until(connection, b'"done"')
        denied = gate.post({"jsonrpc": "2.0", "id": 7, "method": "tools/call"}, session)

    assert b"text/event-stream" in head
    assert b"mcp-session-id" not in head
    assert denied.error["code"] == -32602
    assert "mcp-session-id" not in denied.headers


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("tasks/get", {"taskId": "tg_nobody"}, 400, -32602),
        ("tasks/result", {"taskId": "tg_nobody"}, 404, -32601),
        ("tools/call", {}, 400, -32602),
        ("ping", {}, 404, -32601),
    ],
)
def test_refusals_of_the_newest_revision_have_statuses_of_their_own(
    gate: Gate, method: str, params: dict[str, Any], status: int, code: int
) -> None:
    able: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = {**MODERN_META, "io.modelcontextprotocol/clientCapabilities": able}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    answer = gate.post(message, modern_headers(params.get("taskId", ""), method))
    assert (answer.status, answer.error["code"]) == (status, code)


def test_an_agent_that_reads_json_only_is_answered_in_json(gate: Gate) -> None:
    call = _Call(gate, call_of("pay"), {"accept": "application/json"})
    decide(gate, approve=True)
    assert call.answer.headers["content-type"] == "application/json"
    assert call.answer.json["result"]


def test_a_cancelled_call_is_withdrawn(upstream: HttpUpstream, tmp_path: Path) -> None:
    def with_session(received: Received) -> Reply:
        reply = _script(received)
        if received.message.get("method") == "initialize":
            reply.headers = {"mcp-session-id": "s"}
        return reply

    upstream.script = with_session
    with Gate(tmp_path, config_for(upstream.url, RULES)) as gate:
        opened = gate.post({"jsonrpc": "2.0", "id": 0, "method": "initialize"})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        call = _Call(gate, call_of("pay", ident=5), session)
        wait_for(lambda: pending(gate) == 1, what="the question")
        cancel = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 5},
        }
        assert gate.post(cancel, session).status == 202
        wait_for(lambda: pending(gate) == 0, what="the withdrawal")
        assert upstream.calls("pay") == []
        assert (call.answer.status, call.answer.body) == (204, b"")


def test_a_stopping_gate_withdraws_what_it_holds_and_tells_the_caller(
    gate: Gate, upstream: HttpUpstream
) -> None:
    call = _Call(gate, call_of("pay"))
    wait_for(lambda: pending(gate) == 1, what="the question")
    gate.stop()
    assert call.answer.error["data"]["kind"] == "approval_withdrawn"
    assert pending(gate) == 0
    assert upstream.received == []
    assert gate.records()[-1]["type"] == "run_end"


@pytest.mark.requirement("EC-MCP-008", "S004-F-003.1", "S004-F-003.2", "S004-F-003.3")
def test_a_caller_that_asked_for_a_task_gets_one_and_polls(
    gate: Gate, upstream: HttpUpstream
) -> None:
    def with_session(received: Received) -> Reply:
        reply = _script(received)
        if received.message.get("method") == "initialize":
            reply.headers = {"mcp-session-id": "s"}
        return reply

    upstream.script = with_session
    opened = gate.post({"jsonrpc": "2.0", "id": 0, "method": "initialize"})
    session = {"mcp-session-id": opened.headers["mcp-session-id"]}
    message = call_of("pay", ident=5)
    message["params"]["task"] = {"ttl": 90_000}
    created = gate.post(message, session).json["result"]["task"]
    assert created["status"] in {"working", "input_required"}
    assert created["ttl"] == 90_000
    assert upstream.calls("pay") == []
    decide(gate, approve=True)
    wait_for(lambda: upstream.calls("pay"), what="the call")
    ask = {
        "jsonrpc": "2.0",
        "id": 6,
        "method": "tasks/result",
        "params": {"taskId": created["taskId"]},
    }
    fetched = gate.post(ask, session).json["result"]
    assert fetched["content"][0]["text"] == "done"
    assert "task" not in upstream.calls("pay")[0].message["params"]


@pytest.mark.requirement("S004-F-003.4")
def test_malformed_task_metadata_is_refused(gate: Gate, upstream: HttpUpstream) -> None:
    message = call_of("pay")
    message["params"]["task"] = {"ttl": "soon"}
    answer = gate.post(message)
    assert answer.error["code"] == -32602
    assert upstream.received == []


TASKS: dict[str, Any] = {
    "io.modelcontextprotocol/clientCapabilities": {
        "extensions": {"io.modelcontextprotocol/tasks": {}}
    }
}


def test_from_the_newest_revision_on_wrong_params_of_a_task_are_a_bad_request(
    gate: Gate, upstream: HttpUpstream
) -> None:
    message = modern_call_of("pay")
    message["params"].update({"_meta": {**MODERN_META, **TASKS}, "task": {"ttl": "soon"}})
    wrong = gate.post(message, modern_headers("pay"))
    unknown = "tg_" + "a" * 43
    params = {"taskId": unknown, "_meta": {**MODERN_META, **TASKS}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": params}
    missing = gate.post(asked, modern_headers(unknown, "tasks/get"))
    older = gate.post({**asked, "params": {"taskId": unknown}})

    assert (wrong.status, wrong.error["data"]["kind"]) == (400, "invalid_params")
    assert (missing.status, missing.error["data"]["kind"]) == (400, "task_not_found")
    assert (older.status, older.error["data"]["kind"]) == (200, "task_not_found")
    assert upstream.calls() == []


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_call_belongs_to_the_trace_its_header_names(gate: Gate, upstream: HttpUpstream) -> None:
    gate.post(call_of("echo", ident=1), {"traceparent": PARENT})
    gate.post(call_of("echo", ident=2), {"traceparent": "none of that"})
    first, second = gate.records("tool_call_start")

    assert first["call"]["traceparent"] == PARENT
    assert "traceparent" not in second["call"]
    assert upstream.calls("echo")[0].headers["traceparent"] == PARENT
