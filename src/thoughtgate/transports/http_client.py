"""An HTTP/1.1 client for one origin: a connection pool based on httptools.

Calls use callbacks instead of futures, for speed; ``request`` is the awaitable form for
everything else. Redirects are not followed, requests are never sent twice, and cookies are not
kept. Bodies are not interpreted here.
"""

import asyncio
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, cast

import httptools

from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.transports.collected_response import Collector, Response
from thoughtgate.transports.connect_errors import connect_error, lost_error
from thoughtgate.transports.http_heads import Headers, KnownHeads, ResponseHead, render_request
from thoughtgate.transports.http_proxy import ProxyAddress, connect_through
from thoughtgate.transports.origin import parse_origin

CONNECT_TIMEOUT_S: Final = 5.0
IDLE_S: Final = 4.0
"""An idle connection is not reused after this time: common servers close theirs after five."""

MAX_IDLE: Final = 256
"""Maximum number of idle connections."""

MAX_HEAD: Final = 65_536
"""Maximum bytes of a response's head."""

MAX_HEADERS: Final = 512

MAX_BODY: Final = 10 * 1024 * 1024
"""Maximum bytes of a body that ``request`` collects."""

_INFORMATIONAL: Final = range(100, 200)
_BODILESS: Final = frozenset({204, 304})
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
_REFUSALS: Final = frozenset({401, 403})
"""Statuses that refuse our credentials."""


class Receiver(Protocol):
    """Receives a response. After ``ended`` or ``failed`` no method is called."""

    def started(self, head: ResponseHead) -> None:
        """The head has arrived."""

    def received(self, chunk: bytes) -> None:
        """A part of the body has arrived."""

    def ended(self) -> None:
        """The response is complete."""

    def failed(self, error: PeerError) -> None:
        """There will be no complete response."""


class Route(Protocol):
    """Sends requests in another way."""

    def take(
        self, head: bytes, body: bytes, receiver: Receiver, principal: str
    ) -> "ClientExchange":
        """Send a request."""


@dataclass(slots=True)
class PoolOptions:
    """The settings of a pool."""

    connect_timeout_s: float = CONNECT_TIMEOUT_S
    idle_s: float = IDLE_S
    max_idle: int = MAX_IDLE
    tls: ssl.SSLContext | None = None
    """Needed for https."""
    proxy: ProxyAddress | None = None
    """Connects to the origin; None to connect directly."""
    max_answer: int = MAX_BODY
    """Maximum bytes of an answer or event, for receivers that read one."""
    headers: Headers = field(default_factory=list, repr=False)
    """Sent with every request, such as the credentials for this origin."""
    address: str = ""
    """Connect to this IP address, which was checked, instead of resolving the host name again."""


class HttpPool:
    """A pool of connections to one origin."""

    def __init__(self, url: str, options: PoolOptions | None = None) -> None:
        self.origin = parse_origin(url)
        self.options = options or PoolOptions()
        self._idle: list[_Connection] = []
        self._busy: set[_Connection] = set()
        self._connecting: dict[asyncio.Task[None], ClientExchange] = {}
        self._closed = False
        self.heads: KnownHeads[ResponseHead] = KnownHeads()
        self.route: Route | None = None
        """Another way for requests, if the server speaks another transport."""
        own = _render_headers(self.options.headers)
        name = self.origin.authority
        # The codec for other names takes milliseconds to load.
        authority = name.encode("ascii" if name.isascii() else "idna")
        self._shared = b"host: %b\r\n%b" % (authority, own)
        self._prefix = b""
        """What precedes the path in a request: a proxy for http needs the whole URL."""
        if self.options.proxy is not None and self.origin.scheme == "http":
            self._prefix = b"http://" + authority
            self._shared += self.options.proxy.header

    @property
    def open_connections(self) -> int:
        """The number of connections that exist or are being opened."""
        return len(self._idle) + len(self._busy) + len(self._connecting)

    def send(  # noqa: PLR0917  a keyword would cost every call
        self,
        method: bytes,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes,
        receiver: Receiver,
        target: bytes = b"",
        principal: str = "",
    ) -> "ClientExchange":
        """Send a request; the receiver is never called before this returns.

        Host and Content-Length are added here. A header that contains a line break fails the
        request. ``principal`` tells whose credentials to use, in a pool that has them.
        """
        return self.send_prepared(self.prepare(method, headers, target), body, receiver, principal)

    def prepare(
        self, method: bytes, headers: Iterable[tuple[bytes, bytes]], target: bytes = b""
    ) -> bytes:
        """Render the head of requests, except for the length of the body.

        Returns nothing if a header contains a line break: it would inject another header, or
        another request.
        """
        parts = [
            method,
            b" ",
            self._prefix,
            target or self.origin.target.encode(),
            b" HTTP/1.1\r\n",
            self._shared,
        ]
        lines = 1 + self._shared.count(b"\n")
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
            lines += 1
        head = b"".join(parts)
        is_whole = head.count(b"\n") == head.count(b"\r") == lines and b"\0" not in head
        return head if is_whole else b""

    def send_prepared(
        self,
        head: bytes,
        body: bytes,
        receiver: Receiver,
        principal: str = "",
        *,
        routed: bool = True,
    ) -> "ClientExchange":
        """Send a request with a head from ``prepare``; otherwise like ``send``.

        With ``routed``, the request may take the pool's ``route`` instead.
        """
        if self.route is not None and routed and head:
            return self.route.take(head, body, receiver, principal)
        exchange = ClientExchange(receiver, render_request(head, body))
        if not head:
            error = PeerError("invalid_request", "a header contains a line break")
            # Later, because the receiver is never called before this returns.
            asyncio.get_running_loop().call_soon(exchange.fail, error)
            return exchange
        self.begin(exchange)
        return exchange

    def begin(self, exchange: "ClientExchange") -> None:
        """Write a request to an idle connection, or to a new one."""
        oldest = time.monotonic() - self.options.idle_s
        # The connection that was used last first: it is the least likely to be closed by now.
        while self._idle:
            connection = self._idle.pop()
            transport = connection.transport
            is_usable = transport is not None and not transport.is_closing()
            if is_usable and connection.idle_since >= oldest:
                self._busy.add(connection)
                connection.begin(exchange)
                return
            connection.close()
        task = asyncio.get_running_loop().create_task(self._connect_for(exchange))
        self._connecting[task] = exchange
        task.add_done_callback(self._connecting.pop)

    def intercepts(self, exchange: "ClientExchange", head: ResponseHead) -> bool:
        """Return whether a refusal of our credentials is handled here, not by its receiver."""
        del exchange, head
        return False

    async def request(
        self,
        method: str,
        headers: Iterable[tuple[bytes, bytes]] = (),
        body: bytes = b"",
        *,
        target: str = "",
        timeout_s: float = 30.0,
        limit: int = MAX_BODY,
        principal: str = "",
    ) -> Response:
        """Send a request and collect the whole response.

        Raises:
            PeerError: there is no response, or it is too late or too large.
        """
        collector = Collector(limit)
        _render_headers(headers := list(headers))
        exchange = self.send(method.encode(), headers, body, collector, target.encode(), principal)
        try:
            async with asyncio.timeout(timeout_s):
                return await collector.response
        except TimeoutError:
            raise upstream_error("answer_timeout") from None
        finally:
            exchange.abort()

    async def probe(self) -> PeerError | None:
        """Return why the origin accepts no connections; a new connection stays in the pool."""
        if self._idle:
            return None
        try:
            connection = await self._connect()
        except PeerError as error:
            return error
        except (OSError, ValueError) as error:
            return connect_error(error)
        self.release(connection, reusable=True)
        return None

    async def close(self) -> None:
        """Close every connection; waiting receivers get ``failed``."""
        self._closed = True
        connecting = dict(self._connecting)
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        for exchange in connecting.values():
            exchange.fail(upstream_error("gate_closing"))
        for connection in [*self._idle, *self._busy]:
            connection.close()
        self._idle.clear()

    async def _connect(self) -> "_Connection":
        origin, options = self.origin, self.options
        tls = options.tls if origin.scheme == "https" else None
        async with asyncio.timeout(options.connect_timeout_s):
            if (proxy := options.proxy) is not None:
                make = partial(_Connection, self)
                place = (origin.host, origin.port, tls)
                return await connect_through(proxy, make, *place, address=options.address)
            _, protocol = await asyncio.get_running_loop().create_connection(
                lambda: _Connection(self),
                options.address or origin.host,
                origin.port,
                ssl=tls,
                server_hostname=origin.host if tls is not None else None,
            )
        return protocol

    async def _connect_for(self, exchange: "ClientExchange") -> None:
        try:
            protocol = await self._connect()
        except PeerError as error:
            exchange.fail(error)
        except (OSError, ValueError) as error:
            exchange.fail(connect_error(error))
        else:
            if exchange.is_over or self._closed:
                protocol.close()
                exchange.fail(upstream_error("gate_closing"))
                return
            self._busy.add(protocol)
            protocol.begin(exchange)

    def release(self, connection: "_Connection", *, reusable: bool) -> None:
        """Return a connection to the pool after its exchange."""
        self._busy.discard(connection)
        if not reusable or self._closed or len(self._idle) >= self.options.max_idle:
            connection.close()
            return
        connection.idle_since = time.monotonic()
        self._idle.append(connection)

    def forget(self, connection: "_Connection") -> None:
        """Remove a closed connection."""
        self._busy.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def drop_idle(self) -> None:
        """Close connections that were idle for too long."""
        oldest = time.monotonic() - self.options.idle_s
        stale = [connection for connection in self._idle if connection.idle_since < oldest]
        for connection in stale:
            self._idle.remove(connection)
            connection.close()


class ClientExchange:
    """One request and its response."""

    __slots__ = ("connection", "data", "receiver")

    def __init__(self, receiver: Receiver, data: bytes) -> None:
        self.receiver: Receiver | None = receiver
        """The receiver, until the exchange is over."""
        self.connection: _Connection | None = None
        """The connection that the request was written to, until the exchange is over."""
        self.data = data
        """The request, until it is written."""

    @property
    def is_over(self) -> bool:
        """Whether the response is complete, failed or given up."""
        return self.receiver is None

    @property
    def max_answer(self) -> int:
        """Maximum bytes of an answer or event; the receiver enforces it."""
        return self.connection.max_answer if self.connection is not None else MAX_BODY

    def finish(self) -> None:
        """Tell the receiver that the response is complete."""
        receiver, self.receiver = self.receiver, None
        self.connection = None
        if receiver is not None:
            receiver.ended()

    def fail(self, error: PeerError) -> None:
        """Tell the receiver that no complete response will come."""
        receiver, self.receiver = self.receiver, None
        self.connection = None
        if receiver is not None:
            receiver.failed(error)

    def abort(self) -> None:
        """Close the connection without telling the receiver, which no longer waits."""
        self.receiver = None
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()

    def pause(self) -> None:
        """Stop reading the response until ``resume``."""
        if (transport := self._open_transport()) is not None:
            transport.pause_reading()

    def resume(self) -> None:
        """Continue reading the response."""
        if (transport := self._open_transport()) is not None:
            transport.resume_reading()

    def _open_transport(self) -> asyncio.Transport | None:
        connection = self.connection
        return connection.transport if connection is not None and connection.is_usable else None


class _Connection(asyncio.Protocol):
    """One connection; carries one exchange at a time."""

    def __init__(self, pool: HttpPool) -> None:
        self._pool = pool
        self.transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: ClientExchange | None = None
        self._headers: Headers = []
        self._fresh = b""
        """The first bytes of a response whose head is not complete yet."""
        self._is_fresh = True
        """Whether nothing of the response has arrived."""
        self._bare = 0
        """Bytes of heads, trailers and chunk framing since the last body byte, which are limited."""
        self._in_head = True
        self._complete = False
        self._desynced = False
        self._keep_alive = False
        self._until_close = False
        self.idle_since = 0.0

    @property
    def max_answer(self) -> int:
        """Maximum bytes of an answer or event."""
        return self._pool.options.max_answer

    @property
    def is_usable(self) -> bool:
        """Whether a request may be written."""
        return self.transport is not None and not self.transport.is_closing()

    def begin(self, exchange: ClientExchange) -> None:
        """Write a request and wait for its response."""
        transport = self.transport
        assert transport is not None  # noqa: S101  only usable connections begin
        self._exchange = exchange
        self._headers = []
        self._bare = 0
        self._is_fresh = True
        self._in_head = True
        self._complete = False
        self._until_close = False
        exchange.connection = self
        transport.write(exchange.data)
        exchange.data = b""

    def close(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    # The transport's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._exchange is None:
            # Unrequested bytes could be mistaken for the next response, so hang up.
            self._pool.forget(self)
            self.close()
            return
        if self._is_fresh:
            self._is_fresh = False
            # A server repeats its heads byte for byte: a known one need not be parsed again.
            known = self._pool.heads.find(data)
            if known is not None:
                head, end = known
                self._take_known(self._exchange, head, data[end:])
                return
            self._fresh = data
        self._bare += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # What follows is not HTTP, so this connection must not carry another exchange.
            self._desynced = True
        except httptools.HttpParserError:
            self._broken(upstream_error("not_http"))
            return
        if len(self._headers) > MAX_HEADERS or self._bare > MAX_HEAD:
            reason = "the server's answer has too many headers"
            self._broken(upstream_error("too_large", reason))
        elif self._complete:
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._pool.forget(self)
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        if self._until_close and not self._in_head and exc is None:
            exchange.finish()
        else:
            exchange.fail(lost_error(exc))

    # The parser's callbacks.

    def on_message_begin(self) -> None:
        # A second response to one request must not answer the next request.
        if self._complete:
            self._desynced = True

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers are ignored: the response was already interpreted by its head.
        if self._in_head and not self._desynced and len(self._headers) <= MAX_HEADERS:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        # The first bytes belong to this head only, even if it is an informational response.
        fresh, self._fresh = self._fresh, b""
        if self._desynced or status in _INFORMATIONAL or len(self._headers) > MAX_HEADERS:
            return
        self._in_head = False
        self._bare = 0
        self._keep_alive = self._parser.should_keep_alive()
        names = {name for name, _ in self._headers}
        self._until_close = status not in _BODILESS and not names & _FRAMING
        head = ResponseHead(status, self._headers)
        self._learn(fresh, head)
        exchange = self._exchange
        if exchange is not None and exchange.receiver is not None:
            if status in _REFUSALS and self._pool.intercepts(exchange, head):
                self._exchange = None
                self.close()
                return
            exchange.receiver.started(head)

    def _learn(self, fresh: bytes, head: ResponseHead) -> None:
        """Cache a head, if its next response can be read without the parser."""
        if not fresh or not self._keep_alive or head.status in _BODILESS | _REFUSALS:
            return
        framing = [one for one in head.headers if one[0] in _FRAMING]
        if len(framing) == 1 and framing[0][0] == b"content-length":
            begins = b"HTTP/1.1 %d " % head.status
            self._pool.heads.learn(fresh, begins, head, framing[0][1])

    def _take_known(self, exchange: ClientExchange, head: ResponseHead, body: bytes) -> None:
        """Handle a complete response whose head is in the cache."""
        self._keep_alive = True
        receiver = exchange.receiver
        if receiver is not None:
            receiver.started(head)
            # Looked up again: the receiver may have given up, or put a decompressor in its place.
            if (receiver := exchange.receiver) is not None:
                receiver.received(body)
        self._finish()

    def on_body(self, body: bytes) -> None:
        self._bare = 0
        exchange = self._exchange
        if not self._desynced and exchange is not None and exchange.receiver is not None:
            exchange.receiver.received(body)

    def on_message_complete(self) -> None:
        if self._in_head:
            self._headers = []  # An informational response; the real one follows.
        else:
            self._complete = True

    # The end of an exchange.

    def _finish(self) -> None:
        exchange, self._exchange = self._exchange, None
        transport = self.transport
        reusable = (
            not self._desynced
            and self._keep_alive
            and transport is not None
            and not transport.is_closing()
            # A response before the whole request was written: the rest would precede the next.
            and transport.get_write_buffer_size() == 0
        )
        self._pool.release(self, reusable=reusable)
        if exchange is not None:
            exchange.finish()

    def _broken(self, error: PeerError) -> None:
        exchange, self._exchange = self._exchange, None
        self._pool.forget(self)
        self.close()
        if exchange is not None:
            exchange.fail(error)


def _render_headers(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Render headers from the config.

    Raises:
        ValueError: a name or value is not allowed in a header.
    """
    lines = []
    for name, value in headers:
        if any(byte in b"\r\n\0" for byte in name + value) or b":" in name or not name:
            raise ValueError("a header must not contain a line break")
        lines.append(b"%b: %b\r\n" % (name.lower(), value))
    return b"".join(lines)
