"""Batches over HTTP: each message judged alone, none made before all may be."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_gate import (
    Answer,
    Gate,
    call_of,
    config_for,
    decide,
    http_post,
    pending,
    read_until,
)
from tests.support.http_upstream import HttpUpstream, Received, Reply, event, result, text_result
from tests.support.waiting import wait_for

from thoughtgate.front import batch as front_batch

RULES = """rules:
  - {tool: 'delete_*', action: deny}
  - {tool: 'pay*', action: approve}
"""
NOTE = {"jsonrpc": "2.0", "method": "notifications/x"}


def _script(received: Received) -> Reply:
    if "id" not in received.message:
        return Reply(202)
    if received.tool == "stream":
        done = {"jsonrpc": "2.0", "id": received.message["id"], "result": {"content": []}}
        return Reply(parts=[event({**NOTE, "params": {"a": 1}}), event(done)])
    if received.tool == "broken":
        return Reply(raw=b"")
    return text_result(received, received.tool)


@pytest.fixture
def upstream() -> Iterator[HttpUpstream]:
    with HttpUpstream(_script) as running:
        yield running


@pytest.fixture
def gate(upstream: HttpUpstream, tmp_path: Path) -> Iterator[Gate]:
    listen = "listen: {transport: http, max_batch: 5}\n"
    with Gate(tmp_path, config_for(upstream.url, RULES + listen)) as running:
        yield running


@pytest.mark.requirement("EC-MCP-005", "S004-F-001.2", "S004-F-007.2", "S004-F-007.3")
def test_a_batch_is_answered_with_an_array(gate: Gate, upstream: HttpUpstream) -> None:
    batch = [call_of("one", ident=1), call_of("delete_it", ident=2), call_of("two", ident="3")]
    answer = gate.post(batch)
    assert answer.status == 200
    found = {one["id"]: one for one in answer.json}
    assert found[1]["result"]["content"][0]["text"] == "one"
    assert found[2]["error"]["code"] == -32014
    assert found["3"]["result"]["content"][0]["text"] == "two"
    assert sorted(one.tool for one in upstream.calls()) == ["one", "two"]


@pytest.mark.requirement("S004-F-007.4")
def test_notifications_have_no_entry_and_alone_get_202(gate: Gate, upstream: HttpUpstream) -> None:
    mixed = gate.post([NOTE, call_of("one")])
    assert [one["id"] for one in mixed.json] == [1]
    alone = gate.post([NOTE, NOTE])
    assert (alone.status, alone.body) == (202, b"")
    wait_for(lambda: len(upstream.received) == 4, what="all messages")


@pytest.mark.requirement("EC-MCP-006")
def test_an_empty_batch_is_refused(gate: Gate) -> None:
    answer = gate.post([])
    assert (answer.status, answer.error["code"]) == (400, -32600)


def test_a_batch_that_is_too_long_is_refused(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.post([call_of("one", ident=number) for number in range(6)])
    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert upstream.received == []


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_later_revisions_have_no_batches(gate: Gate, upstream: HttpUpstream, version: str) -> None:
    answer = gate.post([call_of("one")], {"mcp-protocol-version": version})
    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert upstream.received == []


def test_elements_that_cannot_be_read_get_their_own_errors(gate: Gate) -> None:
    answer = gate.post([7, {"id": 5, "method": "x"}, call_of("one", ident=6)])
    codes = sorted(one.get("error", {}).get("code", 0) for one in answer.json)
    assert codes == [-32600, -32600, 0]


def test_two_elements_with_one_id_do_not_both_run(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.post([call_of("one", ident=1), call_of("two", ident=1)])
    assert len(answer.json) == 2
    assert len(upstream.calls()) == 1


def test_what_comes_before_an_answer_makes_the_answer_a_stream(gate: Gate) -> None:
    answer = gate.post([call_of("stream", ident=1), call_of("one", ident=2)])
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.events[0]["params"] == {"a": 1}
    assert {one["id"] for one in answer.events[-1]} == {1, 2}


def test_a_message_without_an_answer_is_an_error_in_the_array(gate: Gate) -> None:
    answer = gate.post([call_of("broken", ident=1), call_of("one", ident=2)])
    found = {one["id"]: one for one in answer.json}
    assert found[1]["error"]["code"] == -32000
    assert "result" in found[2]


class _Posting:
    def __init__(self, gate: Gate, batch: list[dict[str, object]]) -> None:
        self._answers: list[Answer] = []
        self._thread = threading.Thread(target=lambda: self._answers.append(gate.post(batch)))
        self._thread.start()

    @property
    def answer(self) -> Answer:
        self._thread.join(10)
        return self._answers[0]


@pytest.mark.requirement("S004-F-007.5")
def test_nothing_of_a_batch_runs_before_all_may_run(gate: Gate, upstream: HttpUpstream) -> None:
    posting = _Posting(gate, [call_of("one", ident=1), call_of("pay", ident=2)])
    wait_for(lambda: pending(gate) == 1, what="the question")
    assert upstream.received == []
    decide(gate, approve=True)
    assert {one["id"] for one in posting.answer.json if "result" in one} == {1, 2}


@pytest.mark.requirement("S004-F-007.5")
def test_a_refusal_stops_the_whole_batch(gate: Gate, upstream: HttpUpstream) -> None:
    posting = _Posting(gate, [call_of("one", ident=1), call_of("pay", ident=2)])
    decide(gate, approve=False)
    found = {one["id"]: one["error"]["data"]["kind"] for one in posting.answer.json}
    assert found == {1: "approval_withdrawn", 2: "approval_rejected"}
    assert upstream.received == []


@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_a_batch_is_asked_about_on_its_own_stream(tmp_path: Path, decision: str) -> None:
    def script(received: Received) -> Reply:
        if received.message.get("method") != "initialize":
            return _script(received)
        reply = result(received, {"protocolVersion": "2025-03-26", "capabilities": {}})
        reply.headers = {"mcp-session-id": "s-1"}
        return reply

    rules = RULES + "approval: {default: {allow_elicitation: true}}\n"
    with HttpUpstream(script) as up, Gate(tmp_path, config_for(up.url, rules)) as gate:
        can: dict[str, Any] = {"capabilities": {"elicitation": {}}}
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": can}
        session = {"mcp-session-id": gate.post(opening).headers["mcp-session-id"]}
        batch = [call_of("one", ident=1), call_of("pay", ident=2)]
        with gate.raw() as connection:
            connection.sendall(http_post(batch, headers={**session, "connection": "close"}))
            said = read_until(connection, b'"requestedSchema"')
            found = re.search(rb"tg-ask-[0-9a-f]+", said)
            assert found is not None, said
            assert up.calls() == []
            answer = {"action": "accept", "content": {"decision": decision}}
            response = {"jsonrpc": "2.0", "id": found[0].decode(), "result": answer}
            assert gate.post(response, session).status == 202
            rest = read_until(connection, b"\r\n0\r\n\r\n")
        assert (b"approval_rejected" in rest) == (decision == "deny")
        assert len(up.calls()) == (2 if decision == "approve" else 0)


def test_headers_that_repeat_no_message_of_a_batch_do_not_go_on(
    gate: Gate, upstream: HttpUpstream
) -> None:
    gate.post([call_of("one")], {"mcp-method": "tools/call", "mcp-name": "delete_it"})
    (call,) = upstream.calls()
    assert not {"mcp-method", "mcp-name"} & call.headers.keys()


def test_a_batch_with_a_request_that_is_refused_as_a_frame_is_answered(gate: Gate) -> None:
    nameless = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    found = {one["id"]: one for one in gate.post([nameless, call_of("two", ident=2)]).json}
    assert found[1]["error"]["code"] == -32602
    assert found[2]["result"]["content"][0]["text"] == "two"
    assert [one["id"] for one in gate.post([nameless]).json] == [1]


def test_a_batch_has_the_trace_of_its_own_request(gate: Gate) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    gate.post(call_of("one"), headers={"traceparent": trace})
    gate.post([call_of("two", ident=2)])
    gate.post([call_of("three", ident=3)], headers={"traceparent": trace})
    calls = [one["call"] for one in gate.records("tool_call_start")]
    assert [call.get("traceparent") for call in calls] == [trace, None, trace]


def test_what_a_server_says_late_on_a_batch_is_nobody_elses_answer(tmp_path: Path) -> None:
    late, last = threading.Event(), threading.Event()
    stray = event({"jsonrpc": "2.0", "id": 1, "result": {"content": ["stray"]}})

    def script(received: Received) -> Reply:
        if "id" not in received.message:
            return Reply(parts=[b": opened\n\n", stray], wait=late)
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": [received.tool]}}
        wait = last if received.tool == "two" else None
        return Reply(parts=[b": opened\n\n", event(answer)], wait=wait)

    with HttpUpstream(script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        gate.post([call_of("one"), NOTE])
        answers: list[Answer] = []
        other = threading.Thread(target=lambda: answers.append(gate.call("two")))
        other.start()
        wait_for(lambda: any(one.tool == "two" for one in upstream.received))
        late.set()
        wait_for(lambda: gate.records("frame_refused") or len(gate.records("tool_call_end")) > 1)
        last.set()
        other.join(10)
        assert answers[0].events[-1]["result"]["content"] == ["two"]


def test_calls_of_a_batch_whose_caller_left_end_on_the_record(tmp_path: Path) -> None:
    never = threading.Event()

    def script(received: Received) -> Reply:
        return Reply(parts=[b": opened\n\n", b""], wait=never)

    listen = "listen: {transport: http, request_timeout: 1s}\n"
    with HttpUpstream(script) as upstream, Gate(tmp_path, config_for(upstream.url, listen)) as gate:
        with gate.raw() as connection:
            connection.sendall(http_post([call_of("one"), call_of("two", ident=2)]))
            wait_for(lambda: len(upstream.received) > 1)
        wait_for(lambda: len(gate.records("tool_call_end")) > 1)
        never.set()


def test_a_streamed_answer_is_known_by_what_it_is_not_by_the_words_in_it(
    gate: Gate, upstream: HttpUpstream
) -> None:
    def script(received: Received) -> Reply:
        note = {**NOTE, "params": {"result": 1, "error": 2}}
        done = {"jsonrpc": "2.0", "id": received.message["id"], "result": {"method": "odd"}}
        return Reply(parts=[event(note), event(done)])

    upstream.script = script
    note, replies = gate.post([call_of("one", ident=1)]).events
    assert note["method"] == "notifications/x"
    assert replies == [{"jsonrpc": "2.0", "id": 1, "result": {"method": "odd"}}]


def test_a_batch_that_a_server_is_slow_to_answer_is_kept_alive(
    gate: Gate, upstream: HttpUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def slow(received: Received) -> Reply:
        reply = _script(received)
        reply.wait = go
        return reply

    monkeypatch.setattr(front_batch, "KEEP_ALIVE_S", 0.1)
    upstream.script = slow
    with gate.raw() as connection:
        connection.sendall(http_post([call_of("one")], headers={"connection": "close"}))
        said = read_until(connection, b": still here")
        go.set()
        said += read_until(connection, b"\r\n0\r\n\r\n")
    assert b"text/event-stream" in said
    assert b'"text": "one"' in said


@pytest.mark.requirement("S004-F-007.5")
@pytest.mark.parametrize("approve", [True, False])
def test_a_task_on_one_message_does_not_break_up_the_batch(
    gate: Gate, upstream: HttpUpstream, *, approve: bool
) -> None:
    held = call_of("pay", ident=2)
    held["params"]["task"] = {"ttl": 60_000}
    answers: list[Answer] = []
    thread = threading.Thread(
        target=lambda: answers.append(gate.post([call_of("one", ident=1), held]))
    )
    thread.start()
    wait_for(lambda: pending(gate), what="the question")
    assert upstream.calls() == []
    decide(gate, approve=approve)
    thread.join(20)
    found = {one["id"]: one for one in answers[0].json}
    if approve:
        assert sorted(one.tool for one in upstream.calls()) == ["one", "pay"]
        assert found[2]["result"]["content"][0]["text"] == "pay"
    else:
        assert upstream.calls() == []
        assert found[1]["error"]["data"]["kind"] == "approval_withdrawn"
        assert found[2]["error"]["data"]["kind"] == "approval_rejected"


def test_a_batch_waits_until_the_tools_are_listed_for_one_of_its_calls(
    gate: Gate, upstream: HttpUpstream
) -> None:
    """The verdict on a call with a task needs the list; until then no other call may run."""
    go = threading.Event()
    script = upstream.script

    def slow_list(received: Received) -> Reply:
        reply = script(received)
        if b'"tools/list"' in received.body:
            reply.wait = go
        return reply

    upstream.script = slow_list
    held = call_of("pay", ident=2)
    held["params"]["task"] = {"ttl": 60_000}
    answers: list[Answer] = []
    thread = threading.Thread(
        target=lambda: answers.append(gate.post([call_of("one", ident=1), held]))
    )
    thread.start()
    wait_for(lambda: any(b'"tools/list"' in one.body for one in upstream.received), what="the list")
    assert upstream.calls() == []
    go.set()
    wait_for(lambda: pending(gate), what="the question")
    assert upstream.calls() == []
    decide(gate, approve=True)
    thread.join(20)
    assert sorted(one.tool for one in upstream.calls()) == ["one", "pay"]
