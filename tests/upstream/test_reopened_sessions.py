"""A session at an HTTP server that the server has forgotten, for an agent on stdio."""

import json
import threading
from typing import Any

import pytest
from tests.support.http_carrier import Client, frame, with_client
from tests.support.http_upstream import Received, Reply, event, result, text_result

from thoughtgate.core.record_events import Record
from thoughtgate.upstream import http_carrier
from thoughtgate.upstream.health import ServerHealth

NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open streams again without a wait."""
    monkeypatch.setattr(http_carrier, "RETRY_S", 0.001)


class Sessions:
    """A server that knows only the sessions it has opened since its last restart."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.opened = 0
        self.executed: list[int] = []
        self.refuses_handshakes = False
        self.refuses_calls = False
        self.stream = Reply(405)

    def __call__(self, received: Received) -> Reply:
        message = received.message or {}
        method = message.get("method")
        if method == "initialize":
            return self._open(received)
        if received.method == "DELETE":
            return Reply()
        if received.headers.get("mcp-session-id") not in self.known or (
            self.refuses_calls and method == "tools/call"
        ):
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "unknown"}}
            return Reply(404, json.dumps(error).encode())
        if received.method == "GET":
            return self.stream
        if "id" not in message:
            return Reply(202)
        self.executed.append(message["id"])
        return text_result(received, "hi")

    def _open(self, received: Received) -> Reply:
        if self.refuses_handshakes:
            return Reply(503)
        self.opened += 1
        name = f"s{self.opened}"
        self.known.add(name)
        tools = {"tools": {"listChanged": True}, "prompts": {}}
        reply = result(received, {"protocolVersion": "2025-11-25", "capabilities": tools})
        reply.headers["mcp-session-id"] = name
        return reply

    def restart(self) -> None:
        self.known.clear()


CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def _methods(client: Client, start: int) -> list[Any]:
    received = [one for one in client.upstream.received[start:] if one.method == "POST"]
    return [(one.message["method"], one.headers.get("mcp-session-id")) for one in received]


def test_a_forgotten_session_is_opened_again_with_the_same_handshake() -> None:
    server = Sessions()

    async def work(client: Client) -> None:
        await client.initialize()
        before = len(client.upstream.received)
        server.restart()
        client.send(frame(1))
        await client.until(lambda: len(client.driver.heard) == 3)
        client.send(frame(2))
        await client.until(lambda: len(client.driver.heard) == 4)
        assert _methods(client, before) == [
            ("tools/call", "s1"),
            ("initialize", None),
            ("notifications/initialized", "s2"),
            ("tools/call", "s2"),
            ("tools/call", "s2"),
        ]

    client = with_client(server, work)
    assert server.executed == [1, 2]
    assert client.driver.lost == []
    assert client.driver.heard[1] == CHANGED
    assert [one["id"] for one in client.driver.heard[2:]] == [1, 2]
    posts = [one.body for one in client.upstream.received if b'"initialize"' in one.body]
    assert posts == [frame(0, "initialize")] * 2


def test_many_requests_in_a_forgotten_session_open_it_once() -> None:
    server = Sessions()

    async def work(client: Client) -> None:
        await client.initialize()
        server.restart()
        for ident in range(1, 51):
            client.send(frame(ident))
        await client.until(lambda: len(client.driver.heard) == 52)

    client = with_client(server, work)
    assert sorted(server.executed) == list(range(1, 51))
    assert server.opened == 2
    assert client.driver.lost == []


def test_a_request_is_sent_again_at_most_once() -> None:
    server = Sessions()

    async def work(client: Client) -> None:
        await client.initialize()
        server.refuses_calls = True
        client.send(frame(1))
        await client.until(lambda: client.driver.lost)

    client = with_client(server, work)
    assert [key for key, _ in client.driver.lost] == [1]
    assert sum(b"tools/call" in one.body for one in client.upstream.received) == 2


def test_a_server_that_opens_no_new_session_is_tried_again_by_the_next_request() -> None:
    server = Sessions()

    async def work(client: Client) -> None:
        await client.initialize()
        server.restart()
        server.refuses_handshakes = True
        client.send(frame(1))
        await client.until(lambda: client.driver.lost)
        server.refuses_handshakes = False
        client.send(frame(2))
        await client.until(lambda: len(client.driver.heard) == 3)

    client = with_client(server, work)
    assert [key for key, _ in client.driver.lost] == [1]
    assert server.executed == [2]


def test_a_server_that_does_not_answer_the_handshake_stops_nothing_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_carrier, "REOPEN_S", 0.05)
    server, never = Sessions(), threading.Event()

    def script(received: Received) -> Reply:
        if not server.known and server.opened:
            return Reply(404) if b"tools/call" in received.body else Reply(wait=never)
        return server(received)

    async def work(client: Client) -> None:
        await client.initialize()
        server.restart()
        client.send(frame(1))
        await client.until(lambda: client.driver.lost)
        never.set()

    assert with_client(script, work).driver.lost == [(1, "upstream_timeout")]


def test_what_was_cancelled_or_answers_the_old_session_is_not_sent_again() -> None:
    server, go = Sessions(), threading.Event()

    def script(received: Received) -> Reply:
        reply = server(received)
        if b'"initialize"' in received.body and server.opened == 2:
            reply.wait = go
        return reply

    async def work(client: Client) -> None:
        await client.initialize()
        server.restart()
        client.send(frame(1))
        client.send(frame(2))
        await client.until(lambda: server.opened == 2)
        client.send(frame(None, "notifications/cancelled", requestId=1))
        client.send(b'{"jsonrpc":"2.0","id":"theirs","result":{}}')
        go.set()
        await client.until(lambda: len(client.driver.heard) == 3)

    client = with_client(script, work)
    assert server.executed == [2]
    assert not any(b"theirs" in one.body for one in client.upstream.received)


@pytest.mark.usefixtures("_soon")
def test_a_call_whose_stream_broke_is_not_sent_into_the_new_session() -> None:
    server = Sessions()
    go = threading.Event()

    def script(received: Received) -> Reply:
        reply = server(received)
        if received.message and received.message.get("id") == 1 and reply.status == 200:
            return Reply(parts=[b"id: e1\ndata:\n\n", b": \n\n"], wait=go)
        return reply

    async def work(client: Client) -> None:
        await client.initialize()
        client.send(frame(1))
        await client.until(client.upstream.waiting.is_set)
        server.restart()
        client.send(frame(2))
        await client.until(lambda: 2 in server.executed)
        go.set()
        await client.until(lambda: client.driver.lost)

    client = with_client(script, work)
    assert server.executed == [1, 2]
    assert [key for key, _ in client.driver.lost] == [1]
    assert not any("last-event-id" in one.headers for one in client.upstream.received)


@pytest.mark.usefixtures("_soon")
def test_the_stream_of_the_server_notices_a_forgotten_session() -> None:
    server, go = Sessions(), threading.Event()
    server.stream = Reply(parts=[event(NOTE), b": \n\n"], wait=go)

    async def work(client: Client) -> None:
        await client.initialize()
        await client.until(lambda: NOTE in client.driver.heard)
        server.restart()
        server.refuses_handshakes = True
        go.set()
        await client.until(lambda: sum(b"initialize" in one.body for one in posts(client)) > 3)
        server.refuses_handshakes = False
        await client.until(lambda: CHANGED in client.driver.heard)
        await client.until(lambda: client.driver.heard.count(NOTE) > 1)

    def posts(client: Client) -> list[Received]:
        return [one for one in client.upstream.received if one.method == "POST"]

    assert with_client(server, work).driver.lost == []


def test_subscriptions_and_the_log_level_are_restored() -> None:
    server = Sessions()
    asked: list[tuple[str, dict[str, Any]]] = [
        ("resources/subscribe", {"uri": "a:kept"}),
        ("resources/subscribe", {"uri": "a:dropped"}),
        ("resources/unsubscribe", {"uri": "a:dropped"}),
        ("resources/subscribe", {"uri": 7}),
        ("logging/setLevel", {"level": "debug"}),
        ("logging/setLevel", {"level": "error"}),
    ]

    async def work(client: Client) -> None:
        await client.initialize()
        for ident, (method, params) in enumerate(asked, 1):
            client.send(frame(ident, method, **params))
        await client.until(lambda: len(client.driver.heard) == 7)
        before = len(client.upstream.received)
        for number in (1, 2):
            server.restart()
            client.send(frame(7 + number))
            await client.until(lambda: len(client.driver.heard) == 7 + 2 * number)  # noqa: B023  awaited here
            await client.until(lambda: len(server.executed) == 6 + 3 * number)  # noqa: B023  as above
        received = [one.message for one in client.upstream.received[before:] if one.body]
        restored = [one for one in received if str(one.get("id")).startswith("thoughtgate-")]
        # Each is a request of its own, so they may arrive in either order.
        methods = sorted((one["method"], one["params"].get("uri", "")) for one in restored)
        assert methods == [("logging/setLevel", "")] * 2 + [("resources/subscribe", "a:kept")] * 2
        assert {one["params"].get("level") for one in restored} == {None, "error"}

    client = with_client(server, work)
    assert client.driver.lost == []
    assert [one.get("id") for one in client.driver.heard[7:]] == [None, 8, None, 9]


def test_only_so_many_requests_wait_for_a_new_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_carrier, "MAX_WAITING", 2)
    server, go = Sessions(), threading.Event()

    def script(received: Received) -> Reply:
        reply = server(received)
        if b'"initialize"' in received.body and server.opened == 2:
            reply.wait = go
        return reply

    async def work(client: Client) -> None:
        await client.initialize()
        server.restart()
        client.send(frame(1))
        await client.until(lambda: server.opened == 2)
        client.send(frame(2))
        client.send(frame(3))
        await client.until(lambda: client.driver.lost)
        go.set()
        await client.until(lambda: len(client.driver.heard) == 4)

    client = with_client(script, work)
    assert client.driver.lost == [(3, "service_unavailable")]
    assert sorted(server.executed) == [1, 2]


def test_a_server_that_opens_no_new_session_is_on_record_until_it_does() -> None:
    server = Sessions()
    told: list[Record] = []

    async def work(client: Client) -> None:
        await client.initialize()
        server.restart()
        server.refuses_handshakes = True
        client.send(frame(1))
        await client.until(lambda: client.driver.lost)
        server.refuses_handshakes = False
        client.send(frame(2))
        await client.until(lambda: len(client.driver.heard) == 3)

    with_client(server, work, ServerHealth("one", told.append))
    assert [one.type for one in told] == [
        "server_started",
        "server_unreachable",
        "server_recovered",
    ]
    assert told[1].body["server"]["status"] == 503
