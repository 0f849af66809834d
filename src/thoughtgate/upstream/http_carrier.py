"""An MCP client over Streamable HTTP, in either era.

A request is a POST, and its response is JSON or a stream of events. Before 2026-07-28, a
handshake opens a session: later requests carry its id and revision, the server sends its
unsolicited messages on a GET stream that is kept open, and an interrupted response stream is
resumed. From 2026-07-28 on there is no session, and closing a request's stream cancels it.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any, Final, TypeGuard

from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.upstream.client import Receiver
from thoughtgate.upstream.http_answer import NO_HEAD, HttpAnswer
from thoughtgate.upstream.notices import Notices
from thoughtgate.wire.batch import one_line
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.headers import (
    LAST_EVENT,
    SESSION,
    VERSION,
    ParamHeader,
    companion_headers,
    mirrored,
    trace_headers,
)
from thoughtgate.wire.message import RESPONSE, Fault, Message, RequestId
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import version_in
from thoughtgate.wire.sse import MEDIA_TYPE, Event

RETRY_S: Final = 1.0
"""The first delay before a stream is reopened, unless the server sets another."""
MIN_RETRY_S: Final = 0.05
MAX_RETRY_S: Final = 30.0
"""The longest delay; a stream that stays open this long counts as a success even if silent."""
MAX_RESUMES: Final = 8
"""Maximum number of consecutive attempts to resume a response without receiving an event."""
MAX_DOUBLINGS: Final = 10

_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404
_REFUSED: Final = range(400, 500)
_NO_STREAM: Final = frozenset({404, 405})
"""Statuses of a GET if the server offers no stream, or no longer knows the session."""
_POST: Final = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
]
_RETRY: Final = re.compile(rb"(?:^|[\r\n])retry: ?([0-9]{1,9})(?=[\r\n])")
_FAILED: Final = "upstream_connection_failed"

ParamHeaders = Callable[[str], tuple[ParamHeader, ...]]
"""Returns the arguments of a tool that request headers repeat."""


class HttpCarrier:
    """A connection to one HTTP endpoint."""

    pid = 0
    exit_code: int | None = None

    def __init__(self, pool: HttpPool, param_headers: ParamHeaders = lambda _tool: ()) -> None:
        self._pool = pool
        self._param_headers = param_headers
        self._receiver: Receiver
        self._open: dict[RequestId | None, _Answer] = {}
        """The open requests by id."""
        self._notices = Notices()
        self._stream: _Answer | None = None
        """The server's GET stream, also while it waits to be reopened."""
        self._session = b""
        self._version = b""
        self._closed = False

    async def open(self, receiver: Receiver) -> None:
        """Store the receiver; the first request connects."""
        self._receiver = receiver

    def send(self, body: dict[str, Any]) -> None:
        """POST one message."""
        self.post(body, render(body))

    def post(self, body: dict[str, Any], data: bytes) -> None:
        """POST one message that is already rendered."""
        method = body.get("method", "")
        answer = _Answer(self, body.get("id") if method else None, method)
        if answer.key is not None:
            self._open[answer.key] = answer
        else:
            self._notices.add(answer)
        answer.exchange = self._pool.send(b"POST", self._headers(method, body), data, answer)

    def abandon(self, ident: RequestId) -> bool:
        """Close the request's stream; without a session, that is the cancellation."""
        answer = self._open.pop(ident, None)
        if answer is not None:
            answer.abort()
        return not self._has_handshake

    async def close(self) -> None:
        """End the session and close every connection."""
        self._closed = True
        for answer in (*self._open.values(), self._stream):
            if answer is not None:
                answer.abort()
        if self._session:
            # Only a courtesy: the server would expire the session itself.
            with contextlib.suppress(PeerError):
                await self._pool.request("DELETE", self._known(), timeout_s=1.0)
        await self._pool.close()

    # Called by the responses.

    def named_session(self, session: str) -> None:
        """Store the session id from the response to ``initialize``."""
        self._session = session.encode("latin-1")

    def took(self, answer: "_Answer", line: bytes, message: Message | Fault) -> None:
        """Handle a message of the server."""
        if self._closed:
            return
        if _is_answer(message, answer.key) and self.is_open(answer):
            del self._open[answer.key]
            if answer.method == "initialize":
                self._learn_version(message.body.get("result"))
        self._receiver.took(line, message)

    def missing(self, answer: "_Answer") -> None:
        """Handle a 404: for a request in a session it means that the session has ended."""
        if self._session and self.is_open(answer):
            self._session = b""
            self._receiver.lost(PeerGone("the server ended the session"))

    def over(self, answer: "_Answer", error: PeerError) -> None:
        """Handle the end of an exchange; ``error`` is for a request that is still unanswered."""
        if self._closed:
            return
        if answer is self._stream:
            if answer.has_no_stream:
                self._stream = None
            else:
                self._open_later(answer)
        elif answer.key is not None and self.is_open(answer):
            if self._has_handshake and answer.is_resumable:
                self._open_later(answer)
            else:
                del self._open[answer.key]
                self._receiver.failed(answer.key, error)
        elif answer.method == "notifications/initialized":
            self._listen()

    def is_open(self, answer: "_Answer") -> bool:
        """Whether a request still waits for its response."""
        return self._open.get(answer.key) is answer

    def _learn_version(self, result: Any) -> None:
        version = result.get("protocolVersion") if type(result) is dict else None
        if type(version) is str:
            self._version = version.encode("ascii", "replace")

    # Streams that are opened with GET.

    def _listen(self) -> None:
        if self._stream is not None:
            self._stream.abort()
        self._stream = _Answer(self, None, "")
        self._get(self._stream)

    def _open_later(self, answer: "_Answer") -> None:
        loop = asyncio.get_running_loop()
        answer.timer = loop.call_later(answer.next_delay(), self._get, answer)

    def _get(self, answer: "_Answer") -> None:
        headers = [(b"accept", MEDIA_TYPE), *self._known(), *answer.restart()]
        answer.exchange = self._pool.send(b"GET", headers, b"", answer)

    # Headers.

    def _headers(self, method: str, body: dict[str, Any]) -> Headers:
        params: Any = body.get("params")
        headers = [*_POST, *trace_headers(params), *companion_headers(params)]
        version = version_in(params)
        if version is not None and method:
            wanted = self._param_headers(str(params.get("name"))) if method == "tools/call" else ()
            return headers + mirrored(method, params, version, wanted)
        return headers if method == "initialize" else headers + self._known()

    def _known(self) -> Headers:
        """Return the headers with the session id and revision of the handshake."""
        known = ((SESSION, self._session), (VERSION, self._version))
        return [(name, value) for name, value in known if value]

    @property
    def _has_handshake(self) -> bool:
        return bool(self._session or self._version)


class _Answer(HttpAnswer):
    """One response, or the server's GET stream; the same object is used when it is reopened."""

    def __init__(self, carrier: HttpCarrier, key: RequestId | None, method: str) -> None:
        self._carrier = carrier
        self.key = key
        self.method = method
        self.timer: asyncio.TimerHandle | None = None
        self._saw_id = False
        self._last = b""
        self._retry_s = RETRY_S
        self._attempts = 0
        self.exchange = None
        self.restart()

    def restart(self) -> Headers:
        """Reset the reader; return the header that names the event after which to resume."""
        self.is_over = False
        self._status = 0
        self._facts = NO_HEAD
        self._body = []
        self._size = 0
        self._splitter = None
        self._began = asyncio.get_running_loop().time()
        return [(LAST_EVENT, self._last)] if self._saw_id else []

    @property
    def is_resumable(self) -> bool:
        """Whether to request the rest of this response."""
        return self._saw_id and self._attempts < MAX_RESUMES

    @property
    def has_no_stream(self) -> bool:
        """Whether the server has refused to open a GET stream."""
        return self._status in _NO_STREAM

    def next_delay(self) -> float:
        """Return the seconds until the next attempt; they double after each failed attempt."""
        if asyncio.get_running_loop().time() - self._began >= MAX_RETRY_S:
            self._attempts = 0
        doubled: float = self._retry_s * 2 ** min(self._attempts, MAX_DOUBLINGS)
        self._attempts += 1
        return min(doubled, MAX_RETRY_S)

    def abort(self) -> None:
        """Stop reading: nobody waits for the response."""
        super().abort()
        if self.timer is not None:
            self.timer.cancel()

    def started(self, head: ResponseHead) -> None:
        """Read the head, which may contain the session id."""
        super().started(head)
        if self.method == "initialize" and self._facts.session and head.status in _OK:
            self._carrier.named_session(self._facts.session)

    def _take_event(self, event: Event) -> None:
        self._attempts = 0
        if event.id is not None:
            self._last = event.id
            self._saw_id = bool(event.id)
        if found := _RETRY.search(event.raw):
            self._retry_s = max(int(found[1]) / 1000, MIN_RETRY_S)
        if event.data and event.is_message and not self.is_over:
            line = one_line(event.data)
            self._carrier.took(self, line, read_quickly(line))

    def _end_stream(self) -> None:
        self._break_off(PeerError(_FAILED, "the server's answer broke off"))

    def _take_whole(self, body: bytes) -> None:
        if self._status in _REFUSED:
            self._saw_id = False  # The server does not know the event, so do not resume again.
        if self._status == _NOT_FOUND:
            self._carrier.missing(self)
        if self.key is not None and self._facts.is_json:
            line = one_line(body)
            message = read_quickly(line)
            if self._status in _OK or _is_answer(message, self.key):
                self._carrier.took(self, line, message)
            if not self._carrier.is_open(self):
                return
        reason = f"the server did not answer the request (HTTP status {self._status})"
        self._break_off(PeerError(_FAILED, reason))

    def _break_off(self, error: PeerError) -> None:
        self._carrier.over(self, error)


def _is_answer(message: Message | Fault, key: RequestId | None) -> TypeGuard[Message]:
    return isinstance(message, Message) and message.shape == RESPONSE and message.id == key
