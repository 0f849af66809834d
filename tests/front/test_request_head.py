"""Heads of requests: places, types, mirrored headers, what goes on."""

from typing import Any

import pytest

from thoughtgate.front.request_head import (
    accepts_json,
    accepts_stream,
    expected_names,
    header_mismatch,
    is_modern_request,
    render_mismatch,
    unmirrored,
    upstream_headers,
    wrong_page,
    wrong_place,
    wrong_post,
)
from thoughtgate.transports.http_heads import RequestHead
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.headers import Mismatch
from thoughtgate.wire.message import Message


def _exchange(**headers: str) -> Exchange:
    exchange = Exchange(None, "127.0.0.1", RequestHead())  # type: ignore[arg-type]  # no connection is touched
    for name, value in headers.items():
        key = name.replace("_", "-").encode()
        exchange.headers[key] = value.encode()
        exchange.wire_headers.append((key, value.encode()))
    return exchange


LOCAL = expected_names("127.0.0.1", 8080, (), ("https://app.example",))


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1:8080", None, 0),
        ("localhost:8080", None, 0),
        ("LOCALHOST:8080", None, 0),
        ("[::1]:8080", None, 0),
        ("localhost", None, 0),
        ("localhost:9", None, 421),
        ("evil.example:8080", None, 421),
        ("", None, 421),
        ("a:b:c", None, 421),
        ("localhost:8080", "https://app.example", 0),
        ("localhost:8080", "HTTPS://APP.example", 0),
        ("localhost:8080", "http://localhost:8080", 0),
        ("localhost:8080", "http://localhost:9", 403),
        ("localhost:8080", "null", 403),
        ("localhost:8080", "https://evil.example", 403),
    ],
)
def test_host_and_origin_must_be_meant_for_this_gate(
    host: str, origin: str | None, status: int
) -> None:
    headers = {"host": host} | ({"origin": origin} if origin is not None else {})
    assert wrong_place(_exchange(**headers), LOCAL) == status


def test_pages_are_guarded_where_a_name_could_be_rebound() -> None:
    foreign = _exchange(host="10.0.0.7:80")
    assert wrong_page(foreign, LOCAL) == 421
    assert wrong_page(foreign, expected_names("0.0.0.0", 80, ("gate.example",), ())) == 0


def test_an_origin_given_twice_is_refused() -> None:
    exchange = _exchange(host="localhost:8080", origin="https://app.example")
    exchange.repeated.add(b"origin")
    assert wrong_place(exchange, LOCAL) == 403


def test_a_gate_for_others_answers_to_its_configured_names() -> None:
    named = expected_names("0.0.0.0", 80, ("gate.example",), ())
    assert wrong_place(_exchange(host="gate.example"), named) == 0
    assert wrong_place(_exchange(host="other.example"), named) == 421
    anyone = expected_names("0.0.0.0", 80, (), ())
    assert wrong_place(_exchange(host="other.example"), anyone) == 0
    assert wrong_place(_exchange(host="other.example", origin="http://x"), anyone) == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "application/json"}, 0),
        ({"content_type": "application/json; charset=utf-8", "accept": "*/*"}, 0),
        ({"content_type": "Application/JSON", "accept": "application/*"}, 0),
        ({"content_type": "text/json"}, 415),
        ({}, 415),
        ({"content_type": "application/json", "content_encoding": "br"}, 415),
        ({"content_type": "application/json", "accept": "text/html"}, 406),
        ({"content_type": "application/json", "accept": "text/event-stream"}, 0),
    ],
)
def test_a_post_must_carry_and_accept_what_mcp_is(headers: dict[str, str], status: int) -> None:
    assert wrong_post(_exchange(**headers)) == status


def test_what_an_agent_accepts_is_read() -> None:
    both = {b"accept": b"application/json, text/event-stream"}
    assert accepts_json(both)
    assert accepts_stream(both)
    assert not accepts_stream({b"accept": b"application/json"})
    assert not accepts_json({b"accept": b"text/event-stream;q=1"})
    assert accepts_stream({})


def _message(params: dict[str, Any], method: str = "tools/call") -> Message:
    import json

    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    message = read_frame(json.dumps(body).encode())
    assert isinstance(message, Message)
    return message


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def test_the_era_shows_in_the_body_or_in_an_unknown_version() -> None:
    assert is_modern_request(_exchange(), {"_meta": META})
    assert is_modern_request(_exchange(mcp_protocol_version="2027-01-01"), {})
    assert not is_modern_request(_exchange(mcp_protocol_version="2025-06-18"), {})
    assert not is_modern_request(_exchange(), None)


def test_mirrored_headers_are_asked_for_at_the_newest_revision_only() -> None:
    modern = _message({"name": "x", "_meta": META})
    assert header_mismatch(_exchange(), modern) == Mismatch("MCP-Protocol-Version", "is missing")
    complete = _exchange(mcp_protocol_version="2026-07-28", mcp_method="tools/call", mcp_name="x")
    assert header_mismatch(complete, modern) is None
    assert header_mismatch(_exchange(), _message({"name": "x"})) is None
    assert header_mismatch(_exchange(mcp_name="y"), _message({"name": "x"})) is not None


def test_a_mismatch_is_told_with_the_code_of_the_specification() -> None:
    body = render_mismatch(5, Mismatch("Mcp-Name", "is missing"), "run.e1")
    assert b'"correlation_id":"run.e1"' in body
    assert b'"code":-32020' in body
    assert b'"id":5' in body


def test_headers_named_by_connection_do_not_go_on() -> None:
    exchange = _exchange(connection="x-a, X-B", x_a="1", x_b="2", x_c="3", host="h")
    names = [name for name, _ in upstream_headers(exchange, "session")]
    assert names == [b"x-c", b"accept-encoding", b"mcp-session-id"]


@pytest.mark.parametrize(
    "name",
    [
        *(b"x-forwarded-for", b"x-forwarded-user", b"x_forwarded_email", b"x-real-ip"),
        *(b"x-http-method-override", b"x-method-override", b"x-original-url", b"x_rewrite_url"),
    ],
)
def test_an_agent_neither_speaks_for_a_proxy_nor_changes_method_or_path(name: bytes) -> None:
    exchange = _exchange()
    exchange.wire_headers.append((name, b"x"))
    assert upstream_headers(exchange) == [(b"accept-encoding", b"gzip, deflate")]


@pytest.mark.parametrize("name", [b"mcp-name", b"mcp-param-region", b"content-type"])
def test_a_header_that_two_readers_could_read_differently_is_refused(name: bytes) -> None:
    exchange = _exchange(content_type="application/json")
    exchange.repeated.add(name)
    assert wrong_post(exchange) == 400


@pytest.mark.parametrize(
    "name",
    [b"mcp_name", b"mcp_param_region", b"mcp-session_id", b"x_forwarded_for", b"content_type"],
)
def test_a_header_in_disguise_does_not_go_on(name: bytes) -> None:
    exchange = _exchange()
    exchange.wire_headers += [(name, b"x"), (b"api_key", b"mine")]
    assert upstream_headers(exchange) == [
        (b"api_key", b"mine"),
        (b"accept-encoding", b"gzip, deflate"),
    ]


def test_headers_that_repeat_one_body_do_not_go_on_with_many() -> None:
    version = (b"mcp-protocol-version", b"2025-03-26")
    mirrored = [(b"mcp-method", b"a"), (b"mcp-name", b"b"), (b"mcp-param-c", b"d")]
    assert unmirrored([version, *mirrored, (b"x", b"y")]) == [version, (b"x", b"y")]
