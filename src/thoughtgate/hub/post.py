"""Answers over HTTP: one POST, which becomes a stream when it must; one GET stream a session."""

import json
from collections import deque
from collections.abc import Callable
from typing import Final

from thoughtgate.gate.clock import monotonic
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.headers import COMPANIONS, TRACE, is_companion
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.revisions import META, is_traceparent
from thoughtgate.wire.sse import render_event

JSON: Final = b"content-type: application/json\r\n"
STREAM: Final = (
    b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\n"
    b"x-accel-buffering: no\r\n"
)

SILENCE_S: Final = 15.0
"""After so much silence a stream carries a comment; proxies cut silent streams."""

MAX_WAITING: Final = 1000
MAX_WAITING_BYTES: Final = 1024 * 1024
"""Messages kept for a client whose stream is not open, and their size; the oldest are dropped."""

_COMMENT: Final = b": still here\n\n"
_STATUS: Final = {-32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""2026-07-28: statuses of errors; every other answer is 200."""


class HttpPost:
    """One request of a client, until it is answered."""

    def __init__(
        self, exchange: Exchange, accepts_stream: bool, *, modern: bool, headers: bytes = b""
    ) -> None:
        self._exchange = exchange
        self._accepts_stream = accepts_stream
        self._modern = modern
        self._headers = headers
        self._spoke_at = monotonic()
        self._over = False
        self.on_end: Callable[[], None] = lambda: None

    def take(self, data: bytes, about: RequestId | None, final: bool) -> None:
        """Send a frame that belongs to this request; the final one answers it."""
        del about
        if self._over:
            return
        if not final:
            if self._accepts_stream:
                self._stream(render_event(data))
            return
        if self._exchange.is_streaming:
            self._exchange.write(render_event(data))
            self._exchange.end()
        else:
            status = status_of(data) if self._modern else 200
            self._exchange.respond(status, self._headers + JSON, data)
        self._end()

    def keep_alive(self) -> None:
        """Say something if nothing was said for long."""
        if self._accepts_stream and not self._over and monotonic() - self._spoke_at > SILENCE_S:
            self._stream(_COMMENT)

    def gone(self) -> None:
        """The client left."""
        if not self._over:
            self._end()

    def _stream(self, chunk: bytes) -> None:
        self._spoke_at = monotonic()
        if not self._exchange.is_streaming:
            self._exchange.start(200, self._headers + STREAM)
        self._exchange.write(chunk)

    def _end(self) -> None:
        self._over = True
        self.on_end()


class HttpStream:
    """What a legacy client is told unasked: on its GET stream, or kept until there is one."""

    def __init__(self) -> None:
        self._exchange: Exchange | None = None
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._spoke_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the client listens."""
        return self._exchange is not None

    def attach(self, exchange: Exchange) -> None:
        """The client listens from now on."""
        self._exchange = exchange
        exchange.on_gone = self._left
        exchange.start(200, STREAM)
        self._spoke_at = monotonic()
        for data in self._waiting:
            exchange.write(render_event(data))
        self._waiting.clear()
        self._size = 0

    def put(self, data: bytes) -> None:
        """Tell the client something."""
        if self._exchange is None:
            self._keep(data)
        elif not self._exchange.is_stalled:
            self._spoke_at = monotonic()
            self._exchange.write(render_event(data))

    def _keep(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        while len(self._waiting) > MAX_WAITING or self._size > MAX_WAITING_BYTES:
            self._size -= len(self._waiting.popleft())

    @property
    def waiting(self) -> tuple[int, int]:
        """How many messages wait for the client, and their bytes."""
        return len(self._waiting), self._size

    def keep_alive(self) -> None:
        """Say something if nothing was said for long."""
        if self._exchange is not None and monotonic() - self._spoke_at > SILENCE_S:
            self._spoke_at = monotonic()
            self._exchange.write(_COMMENT)

    def close(self) -> None:
        """End the stream from our side."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.end()

    def _left(self) -> None:
        self._exchange = None


def trace_of(exchange: Exchange) -> str:
    """Return the W3C trace context that a request's head names; empty when it is none."""
    trace = exchange.headers.get(TRACE, b"").decode("latin-1")
    return trace if is_traceparent(trace) else ""


def with_companions(message: Message, exchange: Exchange) -> Message:
    """Return a request with what its head says beside the trace context, where servers find it."""
    said = {name: _joined(exchange, name.encode()) for name in COMPANIONS}
    carried = {name: text for name, text in said.items() if is_companion(text)}
    params = message.body.get("params")
    meta = params.get(META, {}) if type(params) is dict else None
    if not carried or type(params) is not dict or type(meta) is not dict:
        return message
    body = {**message.body, "params": {**params, META: {**meta, **carried}}}
    return message._replace(body=body)


def _joined(exchange: Exchange, wanted: bytes) -> str:
    """Return a header that is a list, and so may come in several lines."""
    lines = [value for name, value in exchange.wire_headers if name == wanted]
    return b",".join(lines).decode("latin-1")


def status_of(data: bytes) -> int:
    """Return the HTTP status that 2026-07-28 prescribes for an answer."""
    if b'"error"' not in data:
        return 200
    error = json.loads(data).get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return _STATUS.get(code, 200) if isinstance(code, int) else 200
