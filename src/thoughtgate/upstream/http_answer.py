"""Reading a server's response to one HTTP request.

A response is read as JSON or as server-sent events. When a request is passed through, every
message in the response goes through the session, and a message that the session does not
change is forwarded byte for byte. Any other kind of response becomes a JSON-RPC error.
"""

from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import ServerSent
from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.transports.content_coding import Decompressor, is_known, unknown_encoding
from thoughtgate.transports.http_client import ClientExchange
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.upstream.client import not_sent
from thoughtgate.upstream.health import ServerHealth
from thoughtgate.upstream.http_failures import status_error
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.batch import one_line
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import RESPONSE, Fault, Message, RequestId
from thoughtgate.wire.methods import input_requests
from thoughtgate.wire.replies import render
from thoughtgate.wire.sse import (
    Event,
    EventSplitter,
    EventTooLongError,
    replace_data,
    with_one_reading,
)
from thoughtgate.wire.unchecked import unchecked

UNCHECKED: Final = 65_536
"""Bytes of a response below which its limit is not looked up: no limit can be set lower."""

_OTHER_FIELDS: Final = 65_536
"""Maximum bytes of an event besides its data."""

_OK: Final = 200
_PASSED: Final = frozenset({*range(200, 300), *range(400, 600)})
"""Statuses that are read and passed on. Redirects are not: an agent that follows one would bypass the
gate."""
_FIRST_ERROR: Final = 400
_NOT_OURS: Final = frozenset({401, 403, 407})
"""Statuses that refuse the gate's credentials; the agent can do nothing about them."""
_TELLING: Final = frozenset({404, 429, 503})
"""Statuses that tell the agent what to do: open a new session, or retry later."""


_READ: Final = frozenset({mirror.SESSION, b"retry-after", b"location"})
"""Headers that the gate itself reads; the first of each counts."""


_NOT_DOWNSTREAM: Final = mirror.HOP_BY_HOP | {
    b"content-length",
    b"content-encoding",
    b"set-cookie",
    b"www-authenticate",
    b"alt-svc",
    b"strict-transport-security",
    b"clear-site-data",
    b"location",
    b"refresh",
    b"x-accel-redirect",
    b"x-sendfile",
    b"access-control-allow-origin",
    b"access-control-allow-credentials",
    b"access-control-expose-headers",
    mirror.SESSION,
}
"""Response headers that are not forwarded.

They concern the gate's own connection or origin, or would send the agent, or a web server in front
of the gate, elsewhere.
"""


class _HeadFacts(NamedTuple):
    """Facts derived from the head of a response."""

    is_json: bool
    is_stream: bool
    fault: str
    """The cause if the body cannot be read, such as two content types."""
    encoding: bytes
    """The compression of the body, if any."""
    session: str
    """The session id that the server assigned, if any."""
    headers: bytes
    """The headers to forward to the agent, except the session id."""
    retry_after: bytes = b""
    location: bytes = b""


class Owner(Protocol):
    """The sender of the request, which passes the response on."""

    def stream_started(self, status: int, headers: bytes) -> None:
        """Start a stream: the response is one."""

    def stream_wrote(self, data: bytes) -> None:
        """Pass on a chunk of the stream."""

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """Pass on the chunk that answers this request, or another one of the same batch."""

    def stream_ended(self) -> None:
        """End the stream: it is complete."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Pass on a response that is a single message."""

    def told(self, data: bytes) -> None:
        """Pass on a message that precedes the response."""

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Pass on the HTTP response to a message that expects no JSON-RPC response."""

    def failed(self, error: PeerError, status: int = 200) -> None:
        """Handle a missing response; ``status`` is the HTTP status for the agent."""

    def session_named(self, upstream: str) -> str:
        """Return the agent's id for the session that the server named."""


class HttpAnswer:
    """Reads one HTTP response; a subclass handles what was read.

    There is no constructor: every subclass sets all fields itself, which saves one call per
    request on the hot path.
    """

    __slots__ = (
        "_body",
        "_facts",
        "_saw_id",
        "_size",
        "_splitter",
        "_status",
        "exchange",
        "is_over",
        "key",
    )

    key: RequestId | None
    """The id of the request that waits for this response; None if there is none."""
    exchange: ClientExchange | None
    is_over: bool
    _status: int
    _facts: "_HeadFacts"
    _body: list[bytes]
    _size: int
    _splitter: EventSplitter | None
    """Set if the response is a stream."""
    _saw_id: bool
    """Whether events have ids, so that the stream can be resumed."""

    def abort(self) -> None:
        """Stop reading: nobody waits for the response."""
        self.is_over = True
        if self.exchange is not None:
            self.exchange.abort()

    # Called by the HTTP client.

    def started(self, head: ResponseHead) -> None:
        """Read the head, and decide how to read the body."""
        self._status = head.status
        facts = head.memo
        if type(facts) is not _HeadFacts:
            facts = head.memo = _read_head(head)
        self._facts = facts
        if head.status not in _PASSED:
            self._lose(self._status_error())
            return
        if facts.fault:
            self._lose(upstream_error(facts.fault))
            return
        if facts.encoding and not self._decompress(facts.encoding):
            return
        if facts.is_stream and head.status == _OK:
            self._splitter = EventSplitter(self._max_answer + _OTHER_FIELDS)
            self._start_stream()

    def _decompress(self, encoding: bytes) -> bool:
        """Have the body decompressed before it is received; False if its encoding is unknown."""
        exchange = self.exchange
        if exchange is None or not is_known(encoding):
            self._lose(unknown_encoding(encoding, self._status))
            return False
        exchange.receiver = Decompressor(exchange, self, encoding)
        return True

    @property
    def _max_answer(self) -> int:
        """Maximum bytes of a JSON response, or of the data of an event."""
        return self.exchange.max_answer if self.exchange is not None else UNCHECKED

    def received(self, chunk: bytes) -> None:
        """Handle a chunk of the body."""
        if self.is_over:
            return
        if self._splitter is None:
            self._size += len(chunk)
            self._body.append(chunk)
            if self._size > UNCHECKED and self._size > self._max_answer:
                self._lose(upstream_error("too_large"))
            return
        try:
            events = self._splitter.feed(chunk)
        except EventTooLongError:
            self._lose(upstream_error("too_large"))
            return
        for event in events:
            self._take_event(event)

    def ended(self) -> None:
        """Handle the end of the body."""
        if self.is_over:
            return
        self.is_over = True
        if self._splitter is None:
            self._take_whole(b"".join(self._body) if len(self._body) != 1 else self._body[0])
            return
        for event in self._splitter.close():
            self._take_event(event)
        self._end_stream()

    def failed(self, error: PeerError) -> None:
        """Handle a response that will not be complete."""
        if not self.is_over:
            self.is_over = True
            self._break_off(error)

    def _lose(self, error: PeerError) -> None:
        """Give up a response that is unreadable or too large; do not resume it."""
        self.abort()
        self._saw_id = False
        self._break_off(error)

    def _status_error(self, *, in_session: bool = False) -> PeerError:
        """Return the error for the status of this response, which is not a success."""
        facts = self._facts
        return status_error(
            self._status,
            retry_after=facts.retry_after,
            location=facts.location,
            in_session=in_session,
        )

    def _useless_error(self, message: Message | Fault | None) -> PeerError:
        """Return the error for a successful response that does not answer its request."""
        if self._size and not self._facts.is_json:
            return upstream_error("wrong_type")
        if isinstance(message, Message):
            is_response = message.shape == RESPONSE
            return upstream_error("wrong_id" if is_response else "no_answer")
        return upstream_error("not_json" if self._size else "no_answer")

    # Implemented by subclasses.

    def _start_stream(self) -> None:
        """Handle the start of a stream; by default, only its events matter."""

    def _take_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        raise NotImplementedError

    def _end_stream(self) -> None:
        """The stream is complete."""
        raise NotImplementedError

    def _take_whole(self, body: bytes) -> None:
        """Handle the whole body of a response that is not a stream."""
        raise NotImplementedError

    def _break_off(self, error: PeerError) -> None:
        """Handle a response that will not be complete."""
        raise NotImplementedError


class HttpLeg(HttpAnswer):
    """Receives the response to one request, and takes the session's commands about it.

    Its owner pauses it while the agent is slow.
    """

    __slots__ = ("_event", "_health", "_is_awaited", "driver", "owner")

    passes_stream = True

    def __init__(
        self, owner: Owner, driver: SessionDriver, key: RequestId | None, health: ServerHealth
    ) -> None:
        self.owner = owner
        self.driver = driver
        self.key = key
        self._health = health
        self.exchange = None
        self.is_over = False
        self._status = 0
        self._facts = NO_HEAD
        self._body = []
        self._size = 0
        self._splitter = None
        self._event: Event | None = None
        self._is_awaited = False
        """Whether the server's stream is over, and the agent's answer is still to come."""
        self._saw_id = False

    @property
    def is_resumable(self) -> bool:
        """Whether the agent can fetch the rest of this stream later, since its events have ids."""
        return self._saw_id

    def abort(self) -> None:
        """Stop reading: nobody waits for the response, nor for anything else on its stream."""
        super().abort()
        self.driver.stream_ended(self)

    def pause(self) -> None:
        """Stop reading until ``resume``."""
        if self.exchange is not None:
            self.exchange.pause()

    def resume(self) -> None:
        """Continue reading."""
        if self.exchange is not None:
            self.exchange.resume()

    # Called by the session.

    def take(self, frame: ToAgent) -> None:
        """Pass on a message of this response once the record is written."""
        data, outbox, event = frame.data, self.driver.outbox, self._event
        if event is None:
            outbox.later(self.owner.answered, data, self._status, self._render_headers())
            return
        raw = event.raw if data == event.data else replace_data(event, data)
        if frame.carries == ANSWER:
            outbox.later(self.owner.stream_answered, raw, frame.key)
            if self._is_awaited:
                outbox.later(self.owner.stream_ended)
        else:
            outbox.later(self.owner.stream_wrote, raw)

    def forward(self, frame: ToServer) -> None:
        """Send a response that the session gives the server on the agent's behalf."""
        self.driver.notify(frame)

    # Reading.

    def _start_stream(self) -> None:
        headers = self._render_headers()
        self.driver.outbox.later(self.owner.stream_started, self._status, headers)

    def _take_event(self, event: Event) -> None:
        outbox = self.driver.outbox
        # The agent must not find another message in the event than the gate has inspected.
        event = with_one_reading(event)
        if event.id:
            self._saw_id = True
        if not event.data:
            outbox.later(self.owner.stream_wrote, event.raw)
            return
        self._event = event
        if not self._health.is_settled:
            self._health.answered()
        message = read_quickly(event.data, len(event.data))
        frames = self.driver.feed(ServerSent(event.data, now(), message), self)
        if not frames and event.id is not None:
            # The message was dropped. Pass its event id on nevertheless, so that a client that
            # resumes does not request it again.
            outbox.later(self.owner.stream_wrote, replace_data(event, None))

    def _end_stream(self, error: PeerError | None = None) -> None:
        """End the stream; a request that is still unanswered fails unless it can be resumed."""
        # Modern streams cannot be resumed, whether or not their events have ids.
        if self.key is not None and not (self._saw_id and not self.driver.is_modern):
            self._event = Event(b"data:\n\n", None, None)
            error = error or upstream_error("stream_ended")
            if self.driver.feed(not_sent(self.key, error), self):
                self._health.failed(error)
            # Still open if the answer has arrived and a person decides on the requests in it.
            self._is_awaited = self.driver.is_open(self.key)
        if not self._is_awaited:
            self.driver.stream_ended(self)
            self.driver.outbox.later(self.owner.stream_ended)

    def _take_whole(self, body: bytes) -> None:
        if self.key is None:
            is_told = self._status >= _FIRST_ERROR and self._facts.is_json and _is_error(body)
            sent = body if is_told else b""
            headers = self._render_headers() if sent or self._status < _FIRST_ERROR else b""
            if self._status >= _FIRST_ERROR and not is_told:
                headers = self._tell_failure()
            # The agent must not take a refusal of the gate's credentials for one of its own.
            status = 502 if self._status in _NOT_OURS else self._status
            self.driver.outbox.later(self.owner.passed, status, headers, sent)
            return
        line = one_line(body)
        if self._status >= _FIRST_ERROR:
            self._take_error(line)
        elif not self._facts.is_json:
            self._fail(self._useless_error(None))
        else:
            message = read_quickly(line, len(line))
            event = unchecked(ServerSent, (line, now(), message))
            if not self.driver.feed(event, self) and not self._is_awaiting(message):
                self._fail(self._useless_error(message))
            elif not self._health.is_settled:
                self._health.answered()

    def _is_awaiting(self, message: Message | Fault) -> bool:
        """Tell whether the answer comes later, because a person decides on the requests in it."""
        if not isinstance(message, Message) or message.shape != RESPONSE or message.id is None:
            return False
        return message.id == self.key and self.driver.is_open(message.id)

    def _fail(self, error: PeerError, status: int = _OK) -> None:
        self._health.failed(error, is_call=self.key is not None)
        self.owner.failed(error, status)

    def _tell_failure(self) -> bytes:
        """Note a status that refuses a message without an id; return the headers that say why."""
        error = self._status_error(in_session=bool(self.driver.upstream_session))
        self._health.failed(error, is_call=False)
        return b"retry-after: %d\r\n" % error.retry_after if error.retry_after else b""

    def _take_error(self, line: bytes) -> None:
        """Handle an HTTP error: pass on the server's JSON-RPC error if there is one, else ours."""
        message = read_frame(line) if self._facts.is_json else None
        error = self._status_error(in_session=bool(self.driver.upstream_session))
        if not isinstance(message, Message) or message.shape != RESPONSE:
            self._fail(error, self._status if self._status in _TELLING else _OK)
            return
        if message.id != self.key and "error" in message.body:
            if self._status in _NOT_OURS:
                self._fail(error)
                return
            # The error names no request, so it is about this one. It passes through the session as
            # the answer, because it may contain requests to the agent, or secrets.
            line = render({**message.body, "id": self.key})
        if not self.driver.feed(ServerSent(line, now()), self):
            self._fail(error)

    def _break_off(self, error: PeerError) -> None:
        if self._splitter is not None:
            self._end_stream(error)
        else:
            self._fail(error)

    def _render_headers(self) -> bytes:
        session, headers = self._facts.session, self._facts.headers
        named = self.owner.session_named(session) if session else ""
        return headers + b"mcp-session-id: %b\r\n" % named.encode("latin-1") if named else headers


def downstream_headers(headers: Headers) -> bytes:
    """Render the response headers that are forwarded to the agent, except the session id."""
    lines = [
        b"%b: %b\r\n" % (name, value if name != b"content-type" else _as_read(value))
        for name, value in headers
        if name not in _NOT_DOWNSTREAM
    ]
    return b"".join(lines)


@lru_cache(maxsize=256)
def _as_read(content_type: bytes) -> bytes:
    """Return a content type that makes the agent decode the response as the gate did: as UTF-8."""
    kind, _, parameters = content_type.partition(b";")
    parameters = parameters.lower().replace(b'"', b"").replace(b" ", b"")
    return content_type if parameters in {b"", b"charset=utf-8"} else kind.strip()


def _is_error(body: bytes) -> bool:
    """Tell whether a body is a plain error, the only one that a message without an id may get."""
    message = read_frame(one_line(body))
    return (
        isinstance(message, Message)
        and message.shape == RESPONSE
        and "error" in message.body
        and not input_requests(message.body)
    )


def _read_head(head: ResponseHead) -> _HeadFacts:
    kinds = [value for name, value in head.headers if name == b"content-type"]
    kind = kinds[0].partition(b";")[0].strip().lower() if kinds else b""
    codings = [value.strip().lower() for name, value in head.headers if name == b"content-encoding"]
    named = {name: value for name, value in reversed(head.headers) if name in _READ}
    return _HeadFacts(
        kind == b"application/json",
        kind == b"text/event-stream",
        "wrong_type" if len(kinds) > 1 else "",
        b", ".join(one for one in codings if one not in {b"", b"identity"}),
        named.get(mirror.SESSION, b"").decode("latin-1"),
        downstream_headers(head.headers),
        named.get(b"retry-after", b""),
        named.get(b"location", b""),
    )


NO_HEAD: Final = _HeadFacts(
    is_json=False, is_stream=False, fault="", encoding=b"", session="", headers=b""
)
"""The facts before a head has arrived."""


class Nobody:
    """Discards frames, for cases in which the agent has already been answered."""

    def take(self, frame: ToAgent) -> None:
        """Discard the frame."""

    def forward(self, frame: ToServer) -> None:
        """Discard the frame."""


NOBODY: Final = Nobody()
