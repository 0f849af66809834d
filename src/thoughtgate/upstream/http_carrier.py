"""An MCP client over Streamable HTTP, in either era.

A request is a POST, and its response is JSON or a stream of events. Before 2026-07-28, a
handshake opens a session: later requests carry its id and revision, the server sends its
unsolicited messages on a GET stream that is kept open, and an interrupted response stream is
resumed. A session that the server has forgotten (404) is opened again with the same handshake.
From 2026-07-28 on there is no session, and closing a request's stream cancels it.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any, Final, TypeGuard

from thoughtgate.errors import PeerError, PeerGone, upstream_error
from thoughtgate.transports.content_coding import OFFERED
from thoughtgate.transports.http_client import ClientExchange, HttpPool
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.upstream.client import INITIALIZED, Receiver
from thoughtgate.upstream.health import ServerHealth
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
"""The longest delay; a stream that stays open this long counts as a success, even if it is silent."""
MAX_EVENT_ID: Final = 4096
"""Longest event id that is sent back: servers limit the heads of requests too."""

MAX_RESUMES: Final = 8
"""Maximum number of consecutive failures to resume a response.

A stream that the server opens is not a failure, even if it ends without an event: servers may end
streams so that clients poll (2025-11-25).
"""
MAX_DOUBLINGS: Final = 10

REOPEN_S: Final = 30.0
"""How long a server may take to open a session again."""
MAX_WAITING: Final = 1000
"""Maximum number of messages that wait for a session to be opened again."""

_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404
_REFUSED: Final = range(400, 500)
_NO_STREAM: Final = frozenset({404, 405})
"""Statuses of a GET if the server offers no stream, or no longer knows the session."""
_POST: Final = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    OFFERED,
]
_RETRY: Final = re.compile(rb"(?:^|[\r\n])retry: ?([0-9]{1,9})(?=[\r\n])")

ParamHeaders = Callable[[str], tuple[ParamHeader, ...]]
"""Returns the arguments of a tool that request headers repeat."""


class HttpCarrier:
    """A connection to one HTTP endpoint."""

    pid = 0
    exit_code: int | None = None

    def __init__(
        self,
        pool: HttpPool,
        param_headers: ParamHeaders = lambda _tool: (),
        principal: str = "",
        health: ServerHealth | None = None,
    ) -> None:
        """Connect through a pool; ``principal`` is whose login its requests carry.

        ``health`` learns whether the server answers.
        """
        self._pool = pool
        self._principal = principal
        self._health = health
        self._param_headers = param_headers
        self._receiver: Receiver
        self._open: dict[RequestId | None, _Answer] = {}
        """The open requests by id."""
        self._notices = Notices()
        self._stream: _Answer | None = None
        """The server's GET stream, also while it waits to be reopened."""
        self._session = b""
        self._version = b""
        self._handshake: tuple[dict[str, Any], bytes] | None = None
        """The ``initialize`` request that opened the session, to open it again."""
        self._is_lost = False
        """Whether the server has forgotten the session, and there is no new one yet."""
        self._reopening: _Answer | None = None
        """The message that is being sent to open the session again."""
        self._waiting: list[_Answer] = []
        """Messages to send once the session is open again."""
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
        answer.message = body, data
        if answer.key is not None:
            self._open[answer.key] = answer
        if method != "initialize" and version_in(body.get("params")) is None:
            answer.is_in_session = True
            if self._is_lost:
                # Dropped: a response, because its request belongs to the old session, and the
                # confirmation of a handshake, because the carrier confirms the new session itself.
                if method and method != INITIALIZED:
                    self._send_later(answer)
                return
        self._post(answer)

    def _post(self, answer: "_Answer") -> None:
        assert answer.message is not None  # noqa: S101  kept until the server has taken it
        body, data = answer.message
        answer.session = self._session if answer.is_in_session else b""
        if answer.key is None:
            self._notices.add(answer)
        headers = self._headers(answer.method, body)
        answer.exchange = self._send(b"POST", headers, data, answer)

    def abandon(self, ident: RequestId, cause: str = "") -> bool:
        """Close the request's stream; without a session, that is the cancellation."""
        answer = self._open.pop(ident, None)
        if answer is not None:
            answer.abort()
            if cause and self._health is not None:
                self._health.failed(upstream_error(cause))
        return not self._has_handshake

    async def close(self) -> None:
        """End the session and close every connection."""
        self._closed = True
        for answer in (*self._open.values(), self._stream, self._reopening):
            if answer is not None:
                answer.abort()
        if self._session:
            # A courtesy with a short timeout: the server would expire the session itself.
            with contextlib.suppress(PeerError):
                await self._pool.request(
                    "DELETE", self._known(), timeout_s=1.0, principal=self._principal
                )
        await self._pool.close()

    # Called by the responses.

    def named_session(self, session: str) -> None:
        """Store the session id from the response to ``initialize``."""
        self._session = session.encode("latin-1")

    def took(self, answer: "_Answer", line: bytes, message: Message | Fault) -> None:
        """Handle a message of the server."""
        if self._closed:
            return
        if answer.key is not None and _is_answer(message, answer.key):
            health = self._health
            if health is not None and not health.is_settled and self.is_awaited(answer):
                health.answered()
            if answer is self._reopening:
                self._take_handshake(answer, message.body.get("result"))
                return
            if self.is_open(answer):
                del self._open[answer.key]
                if answer.method == "initialize":
                    self._opened(answer, message.body.get("result"))
        self._receiver.took(line, message)

    def over(self, answer: "_Answer", error: PeerError) -> None:
        """Handle the end of an exchange; ``error`` is for a request that is still unanswered."""
        if self._closed:
            return
        if self._health is not None and (answer.key is None or self.is_awaited(answer)):
            # Older servers refuse ``server/discover`` in many ways, which says nothing about their
            # health; ``initialize`` follows.
            is_call = answer.key is not None and answer.method != "server/discover"
            self._health.failed(error, is_call=is_call)
        if answer is self._stream:
            self._stream_over(answer)
        elif answer is self._reopening:
            self._handshake_over(answer, error)
        elif answer.key is not None and self.is_open(answer):
            if self._has_handshake and answer.is_resumable:
                self._open_later(answer)
            else:
                del self._open[answer.key]
                self._receiver.failed(answer.key, error)
        elif answer.method == INITIALIZED:
            self._listen()

    def is_open(self, answer: "_Answer") -> bool:
        """Whether a request still waits for its response."""
        return self._open.get(answer.key) is answer

    def is_awaited(self, answer: "_Answer") -> bool:
        """Whether a request of the agent or of the gate itself still waits for its response."""
        return answer is self._reopening or self.is_open(answer)

    def _opened(self, answer: "_Answer", result: Any) -> None:
        if self._learn(answer, result):
            self._is_lost = False

    def _learn(self, answer: "_Answer", result: Any) -> bool:
        """Learn the revision from the response to ``initialize``; return whether there is one."""
        version = result.get("protocolVersion") if type(result) is dict else None
        if type(version) is not str:
            return False
        self._version = version.encode("ascii", "replace")
        self._handshake = answer.message
        return True

    # A session that the server has forgotten, or has not opened yet.

    def open_later(self, handshake: tuple[dict[str, Any], bytes]) -> None:
        """Open the session with the next message, after the server has refused the handshake."""
        self._handshake = handshake
        self._is_lost = True

    def reopen(self) -> None:
        """Open a session that is lost, without waiting for a message."""
        if self._is_lost:
            self._reopen()

    def resends(self, answer: "_Answer") -> bool:
        """Handle a 404; return whether the message is sent again, in a new session.

        The server has refused the session id, so it has not executed the request. A request is sent
        again only once. A notification is not, because it concerns the old session.
        """
        if not answer.session or not self.is_open(answer) or answer.message is None:
            return False
        if self._handshake is None:
            return False
        if answer.session == self._session:
            self._is_lost = True
        if answer.is_repeated:
            return False
        answer.is_repeated = True
        if self._is_lost:
            self._send_later(answer)
        else:
            answer.restart()
            self._post(answer)
        return True

    def _send_later(self, answer: "_Answer") -> None:
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append(answer)
        elif answer.key is not None:
            del self._open[answer.key]
            error = PeerError("service_unavailable", "too many requests wait for the server")
            asyncio.get_running_loop().call_soon(self._receiver.failed, answer.key, error)
        self._reopen()

    def _reopen(self) -> None:
        """Open the session again, with the handshake that opened it first."""
        if self._reopening is not None or self._handshake is None or self._closed:
            return
        self._is_lost, self._session = True, b""
        body, _ = self._handshake
        answer = _Answer(self, body["id"], "initialize")
        answer.message = self._handshake
        self._shake_hands(answer)

    def _shake_hands(self, answer: "_Answer") -> None:
        self._reopening = answer
        answer.timer = asyncio.get_running_loop().call_later(REOPEN_S, self._is_late, answer)
        self._post(answer)

    def _is_late(self, answer: "_Answer") -> None:
        answer.abort()
        self.over(answer, upstream_error("answer_timeout"))

    def _take_handshake(self, answer: "_Answer", result: Any) -> None:
        """Complete the handshake of the new session."""
        if not self._learn(answer, result):
            self._handshake_over(answer, upstream_error("bad_handshake"))
            return
        answer.cancel_timer()
        body = {"jsonrpc": "2.0", "method": INITIALIZED}
        confirmation = _Answer(self, None, INITIALIZED)
        confirmation.message = body, render(body)
        confirmation.is_in_session = True
        self._shake_hands(confirmation)
        self._receiver.reopened(result)

    def _handshake_over(self, answer: "_Answer", error: PeerError) -> None:
        answer.cancel_timer()
        self._reopening = None
        waiting, self._waiting = self._waiting, []
        waiting = [one for one in waiting if one.key is None or self.is_open(one)]
        if answer.method != INITIALIZED:
            self._not_reopened(waiting, error)
            return
        # The waiting messages are sent only now: of two POSTs, either could arrive first.
        self._is_lost = False
        self._listen()
        for one in waiting:
            one.restart()
            self._post(one)

    def _not_reopened(self, waiting: list["_Answer"], error: PeerError) -> None:
        """Fail the waiting messages; the next message tries again, and so does the GET stream."""
        stream = self._stream
        if stream is not None:
            stream.abort()
            delay = stream.next_delay()
            stream.timer = asyncio.get_running_loop().call_later(delay, self._reopen)
        for answer in waiting:
            if answer.key is not None:
                del self._open[answer.key]
                self._receiver.failed(answer.key, error)
        reason = f"the session could not be opened again: {error}"
        self._receiver.lost(PeerGone(reason, error.cause or "session_lost"))

    # Streams that are opened with GET.

    def _listen(self) -> None:
        stream, before = _Answer(self, None, ""), self._stream
        if before is not None:
            before.abort()
            stream.continue_delays(before)
        self._stream = stream
        self._get(stream)

    def _stream_over(self, stream: "_Answer") -> None:
        if not stream.has_no_stream:
            self._open_later(stream)
        elif stream.is_missing and stream.was_open and self._session:
            # There was a stream before, so the 404 means that the server has forgotten the session.
            self._reopen()
        else:
            self._stream = None

    def _open_later(self, answer: "_Answer") -> None:
        loop = asyncio.get_running_loop()
        answer.timer = loop.call_later(answer.next_delay(), self._get, answer)

    def _get(self, answer: "_Answer") -> None:
        # A response of an old session cannot be resumed in the new one.
        if answer is not self._stream and answer.session != self._session:
            answer.stop_resuming()
            self.over(answer, upstream_error("session_lost"))
            return
        answer.session = self._session
        headers = [(b"accept", MEDIA_TYPE), OFFERED, *self._known(), *answer.restart()]
        answer.exchange = self._send(b"GET", headers, b"", answer)

    def _send(
        self, method: bytes, headers: Headers, data: bytes, answer: "_Answer"
    ) -> ClientExchange:
        return self._pool.send(method, headers, data, answer, b"", self._principal)

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
    def has_session(self) -> bool:
        """Whether requests name a session of the server."""
        return bool(self._session)

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
        self.message: tuple[dict[str, Any], bytes] | None = None
        """The message and its bytes, until the server has taken it."""
        self.session = b""
        """The session that the message was sent in."""
        self.is_in_session = False
        """Whether the message belongs to the session of the handshake, if there is one."""
        self.is_repeated = False
        """Whether the message was sent in a session that the server had forgotten."""
        self.was_open = False
        """Whether the server has opened a stream."""
        self._saw_id = False
        self._last = b""
        self._retry_s = RETRY_S
        self._attempts = 0
        self._failures = 0
        """Number of consecutive attempts for which the server opened no stream."""
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
        return self._saw_id and self._failures < MAX_RESUMES

    def stop_resuming(self) -> None:
        """Never request the rest of this response: the server does not have it any more."""
        self._saw_id = False

    @property
    def has_no_stream(self) -> bool:
        """Whether the server has refused to open a GET stream."""
        return self._status in _NO_STREAM

    @property
    def is_missing(self) -> bool:
        """Whether the server has answered 404."""
        return self._status == _NOT_FOUND

    def continue_delays(self, before: "_Answer") -> None:
        """Wait as long before the next attempt as the stream that this one replaces."""
        self._attempts, self._retry_s = before._attempts, before._retry_s  # noqa: SLF001  same class

    def next_delay(self) -> float:
        """Return the seconds until the next attempt; they double after each failed attempt."""
        if asyncio.get_running_loop().time() - self._began >= MAX_RETRY_S:
            self._attempts = 0
        doubled: float = self._retry_s * 2 ** min(self._attempts, MAX_DOUBLINGS)
        self._attempts += 1
        self._failures += 1
        return min(doubled, MAX_RETRY_S)

    def abort(self) -> None:
        """Stop reading: nobody waits for the response."""
        super().abort()
        self.cancel_timer()

    def cancel_timer(self) -> None:
        """Cancel the next attempt, or the deadline."""
        if self.timer is not None:
            self.timer.cancel()

    def started(self, head: ResponseHead) -> None:
        """Read the head, which may contain the session id."""
        if head.status != _NOT_FOUND and self.method != "initialize":
            self.message = None
        super().started(head)
        if self.method == "initialize" and self._facts.session and head.status in _OK:
            self._carrier.named_session(self._facts.session)

    def _start_stream(self) -> None:
        self.was_open = True
        self._failures = 0

    def _take_event(self, event: Event) -> None:
        self._attempts = 0
        if event.id is not None:
            self._last = event.id
            self._saw_id = 0 < len(event.id) <= MAX_EVENT_ID
        if found := _RETRY.search(event.raw):
            # With a lower bound: a server that sets 0 would be asked in a tight loop.
            self._retry_s = max(int(found[1]) / 1000, MIN_RETRY_S)
        if event.data and event.is_message and not self.is_over:
            line = one_line(event.data)
            self._carrier.took(self, line, read_quickly(line, len(line)))

    def _end_stream(self) -> None:
        self._break_off(upstream_error("stream_ended"))

    def _take_whole(self, body: bytes) -> None:
        error = None
        if self._status not in _OK:
            error = self._status_error(in_session=self._carrier.has_session)
        if self._status in _REFUSED:
            self._saw_id = False  # The server does not know the event, so do not resume again.
        message: Message | Fault | None = None
        if self.key is not None and self._facts.is_json:
            line = one_line(body)
            message = read_quickly(line, len(line))
            if self._status in _OK or _is_answer(message, self.key):
                self._carrier.took(self, line, message)
            if not self._carrier.is_awaited(self):
                return
        if self._status == _NOT_FOUND and self._carrier.resends(self):
            return
        self._break_off(error or self._useless_error(message))

    def _break_off(self, error: PeerError) -> None:
        self._carrier.over(self, error)


def _is_answer(message: Message | Fault, key: RequestId | None) -> TypeGuard[Message]:
    return isinstance(message, Message) and message.shape == RESPONSE and message.id == key
