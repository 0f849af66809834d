"""An HTTP/1.1 server over httptools and asyncio transports, without a task per request.

It implements HTTP: framing, limits, keep-alive, streams, backpressure, and clients that stall
or disconnect. It does not know MCP: a handler gets the head of each request, then the complete
request, and responds through the exchange. It takes a third of the time of an ASGI server.
"""

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from math import inf
from typing import Any, Final, Protocol, cast

import httptools

from thoughtgate.transports.http_heads import MAX_HEAD, KnownHeads, RequestHead, wrong_head
from thoughtgate.transports.server_limits import ServerLimits

MAX_PIPELINED: Final = 8
"""Maximum number of pipelined requests per connection; beyond it, reading pauses."""

MAX_UNREAD: Final = 64 * 1024 * 1024
"""Maximum bytes queued for a client that does not read: several of the largest messages."""

LAST_WORD_S: Final = 0.5  # for the last answers of a stopping server to be sent
SWEEP_S: Final = 1.0
"""How often deadlines of connections are checked."""

BACKLOG: Final = 4096

_STATUS_LINES: Final = {code: b"HTTP/1.1 %d \r\n" % code for code in range(100, 600)} | {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in HTTPStatus
}
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_CLOSE: Final = b"connection: close\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"


PeerCertificate = dict[str, Any]
"""A certificate as the ``ssl`` module describes it."""


class Handler(Protocol):
    """Handles requests."""

    def opened(self, exchange: "Exchange") -> None:
        """The head has arrived. To refuse without reading the body, respond now."""

    def completed(self, exchange: "Exchange") -> None:
        """The complete request has arrived; not called if it was already answered."""

    def refused(self, exchange: "Exchange", status: int) -> None:
        """The request is malformed, too large or too slow: respond with this status."""


class Exchange:
    """One request and its response."""

    __slots__ = (
        "_connection",
        "also",
        "body",
        "expects_continue",
        "facts",
        "head",
        "headers",
        "is_answered",
        "is_gone",
        "is_streaming",
        "keep_alive",
        "method",
        "on_gone",
        "on_writable",
        "peer",
        "repeated",
        "speaks_chunks",
        "target",
        "wire_headers",
    )

    def __init__(self, connection: "_Connection", peer: str, head: RequestHead) -> None:
        self._connection = connection
        self.peer = peer
        """Address of the client, without port."""
        self.head = head
        self.method = head.method
        self.target = head.target
        self.headers = head.headers
        self.wire_headers = head.wire_headers
        self.repeated = head.repeated
        self.body = b""
        self.keep_alive = head.keep_alive
        self.expects_continue = head.expects_continue
        self.speaks_chunks = head.speaks_chunks
        self.is_answered = False
        """Whether the response is complete."""
        self.is_gone = False
        """Whether the client disconnected before the response was complete."""
        self.on_gone: Callable[[], None] | None = None
        self.on_writable: Callable[[], None] | None = None
        """Called when a slow client can be written to again."""
        self.facts: object = None
        """For the handler: its result from ``opened``."""
        self.also = b""
        """Rendered headers that are added to every response."""
        self.is_streaming = False
        """Whether the head of a streamed response was sent."""

    def certificate(self) -> PeerCertificate | None:
        """Return the client's certificate, which TLS has verified; None if it was not asked for."""
        return self._connection.certificate()

    @property
    def is_stalled(self) -> bool:
        """Whether the client reads more slowly than we write."""
        return self._connection.stalled_since > 0.0

    def respond(self, status: int, headers: bytes = b"", body: bytes = b"") -> None:
        """Send a complete response. ``headers`` are rendered lines; the length is added here."""
        if self.is_answered or self.is_gone:
            return
        self.is_answered = True
        has_length = body or status not in {204, 304}
        length = b"content-length: %d\r\n" % len(body) if has_length else b""
        close = b"" if self.keep_alive else _CLOSE
        sent = b"" if self.method == b"HEAD" else body
        head = (_STATUS_LINES[status], self.also, headers, length, close, b"\r\n", sent)
        connection = self._connection
        connection.write(b"".join(head))
        connection.finished(self)

    def start(self, status: int, headers: bytes = b"") -> None:
        """Start a streamed response."""
        if self.is_answered or self.is_gone or self.is_streaming:
            return
        self.is_streaming = True
        parts = [_STATUS_LINES[status], self.also, headers]
        if self.speaks_chunks:
            parts.append(_CHUNKED)
        if not self.keep_alive:
            parts.append(_CLOSE)
        parts.append(b"\r\n")
        self._connection.write(b"".join(parts))

    def write(self, chunk: bytes) -> None:
        """Send a part of a streamed response immediately."""
        if not chunk or self.is_gone or self.is_answered or self.method == b"HEAD":
            return
        if self.speaks_chunks:
            chunk = b"%x\r\n%b\r\n" % (len(chunk), chunk)
        self._connection.write(chunk)

    def end(self) -> None:
        """Complete a streamed response."""
        if self.is_answered or self.is_gone:
            return
        self.is_answered = True
        if self.speaks_chunks and self.method != b"HEAD":
            self._connection.write(_LAST_CHUNK)
        self._connection.finished(self)

    def drop(self) -> None:
        """Abort the connection: the response cannot be completed and must not look complete."""
        if not self.is_gone:
            self._connection.abort()

    def accept_body(self) -> None:
        """Send ``100 Continue`` if the client waits for it before sending its body."""
        if self.expects_continue and not self.is_answered:
            self.expects_continue = False
            self._connection.write(_CONTINUE)


class HttpServer:
    """Listens for connections and enforces their deadlines."""

    def __init__(self, handler: Handler, limits: ServerLimits | None = None) -> None:
        self.handler = handler
        self.limits = limits or ServerLimits()
        self.connections: set[_Connection] = set()
        self.heads: KnownHeads[RequestHead] = KnownHeads()
        self.is_draining = False
        self.emptied: asyncio.Event | None = None
        """Set when the last connection of a draining server is closed."""
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None

    async def listen(
        self,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        reuse_port: bool = False,
    ) -> int:
        """Listen on an address and return the port.

        Raises:
            OSError: the address cannot be used.
        """
        server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self),
            host,
            port,
            ssl=tls,
            backlog=BACKLOG,
            reuse_port=reuse_port or None,
        )
        self._look_after(server)
        return int(server.sockets[0].getsockname()[1])

    async def listen_on(self, listener: socket.socket, tls: ssl.SSLContext | None = None) -> None:
        """Listen on an open socket."""
        create = asyncio.get_running_loop().create_server
        self._look_after(await create(lambda: _Connection(self), sock=listener, ssl=tls))

    async def drain(self, seconds: float, on_late: Callable[[], None] = lambda: None) -> None:
        """Accept no connections, let requests finish, then close; ``on_late`` may still respond."""
        self.is_draining = True
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.close_when_idle()
        await self._empty(seconds)
        if self.connections:
            on_late()
            await self._empty(LAST_WORD_S)
        for _ in range(4):  # an accepted connection appears in the list a few loop iterations later
            for connection in list(self.connections):
                connection.abort()
            await asyncio.sleep(0)
        if self._sweeper is not None:
            self._sweeper.cancel()

    async def _empty(self, seconds: float) -> None:
        self.emptied = asyncio.Event()
        if self.connections:
            await asyncio.wait({asyncio.ensure_future(self.emptied.wait())}, timeout=seconds)

    def _look_after(self, server: asyncio.Server) -> None:
        self._servers.append(server)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        moment = time.monotonic()
        for connection in list(self.connections):
            connection.check(moment)
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)


class _Connection(asyncio.Protocol):
    """One client connection."""

    __slots__ = (
        "_bare",
        "_body",
        "_current",
        "_deadline",
        "_discarding",
        "_fresh",
        "_in_request",
        "_limits",
        "_parser",
        "_paused",
        "_peer",
        "_queue",
        "_reading",
        "_refusal",
        "_server",
        "_size",
        "_transport",
        "_turning",
        "stalled_since",
    )

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._limits = server.limits
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._peer = ""
        self._reading: Exchange | None = None
        """The request whose bytes are arriving."""
        self._current: Exchange | None = None
        """The request that is being answered."""
        self._queue: deque[Exchange] | None = None
        self._body: list[bytes] = []
        self._size = 0
        self._fresh = b""
        """The first bytes of a request whose head is not complete yet."""
        self._bare = 0
        """Bytes of heads, trailers and chunk framing since the last body byte, which are limited."""
        self._in_request = False
        self._refusal = 0  # the status for a malformed request, once those before it are answered
        self._discarding = False
        self._turning = False
        self._paused = False
        self._deadline = time.monotonic() + self._limits.head_timeout_s
        self.stalled_since = 0.0

    # The transport's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        name = transport.get_extra_info("peername")
        self._peer = name[0] if isinstance(name, tuple) else ""
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._discarding:
            return
        if self._reading is None and self._current is None and not self._bare:
            # A client repeats its heads byte for byte: a known one need not be parsed again.
            known = self._server.heads.find(data)
            if known is not None:
                head, end = known
                self._take_known(head, data[end:])
                return
            self._fresh = data
        self._bare += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The client asked for an upgrade but got plain HTTP; it may now send anything.
            self._discarding = True
        except httptools.HttpParserError:
            self._refuse(400)
            return
        if self._reading is not None and self._bare > MAX_HEAD:
            self._refuse(431)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._transport = None
        server = self._server
        server.connections.discard(self)
        if server.emptied is not None and not server.connections:
            server.emptied.set()
        gone = [self._current, *(self._queue or ())]
        if self._reading is not None and self._reading not in gone:
            gone.append(self._reading)
        for exchange in gone:
            if exchange is not None and not exchange.is_answered:
                exchange.is_gone = True
                if exchange.on_gone is not None:
                    exchange.on_gone()
        self._current = self._reading = None
        self._queue = None

    def pause_writing(self) -> None:
        self.stalled_since = time.monotonic()

    def resume_writing(self) -> None:
        self.stalled_since = 0.0
        if self._current is not None and self._current.on_writable is not None:
            self._current.on_writable()

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        if self._discarding:
            return
        self._reading = Exchange(self, self._peer, RequestHead())
        self._in_request = False
        self._body = []
        self._size = 0
        if self._current is None:
            self._deadline = time.monotonic() + self._limits.head_timeout_s

    def on_url(self, url: bytes) -> None:
        if self._reading is not None:
            self._reading.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        exchange = self._reading
        if exchange is None or self._in_request:
            return  # Trailers are ignored, because the head was already checked.
        name = name.lower()
        if name in exchange.headers:
            exchange.repeated.add(name)
        value = value.strip(b" \t")
        exchange.headers[name] = value
        exchange.wire_headers.append((name, value))

    def on_headers_complete(self) -> None:
        exchange = self._reading
        if exchange is None or self._discarding:
            return
        self._in_request = True
        self._bare = 0
        self._deadline = time.monotonic() + self._limits.body_timeout_s
        self._finish_head(exchange)
        status = wrong_head(exchange.head, self._limits.max_body)
        if status:
            self._refuse(status)
            return
        self._learn(exchange.head)
        if self._current is None:
            self._current = exchange
            self._server.handler.opened(exchange)
            self._after_opened(exchange)
        else:
            self._enqueue(exchange)

    def _finish_head(self, exchange: Exchange) -> None:
        """Complete the head and its exchange with what the parser knows only now."""
        head, parser = exchange.head, self._parser
        exchange.method = head.method = parser.get_method()
        head.target = exchange.target
        exchange.speaks_chunks = head.speaks_chunks = parser.get_http_version() == "1.1"
        head.keep_alive = (
            head.speaks_chunks
            and parser.should_keep_alive()
            and not parser.should_upgrade()  # what follows would not be HTTP
        )
        exchange.keep_alive = head.keep_alive and not self._server.is_draining
        expects = head.headers.get(b"expect", b"").lower() == b"100-continue"
        exchange.expects_continue = head.expects_continue = expects

    def _learn(self, head: RequestHead) -> None:
        """Cache a head, if its next request can be read without the parser."""
        fresh, self._fresh = self._fresh, b""
        length = head.headers.get(b"content-length")
        if fresh and length and head.keep_alive and not head.expects_continue:
            begins = b"POST %b HTTP/1.1\r\n" % head.target
            self._server.heads.learn(fresh, begins, head, length)

    def _take_known(self, head: RequestHead, body: bytes) -> None:
        """Handle a complete request whose head is in the cache."""
        exchange = self._current = Exchange(self, self._peer, head)
        exchange.body = body
        exchange.keep_alive = not self._server.is_draining
        self._deadline = inf
        handler = self._server.handler
        handler.opened(exchange)
        if exchange.is_answered:
            self._after_opened(exchange)
        else:
            handler.completed(exchange)

    def on_body(self, body: bytes) -> None:
        exchange = self._reading
        self._bare = 0
        if exchange is None or self._discarding or exchange.is_answered:
            return
        self._size += len(body)
        if self._size > self._limits.max_body:
            self._refuse(413)
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        exchange, self._reading = self._reading, None
        if exchange is None or self._discarding:
            return
        self._in_request = False
        self._bare = 0
        self._deadline = inf
        body = self._body
        exchange.body = body[0] if len(body) == 1 else b"".join(body)
        self._body = []
        if exchange.is_answered:
            if self._current is exchange:
                self._next()
        elif self._current is exchange:
            self._server.handler.completed(exchange)

    # Called by the exchanges.

    def write(self, data: bytes) -> None:
        """Write to the client; one that has left too much unread is disconnected."""
        transport = self._transport
        if transport is None:
            return
        if self.stalled_since and transport.get_write_buffer_size() > MAX_UNREAD:
            transport.abort()
        else:
            transport.write(data)

    def finished(self, exchange: Exchange) -> None:
        """Handle a completed response."""
        if self._transport is None:
            return
        if not exchange.keep_alive:
            self._discarding = True
            self._transport.close()
        elif exchange is self._current and self._reading is not exchange:
            self._next()

    def certificate(self) -> PeerCertificate | None:
        """Return the certificate of the client."""
        transport = self._transport
        return transport.get_extra_info("peercert") if transport is not None else None

    def abort(self) -> None:
        """Abort the connection."""
        if self._transport is not None:
            self._transport.abort()

    def close_when_idle(self) -> None:
        """Close after the current response, or now."""
        if self._current is not None:
            self._current.keep_alive = False
        elif self._transport is not None:
            self._transport.close()

    def check(self, moment: float) -> None:
        """Check the deadlines."""
        if self.stalled_since and moment - self.stalled_since > self._limits.stall_timeout_s:
            self.abort()
        elif moment > self._deadline:
            if self._reading is not None and not self._reading.is_answered:
                self._refuse(408)
            else:
                self.abort()

    # The order of pipelined requests.

    def _after_opened(self, exchange: Exchange) -> None:
        if exchange.is_answered:
            # The body will not be read; the only safe way to skip it is to close the connection.
            exchange.keep_alive = False
            self._discarding = True
            if self._transport is not None:
                self._transport.close()
        else:
            exchange.accept_body()

    def _next(self) -> None:
        """Continue with the next pipelined request, or wait for one."""
        self._current = None
        if self._turning:
            return  # It was answered immediately; the loop in the caller continues.
        if self._queue:
            self._turning = True
            try:
                self._take_turns(self._queue)
            finally:
                self._turning = False
        if self._refusal and self._current is None:
            self._refuse(self._refusal)
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        if self._current is None:
            limits = self._limits
            seconds = limits.keep_alive_s if self._reading is None else limits.head_timeout_s
            self._deadline = time.monotonic() + seconds

    def _take_turns(self, queue: deque[Exchange]) -> None:
        while queue and self._current is None:
            exchange = queue.popleft()
            self._current = exchange
            self._server.handler.opened(exchange)
            if exchange.is_answered:
                if exchange is self._reading:
                    self._after_opened(exchange)
                    return
                if self._current is exchange:
                    self._current = None
            elif exchange is not self._reading:
                self._server.handler.completed(exchange)
            else:
                exchange.accept_body()

    def _enqueue(self, exchange: Exchange) -> None:
        if self._queue is None:
            self._queue = deque()
        self._queue.append(exchange)
        # Backpressure: a client that never reads responses could otherwise queue without end.
        if len(self._queue) >= MAX_PIPELINED and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def _refuse(self, status: int) -> None:
        """Respond to a malformed request and close the connection."""
        self._discarding = True
        if self._transport is None:
            return
        exchange = self._reading
        if self._current is not None and self._current is not exchange:
            # Another response is being sent; a second one would be taken for part of it.
            self._refusal = status
            if self._queue and exchange is self._queue[-1]:
                self._queue.pop()
            return
        if exchange is None:
            exchange = Exchange(self, self._peer, RequestHead())
        if exchange.is_streaming:
            self._transport.abort()
            return
        exchange.keep_alive = False
        self._server.handler.refused(exchange, status)
