"""Streams of an HTTP server: passed on event by event, judged message by message."""

import json
import threading
from collections.abc import Iterator
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
from tests.support.http_upstream import HttpUpstream, Received, Reply, event
from tests.support.waiting import wait_for

from thoughtgate.upstream.http_answer import downstream_headers


def _done(received: Received) -> dict[str, object]:
    ident = received.message.get("id") if received.message else None
    return {"jsonrpc": "2.0", "id": ident, "result": {"content": []}}


PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": "t", "progress": 1},
}


def _streaming(received: Received) -> Reply:
    return Reply(parts=[event(PROGRESS), event(_done(received))])


@pytest.fixture(scope="module")
def upstream() -> Iterator[HttpUpstream]:
    with HttpUpstream(_streaming) as running:
        yield running


@pytest.fixture(scope="module")
def gate(upstream: HttpUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    config = config_for(upstream.url, server=", expose: {block: [hidden]}")
    with Gate(tmp_path_factory.mktemp("gate"), config) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(upstream: HttpUpstream) -> None:
    upstream.received.clear()
    upstream.waiting.clear()
    upstream.broken = 0
    upstream.script = _streaming


@pytest.mark.requirement("EC-MCP-015", "S004-F-006.1", "S004-F-006.2")
def test_events_reach_the_agent_in_order(gate: Gate) -> None:
    answer = gate.call("echo")
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert [one.get("method", "answer") for one in answer.events] == [
        "notifications/progress",
        "answer",
    ]


def test_ids_retry_comments_and_empty_data_stay_as_they_are(
    gate: Gate, upstream: HttpUpstream
) -> None:
    def odd(received: Received) -> Reply:
        return Reply(
            parts=[
                b"id: 1\nretry: 500\ndata:\n\n",
                b": keep-alive\n\n",
                b"id: 2\nevent: message\r\ndata: " + json.dumps(PROGRESS).encode() + b"\r\n\r\n",
                event(_done(received), "id: 3\n"),
            ]
        )

    upstream.script = odd
    body = gate.call("echo").body
    assert body.startswith(b"id: 1\nretry: 500\ndata:\n\n: keep-alive\n\nid: 2\nevent: message\r\n")
    assert b"id: 3\n" in body


def test_an_event_arrives_before_the_next_is_sent(gate: Gate, upstream: HttpUpstream) -> None:
    go = threading.Event()

    def waiting(received: Received) -> Reply:
        return Reply(parts=[event(PROGRESS), event(_done(received))], wait=go)

    upstream.script = waiting
    with gate.raw() as connection:
        connection.sendall(_post(gate, call_of("echo")))
        assert b"notifications/progress" in read_until(connection, b"progressToken")
        assert not go.is_set()
        go.set()
        assert b'"content"' in read_until(connection, b'"content"')


def test_a_list_on_a_stream_is_filtered_too(gate: Gate, upstream: HttpUpstream) -> None:
    def listing(received: Received) -> Reply:
        tools = [{"name": "shown"}, {"name": "hidden"}]
        body = {"jsonrpc": "2.0", "id": received.message["id"], "result": {"tools": tools}}
        return Reply(parts=[event(body, "id: 9\n")])

    upstream.script = listing
    answer = gate.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert answer.events[0]["result"]["tools"] == [{"name": "shown"}]
    assert b"id: 9\n" in answer.body
    assert b"hidden" not in answer.body


def test_a_response_to_nothing_is_dropped_but_its_event_id_is_kept(
    gate: Gate, upstream: HttpUpstream
) -> None:
    def stray(received: Received) -> Reply:
        other = {"jsonrpc": "2.0", "id": 77, "result": {"leaked": True}}
        return Reply(parts=[event(other, "id: 5\n"), event(_done(received))])

    upstream.script = stray
    answer = gate.call("echo")
    assert b"leaked" not in answer.body
    assert b"id: 5\n" in answer.body
    assert len(answer.events) == 1


def test_a_second_answer_to_one_request_is_dropped(gate: Gate, upstream: HttpUpstream) -> None:
    upstream.script = lambda received: Reply(parts=[event(_done(received))] * 2)
    assert len(gate.call("echo").events) == 1


@pytest.mark.requirement("EC-MCP-012", "S004-F-006.4")
def test_a_client_that_leaves_at_the_newest_revision_cancels(
    gate: Gate, upstream: HttpUpstream
) -> None:
    never = threading.Event()
    upstream.script = lambda received: Reply(
        parts=[event(PROGRESS), event(_done(received))], wait=never
    )
    before = len(gate.records("tool_call_end"))
    with gate.raw() as connection:
        connection.sendall(_post(gate, modern_call_of("echo"), modern_headers("echo")))
        read_until(connection, b"progressToken")
        assert upstream.waiting.wait(10)
    wait_for(lambda: upstream.broken == 1, what="the end of the server's stream")
    ends = wait_for(lambda: gate.records("tool_call_end")[before:], what="the end on record")
    assert ends[0]["status"] == "CANCELLED"


def test_a_client_that_leaves_at_an_older_revision_does_not_cancel(
    gate: Gate, upstream: HttpUpstream
) -> None:
    go = threading.Event()
    upstream.script = lambda received: Reply(
        parts=[event(PROGRESS), event(_done(received))], wait=go
    )
    before = len(gate.records("tool_call_end"))
    with gate.raw() as connection:
        connection.sendall(_post(gate, call_of("echo")))
        read_until(connection, b"progressToken")
        assert upstream.waiting.wait(10)
    go.set()
    ends = wait_for(lambda: gate.records("tool_call_end")[before:], what="the end on record")
    assert ends[0]["status"] == "OK"
    assert upstream.broken == 0


def test_a_stream_that_breaks_off_can_be_resumed(tmp_path: Path) -> None:
    def session(received: Received) -> Reply:
        if received.method == "GET":
            done = {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}
            return Reply(parts=[event(done, "id: 2\n")])
        if received.message["method"] == "initialize":
            body = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25"}}
            return Reply(body=json.dumps(body).encode(), headers={"mcp-session-id": "abc"})
        return Reply(parts=[b"id: 1\nretry: 10\ndata:\n\n"])

    with HttpUpstream(session) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        opened = gate.post({"jsonrpc": "2.0", "id": 1, "method": "initialize"})
        ident = {"mcp-session-id": opened.headers["mcp-session-id"]}
        broken = gate.post(call_of("echo", ident=2), ident)
        assert broken.events == []
        assert b"id: 1\n" in broken.body
        assert gate.records("tool_call_end") == []
        rest = gate.request(
            "GET", headers={**ident, "accept": "text/event-stream", "last-event-id": "1"}
        )
        assert rest.events[0]["id"] == 2
        assert upstream.received[-1].headers["last-event-id"] == "1"
        assert upstream.received[-1].headers["mcp-session-id"] == "abc"
        wait_for(lambda: gate.records("tool_call_end"), what="the end on record")


def test_a_slow_reader_slows_the_server_down_and_loses_nothing(
    gate: Gate, upstream: HttpUpstream
) -> None:
    size, count = 100_000, 100
    text = "x" * size

    def much(received: Received) -> Reply:
        log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": text}}
        return Reply(parts=[event(log)] * count + [event(_done(received))])

    upstream.script = much
    with gate.raw() as connection:
        connection.sendall(_post(gate, call_of("echo")))
        total = b""
        while b'"content"' not in total[-2000:]:
            total += connection.recv(16_384)
    assert total.count(text.encode()) >= count - 1


def _post(gate: Gate, message: object, headers: dict[str, str] | None = None) -> bytes:
    return http_post(message, headers={"host": f"127.0.0.1:{gate.port}", **(headers or {})})


def test_an_answer_of_two_types_is_not_passed_on(gate: Gate, upstream: HttpUpstream) -> None:
    def script(received: Received) -> Reply:
        body = json.dumps(_done(received)).encode() + b"\n\n"
        head = b"content-type: application/json\r\ncontent-type: text/event-stream\r\n"
        length = b"content-length: %d\r\n\r\n" % len(body)
        return Reply(raw=b"HTTP/1.1 200 OK\r\n" + head + length + body)

    upstream.script = script
    assert gate.call("echo").error["data"]["cause"] == "wrong_type"


def test_a_comment_hides_no_message_from_the_record(gate: Gate, upstream: HttpUpstream) -> None:
    def script(received: Received) -> Reply:
        hidden = b": x\x0bdata: " + json.dumps(_done(received)).encode() + b"\x0b\x0b\n\n"
        return Reply(parts=[hidden, event(_done(received))])

    upstream.script = script
    assert len(gate.call("echo").events) == 1


def test_the_servers_session_id_and_cookies_do_not_come_back() -> None:
    rendered = downstream_headers(
        [(b"content-type", b"x"), (b"mcp-session-id", b"theirs"), (b"set-cookie", b"c")]
    )
    assert rendered == b"content-type: x\r\n"


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        (b"text/event-stream", b"text/event-stream"),
        (b'application/json; charset="UTF-8"', b'application/json; charset="UTF-8"'),
        (b"text/event-stream; charset=utf-7", b"text/event-stream"),
        (b"application/json;a=b;charset=utf-16", b"application/json"),
    ],
)
def test_an_agent_reads_an_answer_in_the_charset_it_was_judged_in(
    stated: bytes, told: bytes
) -> None:
    assert downstream_headers([(b"content-type", stated)]) == b"content-type: %b\r\n" % told


SAMPLING = {
    "jsonrpc": "2.0",
    "id": "s-1",
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 1},
}
ELICITATION = {
    "code": -32042,
    "message": "open this page",
    "data": {
        "elicitations": [{"url": "https://example.com/", "elicitationId": "e", "message": ""}]
    },
}


def _answer(status: int, body: object, headers: bytes = b"") -> Reply:
    text = json.dumps(body).encode()
    head = b"connection: close\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(
        text
    )
    return Reply(raw=b"HTTP/1.1 %d x\r\n%b%b\r\n%b" % (status, head, headers, text))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_leads_the_agent_past_the_gate(
    gate: Gate, upstream: HttpUpstream, status: int
) -> None:
    elsewhere = b"location: http://elsewhere.example/mcp\r\n"
    upstream.script = lambda received: _answer(status, _done(received), elsewhere)
    called = gate.call("echo")
    assert (called.status, called.json["error"]["code"]) == (200, -32000)
    told = gate.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert told.status == 502
    for answer in (called, told):
        assert "location" not in answer.headers


def test_no_redirect_leads_a_stream_past_the_gate(tmp_path: Path) -> None:
    def script(received: Received) -> Reply:
        if received.method != "POST":
            return Reply(status=307, headers={"location": "http://elsewhere.example/mcp"})
        body = json.dumps(_done(received)).encode()
        return Reply(body=body, headers={"mcp-session-id": "theirs"})

    with HttpUpstream(script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        opened = gate.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "accept": "*/*"}
        for method in ("GET", "DELETE"):
            answer = gate.request(method, headers=session)
            assert (answer.status, answer.headers.get("location")) == (502, None)


@pytest.mark.parametrize("status", [299, 499, 599])
def test_a_status_without_a_name_stalls_no_agent(
    gate: Gate, upstream: HttpUpstream, status: int
) -> None:
    upstream.script = lambda received: _answer(status, _done(received))
    answer = gate.call("echo")
    assert (answer.status, answer.json["id"]) == (status, 1)


@pytest.mark.parametrize("status", [600, 999])
def test_a_status_that_does_not_exist_is_an_error(
    gate: Gate, upstream: HttpUpstream, status: int
) -> None:
    upstream.script = lambda received: _answer(status, _done(received))
    assert gate.call("echo").json["error"]["code"] == -32000


@pytest.mark.promise("server-requests")
@pytest.mark.parametrize("ident", [None, 1, 99, "x"])
def test_an_error_about_no_request_asks_the_agent_nothing_unjudged(
    tmp_path: Path, ident: object
) -> None:
    rules = "rules:\n  - {elicitation: '*', action: deny}\n"
    body = {"jsonrpc": "2.0", "id": ident, "error": ELICITATION}
    with (
        HttpUpstream(lambda _: _answer(400, body)) as upstream,
        Gate(tmp_path, config_for(upstream.url, rules)) as gate,
    ):
        answer = gate.call("echo")
        assert (answer.json["id"], answer.error["data"]["kind"]) == (1, "governance_denied")
        assert b"example.com" not in answer.body


@pytest.mark.promise("server-requests")
@pytest.mark.parametrize("body", [SAMPLING, {"jsonrpc": "2.0", "error": ELICITATION}, [SAMPLING]])
def test_an_error_about_a_notification_asks_the_agent_nothing(
    gate: Gate, upstream: HttpUpstream, body: object
) -> None:
    upstream.script = lambda _: _answer(400, body)
    answer = gate.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status, answer.body) == (400, b"")


def test_an_error_about_a_notification_says_why(gate: Gate, upstream: HttpUpstream) -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no session"}}
    upstream.script = lambda _: _answer(400, body)
    answer = gate.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status, answer.json) == (400, body)


@pytest.mark.promise("server-requests")
@pytest.mark.parametrize(
    "before", [b"\xef\xbb\xbf", event({"jsonrpc": "2.0", "id": 7, "result": 1})]
)
def test_a_byte_order_mark_hides_no_message_from_the_gate(
    gate: Gate, upstream: HttpUpstream, before: bytes
) -> None:
    """Readers ignore the mark at the beginning of a stream; the gate may have removed another."""
    hidden = before + b"\xef\xbb\xbfdata: " + json.dumps(SAMPLING).encode() + b"\n\n"
    upstream.script = lambda received: Reply(parts=[hidden, event(_done(received))])
    answer = gate.call("echo")
    assert b"sampling" not in answer.body
    assert len(answer.events) == 1
