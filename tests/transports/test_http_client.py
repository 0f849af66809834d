"""The HTTP client: its pool, its limits, and servers that misbehave."""

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.http_upstream import HttpUpstream, Received, Reply, free_port
from tests.support.waiting import PATIENCE_S, run_async

from thoughtgate.errors import CAUSES, PeerError
from thoughtgate.transports.http_client import (
    HttpPool,
    PoolOptions,
)
from thoughtgate.transports.http_heads import ResponseHead


def _run(
    url: str, work: Callable[[HttpPool], Awaitable[None]], options: PoolOptions | None = None
) -> None:
    async def main() -> None:
        pool = HttpPool(url, options)
        try:
            await work(pool)
        finally:
            await pool.close()

    run_async(main())


def _hello(received: Received) -> Reply:
    return Reply(body=b"hello " + received.body, headers={"x-path": received.path})


def test_a_request_gets_its_whole_response() -> None:
    async def work(pool: HttpPool) -> None:
        response = await pool.request("POST", [(b"x-one", b"1")], b"body")
        assert (response.status, response.body) == (200, b"hello body")
        assert response.header(b"x-path") == b"/mcp"
        assert response.header(b"nothing") is None

    with HttpUpstream(_hello) as upstream:
        _run(upstream.url, work)
    received = upstream.received[0]
    assert received.headers["x-one"] == "1"
    assert received.headers["host"] == f"127.0.0.1:{upstream.port}"
    assert received.headers["content-length"] == "4"


@pytest.mark.requirement("S004-F-004.1", "S004-NFR-003")
def test_a_connection_is_used_again() -> None:
    async def work(pool: HttpPool) -> None:
        for _ in range(5):
            await pool.request("POST", body=b"x")
            assert pool.open_connections == 1
        assert await pool.probe() is None

    with HttpUpstream(_hello) as upstream:
        _run(upstream.url, work)
    assert len(upstream.received) == 5


def test_a_connection_that_was_idle_too_long_is_not_used_again() -> None:
    async def work(pool: HttpPool) -> None:
        await pool.request("POST")
        pool.drop_idle()
        assert pool.open_connections == 0
        await pool.request("POST")

    with HttpUpstream(_hello) as upstream:
        _run(upstream.url, work, PoolOptions(idle_s=-1.0))


@pytest.mark.parametrize(
    ("raw", "reason", "cause"),
    [
        (b"", "closed the connection", "connection_lost"),
        (b"not http at all\r\n\r\n", "not HTTP", "not_http"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
            "closed the connection",
            "connection_lost",
        ),
        (
            b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
            "too many headers",
            "too_large",
        ),
    ],
)
def test_a_server_that_does_not_speak_http_is_an_error(raw: bytes, reason: str, cause: str) -> None:
    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError, match=reason) as raised:
            await pool.request("POST", body=b"x")
        assert (raised.value.kind, raised.value.cause) == (CAUSES[cause][0], cause)
        assert pool.open_connections == 0

    with HttpUpstream(lambda _: Reply(raw=raw)) as upstream:
        _run(upstream.url, work)


def test_a_second_answer_is_never_taken_for_the_next_requests_own() -> None:
    one = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none"
    two = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntwo"

    async def work(pool: HttpPool) -> None:
        first = await pool.request("POST", body=b"x")
        assert first.body == b"one"
        assert pool.open_connections == 0

    with HttpUpstream(lambda _: Reply(raw=one + two)) as upstream:
        _run(upstream.url, work)


def test_informational_answers_are_skipped() -> None:
    raw = (
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    )

    async def work(pool: HttpPool) -> None:
        response = await pool.request("POST", body=b"x")
        assert (response.status, response.body) == (200, b"ok")

    with HttpUpstream(lambda _: Reply(raw=raw)) as upstream:
        _run(upstream.url, work)


def test_a_body_may_end_with_the_connection() -> None:
    raw = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nall of it"

    async def work(pool: HttpPool) -> None:
        assert (await pool.request("POST", body=b"x")).body == b"all of it"

    with HttpUpstream(lambda _: Reply(raw=raw)) as upstream:
        _run(upstream.url, work)


@pytest.mark.requirement("S004-F-004.5")
def test_nobody_listening_is_a_connection_error() -> None:
    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError) as raised:
            await pool.request("GET")
        assert raised.value.kind == "upstream_connection_failed"
        probed = await pool.probe()
        assert probed is not None
        assert probed.cause == raised.value.cause == "connection_refused"

    _run(f"http://127.0.0.1:{free_port()}/", work)


def test_an_answer_that_comes_too_late_is_a_timeout() -> None:
    import threading

    never = threading.Event()

    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError) as raised:
            await pool.request("GET", timeout_s=0.05)
        assert raised.value.kind == "upstream_timeout"

    with HttpUpstream(lambda _: Reply(wait=never)) as upstream:
        _run(upstream.url, work)
        never.set()


def test_an_answer_that_is_too_large_is_refused() -> None:
    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError, match="too large"):
            await pool.request("GET", limit=10)

    with HttpUpstream(lambda _: Reply(body=b"x" * 1000)) as upstream:
        _run(upstream.url, work)


class _Receiver:
    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.outcome = asyncio.get_running_loop().create_future()

    def started(self, head: ResponseHead) -> None:
        self.head = (head.status, head.headers)

    def received(self, chunk: bytes) -> None:
        self.chunks.append(chunk)

    def ended(self) -> None:
        self.outcome.set_result(None)

    def failed(self, error: PeerError) -> None:
        self.outcome.set_exception(error)


def test_a_stream_arrives_part_by_part_and_can_be_paused_and_given_up() -> None:
    async def work(pool: HttpPool) -> None:
        whole = _Receiver()
        exchange = pool.send(b"POST", [], b"x", whole)
        exchange.pause()
        exchange.resume()
        await asyncio.wait_for(whole.outcome, 10)
        assert b"".join(whole.chunks) == b"onetwo"
        assert exchange.is_over
        dropped = _Receiver()
        pool.send(b"POST", [], b"x", dropped).abort()
        assert not dropped.outcome.done()

    with HttpUpstream(lambda _: Reply(parts=[b"one", b"two"])) as upstream:
        _run(upstream.url, work)


def test_a_closing_pool_tells_whoever_waits() -> None:
    async def main() -> None:
        with HttpUpstream(_hello) as upstream:
            pool = HttpPool(upstream.url)
            waiting = _Receiver()
            pool.send(b"POST", [], b"x", waiting)
            await pool.close()
            with pytest.raises(PeerError):
                await asyncio.wait_for(waiting.outcome, 10)

    run_async(main())


def test_a_configured_header_cannot_break_the_request() -> None:
    with pytest.raises(ValueError, match="line break"):
        HttpPool("http://127.0.0.1/", PoolOptions(headers=[(b"x", b"a\r\nb: c")]))


@pytest.mark.requirement("NFR-S5")
def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        f" -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout {key} -out {certificate}"
    )
    made = subprocess.run(command.split(), capture_output=True, check=False, timeout=PATIENCE_S)
    if made.returncode:
        pytest.skip("openssl is not to be had")

    async def main() -> None:
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(certificate, key)

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=serving)
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}/"
        from thoughtgate.transports.tls import client_context

        strict = HttpPool(url, PoolOptions(tls=client_context()))
        with pytest.raises(PeerError) as raised:
            await strict.request("GET")
        assert raised.value.cause == "tls_unknown_ca"
        trusting = HttpPool(url, PoolOptions(tls=client_context(str(certificate))))
        assert (await trusting.request("GET")).body == b"ok"
        await strict.close()
        await trusting.close()
        server.close()

    run_async(main())


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"


def test_a_trailer_is_no_header_of_the_answer() -> None:
    async def work(pool: HttpPool) -> None:
        response = await pool.request("GET")
        assert response.body == b"hi"
        assert response.headers == [(b"transfer-encoding", b"chunked")]

    with HttpUpstream(lambda _: Reply(raw=CHUNKED + b"mcp-session-id: x\r\n\r\n")) as upstream:
        _run(upstream.url, work)


def test_a_trailer_without_an_end_is_cut_off() -> None:
    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError, match="too many headers"):
            await pool.request("GET", timeout_s=10)

    with HttpUpstream(lambda _: Reply(raw=CHUNKED + b"x: " + b"y" * 5_000_000)) as upstream:
        _run(upstream.url, work)


@pytest.mark.parametrize(
    "header",
    [
        (b"traceparent", b"00\r\ncontent-length: 0\r\n\r\nGET / HTTP/1.1"),
        (b"x", b"a\nb: c"),
        (b"x\r\ny", b"a"),
        (b"x", b"a\rb"),
        (b"x", b"a\0b"),
    ],
)
def test_a_header_with_a_line_end_reaches_nobody(header: tuple[bytes, bytes]) -> None:
    heard: list[str] = []
    came: list[bytes] = []

    class Receiver:
        def started(self, head: ResponseHead) -> None:
            raise AssertionError(head)

        def received(self, chunk: bytes) -> None:
            raise AssertionError(chunk)

        def ended(self) -> None:
            raise AssertionError

        def failed(self, error: PeerError) -> None:
            heard.append(error.kind)

    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.append(await reader.read(1))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        pool = HttpPool(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
        pool.send(b"POST", [header], b"{}", Receiver())
        assert heard == []
        async with asyncio.timeout(10):
            while not heard:  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0)
        await pool.close()
        server.close()

    run_async(main())
    assert heard == ["invalid_request"]
    assert came == []
