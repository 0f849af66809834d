"""The HTTP gateway end to end: real sockets, a scripted server, the record on disk."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_gate import (
    ACCEPT,
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
    free_port,
    result,
    text_result,
)
from tests.support.waiting import wait_for

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "secret", "slow")]


def script(received: Received) -> Reply:
    """Answer like a small MCP server."""
    message = received.message
    if received.method != "POST" or not isinstance(message, dict):
        return Reply(405)
    if "id" not in message or "method" not in message:
        return Reply(202)
    if message["method"] == "tools/list":
        return result(received, {"tools": TOOLS, "cacheScope": "public", "ttlMs": 5})
    if message["method"] == "tools/call":
        return text_result(received, json.dumps(message["params"].get("arguments")))
    return result(received, {"method": message["method"]})


@pytest.fixture(scope="module")
def upstream() -> Iterator[HttpUpstream]:
    with HttpUpstream(script) as running:
        yield running


@pytest.fixture(scope="module")
def gate(upstream: HttpUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    rules = "rules:\n  - {tool: 'delete_*', action: deny, reason: private words}\n"
    listen = "listen: {transport: http, max_body: 2000, max_batch: 5}\n"
    config = config_for(upstream.url, rules + listen, server=", expose: {block: [secret]}")
    with Gate(tmp_path_factory.mktemp("gate"), config) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(upstream: HttpUpstream) -> None:
    upstream.received.clear()
    upstream.script = script


@pytest.mark.requirement("EC-MCP-001", "S004-F-001.1", "S004-F-004.4", "FR1", "FR11")
def test_a_call_is_forwarded_and_answered(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.call("echo", {"text": "hi"})
    assert answer.status == 200
    assert answer.json["result"]["content"][0]["text"] == '{"text": "hi"}'
    assert upstream.received[0].message == call_of("echo", {"text": "hi"})


@pytest.mark.parametrize("path", ["/mcp", "/mcp/v1"])
def test_both_paths_are_served(gate: Gate, path: str) -> None:
    assert gate.post(call_of("echo"), path=path).status == 200


def test_unchanged_bytes_go_on_byte_for_byte(gate: Gate, upstream: HttpUpstream) -> None:
    body = b'{"id": 5,  "jsonrpc":"2.0","method":"tools/call", "params":{"name":"echo","arguments":{"n":1.50}}}'
    assert gate.post(body).status == 200
    assert upstream.received[0].body == body


def test_a_body_over_several_lines_is_read(gate: Gate, upstream: HttpUpstream) -> None:
    body = json.dumps(call_of("echo", {"a": 1}), indent=2).replace("\n", "\r\n").encode()
    assert gate.post(body).status == 200
    assert upstream.received[0].message == call_of("echo", {"a": 1})


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


@pytest.mark.requirement("EC-MCP-004", "S004-F-001.3")
def test_a_notification_is_passed_on_and_gets_no_message(
    gate: Gate, upstream: HttpUpstream
) -> None:
    answer = gate.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status, answer.body) == (202, b"")
    assert upstream.received[0].message["method"] == "notifications/initialized"


@pytest.mark.requirement("EC-MCP-007", "S004-F-002")
def test_an_unknown_method_goes_to_the_server(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.post({"jsonrpc": "2.0", "id": 1, "method": "vendor/strange", "params": {"x": 1}})
    assert answer.json["result"] == {"method": "vendor/strange"}
    assert upstream.received[0].message["params"] == {"x": 1}
    seen = [one["message"]["method"] for one in gate.records("message")]
    assert "vendor/strange" in seen


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
    ("asked", "headers", "status"),
    [
        ("POST /other", {}, 404),
        ("POST /mcp/../admin", {}, 404),
        ("GET /", {}, 404),
        ("GET /mcp", {"accept": "text/event-stream"}, 405),
        ("DELETE /mcp", {}, 405),
        ("PUT /mcp", {}, 405),
        ("OPTIONS /mcp", {}, 405),
        ("POST /mcp", {"content-type": "text/plain"}, 415),
        ("POST /mcp", {"content-type": ""}, 415),
        ("POST /mcp", {"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ("POST /mcp", {"content-type": "application/json", "accept": "image/png"}, 406),
        ("POST /health", {}, 405),
    ],
)
def test_nothing_but_mcp_gets_in(
    gate: Gate, upstream: HttpUpstream, asked: str, headers: dict[str, str], status: int
) -> None:
    method, path = asked.split()
    body = json.dumps(call_of("echo")).encode() if method in {"POST", "PUT"} else None
    answer = gate.request(method, path, body, headers)
    assert answer.status == status
    assert upstream.received == []


def test_a_body_over_the_limit_is_413_with_a_readable_error(
    gate: Gate, upstream: HttpUpstream
) -> None:
    answer = gate.call("echo", {"text": "x" * 5000})
    assert answer.status == 413
    assert answer.error["code"] == -32600
    assert upstream.received == []


def test_who_was_meant_for_somebody_else_is_on_record_without_his_words(gate: Gate) -> None:
    assert gate.call("echo", headers={"host": "evil.example"}).status == 421
    assert gate.call("echo", headers={"origin": "http://evil.example"}).status == 403
    assert gate.request("GET", "/metrics", headers={"host": "evil.example"}).status == 421
    wait_for(lambda: len(gate.records("agent_auth_rejected")) == 3)
    rejected = gate.records("agent_auth_rejected")
    assert [one["agent"]["method"] for one in rejected] == ["host", "origin", "host"]
    assert "evil" not in json.dumps(rejected)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "localhost.evil.example"])
def test_another_host_is_421(gate: Gate, host: str) -> None:
    assert gate.call("echo", headers={"host": host}).status == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"]
)
def test_a_foreign_web_page_is_403(gate: Gate, upstream: HttpUpstream, origin: str) -> None:
    assert gate.call("echo", headers={"origin": origin}).status == 403
    assert upstream.received == []


def test_the_gates_own_origin_may_call(gate: Gate) -> None:
    assert gate.call("echo", headers={"origin": f"http://localhost:{gate.port}"}).status == 200


def test_a_page_that_may_call_is_told_so_and_may_read_the_answer(
    gate: Gate, upstream: HttpUpstream
) -> None:
    page = f"http://localhost:{gate.port}"
    asked = {
        "origin": page,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,mcp-session-id",
    }
    may = gate.request("OPTIONS", headers=asked)
    assert may.status == 204
    assert may.headers["access-control-allow-origin"] == page
    assert "POST" in may.headers["access-control-allow-methods"]
    assert may.headers["access-control-allow-headers"] == "content-type,mcp-session-id"
    assert upstream.received == []

    for answer in (gate.call("echo", headers={"origin": page}), gate.post(b"{", {"origin": page})):
        assert answer.headers["access-control-allow-origin"] == page
        assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
    assert "access-control-allow-origin" not in gate.call("echo").headers


def test_a_foreign_page_is_not_told_that_it_may_call(gate: Gate) -> None:
    asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = gate.request("OPTIONS", headers=asked)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


# Headers.


@pytest.mark.requirement("S004-F-004.2")
def test_headers_go_on_but_for_those_of_the_connection_and_the_agents_secrets(
    gate: Gate, upstream: HttpUpstream
) -> None:
    gate.call(
        "echo",
        headers={
            "x-custom": "kept",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "authorization": "Bearer agent-secret",
            "cookie": "session=1",
            "connection": "x-hop",
            "x-hop": "dropped",
            "te": "trailers",
            "keep-alive": "timeout=5",
            "proxy-authorization": "Basic x",
            "x-forwarded-for": "1.2.3.4",
        },
    )
    headers = upstream.received[0].headers
    assert headers["x-custom"] == "kept"
    assert headers["traceparent"].startswith("00-0af7651916")
    assert headers["accept"] == ACCEPT
    assert headers["accept-encoding"] == "identity"
    for name in ("authorization", "cookie", "x-hop", "te", "keep-alive", "proxy-authorization"):
        assert name not in headers
    assert "x-forwarded-for" not in headers


def test_what_a_server_says_of_itself_stays_behind(gate: Gate, upstream: HttpUpstream) -> None:
    told = {"set-cookie": "a=b", "www-authenticate": "Basic", "x-kept": "1", "keep-alive": "x"}

    def answer_with(received: Received) -> Reply:
        reply = text_result(received, "x")
        reply.headers = told
        return reply

    upstream.script = answer_with
    headers = gate.call("echo").headers
    assert headers["x-kept"] == "1"
    assert not {"set-cookie", "www-authenticate", "keep-alive"} & headers.keys()


# The newest revision.


def test_a_call_of_the_newest_revision_is_forwarded_with_its_headers(
    gate: Gate, upstream: HttpUpstream
) -> None:
    assert gate.call_modern("echo", {"a": 1}).status == 200
    headers = upstream.received[0].headers
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "echo"


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


def test_a_routing_header_given_twice_is_refused(gate: Gate, upstream: HttpUpstream) -> None:
    with gate.raw() as connection:
        request = http_post(modern_call_of("echo"), headers=modern_headers("echo"))
        request = request.replace(b"mcp-name: echo\r\n", b"mcp-name: echo\r\nMcp-Name: delete\r\n")
        request = request.replace(b"host: 127.0.0.1", b"host: 127.0.0.1:%d" % gate.port)
        connection.sendall(request)
        assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 400")
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
        return script(received)

    upstream.script = with_schema
    gate.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    call = modern_call_of("regional", {"r": "eu"})
    wrong = gate.post(call, {**modern_headers("regional"), "mcp-param-region": "us"})
    assert (wrong.status, wrong.error["code"]) == (400, -32020)
    right = gate.post(call, {**modern_headers("regional"), "mcp-param-region": "eu"})
    assert right.status == 200


# Overload, time and ends.


@pytest.mark.requirement("EC-MCP-011", "S004-NFR-003")
def test_beyond_the_limit_of_concurrency_is_503(tmp_path: Path) -> None:
    go = threading.Event()

    def slow(received: Received) -> Reply:
        reply = text_result(received, "late")
        reply.wait = go
        return reply

    listen = "listen: {transport: http, max_concurrent: 1}\n"
    with HttpUpstream(slow) as upstream, Gate(tmp_path, config_for(upstream.url, listen)) as gate:
        first: list[int] = []
        waiting = threading.Thread(target=lambda: first.append(gate.call("echo").status))
        waiting.start()
        wait_for(lambda: upstream.received, what="the first call")
        refused = gate.call("echo", ident=2)
        assert refused.status == 503
        assert refused.headers["retry-after"] == "1"
        assert refused.error["code"] == -32013
        go.set()
        waiting.join(10)
        assert first == [200]
        assert gate.call("echo", ident=3).status == 200


@pytest.mark.requirement("EC-MCP-009", "S004-F-004.3", "S004-F-005.3")
def test_a_server_that_is_too_slow_is_a_timeout(tmp_path: Path) -> None:
    never = threading.Event()
    timeout = ", timeout: 1s"
    with (
        HttpUpstream(lambda _: Reply(wait=never)) as upstream,
        Gate(tmp_path, config_for(upstream.url, server=timeout)) as gate,
    ):
        answer = gate.call("echo")
        assert answer.error["code"] == -32001
        never.set()
        ends = wait_for(lambda: gate.records("tool_call_end"), what="the end on record")
        assert ends[0]["status"] == "TIMEOUT"


@pytest.mark.requirement("EC-MCP-010", "S004-F-004.5", "NFR-R4")
def test_a_server_that_is_not_there_is_a_connection_error(tmp_path: Path) -> None:
    with Gate(tmp_path, config_for(f"http://127.0.0.1:{free_port()}/mcp")) as gate:
        answer = gate.call("echo")
        assert answer.error["code"] == -32000
        assert answer.error["data"]["kind"] == "upstream_connection_failed"
        assert gate.post({"jsonrpc": "2.0", "method": "notifications/x"}).status == 502
        assert gate.request("GET", "/ready").status == 503
        assert gate.request("GET", "/health").status == 200
        end = gate.records("tool_call_end")[0]
        assert (end["status"], end["error"]["class"]) == ("ERROR", "transport")


def _raw(text: bytes) -> Reply:
    return Reply(raw=text)


_RESULT = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@pytest.mark.requirement("NFR-R2", "NFR-R4")
@pytest.mark.parametrize(
    "reply",
    [
        _raw(b""),
        _raw(b"garbage\r\n\r\n"),
        _raw(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\ncontent-type: application/json\r\n\r\n{"),
        Reply(body=b"<html>", content_type="text/html"),
        Reply(body=b"not json"),
        Reply(body=b""),
        Reply(status=202),
        Reply(body=b"[" + _RESULT + b"," + _RESULT + b"]"),
        Reply(body=b'{"jsonrpc":"2.0","id":2,"result":{}}'),
        Reply(body=b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}'),
        Reply(body=_RESULT, headers={"content-encoding": "gzip"}),
        Reply(body=b"x" * (10 * 1024 * 1024 + 1)),
        Reply(parts=[b"data: " + b"x" * 70_000]),
        Reply(parts=[]),
        Reply(parts=[b": only a comment\n\n"]),
        Reply(status=500, body=b"oops", content_type="text/plain"),
        Reply(status=401, body=b"{}", headers={"www-authenticate": "Bearer"}),
        Reply(status=302, headers={"location": "http://evil.example/"}),
    ],
)
def test_a_server_that_answers_nonsense_ends_in_an_error_and_the_gate_stays_up(
    gate: Gate, upstream: HttpUpstream, reply: Reply
) -> None:
    upstream.script = lambda _: reply
    answer = gate.call("echo")
    body = answer.events[-1] if b"data:" in answer.body else answer.json
    assert body["id"] == 1
    assert body["error"]["code"] in {-32000, -32603}
    assert "www-authenticate" not in answer.headers
    upstream.script = script
    assert gate.call("echo", ident=2).status == 200
    starts = {one["call"]["call_id"] for one in gate.records("tool_call_start")}
    ends = [one["call"]["call_id"] for one in gate.records("tool_call_end")]
    assert starts == set(ends)
    assert len(ends) == len(set(ends))


def test_a_servers_own_error_passes_untouched(gate: Gate, upstream: HttpUpstream) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32042, "message": "m", "data": {"k": 1}}}
    upstream.script = lambda _: Reply(status=400, body=json.dumps(body).encode())
    answer = gate.call("echo")
    assert (answer.status, answer.json) == (400, body)


def test_an_error_that_names_no_request_is_told_as_it_is(
    gate: Gate, upstream: HttpUpstream
) -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "session gone"}}
    upstream.script = lambda _: Reply(status=404, body=json.dumps(body).encode())
    answer = gate.call("echo")
    assert (answer.status, answer.json) == (404, body)


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


def test_in_the_development_profile_everything_goes_on_and_is_recorded(
    upstream: HttpUpstream, tmp_path: Path
) -> None:
    rules = "profile: development\nrules:\n  - {tool: 'delete_*', action: deny}\n"
    with Gate(tmp_path, config_for(upstream.url, rules)) as gate:
        assert "result" in gate.call("delete_all").json
        decision = gate.records("tool_call_decision")[0]["decision"]
        assert (decision["action"], decision["enforced"]) == ("BLOCK", False)


def test_calls_that_a_stopping_gate_leaves_end_on_the_record_before_the_run(
    tmp_path: Path,
) -> None:
    never = threading.Event()

    def script(received: Received) -> Reply:
        return Reply(parts=[b": opened\n\n", b""], wait=never)

    listen = "listen: {transport: http, drain: 0s}\n"
    with HttpUpstream(script) as upstream:
        with Gate(tmp_path, config_for(upstream.url, listen)) as gate, gate.raw() as connection:
            connection.sendall(http_post(call_of("echo")))
            wait_for(lambda: upstream.received)
            gate.stop()
        never.set()
    kinds = [one["type"] for one in gate.records()]
    assert kinds[-2:] == ["tool_call_end", "run_end"]
    assert gate.records("run_end")[0]["run"]["summary"]["calls_total"] == 1
