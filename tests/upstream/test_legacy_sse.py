"""Servers of the HTTP+SSE transport: sessions, messages, detection, and hostile servers."""

import asyncio
import json
from typing import Any, Final

import pytest
from tests.support.http_upstream import HttpUpstream, Received, Reply, result
from tests.support.sse_server import SseServer
from tests.support.waiting import run_async

from thoughtgate.errors import PeerError
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.http_heads import ResponseHead
from thoughtgate.upstream import legacy_sse
from thoughtgate.upstream.legacy_sse import LegacySse, _rewritten

PATIENCE_S: Final = 5.0


class _Received:
    """A response, as the user of a pool gets it."""

    def __init__(self) -> None:
        self.head: ResponseHead | None = None
        self.body = b""
        self.error: PeerError | None = None
        self.over = asyncio.Event()
        self.changed = asyncio.Event()

    def started(self, head: ResponseHead) -> None:
        self.head = head
        self.changed.set()

    def received(self, chunk: bytes) -> None:
        self.body += chunk
        self.changed.set()

    def ended(self) -> None:
        self.over.set()
        self.changed.set()

    def failed(self, error: PeerError) -> None:
        self.error = error
        self.ended()

    async def done(self) -> "_Received":
        async with asyncio.timeout(PATIENCE_S):
            await self.over.wait()
        return self

    async def until(self, mark: bytes) -> "_Received":
        async with asyncio.timeout(PATIENCE_S):
            while mark not in self.body:
                self.changed.clear()
                await self.changed.wait()
        return self

    @property
    def status(self) -> int:
        return self.head.status if self.head is not None else 0

    def header(self, name: bytes) -> bytes:
        assert self.head is not None
        return dict(self.head.headers).get(name, b"")


class _Client:
    """Sends the requests of Streamable HTTP."""

    def __init__(self, url: str, transport: str = "sse") -> None:
        self.pool = HttpPool(url, PoolOptions(headers=[(b"x-own", b"1")]))
        self.pool.route = LegacySse(self.pool, is_certain=transport == "sse")
        self.session = b""

    def send(self, method: bytes, body: Any = None) -> tuple[_Received, Any]:
        got = _Received()
        headers = [(b"accept", b"application/json, text/event-stream"), (b"x-agent", b"a")]
        if self.session:
            headers += [(b"mcp-session-id", self.session), (b"mcp-protocol-version", b"2024-11-05")]
        data = json.dumps(body).encode() if body is not None else b""
        return got, self.pool.send(method, headers, data, got)

    async def ask(self, ident: Any, method: str) -> _Received:
        got, _ = self.send(b"POST", _request(ident, method))
        return await got.done()

    async def open(self) -> _Received:
        got = await self.ask(0, "initialize")
        self.session = got.header(b"mcp-session-id") if got.head else b""
        return got


def _request(ident: Any, method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": {}}


def _answer(message: Any) -> Any:
    """Answer everything but ``hang``."""
    if "id" not in message or message.get("method", "hang") == "hang":
        return None
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"was": message["method"]}}


NOTICE: Final = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


def test_a_session_is_a_stream_and_answers_come_as_if_they_were_responses() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            opened = await client.open()
            assert (opened.status, opened.header(b"content-type")) == (200, b"application/json")
            assert client.session
            assert json.loads(opened.body)["result"] == {"was": "initialize"}

            sent, _ = client.send(
                b"POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}
            )
            assert (await sent.done()).status == 202
            listed = await client.ask("two", "tools/list")
            assert json.loads(listed.body)["id"] == "two"
            await client.pool.close()

        assert [one.path for one in server.posted] == ["/messages?s=1"] * 3
        for headers in (*server.opened, *(one.headers for one in server.posted)):
            assert headers["x-own"] == "1"
            assert headers["x-agent"] == "a"
            assert not [name for name in headers if name.startswith("mcp-")]
        assert server.opened[0]["accept"] == "text/event-stream"

    run_async(main())


@pytest.mark.parametrize(
    ("named", "path"),
    [
        (b"/m?s=1", "/m?s=1"),
        (b"m", "/m"),
        (b"?s=1", "/sse?s=1"),
        (b"../m", "/m"),
    ],
)
def test_the_address_for_posts_may_be_relative(named: bytes, path: str) -> None:
    async def main() -> None:
        async with SseServer(b"event: endpoint\ndata: %b\n\n" % named, answer=_answer) as server:
            server.statuses["/sse"] = "202 Accepted"
            client = _Client(server.url)
            assert (await client.open()).status == 200
            assert server.posted[0].path == path
            await client.pool.close()

    run_async(main())


@pytest.mark.parametrize(
    "first",
    [
        b"event: endpoint\ndata: http://evil.test/m\n\n",
        b"event: endpoint\ndata: //evil.test/m\n\n",
        b"event: endpoint\ndata: http://127.0.0.1:1/m\n\n",
        b"event: endpoint\ndata: https://127.0.0.1/m\n\n",
        b"event: endpoint\ndata: http://u@127.0.0.1/m\n\n",
        b"event: endpoint\ndata: file:///etc/passwd\n\n",
        b"event: endpoint\ndata: http://[::1\n\n",
        b"event: endpoint\ndata: /m\xc3\xbc\n\n",
        b"event: endpoint\ndata: /a b\n\n",
        b"event: endpoint\ndata: /a\ndata: HTTP/1.1\n\n",
        b"event: endpoint\ndata: /" + b"a" * 10_000 + b"\n\n",
        b"event: message\ndata: /m\n\n",
        b"data: {}\n\n",
    ],
    ids=lambda first: first[:40].decode("latin-1"),
)
def test_an_address_elsewhere_is_not_used(first: bytes) -> None:
    async def main() -> None:
        async with SseServer(first, answer=_answer) as server:
            client = _Client(server.url)
            opened = await client.open()
            assert opened.error is not None
            assert opened.error.cause == "bad_handshake"
            assert "evil" not in str(opened.error)
            assert server.posted == []
            await client.pool.close()

    run_async(main())


def test_a_comment_may_come_before_the_address_and_later_addresses_do_not_count() -> None:
    async def main() -> None:
        async with SseServer(b": hello\n\nevent: endpoint\ndata: /m\n\n", answer=_answer) as server:
            client = _Client(server.url)
            await client.open()
            await server.write(b"event: endpoint\ndata: /other\n\n")
            await client.ask(1, "ping")
            assert [one.path for one in server.posted] == ["/m", "/m"]
            await client.pool.close()

    run_async(main())


def test_a_server_that_names_no_address_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_sse, "ENDPOINT_S", 0.01)

    async def main() -> None:
        async with SseServer(b": silence\n\n") as server:
            client = _Client(server.url)
            opened = await client.open()
            assert opened.error is not None
            assert opened.error.cause == "answer_timeout"
            await client.pool.close()

    run_async(main())


def test_a_refusal_of_the_stream_is_the_response() -> None:
    refusal = b"HTTP/1.1 401 No\r\nwww-authenticate: Bearer\r\ncontent-length: 4\r\n\r\nsigh"

    async def main() -> None:
        async with SseServer(refusal=refusal) as server:
            client = _Client(server.url)
            opened = await client.open()
            assert (opened.status, opened.body) == (401, b"sigh")
            assert opened.header(b"www-authenticate") == b"Bearer"
            await client.pool.close()

    run_async(main())


def test_a_message_that_the_server_refuses_gets_its_status() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            await client.open()
            server.statuses["/messages"] = "500 Broken"
            assert (await client.ask(1, "ping")).status == 500
            # The id is free again.
            server.statuses.clear()
            assert (await client.ask(1, "ping")).status == 200
            await client.pool.close()

    run_async(main())


def test_what_the_server_says_unasked_comes_on_the_stream_of_the_agent() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            answered = {"jsonrpc": "2.0", "id": 0, "result": {}}
            early = {**NOTICE, "params": {"n": 1}}
            server.after_open = b"".join(
                f"data: {json.dumps(one)}\n\n".encode() for one in (answered, early)
            )
            await client.open()
            got, exchange = client.send(b"GET")
            await got.until(b'"n": 1')
            await server.say({**NOTICE, "params": {"n": 2}})
            await got.until(b'"n": 2')
            assert got.header(b"content-type") == b"text/event-stream"

            newer, _ = client.send(b"GET")
            await got.done()
            await server.say({**NOTICE, "params": {"n": 3}})
            await newer.until(b'"n": 3')
            assert b'"n": 3' not in got.body
            exchange.abort()
            await client.pool.close()

    run_async(main())


def test_without_such_a_stream_it_comes_with_the_newest_response() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            await client.open()
            got, _ = client.send(b"POST", _request(1, "hang"))
            await client.ask(2, "ping")
            await server.say(NOTICE)
            await server.say({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})
            await got.until(b"roots/list")
            await server.say({"jsonrpc": "2.0", "id": 1, "result": {}})
            await got.done()
            assert got.header(b"content-type") == b"text/event-stream"
            assert got.body.count(b"event: message\n") == 3
            await client.pool.close()

    run_async(main())


def test_a_broken_stream_fails_what_is_open_and_ends_the_session() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            await client.open()
            waiting, _ = client.send(b"POST", _request(1, "hang"))
            listening, _ = client.send(b"GET")
            await client.ask(2, "ping")
            server.streams[0].close()
            assert (await waiting.done()).error is not None
            assert (await listening.done()).error is None
            assert (await client.ask(3, "ping")).status == 404
            client.session = b""
            assert (await client.open()).status == 200
            assert (await client.ask(3, "ping")).status == 200
            await client.pool.close()

    run_async(main())


def test_delete_closes_the_stream() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            await client.open()
            ended, _ = client.send(b"DELETE")
            assert (await ended.done()).status == 200
            again, _ = client.send(b"DELETE")
            assert (await again.done()).status == 404
            async with asyncio.timeout(PATIENCE_S):
                await server.ended.wait()
            await client.pool.close()

    run_async(main())


@pytest.mark.parametrize(("method", "status"), [(b"POST", 400), (b"GET", 405), (b"DELETE", 405)])
def test_requests_without_a_session_are_refused(method: bytes, status: int) -> None:
    async def main() -> None:
        async with SseServer() as server:
            client = _Client(server.url)
            got, _ = client.send(method, _request(1, "server/discover"))
            assert (await got.done()).status == status
            assert server.opened == []
            await client.pool.close()

    run_async(main())


def test_two_open_requests_of_a_session_cannot_have_one_id() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            await client.open()
            _, first = client.send(b"POST", _request(1, "hang"))
            second, _ = client.send(b"POST", _request(1, "hang"))
            assert (await second.done()).status == 400
            first.abort()
            assert (await client.ask(1, "ping")).status == 200
            await client.pool.close()

    run_async(main())


def test_answers_that_nobody_waits_for_and_unreadable_lines_are_dropped() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            await client.open()
            await server.say({"jsonrpc": "2.0", "id": 77, "result": {}})
            await server.write(b"data: not json\n\n")
            got, _ = client.send(b"POST", _request(1, "hang"))
            await client.ask(2, "ping")
            line = b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}'
            await server.write(b"data: %b\n\n" % line)
            # An answer with two readings goes to the one who asked, who refuses it.
            assert (await got.done()).body == line
            await client.pool.close()

    run_async(main())


def test_sessions_that_nobody_uses_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_sse, "MAX_SESSIONS", 1)

    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            await client.open()
            first, client.session = client.session, b""
            await client.open()
            client.session, second = first, client.session
            assert (await client.ask(1, "ping")).status == 404
            client.session = second
            assert (await client.ask(1, "ping")).status == 200
            await client.pool.close()

    run_async(main())


def test_an_agent_that_left_before_its_session_was_open_leaves_none() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url)
            _, exchange = client.send(b"POST", _request(0, "initialize"))
            exchange.abort()
            async with asyncio.timeout(PATIENCE_S):
                await server.ended.wait()
            assert server.posted == []
            await client.pool.close()

    run_async(main())


# Detection.


def test_a_server_that_takes_no_post_is_asked_for_a_stream() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url, "auto")
            discovered = await client.ask(9, "server/discover")
            assert discovered.status == 405
            assert (await client.open()).status == 200
            assert (await client.ask(1, "ping")).status == 200
            paths = [one.path for one in server.posted]
            assert paths == ["/sse", "/sse", "/messages?s=1", "/messages?s=1"]
            await client.pool.close()

    run_async(main())


@pytest.mark.parametrize("refusal", [b"HTTP/1.1 405 No\r\nconnection: close\r\n\r\n", b""])
def test_a_server_that_opens_no_such_stream_is_not_an_older_one(refusal: bytes) -> None:
    async def main() -> None:
        async with SseServer(b"data: {}\n\n", refusal=refusal) as server:
            server.statuses["/sse"] = "400 Bad Request"
            client = _Client(server.url, "auto")
            assert (await client.open()).status == 400
            assert [one.path for one in server.posted] == ["/sse"]
            # The verdict is not kept: the server may be replaced.
            assert (await client.ask(1, "ping")).status == 400
            await client.pool.close()

    run_async(main())


def test_a_stream_that_needs_credentials_counts_more_than_a_post_that_is_no_way() -> None:
    refusal = b"HTTP/1.1 401 No\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\n\r\n"

    async def main() -> None:
        async with SseServer(refusal=refusal) as server:
            server.statuses["/sse"] = "404 Not Found"
            client = _Client(server.url, "auto")
            assert (await client.open()).status == 401
            await client.pool.close()

    run_async(main())


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_other_refusals_say_nothing_about_the_transport(status: int) -> None:
    async def main(url: str) -> None:
        client = _Client(url, "auto")
        assert (await client.open()).status == status
        assert client.pool.route is not None
        await client.pool.close()

    with HttpUpstream(lambda _: Reply(status)) as upstream:
        run_async(main(upstream.url))
    assert [one.method for one in upstream.received] == ["POST"]


def test_a_server_that_answers_is_left_to_the_usual_way() -> None:
    def script(received: Received) -> Reply:
        return result(received, {"big": "x" * 100_000})

    async def main(url: str) -> None:
        client = _Client(url, "auto")
        got, exchange = client.send(b"POST", _request(0, "initialize"))
        exchange.pause()
        exchange.resume()
        assert len((await got.done()).body) > 100_000
        assert client.pool.route is None
        await client.pool.close()

    with HttpUpstream(script) as upstream:
        run_async(main(upstream.url))


def test_any_success_tells_that_a_server_is_not_an_older_one() -> None:
    async def main(url: str) -> None:
        client = _Client(url, "auto")
        answered = await client.ask(0, "tools/list")
        assert answered.status == 200
        assert client.pool.route is None
        await client.pool.close()

    with HttpUpstream(lambda received: result(received, {})) as upstream:
        run_async(main(upstream.url))


def test_a_stream_alone_tells_nothing() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url, "auto")
            got, exchange = client.send(b"GET")
            await got.until(b"endpoint")
            assert client.pool.route is not None
            exchange.abort()
            assert (await client.open()).status == 200
            await client.pool.close()

    run_async(main())


def test_a_server_that_is_not_there_is_no_verdict() -> None:
    async def main() -> None:
        client = _Client("http://127.0.0.1:1/sse", "auto")
        assert (await client.open()).error is not None
        assert client.pool.route is not None
        _, exchange = client.send(b"POST", _request(0, "initialize"))
        exchange.abort()
        await client.pool.close()

    run_async(main())


def test_a_text_that_only_mentions_the_handshake_does_not_make_one() -> None:
    async def main() -> None:
        async with SseServer(answer=_answer) as server:
            client = _Client(server.url, "auto")
            got, _ = client.send(b"POST", {**_request(1, "tools/call"), "params": ["initialize"]})
            assert (await got.done()).status == 405
            other, _ = client.send(b"POST", ["initialize"])
            assert (await other.done()).status == 405
            assert server.opened == []
            await client.pool.close()

    run_async(main())


def test_a_proxy_gets_the_whole_url_of_rewritten_requests() -> None:
    head = b"POST http://far.test/sse HTTP/1.1\r\nhost: far.test\r\nmcp-name: x\r\nx: y\r\n"

    written = _rewritten(head, b"POST", b"/messages", frozenset({b"x"}))

    assert written == b"POST http://far.test/messages HTTP/1.1\r\nhost: far.test\r\n"
