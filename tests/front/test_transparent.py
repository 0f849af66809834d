"""One server passed through: what goes on to it, and what becomes of its answers."""

import json
import threading
from pathlib import Path

import pytest
from tests.support.http_gate import (
    ACCEPT,
    Gate,
    call_of,
    config_for,
)
from tests.support.http_upstream import (
    HttpUpstream,
    Received,
    Reply,
    free_port,
    small_server,
    text_result,
)
from tests.support.waiting import wait_for


@pytest.mark.requirement("EC-MCP-001", "S004-F-001.1", "S004-F-004.4", "FR1", "FR11")
def test_a_call_is_forwarded_and_answered(gate: Gate, upstream: HttpUpstream) -> None:
    answer = gate.call("echo", {"text": "hi"})
    assert answer.status == 200
    assert answer.json["result"]["content"][0]["text"] == '{"text": "hi"}'
    assert upstream.received[0].message == call_of("echo", {"text": "hi"})


def test_unchanged_bytes_go_on_byte_for_byte(gate: Gate, upstream: HttpUpstream) -> None:
    body = b'{"id": 5,  "jsonrpc":"2.0","method":"tools/call", "params":{"name":"echo","arguments":{"n":1.50}}}'
    assert gate.post(body).status == 200
    assert upstream.received[0].body == body


def test_a_body_over_several_lines_is_read(gate: Gate, upstream: HttpUpstream) -> None:
    body = json.dumps(call_of("echo", {"a": 1}), indent=2).replace("\n", "\r\n").encode()
    assert gate.post(body).status == 200
    assert upstream.received[0].message == call_of("echo", {"a": 1})


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
    assert headers["accept-encoding"] == "gzip, deflate"
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


def test_a_call_of_the_newest_revision_is_forwarded_with_its_headers(
    gate: Gate, upstream: HttpUpstream
) -> None:
    assert gate.call_modern("echo", {"a": 1}).status == 200
    headers = upstream.received[0].headers
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "echo"


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
        ready = gate.request("GET", "/ready")
        assert (ready.status, ready.json) == (200, {"status": "degraded", "degraded": ["server"]})
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
    upstream.script = small_server
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


def test_an_error_that_names_no_request_answers_the_one_that_was_sent(
    gate: Gate, upstream: HttpUpstream
) -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "session gone"}}
    upstream.script = lambda _: Reply(status=404, body=json.dumps(body).encode())
    answer = gate.call("echo")
    assert (answer.status, answer.json) == (404, {**body, "id": 1})


def test_in_the_development_profile_everything_goes_on_and_is_recorded(
    upstream: HttpUpstream, tmp_path: Path
) -> None:
    rules = "profile: development\nrules:\n  - {tool: 'delete_*', action: deny}\n"
    with Gate(tmp_path, config_for(upstream.url, rules)) as gate:
        assert "result" in gate.call("delete_all").json
        decision = gate.records("tool_call_decision")[0]["decision"]
        assert (decision["action"], decision["enforced"]) == ("BLOCK", False)


def test_a_list_without_a_session_offers_tasks_by_the_header(
    tmp_path: Path, upstream: HttpUpstream
) -> None:
    rules = "rules:\n  - {tool: 'pay*', action: approve}\n"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with Gate(tmp_path, config_for(upstream.url, rules)) as gate:
        for version in ("2025-11-25", "2025-06-18", "2025-11-25"):
            answer = gate.post(body, headers={"mcp-protocol-version": version})
            listed = answer.json["result"]["tools"]
            assert listed
            assert all(("execution" in one) == (version == "2025-11-25") for one in listed)
