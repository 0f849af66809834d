"""The HTTP server: framing, limits, and clients that misbehave."""

import asyncio
import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import uvloop
from tests.support.http_gate import read_until
from tests.support.waiting import wait_for, within

from thoughtgate.transports.http_server import Exchange, HttpServer
from thoughtgate.transports.server_limits import ServerLimits


class _Handler:
    def __init__(self) -> None:
        self.gone = 0
        self.seen: list[tuple[bytes, bytes, bytes]] = []
        self.held: list[Exchange] = []
        self.peers: list[str] = []

    def opened(self, exchange: Exchange) -> None:
        if exchange.target == b"/refused":
            exchange.respond(403, b"", b"no")

    def completed(self, exchange: Exchange) -> None:
        self.seen.append((exchange.method, exchange.target, exchange.body))
        self.peers.append(exchange.peer)
        if exchange.target == b"/hold":
            self.held.append(exchange)
            exchange.on_gone = self._left
        elif exchange.target == b"/stream":
            exchange.start(200, b"content-type: text/plain\r\n")
            exchange.write(b"one")
            exchange.write(b"")
            exchange.write(b"two")
            exchange.end()
        elif exchange.target == b"/flood":
            exchange.start(200)
            exchange.write(b"x" * 50_000_000)
            self.held.append(exchange)
            exchange.on_gone = self._left
        else:
            names = sorted(name.decode() for name in exchange.headers)
            exchange.respond(200, b"x-seen: 1\r\n", json.dumps(names).encode())

    def refused(self, exchange: Exchange, status: int) -> None:
        exchange.respond(status, b"", b"refused")

    def _left(self) -> None:
        self.gone += 1


class _Running:
    def __init__(self, limits: ServerLimits) -> None:
        self.handler = _Handler()
        self.limits = limits
        self.port = 0
        self.server: HttpServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self.thread = threading.Thread(target=lambda: uvloop.run(self._main()), daemon=True)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.server = HttpServer(self.handler, self.limits)
        self.port = await self.server.listen("127.0.0.1", 0)
        self._ready.set()
        await self._stop.wait()
        await self.server.drain(0.5)

    def start(self) -> None:
        self.thread.start()
        assert self._ready.wait(10)

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self.thread.join(10)

    def do(self, action: Callable[[], None]) -> None:
        """Run something on the server's loop."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(action)


@contextmanager
def _serving(limits: ServerLimits | None = None) -> Iterator[_Running]:
    running = _Running(limits or ServerLimits())
    running.start()
    try:
        yield running
    finally:
        running.stop()


def _talk(running: _Running, data: bytes, mark: bytes = b"\0never") -> bytes:
    with socket.create_connection(("127.0.0.1", running.port), 10) as connection:
        connection.sendall(data)
        return read_until(connection, mark)


def test_requests_on_one_connection_are_answered_in_turn() -> None:
    with _serving() as running:
        one = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
        two = b"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
        last = b"GET /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = _talk(running, one + two + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert running.handler.seen == [
        (b"GET", b"/a", b""),
        (b"POST", b"/b", b"hi"),
        (b"GET", b"/c", b""),
    ]
    assert running.handler.peers == ["127.0.0.1"] * 3


def test_a_streamed_answer_is_chunked_and_ends() -> None:
    with _serving() as running:
        answer = _talk(running, b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n", b"0\r\n\r\n")
        assert b"transfer-encoding: chunked" in answer
        assert answer.endswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
        old = _talk(running, b"GET /stream HTTP/1.0\r\nHost: x\r\n\r\n")
        assert old.endswith(b"\r\n\r\nonetwo")


def test_white_space_round_header_values_is_taken_off() -> None:
    with _serving() as running:
        answer = _talk(running, b"GET / HTTP/1.1\r\nHost: x\r\nX-Odd:  \t v  \r\n\r\n", b"]")
    assert b'["host", "x-odd"]' in answer


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n", 413),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 100_000, 431),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 40_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"b" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
    ],
)
def test_a_request_with_two_readings_or_too_much_is_refused(
    request_bytes: bytes, status: int
) -> None:
    with _serving(ServerLimits(max_body=50)) as running:
        answer = _talk(running, request_bytes)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert b"connection: close" in answer
        assert running.handler.seen == []


def test_a_body_that_never_ends_is_cut_off_at_the_limit() -> None:
    with _serving(ServerLimits(max_body=1000)) as running:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = _talk(running, head + b"100\r\n" + b"x" * 256 + b"\r\n" + b"400\r\n" + b"y" * 1024)
        assert answer.startswith(b"HTTP/1.1 413")


def test_a_client_that_waits_for_leave_gets_it() -> None:
    with _serving() as running, socket.create_connection(("127.0.0.1", running.port), 10) as one:
        one.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
        assert read_until(one, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(b"ok")
        assert b"200 OK" in read_until(one, b"]")


def test_a_request_that_is_refused_by_its_head_is_not_read() -> None:
    with _serving() as running:
        answer = _talk(running, b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403")
        assert running.handler.seen == []


def test_a_client_that_leaves_is_noticed_while_its_answer_is_prepared() -> None:
    with _serving() as running:
        with socket.create_connection(("127.0.0.1", running.port), 10) as connection:
            connection.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_for(lambda: running.handler.held, what="the request")
        wait_for(lambda: running.handler.gone == 1, what="the end of the client")
        exchange = running.handler.held[0]
        assert exchange.is_gone
        running.do(lambda: exchange.respond(200))


@pytest.mark.parametrize(
    "sent", [b"GET / HT", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"]
)
def test_a_client_that_dawdles_is_sent_away(sent: bytes) -> None:
    limits = ServerLimits(head_timeout_s=0.1, body_timeout_s=0.1)
    with _serving(limits) as running:
        assert _talk(running, sent).startswith(b"HTTP/1.1 408")
        assert running.handler.seen == []


def test_an_idle_connection_is_closed_in_the_end() -> None:
    with _serving(ServerLimits(keep_alive_s=0.1)) as running:
        answer = _talk(running, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")


def test_a_client_that_reads_nothing_is_cut_off() -> None:
    with (
        _serving(ServerLimits(stall_timeout_s=0.1)) as running,
        socket.create_connection(("127.0.0.1", running.port), 10) as connection,
    ):
        connection.sendall(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: running.handler.gone == 1, what="the cut")


def test_what_a_client_leaves_unread_is_bounded() -> None:
    with _serving() as running, socket.create_connection(("127.0.0.1", running.port), 10) as one:
        one.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: running.handler.held, what="the request")
        held = running.handler.held[0]
        running.do(lambda: held.start(200))
        for _ in range(12):
            running.do(lambda: held.write(b"x" * 10_000_000))
        wait_for(lambda: running.handler.gone == 1, what="the cut")


def test_more_requests_than_can_wait_are_still_answered_in_turn() -> None:
    with _serving() as running, socket.create_connection(("127.0.0.1", running.port), 10) as one:
        one.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: running.handler.held, what="the first request")
        one.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        running.do(lambda: running.handler.held[0].respond(204))
        answer = b""
        while answer.count(b"200 OK") < 20:
            answer += one.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 204")


def test_a_draining_server_finishes_what_it_has_and_takes_no_more() -> None:
    running = _Running(ServerLimits())
    running.start()
    with (
        socket.create_connection(("127.0.0.1", running.port), 10) as busy,
        socket.create_connection(("127.0.0.1", running.port), 10) as idle,
    ):
        busy.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: running.handler.held, what="the request")
        stopping = threading.Thread(target=running.stop)
        stopping.start()
        assert idle.recv(1) == b""
        running.do(lambda: running.handler.held[0].respond(200, b"", b"done"))
        answer = read_until(busy, b"done")
        assert b"connection: close" in answer
        stopping.join(10)
    with pytest.raises(OSError, match=r".+"):
        socket.create_connection(("127.0.0.1", running.port), 1).close()


def test_an_upgrade_is_answered_as_plain_http() -> None:
    with _serving() as running:
        answer = _talk(
            running,
            b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nPRI * HTTP/2.0",
        )
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in answer
        assert answer.endswith(b"]")  # and then the connection was closed


@pytest.mark.parametrize("target", [b"/", b"/stream", b"/refused"])
def test_an_answer_to_head_has_no_body(target: bytes) -> None:
    with _serving() as running:
        head = b"HEAD " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n"
        last = b"HEAD " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = _talk(running, head + last)
    parts = answer.split(b"\r\n\r\n")
    assert all(part.startswith(b"HTTP/1.1 ") for part in parts[:-1])
    assert parts[-1] == b""
    assert answer.count(b"HTTP/1.1 ") == (1 if target == b"/refused" else 2)


def test_a_flood_of_waiting_requests_is_answered_without_digging_into_the_stack() -> None:
    with _serving() as running, socket.create_connection(("127.0.0.1", running.port), 10) as one:
        count = 2000
        flood = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n" * count
        one.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n" + flood)
        wait_for(lambda: running.handler.held, what="the first request")
        running.do(lambda: running.handler.held[0].respond(204))
        one.settimeout(10)
        answer = b""
        while answer.count(b"200 OK") < count:
            answer += one.recv(1_000_000)


def test_a_trailer_changes_nothing_of_the_head() -> None:
    with _serving() as running:
        answer = _talk(
            running,
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"2\r\nhi\r\n0\r\nX-Late: 1\r\nHost: y\r\n\r\n",
            b"]",
        )
    assert b'["host", "transfer-encoding"]' in answer
    assert running.handler.seen == [(b"POST", b"/", b"hi")]


@pytest.mark.parametrize("endless", [b"0\r\nX-Late: ", b"2;extension="])
def test_what_never_ends_round_the_chunks_is_cut_off(endless: bytes) -> None:
    with _serving() as running, socket.create_connection(("127.0.0.1", running.port), 10) as one:
        one.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + endless)
        with contextlib.suppress(ConnectionError):
            for _ in range(200):
                one.sendall(b"a" * 100_000)
        with contextlib.suppress(ConnectionError):
            assert read_until(one, b"refused").startswith(b"HTTP/1.1 431")
        wait_for(lambda: not running.server or not running.server.connections, what="the cut")
        assert running.handler.seen == []


def test_a_request_that_waits_says_nothing_into_the_answer_before_it() -> None:
    with _serving() as running, socket.create_connection(("127.0.0.1", running.port), 10) as one:
        waiting = (
            b"POST /x HTTP/1.0\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
        one.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n" + waiting)
        wait_for(lambda: running.handler.held, what="the first request")
        held = running.handler.held[0]
        running.do(lambda: held.start(200))
        running.do(lambda: held.write(b"first"))
        running.do(held.end)
        answer = read_until(one, b"100 Continue\r\n\r\n")
        assert b"\r\n\r\n5\r\nfirst\r\n0\r\n\r\nHTTP/1.1 100 Continue" in answer
        one.sendall(b"ok")
        assert b"200 OK" in read_until(one, b"]")


@pytest.mark.parametrize(
    ("behind", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 40_000 + b"\r\n\r\n", 431),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n80\r\n" + b"x" * 128,
            413,
        ),
    ],
)
def test_a_bad_request_behind_others_is_refused_in_its_turn(behind: bytes, status: int) -> None:
    with (
        _serving(ServerLimits(max_body=50)) as running,
        socket.create_connection(("127.0.0.1", running.port), 10) as one,
    ):
        waiting = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"
        one.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n" + waiting + behind)
        wait_for(lambda: running.handler.held, what="the first request")
        running.do(lambda: running.handler.held[0].respond(204))
        answer = read_until(one, b"\0never")
    found = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answer)]
    assert found == [204, 200, status]
    assert [seen[1] for seen in running.handler.seen] == [b"/hold", b"/x"]


def test_half_a_head_behind_an_answered_request_has_its_time_too() -> None:
    with (
        _serving(ServerLimits(head_timeout_s=0.1)) as running,
        socket.create_connection(("127.0.0.1", running.port), 10) as one,
    ):
        one.sendall(b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /x HT")
        wait_for(lambda: running.handler.held, what="the first request")
        running.do(lambda: running.handler.held[0].respond(204))
        assert b"HTTP/1.1 408" in read_until(one, b"HTTP/1.1 408")


@pytest.mark.parametrize("turns", range(4))
def test_a_connection_that_comes_as_the_server_ends_is_closed_with_it(turns: int) -> None:
    async def come_and_end() -> list[socket.socket]:
        server = HttpServer(_Handler())
        port = await server.listen("127.0.0.1", 0)
        clients = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(5)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.drain(0.0)
        return clients

    for client in within(lambda: uvloop.run(come_and_end())):
        with client, contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
