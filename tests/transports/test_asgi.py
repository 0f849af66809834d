"""An ASGI application behind the HTTP server: whole answers, streams, failures, clients that leave."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.waiting import run_async

from thoughtgate.transports.asgi import App, AsgiHandler, Receive, Scope, Send
from thoughtgate.transports.http_server import HttpServer

Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


def _visit(app: App, client: Client) -> Any:
    async def main() -> Any:
        server = HttpServer(AsgiHandler(app))
        port = await server.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(10):
                return await client(reader, writer)
        finally:
            writer.close()
            await server.drain(0.0)

    return run_async(main())


def _ask(request: bytes, until: bytes) -> Client:
    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(request)
        return await reader.readuntil(until)

    return client


async def _answer(send: Send, status: int, body: bytes, *, more: bool = False) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"999")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": more})


def test_a_request_is_seen_whole_and_answered_whole() -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.update(scope, received=await receive())
        await _answer(send, 201, b"done")

    request = (
        b"POST /a%20b/%E2%82%AC?x=1&y=%20 HTTP/1.1\r\nHost: h:1\r\nX-One: 1\r\n"
        b"Content-Length: 4\r\n\r\nbody"
    )
    said = _visit(app, _ask(request, b"done"))

    assert said.startswith(b"HTTP/1.1 201 Created\r\n")
    assert b"content-length: 4\r\n" in said
    assert b"999" not in said
    assert (seen["method"], seen["path"], seen["query_string"]) == ("POST", "/a b/€", b"x=1&y=%20")
    assert seen["raw_path"] == b"/a%20b/%E2%82%AC"
    assert (b"x-one", b"1") in seen["headers"]
    assert seen["received"] == {"type": "http.request", "body": b"body", "more_body": False}
    assert seen["client"][0] == "127.0.0.1"


def test_a_stream_is_sent_as_it_comes_and_ends() -> None:
    go = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await _answer(send, 200, b"first", more=True)
        await go.wait()
        await send({"type": "http.response.body", "body": b"last"})

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        first = await reader.readuntil(b"first")
        go.set()
        return first + await reader.readuntil(b"0\r\n\r\n")

    said = _visit(app, client)
    assert b"transfer-encoding: chunked" in said
    assert b"4\r\nlast\r\n" in said


def test_an_application_learns_that_its_client_has_left() -> None:
    left = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await receive()
        await _answer(send, 200, b"first", more=True)
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.body", "body": b"to nobody"})
        left.set()

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"first")
        writer.close()
        await left.wait()

    _visit(app, client)
    assert left.is_set()


def test_a_client_that_reads_slowly_holds_the_application_back() -> None:
    sent = 0
    part = b"x" * 1_000_000

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal sent
        del scope, receive
        await _answer(send, 200, b"", more=True)
        for _ in range(30):
            await send({"type": "http.response.body", "body": part, "more_body": True})
            sent += 1
        await send({"type": "http.response.body", "body": b""})

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, int]:
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        held_at = -1
        while held_at != sent:  # until the application makes no more progress
            held_at = sent
            for _ in range(1000):
                await asyncio.sleep(0)
        read = 0
        while read < 30 * len(part):
            read += len(await reader.read(1_000_000))
        return held_at, read

    held_at, read = _visit(app, client)
    assert held_at < 30
    assert read >= 30 * len(part)


@pytest.mark.parametrize("answers", [False, True])
def test_a_failure_before_the_answer_is_500(answers: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        if answers:
            raise RuntimeError("secret")

    said = _visit(app, _ask(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 500 ")
    assert b"secret" not in said


def test_a_failure_within_a_stream_does_not_look_like_its_end() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await _answer(send, 200, b"first", more=True)
        raise RuntimeError

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        said = b""
        try:
            while chunk := await reader.read(4096):
                said += chunk
        except ConnectionResetError:
            pass
        return said

    assert not _visit(app, client).endswith(b"0\r\n\r\n")


def test_what_is_no_request_is_refused() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError((scope, receive, send))

    said = _visit(app, _ask(b"GET / HTTP/1.1\r\nHost\r\n\r\n", b"\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 200000", b"413"),
        (b"Content-Length: 200000\r\nExpect: 100-continue", b"413"),
        (b"Transfer-Encoding: chunked", b"411"),
    ],
)
def test_a_large_body_is_refused_before_it_is_read(head: bytes, status: bytes) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError((scope, receive, send))

    request = b"POST / HTTP/1.1\r\nHost: h\r\n" + head + b"\r\n\r\n"
    said = _visit(app, _ask(request, b"\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 " + status)
