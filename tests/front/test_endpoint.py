"""One endpoint: messages read, checked against their headers, judged and answered."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_gate import (
    MODERN_META,
    Gate,
    call_of,
    config_for,
    http_post,
    modern_call_of,
    modern_headers,
    read_until,
)
from tests.support.http_upstream import (
    HttpUpstream,
    Received,
    Reply,
    result,
    small_server,
)
from tests.support.waiting import wait_for

from thoughtgate.front import endpoint
from thoughtgate.front.sessions import HttpSession


@pytest.mark.requirement("EC-MCP-002", "S004-F-001.5")
def test_malformed_json_is_a_parse_error(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.post(b'{"jsonrpc": "2.0", oops')
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32700, None)
    assert upstream.received == []


@pytest.mark.requirement("EC-MCP-003", "S004-F-001.6", "S004-F-001.7")
def test_a_message_without_its_version_is_refused(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.post({"id": 7, "method": "tools/list"})
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32600, 7)
    correlation = answer.error["data"]["correlation_id"]
    assert upstream.received == []
    refused = [one["frame"] for one in gate.records("frame_refused")]
    assert correlation in [one.get("correlation_id") for one in refused]


@pytest.mark.requirement("EC-MCP-013", "EC-MCP-014", "S004-F-001.4", "S004-F-005.2")
@pytest.mark.parametrize("ident", [0, 1, -5, 2**53 - 1, "1", "", "a-long-id"])
def test_the_type_of_an_id_is_kept(gate: Gate, ident: Any) -> None:
    answer = gate.call("echo", ident=ident)
    assert answer.json["id"] == ident
    assert type(answer.json["id"]) is type(ident)


@pytest.mark.requirement("FR7", "S004-F-002")
def test_a_denied_call_never_reaches_the_server(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.call("delete_all")
    assert answer.status == 200
    assert answer.error["code"] == -32014
    assert answer.error["data"]["kind"] == "governance_denied"
    assert "private words" not in answer.body.decode()
    assert upstream.received == []


def test_a_denial_at_the_newest_revision_has_a_code_outside_the_reserved_range(gate: Gate) -> None:
    answer = gate.call_modern("delete_all")
    assert answer.error["code"] == -31014


@pytest.mark.requirement("FR6")
def test_a_hidden_tool_is_neither_listed_nor_callable(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    result_of = answer.json["result"]
    assert [tool["name"] for tool in result_of["tools"]] == ["echo", "slow"]
    assert result_of["cacheScope"] == "private"
    assert result_of["ttlMs"] == 5
    upstream.received.clear()
    assert gate.call("secret").error["code"] == -32015
    assert upstream.received == []


@pytest.mark.requirement("S004-F-007.2")
def test_a_call_without_an_id_is_refused(gate: Gate, upstream: HttpUpstream) -> None:
    message = call_of("echo")
    del message["id"]
    answer = gate.post(message)
    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert upstream.received == []


def test_a_response_that_nobody_asked_for_is_dropped(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.post({"jsonrpc": "2.0", "id": 99, "result": {}})
    assert answer.status == 400
    assert upstream.received == []
    assert "unknown_response" in [one["frame"]["check"] for one in gate.records("frame_refused")]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {**modern_headers("echo"), "mcp-protocol-version": "2025-11-25"},
        {**modern_headers("other")},
        {**modern_headers("echo", "tools/list")},
        {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"},
        {"mcp-protocol-version": "2026-07-28", "mcp-name": "echo"},
        {**modern_headers("=?base64?!?=")},
    ],
)
def test_headers_that_contradict_the_body_are_refused(
    gate: Gate, upstream: HttpUpstream, headers: dict[str, str]
) -> None:
    answer = gate.post(modern_call_of("echo", ident=4), headers)
    assert (answer.status, answer.error["code"], answer.json["id"]) == (400, -32020, 4)
    assert upstream.received == []


def test_even_an_old_request_may_not_contradict_itself(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.call("delete_all", headers={"mcp-name": "echo", "mcp-method": "tools/call"})
    assert answer.status == 400
    assert upstream.received == []


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe"]
)
def test_methods_that_the_newest_revision_removed_are_not_found(gate: Gate, method: str) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": MODERN_META}}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    answer = gate.post(message, headers)
    assert (answer.status, answer.error["code"]) == (404, -32601)


def test_annotated_arguments_must_be_repeated_once_the_schema_is_known(
    gate: Gate, upstream: HttpUpstream
) -> None:
    schema = {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}

    def with_schema(received: Received) -> Reply:
        if received.message["method"] == "tools/list":
            return result(received, {"tools": [{"name": "regional", "inputSchema": schema}]})
        return small_server(received)

    upstream.script = with_schema
    gate.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    call = modern_call_of("regional", {"r": "eu"})
    wrong = gate.post(call, {**modern_headers("regional"), "mcp-param-region": "us"})
    assert (wrong.status, wrong.error["code"]) == (400, -32020)
    right = gate.post(call, {**modern_headers("regional"), "mcp-param-region": "eu"})
    assert right.status == 200


MODERN_HEAD = {"mcp-protocol-version": "2026-07-28"}


@pytest.mark.promise("mirrored-headers-checked")
@pytest.mark.parametrize(
    ("call", "headers"),
    [
        (call_of("pay", {"amount": 1}), {}),
        (call_of("pay", {"amount": 1}), MODERN_HEAD),
        (call_of("pay", {"amount": 1}), {"mcp-name": "pay"}),
        (call_of("pay", {}), {}),
        (call_of("echo", {"amount": 1}), {}),
        (modern_call_of("pay", {"amount": 1.5}), modern_headers("pay")),
        (modern_call_of("pay", {"amount": {"all": 1}}), modern_headers("pay")),
        (modern_call_of("echo", {"amount": 1}), modern_headers("echo")),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, {}),
        ({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, {}),
    ],
)
def test_no_header_repeats_an_argument_unchecked(
    gate: Gate, upstream: HttpUpstream, call: dict[str, Any], headers: dict[str, str]
) -> None:
    amount = {"type": "integer", "x-mcp-header": "Amount"}
    schema = {"type": "object", "properties": {"amount": amount}}
    tools = [{"name": "pay", "inputSchema": schema}, {"name": "echo", "inputSchema": {}}]
    upstream.script = lambda received: result(received, {"tools": tools})
    gate.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    upstream.received.clear()
    upstream.script = small_server
    refused = gate.post(call, {**headers, "mcp-param-amount": "99"})
    assert (refused.status, refused.error["code"]) == (400, -32020)
    assert upstream.received == []


def test_an_argument_of_an_old_request_may_be_repeated(gate: Gate, upstream: HttpUpstream) -> None:
    schema = {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    tools = [{"name": "count", "inputSchema": schema}]
    upstream.script = lambda received: result(received, {"tools": tools})
    gate.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    upstream.script = small_server
    for number in (5, 5.0):
        assert gate.call("count", {"n": number}, headers={"mcp-param-n": "5"}).status == 200
    assert gate.call("count", {"n": 5}).status == 200


def test_a_header_alone_makes_a_removed_method_not_found(
    gate: Gate, upstream: HttpUpstream
) -> None:
    """A shared process of 2026-07-28 would commit to an older revision, for all of its agents."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    assert gate.post(message, MODERN_HEAD).status == 404
    assert upstream.received == []


@pytest.mark.requirement("FR2", "NFR-P3", "S004-F-005.1", "S004-F-005.4")
def test_many_agents_are_served_at_once_and_get_their_own_answers(gate: Gate) -> None:
    answers: dict[int, Any] = {}

    def call(number: int) -> None:
        answers[number] = gate.call("echo", {"n": number}, ident=number).json

    threads = [threading.Thread(target=call, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    for number, answer in answers.items():
        assert answer["id"] == number
        assert json.loads(answer["result"]["content"][0]["text"]) == {"n": number}
    assert len(answers) == 30


def test_every_call_is_on_record_once_in_order(gate: Gate) -> None:
    gate.call("echo", {"password": "hunter2hunter2"})
    start = gate.records("tool_call_start")[-1]
    call_id = start["call"]["call_id"]
    kinds = [one["type"] for one in gate.records() if one.get("call", {}).get("call_id") == call_id]
    assert kinds == ["tool_call_start", "tool_call_decision", "tool_call_end"]
    assert start["call"]["transport"] == "mcp_http"
    assert "hunter2" not in json.dumps(gate.records())


# Sessions and their streams.


def _open(gate: Gate) -> dict[str, str]:
    opened = gate.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
    return {"mcp-session-id": opened.headers["mcp-session-id"]}


def _stream_head(session: dict[str, str]) -> bytes:
    head = "GET /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n"
    return f"{head}mcp-session-id: {session['mcp-session-id']}\r\n\r\n".encode()


CHILD = (
    "schema: 1\ndefault: forward\nlisten: {transport: http, session_idle: 1s}\n"
    f"servers:\n  kid: {{command: '{sys.executable}', isolation: session,"
    " args: ['-m', 'thoughtgate.testing.sample_server']}\n"
)


def test_an_agent_that_only_listens_keeps_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, dropped = threading.Event(), endpoint.Endpoint._dropped

    def drop(of: endpoint.Endpoint, entry: HttpSession) -> None:
        dropped(of, entry)
        gone.set()

    monkeypatch.setattr(endpoint, "EXPIRE_EVERY", 1)
    monkeypatch.setattr(endpoint.Endpoint, "_dropped", drop)
    with Gate(tmp_path, CHILD) as gate, gate.raw() as connection:
        listening, idle = _open(gate), _open(gate)
        connection.sendall(_stream_head(listening))
        read_until(connection, b": open")
        assert gone.wait(20)
        assert gate.call("echo", {"text": "x"}, headers=idle).status == 404
        assert gate.call("echo", {"text": "x"}, headers=listening).status == 200


def test_no_stream_outlives_its_session(tmp_path: Path) -> None:
    with Gate(tmp_path, CHILD) as gate:
        session = _open(gate)
        with gate.raw() as connection:
            connection.sendall(_stream_head(session))
            read_until(connection, b": open")
            assert gate.request("DELETE", headers=session).status == 204
            assert read_until(connection, b"0\r\n\r\n").endswith(b"0\r\n\r\n")


def test_a_refusal_is_on_record_before_its_caller_is_told(
    gate: Gate, upstream: HttpUpstream
) -> None:
    before = len(gate.records("frame_refused"))
    assert gate.post(modern_call_of("echo"), modern_headers("other")).status == 400
    assert gate.call("echo", headers={"mcp-session-id": "nobody"}).status == 404
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": MODERN_META}}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "ping"}
    assert gate.post(message, headers).status == 404
    refused = gate.records("frame_refused")[before:]
    checks = [one["frame"]["check"] for one in refused]
    assert checks == ["header_mismatch", "unknown_session", "removed_method"]
    assert upstream.received == []


SHARED_CHILD = (
    f"schema: 1\ndefault: forward\nservers:\n  kid: {{command: '{sys.executable}',"
    " args: ['-m', 'thoughtgate.testing.sample_server']}\n"
)


def _leave(gate: Gate, ident: int, *, records: int) -> None:
    """Make a call that is never answered, and disconnect once it was forwarded."""
    with gate.raw() as agent:
        host = {"host": f"127.0.0.1:{gate.port}"}
        agent.sendall(http_post(call_of("slow", {"seconds": 600}, ident=ident), headers=host))
        wait_for(lambda: len(gate.records("tool_call_start")) == records, what="the call")


@pytest.mark.promise("bounded-memory")
@pytest.mark.parametrize("behind", ["http", "stdio"])
def test_calls_that_agents_have_left_take_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    monkeypatch.setattr(endpoint, "MAX_LEFT", 1)
    end, few = threading.Event(), "listen: {max_concurrent: 1}\n"

    def script(received: Received) -> Reply:
        if received.tool == "slow":
            return Reply(parts=[b": wait\n\n", b": end\n\n"], wait=end)
        return small_server(received)

    with HttpUpstream(script) as upstream:
        text = config_for(upstream.url) if behind == "http" else SHARED_CHILD
        with Gate(tmp_path, text + few) as gate:
            for ident in (1, 2):
                _leave(gate, ident, records=ident)
                wait_for(lambda: gate.post({}).status == 400, what="a free place")
            ends = wait_for(lambda: gate.records("tool_call_end"), what="the end of the first call")
            end.set()
    assert [(one["call"]["call_id"][-2:], one["status"]) for one in ends] == [(".1", "CANCELLED")]


def test_a_client_of_the_older_transport_is_told_which_one_to_use(
    tmp_path: Path, upstream: HttpUpstream
) -> None:
    with Gate(tmp_path, config_for(upstream.url)) as gate:
        answer = gate.request("GET", headers={"accept": "text/event-stream"})

    assert answer.status == 405
    assert "Streamable HTTP" in answer.error["message"]
    assert "POST" in answer.headers["allow"]
