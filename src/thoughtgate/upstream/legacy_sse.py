"""Servers of the HTTP+SSE transport (revision 2024-11-05), behind the interface of a pool.

Such a server offers a stream in response to a GET. The first event names the address for POSTs, and
every answer comes on that stream. This module translates: the users of the pool send the requests of
Streamable HTTP and get its responses, so the rest of the gate knows only one transport. A stream is
a session: ``initialize`` opens one, and requests in a session whose stream has ended get a 404.

In ``auto`` mode, a server counts as one of this kind if it refuses to take ``initialize`` by POST
and then opens such a stream (2025-11-25, transports, backwards compatibility).
"""

import asyncio
import json
import re
import uuid
from dataclasses import replace
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin

from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.gate.clock import monotonic
from thoughtgate.transports.content_coding import OFFERED
from thoughtgate.transports.http_client import ClientExchange, HttpPool, Receiver
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.transports.origin import parse_origin
from thoughtgate.upstream.http_answer import NO_HEAD, HttpAnswer
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.batch import one_line
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.frame import find_id
from thoughtgate.wire.message import RESPONSE, Message, RequestId
from thoughtgate.wire.sse import MEDIA_TYPE, Event, render_event

ENDPOINT_S: Final = 5.0
"""How long a stream may take to name the address for POSTs."""

MAX_ENDPOINT: Final = 8192
"""Maximum bytes of that address."""

MAX_SESSIONS: Final = 10_000
SESSION_IDLE_S: Final = 1800.0
"""A session that was unused for this long is closed when another one is opened, because agents may
leave without ending theirs."""

MAX_EARLY: Final = 64
"""Maximum number of messages that are kept for an agent that has no stream open."""
MAX_EARLY_BYTES: Final = 1_048_576

MAX_HELD: Final = 65_536
"""Maximum bytes of a refusal that are kept while the other transport is tried."""

_UNAUTHORIZED: Final = 401
_NOT_STREAMABLE: Final = frozenset({400, 404, 405})
"""Statuses of a server that may know only the older transport."""
_TAKEN: Final = range(200, 300)
_DROPPED: Final = frozenset({b"accept", b"accept-encoding", b"content-type", mirror.LAST_EVENT})
"""Headers of a POST that do not belong to the GET that opens its session's stream."""

_JSON: Final = (b"content-type", b"application/json")
_STREAM: Final = (b"content-type", MEDIA_TYPE)
_JSON_HEAD: Final = ResponseHead(200, [_JSON])
_STREAM_HEAD: Final = ResponseHead(200, [_STREAM])
_VISIBLE: Final = re.compile(rb"[!-~]+")
_PREFIX: Final = re.compile(rb"[A-Z]+ (http://[^/]+)?")
"""The beginning of a request line: the method and, for a proxy, the origin before the path."""


class LegacyExchange(ClientExchange):
    """One request and its response, which does not come over a connection of its own."""

    __slots__ = ("_named", "_session", "inner", "key", "limit", "streams")

    def __init__(self, receiver: Receiver, limit: int) -> None:
        super().__init__(receiver, b"")
        self.limit = limit
        self.inner: ClientExchange | None = None
        """The exchange that brings the response, if the server turns out to speak Streamable HTTP."""
        self.key: RequestId | None = None
        self.streams = False
        """Whether the response has begun as a stream."""
        self._session: LegacySession | None = None
        self._named: Headers = []
        """The header with the id of the session that the request opens."""

    @property
    def max_answer(self) -> int:
        """Maximum bytes of an answer or event."""
        return self.limit

    def belong_to(self, session: "LegacySession", key: RequestId | None) -> None:
        """Note the session and the id that the response will have."""
        self._session, self.key = session, key

    def name_session(self, ident: bytes) -> None:
        """Have the response carry the id of the session that the request opens."""
        self._named = [(mirror.SESSION, ident)]

    def abort(self) -> None:
        """Forget the request; the session's stream stays open."""
        super().abort()
        if self.inner is not None:
            self.inner.abort()
        if self._session is not None:
            self._session.forget(self)

    def pause(self) -> None:
        """Stop reading the response; the stream of a session is shared, so it goes on."""
        if self.inner is not None:
            self.inner.pause()

    def resume(self) -> None:
        """Continue reading the response."""
        if self.inner is not None:
            self.inner.resume()

    def respond(self, head: ResponseHead, body: bytes) -> None:
        """Give the receiver a whole response."""
        if self.receiver is not None:
            self.receiver.started(head)
        # Looked up again: the receiver may have given up, or put a decompressor in its place.
        if self.receiver is not None and body:
            self.receiver.received(body)
        self.finish()

    def answer(self, line: bytes) -> None:
        """Give the receiver the message that answers the request."""
        if self.streams:
            self.write(render_event(line))
            self.finish()
        else:
            named = self._named
            self.respond(ResponseHead(200, [_JSON, *named]) if named else _JSON_HEAD, line)

    def write(self, event: bytes) -> None:
        """Give the receiver a part of a stream."""
        if not self.streams and self.receiver is not None:
            self.streams = True
            named = self._named
            self.receiver.started(ResponseHead(200, [_STREAM, *named]) if named else _STREAM_HEAD)
        if self.receiver is not None and event:
            self.receiver.received(event)

    def lose(self, error: PeerError) -> None:
        """Tell the receiver that there will be no complete response."""
        receiver, self.receiver = self.receiver, None
        if receiver is not None:
            receiver.failed(error)


class LegacySse:
    """The route of a pool's requests to a server that speaks, or may speak, HTTP+SSE."""

    def __init__(self, pool: HttpPool, *, is_certain: bool) -> None:
        self.pool = pool
        self._is_fixed = is_certain
        self._is_certain = is_certain
        self._sessions: dict[bytes, LegacySession] = {}

    def take(self, head: bytes, body: bytes, receiver: Receiver, principal: str) -> ClientExchange:
        """Send a request."""
        method = head[: head.find(b" ")]
        # Only a body that contains the word is parsed: this is the path of every request.
        if method == b"POST" and b'"initialize"' in body:
            message = _message_in(body)
            if message.get("method") == "initialize":
                exchange = self._exchange(receiver)
                opening = Opening(exchange, Posting(head, body, principal, message))
                if self._is_certain:
                    self.open(opening)
                else:
                    attempt = _Attempt(self, exchange, opening)
                    exchange.inner = self.send(head, body, attempt, principal)
                return exchange
        exchange = self._exchange(receiver)
        if not self._is_certain:
            attempt = _Attempt(self, exchange, tells=method == b"POST")
            exchange.inner = self.send(head, body, attempt, principal)
            return exchange
        session = self._sessions.get(ident) if (ident := _header(head, mirror.SESSION)) else None
        if session is None:
            status = 404 if ident else 405 if method != b"POST" else 400
            _soon(exchange, ResponseHead(status, []))
        elif method == b"GET":
            session.listen(exchange)
        elif method == b"DELETE":
            session.close()
            _soon(exchange, ResponseHead(200, []))
        else:
            session.post(exchange, Posting(head, body, principal, _message_in(body)))
        return exchange

    def _exchange(self, receiver: Receiver) -> LegacyExchange:
        return LegacyExchange(receiver, self.pool.options.max_answer)

    def open(self, opening: "Opening") -> None:
        """Open a session for an ``initialize`` request."""
        self._close_unused()
        session = LegacySession(self, opening)
        head = _rewritten(opening.sent.head, b"GET", self.pool.origin.target.encode(), _DROPPED)
        accept = b"accept: %b\r\n%b: %b\r\n" % (MEDIA_TYPE, *OFFERED)
        session.exchange = self.send(head + accept, b"", session, opening.sent.principal)

    def send(self, head: bytes, body: bytes, receiver: Receiver, principal: str) -> ClientExchange:
        """Send a request to the server as it is."""
        return self.pool.send_prepared(head, body, receiver, principal, routed=False)

    def _close_unused(self) -> None:
        unused = sorted(
            (one for one in self._sessions.values() if not one.is_busy), key=lambda one: one.used_at
        )
        oldest = monotonic() - SESSION_IDLE_S
        surplus = len(self._sessions) - MAX_SESSIONS + 1
        for number, session in enumerate(unused):
            if number < surplus or session.used_at < oldest:
                session.close()

    # Called by sessions and attempts.

    def opened(self, session: "LegacySession") -> None:
        """Note a session: the server speaks the older transport."""
        self._is_certain = True
        self._sessions[session.ident] = session

    def refused(self) -> None:
        """Handle that no session could be opened; perhaps the server has been replaced."""
        self._is_certain = self._is_fixed

    def ended(self, session: "LegacySession") -> None:
        """Forget a session."""
        self._sessions.pop(session.ident, None)

    def is_streamable(self) -> None:
        """Note that the server speaks Streamable HTTP; nothing is routed here any more."""
        self.pool.route = None


class Posting(NamedTuple):
    """A message and how it was sent to the pool."""

    head: bytes
    body: bytes
    principal: str
    """Whose credentials the server gets."""
    message: dict[str, Any]


class Opening:
    """An ``initialize`` request that opens a session."""

    __slots__ = ("exchange", "refusal", "sent")

    def __init__(self, exchange: LegacyExchange, sent: Posting) -> None:
        self.exchange = exchange
        self.sent = sent
        self.refusal: tuple[ResponseHead, bytes] | None = None
        """How the server answered the POST, if that was tried first."""


class _Attempt:
    """Receives a response of a server whose transport is not known yet.

    Only ``initialize`` is tried with the other transport, but the success of any POST proves that the
    server speaks Streamable HTTP. The success of a GET does not, because both transports have streams.
    """

    def __init__(
        self,
        route: LegacySse,
        exchange: LegacyExchange,
        opening: Opening | None = None,
        *,
        tells: bool = True,
    ) -> None:
        self._route = route
        self._tells = tells
        self._opening = opening
        self._exchange = exchange
        self._head: ResponseHead | None = None
        """The head of a refusal, after which the other transport is tried."""
        self._body = b""

    def started(self, head: ResponseHead) -> None:
        """Pass on a head, unless it may be a refusal of this transport."""
        if self._opening is not None and head.status in _NOT_STREAMABLE:
            self._head = head
            return
        if self._tells and head.status in _TAKEN:
            self._route.is_streamable()
        if self._exchange.receiver is not None:
            self._exchange.receiver.started(head)

    def received(self, chunk: bytes) -> None:
        """Pass on a part of the body, or keep it."""
        if self._head is not None:
            self._body = (self._body + chunk)[:MAX_HELD]
        elif self._exchange.receiver is not None:
            self._exchange.receiver.received(chunk)

    def ended(self) -> None:
        """Pass on the end, or try the other transport."""
        if self._head is None or self._opening is None:
            self._exchange.finish()
        elif not self._exchange.is_over:
            self._exchange.inner = None
            self._opening.refusal = (self._head, self._body)
            self._route.open(self._opening)

    def failed(self, error: PeerError) -> None:
        """Pass on a failure."""
        self._exchange.lose(error)


class LegacySession(HttpAnswer):
    """One stream of a server: a session with its open requests."""

    def __init__(self, route: LegacySse, opening: Opening) -> None:
        self._route = route
        self._opening: Opening | None = opening
        self._head: ResponseHead | None = None
        self._target = b""
        """The path for POSTs, once the server has named it."""
        self._pending: dict[RequestId, LegacyExchange] = {}
        self._listener: LegacyExchange | None = None
        """The response that carries messages that belong to no request."""
        self._early: list[bytes] = []
        self.ident = uuid.uuid4().hex.encode()
        self.used_at = monotonic()
        self.key = None
        self.exchange = None
        self.is_over = False
        self._status = 0
        self._facts = NO_HEAD
        self._body = []
        self._size = 0
        self._splitter = None
        self._saw_id = False
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(ENDPOINT_S, self._not_opened, None)

    @property
    def is_busy(self) -> bool:
        """Whether anybody waits for a message of this session."""
        return bool(self._pending) or self._listener is not None or self._opening is not None

    # Requests of this session.

    def post(self, exchange: LegacyExchange, sent: Posting) -> None:
        """Send a message; the answer to a request comes on the stream."""
        self.used_at = monotonic()
        ident = sent.message.get("id") if "method" in sent.message else None
        key = ident if type(ident) is str or type(ident) is int else None
        # Two requests with one id could not be told apart on the stream.
        if key is not None and key in self._pending:
            _soon(exchange, ResponseHead(400, []))
            return
        exchange.belong_to(self, key)
        if key is not None:
            self._pending[key] = exchange
        head = _rewritten(sent.head, b"POST", self._target)
        self._route.send(head, sent.body, _Posted(self, exchange), sent.principal)

    def listen(self, exchange: LegacyExchange) -> None:
        """Deliver messages that belong to no request through this response from now on."""
        self.used_at = monotonic()
        before, self._listener = self._listener, exchange
        exchange.belong_to(self, None)
        if before is not None:
            before.finish()
        asyncio.get_running_loop().call_soon(self._begin_listening, exchange)

    def _begin_listening(self, exchange: LegacyExchange) -> None:
        exchange.write(b"")
        early, self._early = self._early, []
        for event in early:
            exchange.write(event)

    def forget(self, exchange: LegacyExchange) -> None:
        """Forget a request that is over, or that nobody waits for."""
        if exchange is self._listener:
            self._listener = None
        elif exchange.key is not None and self._pending.get(exchange.key) is exchange:
            del self._pending[exchange.key]

    def close(self) -> None:
        """End the session."""
        self.abort()
        self._lost(upstream_error("session_lost"))

    # The stream; see ``HttpAnswer``.

    def started(self, head: ResponseHead) -> None:
        """Keep the head, which becomes the response to ``initialize`` if it is a refusal."""
        self._head = head
        super().started(head)

    def _take_event(self, event: Event) -> None:
        if self.is_over:
            return
        if self._opening is not None:
            self._take_endpoint(event, self._opening)
        elif event.data and event.is_message:
            self._take_message(one_line(event.data))

    def _take_endpoint(self, event: Event, opening: Opening) -> None:
        if not event.data:
            return  # a comment
        self._target = self._read_endpoint(event)
        if not self._target:
            self.abort()
            reason = "the server's stream does not begin with an address on the same server"
            self._not_opened(upstream_error("bad_handshake", reason))
            return
        self._timer.cancel()
        self._opening = None
        if opening.exchange.is_over:
            self.abort()  # Nobody waits for the session any more.
            return
        opening.exchange.name_session(self.ident)
        self._route.opened(self)
        self.post(opening.exchange, opening.sent)

    def _read_endpoint(self, event: Event) -> bytes:
        """Return the path for POSTs; nothing unless it is on the server that was configured."""
        data, origin = event.data or b"", self._route.pool.origin
        # Checked first, because ``urljoin`` removes line breaks and tabs without an error.
        if event.name != b"endpoint" or len(data) > MAX_ENDPOINT or not _VISIBLE.fullmatch(data):
            return b""
        base = f"{origin.scheme}://{origin.authority}{origin.target}"
        try:
            named = parse_origin(urljoin(base, data.decode("ascii")))
        except ValueError:
            return b""
        # The gate's credentials for this server must not be sent to another one of its choice.
        is_same = replace(named, target=origin.target) == origin
        return named.target.encode("ascii") if is_same else b""

    def _take_message(self, line: bytes) -> None:
        message = read_quickly(line, len(line))
        if isinstance(message, Message):
            is_answer, ident = message.shape == RESPONSE, message.id
        else:
            # Unreadable, perhaps on purpose. The receiver of the request refuses it.
            is_answer, ident = True, find_id(line)
        exchange = self._pending.pop(ident, None) if is_answer and ident is not None else None
        if exchange is None:
            if not is_answer:
                self._take_unasked(render_event(line))
        else:
            exchange.answer(line)

    def _take_unasked(self, event: bytes) -> None:
        """Deliver a message that answers no request: on the agent's stream, or with a response."""
        if self._listener is not None:
            self._listener.write(event)
        elif self._pending:
            next(reversed(self._pending.values())).write(event)
        elif len(self._early) < MAX_EARLY and len(event) <= MAX_EARLY_BYTES // MAX_EARLY:
            self._early.append(event)

    def _end_stream(self) -> None:
        self._break_off(upstream_error("stream_ended"))

    def _take_whole(self, body: bytes) -> None:
        self._not_opened(None, body)

    def _break_off(self, error: PeerError) -> None:
        if self._opening is not None:
            self._not_opened(error)
        else:
            self._lost(error)

    def _not_opened(self, error: PeerError | None, body: bytes = b"") -> None:
        """Answer ``initialize``: with the refusal of the POST, of the GET, or an error."""
        opening, self._opening = self._opening, None
        self._timer.cancel()
        if opening is None:
            return
        self.abort()
        self._route.refused()
        if opening.refusal is not None and not self._refuses_credentials(error):
            opening.exchange.respond(*opening.refusal)
        elif error is None and self._head is not None and self._head.status not in _TAKEN:
            opening.exchange.respond(self._head, body)
        else:
            opening.exchange.lose(error or upstream_error("answer_timeout"))

    def _refuses_credentials(self, error: PeerError | None) -> bool:
        """Tell whether the stream was refused for lack of credentials, which explains the failure.

        The refusal of the POST would only say that the server does not take POSTs there.
        """
        if error is not None:
            return error.kind == "upstream_unauthorized"
        return self._head is not None and self._head.status == _UNAUTHORIZED

    def _lost(self, error: PeerError) -> None:
        self._route.ended(self)
        pending, self._pending = self._pending, {}
        for exchange in pending.values():
            exchange.lose(error)
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.finish()


class _Posted:
    """Receives the response to a POST, which only says whether the server accepted the message."""

    def __init__(self, session: LegacySession, exchange: LegacyExchange) -> None:
        self._session = session
        self._exchange = exchange
        self._is_refused = False

    def started(self, head: ResponseHead) -> None:
        """Pass on a refusal, or respond at once to a message that gets no answer."""
        self._is_refused = head.status not in _TAKEN
        if self._is_refused:
            self._session.forget(self._exchange)
            if self._exchange.receiver is not None and not self._exchange.streams:
                self._exchange.receiver.started(head)
        elif self._exchange.key is None:
            self._exchange.respond(ResponseHead(202, []), b"")

    def received(self, chunk: bytes) -> None:
        """Pass on the body of a refusal."""
        if self._is_refused and self._exchange.receiver is not None:
            self._exchange.receiver.received(chunk)

    def ended(self) -> None:
        """Pass on the end of a refusal."""
        if self._is_refused:
            self._exchange.finish()

    def failed(self, error: PeerError) -> None:
        """Fail the request: the server may not have got it."""
        self._session.forget(self._exchange)
        self._exchange.lose(error)


def _soon(exchange: LegacyExchange, head: ResponseHead) -> None:
    """Respond without a body, but not before the caller knows the exchange."""
    asyncio.get_running_loop().call_soon(exchange.respond, head, b"")


def _message_in(body: bytes) -> dict[str, Any]:
    """Return the message of a request, which the gate has judged before."""
    try:
        message = json.loads(body)
    except ValueError:
        return {}
    return message if type(message) is dict else {}


def _header(head: bytes, name: bytes) -> bytes:
    """Return the value of a header in a rendered head; empty if there is none."""
    at = head.find(b"\r\n%b: " % name)
    return head[at + 4 + len(name) : head.find(b"\r\n", at + 2)] if at >= 0 else b""


def _rewritten(
    head: bytes, method: bytes, target: bytes, without: frozenset[bytes] = frozenset()
) -> bytes:
    """Return a rendered head with another method and path, and without headers of Streamable HTTP."""
    first, *lines = head.split(b"\r\n")[:-1]
    prefix = found[1] or b"" if (found := _PREFIX.match(first)) else b""
    kept = [
        line
        for line in lines
        if (name := line.partition(b":")[0]) not in without and not name.startswith(b"mcp-")
    ]
    return b"\r\n".join([b"%b %b%b HTTP/1.1" % (method, prefix, target), *kept, b""])
