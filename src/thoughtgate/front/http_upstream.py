"""An upstream over HTTP: each POST of the agent becomes one POST to the server.

Sessions are the server's; their ids go through sealed. Streams that an agent opens with
GET, and the end of a session with DELETE, pass the same way.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from thoughtgate.core.commands import ToServer
from thoughtgate.errors import PeerError
from thoughtgate.front.batch import Batch
from thoughtgate.front.batch_item import Part
from thoughtgate.front.detached_calls import Alone
from thoughtgate.front.http_answer import HttpLeg
from thoughtgate.front.post import JSON, UNBUFFERED, Post
from thoughtgate.front.request_head import CONTENT, facts_of, unmirrored, upstream_headers
from thoughtgate.front.sessions import Entry
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.replies import render_error
from thoughtgate.wire.revisions import version_in

LOOK_EVERY_S: Final = 15.0
RETRY_S: Final = 1.0

_NOTICE: Final[Headers] = [CONTENT, (b"accept", b"application/json, text/event-stream")]


class HttpUpstream:
    """A server that is reached over HTTP."""

    names_sessions = True
    """The server names its sessions itself, if it has any."""

    adopts_sessions = True
    """The server itself knows its sessions."""

    def __init__(self, pool: HttpPool, *, traces: bool = False) -> None:
        self._pool = pool
        self._traces = traces
        self.on_refused: Callable[[bytes, str], None] = lambda _line, _check: None
        """Never called: every frame of an HTTP server has its session."""
        self._notices: set[_Notice] = set()
        self._is_up = False
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look whether the server is there; an absent one is no reason not to start."""
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Close every connection."""
        if self._looking is not None:
            self._looking.cancel()
        await self._pool.close()

    @property
    def is_up(self) -> bool:
        """Whether the server took the last connection that was tried."""
        return self._is_up

    async def _look(self) -> None:
        """Look from time to time whether the server takes connections, while nobody asks it."""
        while True:
            self._pool.drop_idle()
            self._is_up = await self._pool.probe()
            await asyncio.sleep(LOOK_EVERY_S if self._is_up else RETRY_S)

    def send(self, post: Post, frame: ToServer) -> None:
        """Send a POST on."""
        pool, exchange = self._pool, post.exchange
        post.leg = leg = PausableLeg(post, post.flow, frame.key)
        if self._traces:
            headers = [*upstream_headers(exchange, post.upstream_session), CONTENT]
            head = pool.prepare(b"POST", self._traced(headers, frame))
        else:
            head = facts_of(exchange).prepared(pool, exchange, post.upstream_session)
        leg.exchange = pool.send_prepared(head, frame.data, leg)

    def send_part(self, batch: Batch, frame: ToServer) -> "PausableLeg":
        """Send one message of a batch on."""
        headers = unmirrored(upstream_headers(batch.exchange, batch.upstream_session))
        headers.append(CONTENT)
        headers = self._traced(headers, frame)
        leg = PausableLeg(Part(batch, frame.key), batch.flow, frame.key)
        leg.exchange = self._pool.send(b"POST", headers, frame.data, leg)
        return leg

    def notify(self, flow: SessionDriver, entry: Entry | None, frame: ToServer) -> None:
        """Send a frame that belongs to no POST of the agent, such as a cancellation."""
        if flow.is_modern:
            return  # From 2026-07-28 on a closed stream says it all.
        headers = list(_NOTICE)
        if entry is not None:
            headers.append((mirror.SESSION, entry.upstream.encode("latin-1")))
        notice = _Notice(self._notices)
        self._notices.add(notice)
        self._pool.send(b"POST", headers, frame.data, notice)

    def send_alone(
        self, alone: Alone, entry: Entry | None, frame: ToServer, tools: ToolHeaders
    ) -> None:
        """Send a frame that no caller waits for."""
        flow = alone.flow
        headers = list(_NOTICE)
        if entry is not None:
            headers.append((mirror.SESSION, entry.upstream.encode("latin-1")))
        message = frame.message
        if flow.is_modern and message is not None:
            params = message.body.get("params") or {}
            wanted = tools.of(str(params.get("name")))
            headers += mirror.mirrored(message.method, params, version_in(params) or "", wanted)
        leg = PausableLeg(alone, flow, alone.key)
        headers = self._traced(headers, frame)
        leg.exchange = self._pool.send(b"POST", headers, frame.data, leg)

    def _traced(self, headers: Headers, frame: ToServer) -> Headers:
        """Name the gate's own span in the header too, where the gate traces."""
        if frame.message is None or not self._traces:
            return headers
        traced = mirror.trace_headers(frame.message.body.get("params"))
        if traced:
            headers = [header for header in headers if header[0] != mirror.TRACE]
        return headers + traced

    def forget(self, flow: SessionDriver) -> None:
        """The server forgets its sessions itself."""

    def open_stream(self, exchange: Exchange, entry: Entry) -> "Stream":
        """Open the stream on which the server speaks unasked, or resume one."""
        stream = Stream(exchange)
        leg = PausableLeg(stream, entry.flow, None)
        stream.leg = leg
        headers = upstream_headers(exchange, entry.upstream)
        leg.exchange = self._pool.send(b"GET", headers, b"", leg)
        return stream

    def end_session(self, exchange: Exchange, entry: Entry, ended: Callable[[Entry], None]) -> None:
        """Pass the end of a session on; a server may refuse to end it."""
        stream = Stream(exchange, lambda: ended(entry))
        leg = PausableLeg(stream, entry.flow, None)
        stream.leg = leg
        headers = upstream_headers(exchange, entry.upstream)
        leg.exchange = self._pool.send(b"DELETE", headers, b"", leg)


class PausableLeg(HttpLeg):
    """A leg whose reading can follow the agent's pace."""

    __slots__ = ()

    def pause(self) -> None:
        """Read no more until ``resume``."""
        if self.exchange is not None:
            self.exchange.pause()

    def resume(self) -> None:
        """Read again."""
        if self.exchange is not None:
            self.exchange.resume()


class Stream:
    """A GET or DELETE of the agent, passed on."""

    def __init__(self, exchange: Exchange, on_done: Callable[[], None] | None = None) -> None:
        self.exchange = exchange
        self.leg: PausableLeg | None = None
        self._on_done = on_done
        exchange.on_gone = self._gone

    def stream_started(self, status: int, headers: bytes) -> None:
        """The server has opened the stream."""
        self.exchange.start(status, headers + UNBUFFERED)

    def stream_wrote(self, data: bytes) -> None:
        """Pass a part on."""
        self.exchange.write(data)
        if self.exchange.is_stalled and self.leg is not None:
            self.leg.pause()
            self.exchange.on_writable = self.leg.resume

    stream_answered = stream_wrote
    """No request was asked on this stream; an answer that comes is one to a resumed request."""

    def stream_ended(self) -> None:
        """The server has closed the stream."""
        self.exchange.end()

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Never on a stream that nobody asked anything on."""
        self.exchange.respond(status, headers, data)

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """The server has no such stream, or has ended the session."""
        if self._on_done is not None and status < HTTPStatus.MULTIPLE_CHOICES:
            self._on_done()
        self.exchange.respond(status, headers, body)

    def failed(self, kind: str, status: int = 200) -> None:
        """The server cannot be reached."""
        del status
        self.exchange.respond(502, JSON, render_error(None, kind))

    def session_named(self, upstream: str) -> str:
        """Nothing new can be named here."""
        del upstream
        return ""

    def close(self) -> None:
        """End the stream from our side."""
        if self.leg is not None:
            self.leg.abort()
        if self.exchange.is_streaming:
            self.exchange.end()
        else:
            self.exchange.respond(503)

    def _gone(self) -> None:
        if self.leg is not None:
            self.leg.abort()


class _Notice:
    """Nobody waits for what the server says to a notice."""

    def __init__(self, open_notices: "set[_Notice]") -> None:
        self._open = open_notices

    def started(self, head: ResponseHead) -> None:
        """Not of interest."""

    def received(self, chunk: bytes) -> None:
        """Not of interest."""

    def ended(self) -> None:
        """Done."""
        self._open.discard(self)

    def failed(self, error: PeerError) -> None:
        """Not to be mended."""
        del error
        self._open.discard(self)
