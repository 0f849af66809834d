"""The listener: who may connect, which paths there are, and what is refused by its head."""

import json
import threading
from pathlib import Path

import pytest
from tests.support.http_gate import (
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
    text_result,
)
from tests.support.waiting import wait_for


@pytest.mark.parametrize("path", ["/mcp", "/mcp/v1"])
def test_both_paths_are_served(gate: Gate, path: str) -> None:
    assert gate.post(call_of("echo"), path=path).status == 200


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


@pytest.mark.promise("no-web-page")
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


def test_a_routing_header_given_twice_is_refused(gate: Gate, upstream: HttpUpstream) -> None:
    with gate.raw() as connection:
        request = http_post(modern_call_of("echo"), headers=modern_headers("echo"))
        request = request.replace(b"mcp-name: echo\r\n", b"mcp-name: echo\r\nMcp-Name: delete\r\n")
        request = request.replace(b"host: 127.0.0.1", b"host: 127.0.0.1:%d" % gate.port)
        connection.sendall(request)
        assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert upstream.received == []


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
