"""Carrying frames to a server over Streamable HTTP, in either era.

A request is a POST, its answer JSON or a stream of events. Before 2026-07-28 a session id
ties the requests together and a GET stream brings what the server says unasked; from then
on every request stands alone and closing its stream cancels it.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.transports.http_client import ClientExchange, HttpPool
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.upstream.client import Upstream
from thoughtgate.wire.batch import one_line
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.headers import (
    LAST_EVENT,
    SESSION,
    VERSION,
    ParamHeader,
    companion_headers,
    mirrored,
    trace_headers,
)
from thoughtgate.wire.message import RESPONSE, Message, RequestId
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import LEGACY, version_in
from thoughtgate.wire.sse import MEDIA_TYPE, EventSplitter, EventTooLongError

MAX_BODY: Final = 10 * 1024 * 1024
"""Bytes of one JSON answer, as on stdio."""

_OK: Final = range(200, 300)
_ACCEPTED: Final = 202
_NOT_FOUND: Final = 404
_ACCEPT: Final = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
]

ParamHeaders = Callable[[str], tuple[ParamHeader, ...]]


class HttpCarrier:
    """One HTTP endpoint."""

    pid = 0
    exit_code: int | None = None

    def __init__(self, pool: HttpPool, param_headers: ParamHeaders | None = None) -> None:
        self._pool = pool
        self._param_headers = param_headers
        self._upstream: Upstream | None = None
        self._open: dict[RequestId, _Answer] = {}
        self._others: set[_Answer] = set()
        self._stream: _Answer | None = None
        self._session = b""
        self._version = ""
        self._closed = False

    async def open(self, upstream: Upstream) -> None:
        """Nothing is connected before the first request."""
        self._upstream = upstream

    def send(self, body: dict[str, Any]) -> None:
        """POST one message."""
        ident = body.get("id") if "method" in body else None
        answer = _Answer(self, ident)
        if ident is None:
            self._others.add(answer)
        else:
            self._open[ident] = answer
        data = render(body)
        answer.exchange = self._pool.send(b"POST", self._headers(body), data, answer)

    def abandon(self, ident: RequestId) -> bool:
        """From 2026-07-28 on, closing the stream is the cancellation."""
        answer = self._open.pop(ident, None)
        if answer is None:
            return True
        answer.give_up()
        return self._version not in LEGACY

    def agreed(self, version: str) -> None:
        """Speak this revision from now on; a legacy server may push on a stream of its own."""
        self._version = version
        if version in LEGACY and self._stream is None:
            self._listen()

    async def close(self) -> None:
        """End the session and close every connection."""
        self._closed = True
        if self._session:
            # A courtesy: the session would end by itself.
            with contextlib.suppress(PeerError):
                await self._pool.request("DELETE", self._session_headers(), timeout_s=1.0)
        await self._pool.close()

    # For the answers.

    def took(self, line: bytes) -> None:
        """A message came."""
        if self._upstream is not None and not self._closed:
            self._upstream.took(line)

    def learned_session(self, headers: Headers) -> None:
        """The answer to ``initialize`` may carry the session's id."""
        for name, value in headers:
            if name == SESSION and not self._session:
                self._session = value

    def over(self, answer: "_Answer", error: PeerError | None) -> None:
        """An exchange has ended."""
        self._others.discard(answer)
        if answer is self._stream:
            self._stream = None
            return
        ident = answer.ident
        if ident is None or self._open.pop(ident, None) is None:
            return
        if self._upstream is not None:
            lost = PeerError("upstream_connection_failed", "the server's answer broke off")
            self._upstream.failed(ident, error or lost)

    def refused(self, answer: "_Answer", status: int, body: bytes) -> None:
        """The server answered with an HTTP error; a JSON-RPC error in it is the answer."""
        if status == _NOT_FOUND and self._session and answer.ident is not None:
            self._session = b""
            if self._upstream is not None:
                self._upstream.lost(PeerGone("the server ended the session"))
            return
        if answer.ident is not None and _answers(body, answer.ident):
            self.took(one_line(body))
            return
        kind = "upstream_connection_failed"
        text = f"the server answered with HTTP status {status}"
        self.over(answer, PeerError(kind, text))

    def _headers(self, body: dict[str, Any]) -> Headers:
        params = body.get("params")
        traced = [*trace_headers(params), *companion_headers(params)]
        version = version_in(params)
        method = body.get("method")
        if version is not None and type(method) is str and type(params) is dict:
            wanted: tuple[ParamHeader, ...] = ()
            if method == "tools/call" and self._param_headers is not None:
                wanted = self._param_headers(str(params.get("name")))
            return [*_ACCEPT, *traced, *mirrored(method, params, version, wanted)]
        return [*_ACCEPT, *traced, *self._session_headers()]

    def _session_headers(self) -> Headers:
        headers: Headers = []
        if self._session:
            headers.append((SESSION, self._session))
        if self._version:
            headers.append((VERSION, self._version.encode()))
        return headers

    def _listen(self, last_event: bytes = b"") -> None:
        headers: Headers = [(b"accept", MEDIA_TYPE), *self._session_headers()]
        if last_event:
            headers.append((LAST_EVENT, last_event))
        self._stream = _Answer(self, None)
        self._stream.exchange = self._pool.send(b"GET", headers, b"", self._stream)


class _Answer:
    """Receives one HTTP response."""

    def __init__(self, carrier: HttpCarrier, ident: RequestId | None) -> None:
        self._carrier = carrier
        self.ident = ident
        self.exchange: ClientExchange | None = None
        self._status = 0
        self._events: EventSplitter | None = None
        self._body = bytearray()
        self._given_up = False

    def started(self, head: ResponseHead) -> None:
        self._status = head.status
        self._carrier.learned_session(head.headers)
        kind = next((value for name, value in head.headers if name == b"content-type"), b"")
        if head.status in _OK and kind.split(b";")[0].strip().lower() == MEDIA_TYPE:
            self._events = EventSplitter()

    def received(self, chunk: bytes) -> None:
        if self._events is None:
            self._body += chunk
            if len(self._body) > MAX_BODY:
                self._stop("the server's answer is too large")
            return
        try:
            events = self._events.feed(chunk)
        except EventTooLongError:
            self._stop("the server's answer is too large")
            return
        for event in events:
            if event.is_message and event.data and not self._given_up:
                self._carrier.took(event.data)

    def ended(self) -> None:
        if self._given_up:
            return
        if self._status not in _OK:
            self._carrier.refused(self, self._status, bytes(self._body))
        elif self._events is None and self._body and self._status != _ACCEPTED:
            self._carrier.took(one_line(bytes(self._body)))
        self._carrier.over(self, None)

    def failed(self, error: PeerError) -> None:
        if not self._given_up:
            self._carrier.over(self, error)

    def give_up(self) -> None:
        """Nobody waits any more."""
        self._given_up = True
        if self.exchange is not None:
            self.exchange.abort()

    def _stop(self, reason: str) -> None:
        self.give_up()
        self._carrier.over(self, PeerError("upstream_connection_failed", reason))


def _answers(body: bytes, ident: RequestId) -> bool:
    """Tell whether an HTTP error carries the JSON-RPC error of this request."""
    message = read_frame(one_line(body.strip()))
    return isinstance(message, Message) and message.shape == RESPONSE and message.id == ident


def auth_headers(headers: Mapping[str, str], token: str) -> Headers:
    """Return the headers that every request to a server carries."""
    made = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    if token:
        made.append((b"authorization", b"Bearer " + token.encode()))
    return made
