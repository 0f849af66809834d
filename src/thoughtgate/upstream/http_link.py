"""An HTTP server for an agent on stdio: lines become POSTs, answers become lines again.

The gate is a client here and does what a client must: it remembers the session and the
revision that the handshake settled, repeats the body in headers where the revision asks
for it, keeps the server's own stream open, and resumes streams that broke off.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final

from thoughtgate.core.commands import ToServer
from thoughtgate.core.events import NotSent, ServerSent
from thoughtgate.errors import PeerError
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import SessionDriver, Sink
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.http_client import ClientExchange, HttpPool
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.batch import one_line
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import RESPONSE, Message, RequestId
from thoughtgate.wire.methods import CANCELLED
from thoughtgate.wire.revisions import version_in
from thoughtgate.wire.sse import EventSplitter, EventTooLongError

ACCEPT: Final = (b"accept", b"application/json, text/event-stream")
MAX_ANSWER: Final = 10 * 1024 * 1024
MAX_RESUMES: Final = 20
"""How often one stream is resumed; a server that hangs up on every look is broken."""
RETRY_S: Final = 1.0
MAX_RETRY_S: Final = 30.0

_OK: Final = 200
_ACCEPTED: Final = 202
_NO_CONTENT: Final = 204
_FIRST_ERROR: Final = 400


class HttpLink:
    """Carries one agent's frames to an HTTP server."""

    def __init__(
        self, pool: HttpPool, flow: SessionDriver, agent: Sink, tools: ToolHeaders
    ) -> None:
        self._pool = pool
        self._flow = flow
        self._agent = agent
        self._tools = tools
        self._session = b""
        self._version = b""
        self._open: dict[RequestId, Incoming] = {}
        self._streams: set[Incoming] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, frame: ToServer) -> None:
        """POST one frame."""
        data, key, message = frame
        if message is None:
            self.lost(key, "invalid_request")
            return
        if message.method == CANCELLED and self._cancel(message):
            return
        answer = Incoming(self, key, message.method)
        if key is not None:
            self._open[key] = answer
        self._streams.add(answer)
        headers = [(b"content-type", b"application/json"), ACCEPT, *self._headers(message)]
        answer.exchange = self._pool.send(b"POST", headers, data, answer)

    async def close(self) -> None:
        """End the session and every stream."""
        for task in list(self._tasks):
            task.cancel()
        for stream in list(self._streams):
            stream.abort()
        if self._session:
            # A server that cannot be told forgets the session by itself.
            with contextlib.suppress(PeerError):
                await self._pool.request("DELETE", self._known(), timeout_s=2.0)
        await self._pool.close()

    # What the streams report.

    def took(self, line: bytes) -> None:
        """A frame of the server."""
        self._flow.feed(ServerSent(one_line(line), now()), self._agent)

    def learned(self, method: str, headers: Headers, line: bytes) -> None:
        """The answer to a handshake: remember what it settled."""
        if method != "initialize":
            return
        for name, value in headers:
            if name == mirror.SESSION:
                self._session = value
        message = read_frame(one_line(line))
        result = message.body.get("result") if isinstance(message, Message) else None
        version = result.get("protocolVersion") if type(result) is dict else None
        if type(version) is str:
            self._version = version.encode("ascii", "replace")

    def lost(self, key: RequestId | None, kind: str) -> None:
        """A request has no answer."""
        if key is not None:
            self._open.pop(key, None)
            self._flow.feed(NotSent(key, kind, now()), self._agent)

    def done(self, stream: "Incoming") -> None:
        """A stream is over."""
        self._streams.discard(stream)
        if stream.key is not None and self._open.get(stream.key) is stream:
            del self._open[stream.key]
        if stream.method == "notifications/initialized" and self._session:
            self._listen(b"", 0)

    def resume(self, stream: "Incoming", delay_s: float) -> None:
        """A stream broke off and can go on where it was."""
        self._spawn(self._reopen(stream, delay_s))

    # The server's own stream.

    def _listen(self, last: bytes, attempt: int) -> None:
        stream = Incoming(self, None, "GET", attempt)
        self._streams.add(stream)
        headers = [(b"accept", b"text/event-stream"), *self._known()]
        if last:
            headers.append((mirror.LAST_EVENT, last))
        stream.exchange = self._pool.send(b"GET", headers, b"", stream)

    async def _reopen(self, stream: "Incoming", delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        again = Incoming(self, stream.key, stream.method, stream.attempt + 1)
        again.last = stream.last
        self._streams.add(again)
        if stream.key is not None:
            self._open[stream.key] = again
        headers = [(b"accept", b"text/event-stream"), *self._known()]
        headers.append((mirror.LAST_EVENT, stream.last))
        again.exchange = self._pool.send(b"GET", headers, b"", again)

    # Headers.

    def _headers(self, message: Message) -> Headers:
        params = message.body.get("params")
        version = version_in(params)
        traced = mirror.trace_headers(params)
        if version is None:
            return traced + self._known() if message.method != "initialize" else traced
        params = params if type(params) is dict else {}
        wanted = self._tools.of(str(params.get("name")))
        return traced + mirror.mirrored(message.method, params, version, wanted)

    def _known(self) -> Headers:
        known: Headers = []
        if self._session:
            known.append((mirror.SESSION, self._session))
        if self._version:
            known.append((mirror.VERSION, self._version))
        return known

    def _cancel(self, message: Message) -> bool:
        """From 2026-07-28 on a request is cancelled by closing its stream, not by a message."""
        params: dict[str, Any] = message.body.get("params") or {}
        ident = params.get("requestId")
        if type(ident) is not str and type(ident) is not int:
            return False
        stream = self._open.get(ident)
        if stream is None or self._session or self._version:
            return False
        stream.abort()
        self.done(stream)
        return True

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Incoming:
    """One answer, or one stream, on its way in."""

    def __init__(
        self, link: HttpLink, key: RequestId | None, method: str, attempt: int = 0
    ) -> None:
        self._link = link
        self.key = key
        self.method = method
        self.attempt = attempt
        self.exchange: ClientExchange | None = None
        self.last = b""
        """The id of the last event, for resuming."""
        self._status = 0
        self._headers: Headers = []
        self._body = bytearray()
        self._splitter: EventSplitter | None = None
        self._retry_s = RETRY_S
        self._is_answered = False
        self._is_over = False

    def started(self, head: ResponseHead) -> None:
        """Read the head."""
        self._status = head.status
        self._headers = head.headers
        kind = next((value for name, value in head.headers if name == b"content-type"), b"")
        if head.status == _OK and kind.partition(b";")[0].strip().lower() == b"text/event-stream":
            self._splitter = EventSplitter()

    def received(self, chunk: bytes) -> None:
        """Take a part of the body."""
        if self._is_over:
            return
        if self._splitter is None:
            self._body += chunk
            if len(self._body) > MAX_ANSWER:
                self._give_up()
            return
        try:
            events = self._splitter.feed(chunk)
        except EventTooLongError:
            self._give_up()
            return
        for event in events:
            if event.id:
                self.last = event.id
            self._read_retry(event.raw)
            if event.data:
                self._take(event.data)

    def ended(self) -> None:
        """The body is complete."""
        if self._is_over:
            return
        self._is_over = True
        if self._splitter is not None:
            self._end_stream()
        elif self.key is not None:
            self._take_whole(bytes(self._body))
        self._link.done(self)

    def failed(self, error: PeerError) -> None:
        """There will be no complete answer."""
        if self._is_over:
            return
        self._is_over = True
        if self._splitter is not None:
            self._end_stream()
        else:
            self._link.lost(self.key, error.kind)
        self._link.done(self)

    def abort(self) -> None:
        """Nobody waits any more."""
        self._is_over = True
        if self.exchange is not None:
            self.exchange.abort()

    def _take(self, line: bytes) -> None:
        message = read_frame(one_line(line))
        if isinstance(message, Message) and message.shape == RESPONSE and message.id == self.key:
            self._is_answered = True
            self._link.learned(self.method, self._headers, line)
        self._link.took(line)

    def _take_whole(self, body: bytes) -> None:
        if (self._status < _FIRST_ERROR and self._status not in {_ACCEPTED, _NO_CONTENT}) or (
            body.lstrip()[:1] == b"{" and self._names_key(body)
        ):
            self._take(body)
        if not self._is_answered:
            self._link.lost(self.key, "upstream_connection_failed")

    def _names_key(self, body: bytes) -> bool:
        message = read_frame(one_line(body))
        return isinstance(message, Message) and message.id == self.key

    def _end_stream(self) -> None:
        waits = self.key is not None and not self._is_answered
        if (waits or self.method == "GET") and self.last and self.attempt < MAX_RESUMES:
            self._link.resume(self, self._retry_s)
        elif waits:
            self._link.lost(self.key, "upstream_connection_failed")

    def _read_retry(self, raw: bytes) -> None:
        for line in raw.splitlines():
            if line.startswith(b"retry:"):
                value = line[6:].strip()
                if value.isdigit():
                    self._retry_s = min(int(value) / 1000, MAX_RETRY_S)

    def _give_up(self) -> None:
        self.abort()
        self._link.lost(self.key, "upstream_connection_failed")
        self._link.done(self)
