"""Reading a server's answer to one HTTP request.

An answer is read as JSON or as server-sent events. When a request is passed through, every
message in the answer goes through the session, and what the session leaves alone goes on
byte for byte. Anything else that a server may send instead of an answer ends as an error
that the agent can read.
"""

from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import NotSent, ServerSent
from thoughtgate.errors import PeerError
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.transports.http_client import ClientExchange
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.batch import one_line
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import RESPONSE, Message, RequestId
from thoughtgate.wire.sse import (
    Event,
    EventSplitter,
    EventTooLongError,
    replace_data,
    with_one_reading,
)
from thoughtgate.wire.unchecked import unchecked

MAX_ANSWER: Final = 10 * 1024 * 1024
"""Bytes of a whole JSON answer, as on stdio."""

_OK: Final = 200
_FIRST_ERROR: Final = 400
_NOT_OURS: Final = frozenset({401, 403, 407})
"""The server refuses the gate, not the agent: the agent can do nothing about it."""
_TELLING: Final = frozenset({404, 429, 503})
"""Statuses that tell an agent what to do: open a new session, or come back later."""


_NOT_DOWNSTREAM: Final = mirror.HOP_BY_HOP | {
    b"content-length",
    b"content-encoding",
    b"set-cookie",
    b"www-authenticate",
    b"alt-svc",
    b"strict-transport-security",
    b"clear-site-data",
    b"access-control-allow-origin",
    b"access-control-allow-credentials",
    b"access-control-expose-headers",
    mirror.SESSION,
}
"""What a server may not tell the agent about itself through the gate."""


class _HeadFacts(NamedTuple):
    """What follows from the head of an answer."""

    is_json: bool
    is_stream: bool
    is_readable: bool
    """False for an answer with two types, or one that is compressed although nobody asked."""
    session: str
    """The session that the server names, if any."""
    headers: bytes
    """What goes on to the agent, but for the session."""


class Owner(Protocol):
    """Who has sent the request and passes the answer on."""

    def stream_started(self, status: int, headers: bytes) -> None:
        """The answer is a stream."""

    def stream_wrote(self, data: bytes) -> None:
        """A part of the stream."""

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """A part of the stream that answers a request: this one, or another of the same batch."""

    def stream_ended(self) -> None:
        """The stream is complete."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """The answer is one message."""

    def told(self, data: bytes) -> None:
        """The server sent something that is not the answer yet."""

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Nobody waited for a message; this is what the server said instead."""

    def failed(self, kind: str, status: int = 200) -> None:
        """There is no answer; ``status`` is what the agent should be told by HTTP."""

    def session_named(self, upstream: str) -> str:
        """The server named a session; return the id that the agent is given for it."""


class HttpAnswer:
    """Reads one HTTP answer; a subclass says what becomes of what was read.

    There is no constructor, so that making a subclass's object takes one call: every
    subclass sets all fields itself.
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
    """The request that waits for this answer; None when none does."""
    exchange: ClientExchange | None
    is_over: bool
    _status: int
    _facts: "_HeadFacts"
    _body: list[bytes]
    _size: int
    _splitter: EventSplitter | None
    """Set when the answer is a stream."""
    _saw_id: bool
    """Whether events have ids, so that the stream can be resumed."""

    def abort(self) -> None:
        """Nobody waits any more."""
        self.is_over = True
        if self.exchange is not None:
            self.exchange.abort()

    # The receiver's side.

    def started(self, head: ResponseHead) -> None:
        """Read the head and decide how the body is read."""
        self._status = head.status
        facts = head.memo
        if type(facts) is not _HeadFacts:
            facts = head.memo = _read_head(head)
        self._facts = facts
        if not facts.is_readable:
            self._lose("the server's answer cannot be read")
        elif facts.is_stream and head.status == _OK:
            self._splitter = EventSplitter()
            self._start_stream()

    def received(self, chunk: bytes) -> None:
        """Take a part of the body."""
        if self.is_over:
            return
        if self._splitter is None:
            self._size += len(chunk)
            self._body.append(chunk)
            if self._size > MAX_ANSWER:
                self._lose("the server's answer is too large")
            return
        try:
            events = self._splitter.feed(chunk)
        except EventTooLongError:
            self._lose("the server's answer is too large")
            return
        for event in events:
            self._take_event(event)

    def ended(self) -> None:
        """The body is complete."""
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
        """There will be no complete answer."""
        if not self.is_over:
            self.is_over = True
            self._break_off(error)

    def _lose(self, reason: str) -> None:
        """The answer cannot be read, or is too large; reading it again would not help."""
        self.abort()
        self._saw_id = False
        self._break_off(PeerError("upstream_connection_failed", reason))

    # For the subclass.

    def _start_stream(self) -> None:
        """The answer is a stream."""
        raise NotImplementedError

    def _take_event(self, event: Event) -> None:
        """Take an event of the stream."""
        raise NotImplementedError

    def _end_stream(self) -> None:
        """The stream is complete."""
        raise NotImplementedError

    def _take_whole(self, body: bytes) -> None:
        """Take the whole body of an answer that is not a stream."""
        raise NotImplementedError

    def _break_off(self, error: PeerError) -> None:
        """The answer will not be complete."""
        raise NotImplementedError


class HttpLeg(HttpAnswer):
    """Receives the answer to one request. A sink for the session's commands on the way."""

    __slots__ = ("_event", "driver", "owner")

    passes_stream = True

    def __init__(self, owner: Owner, driver: SessionDriver, key: RequestId | None) -> None:
        self.owner = owner
        self.driver = driver
        self.key = key
        self.exchange = None
        self.is_over = False
        self._status = 0
        self._facts = NO_HEAD
        self._body = []
        self._size = 0
        self._splitter = None
        self._event: Event | None = None
        self._saw_id = False

    @property
    def is_resumable(self) -> bool:
        """Whether the agent can ask for the rest of this stream later."""
        return self._saw_id

    # The sink's side.

    def take(self, frame: ToAgent) -> None:
        """The session passes a message of this answer on."""
        data, outbox, event = frame.data, self.driver.outbox, self._event
        if event is None:
            outbox.later(self.owner.answered, data, self._status, self._render_headers())
            return
        raw = event.raw if data == event.data else replace_data(event, data)
        if frame.carries == ANSWER:
            outbox.later(self.owner.stream_answered, raw, frame.key)
        else:
            outbox.later(self.owner.stream_wrote, raw)

    def forward(self, frame: ToServer) -> None:
        """The session answers the server in the agent's place."""
        self.driver.notify(frame)

    # Reading.

    def _start_stream(self) -> None:
        headers = self._render_headers()
        self.driver.outbox.later(self.owner.stream_started, self._status, headers)

    def _take_event(self, event: Event) -> None:
        outbox = self.driver.outbox
        event = with_one_reading(event)
        if event.id:
            self._saw_id = True
        if not event.data:
            outbox.later(self.owner.stream_wrote, event.raw)
            return
        self._event = event
        frames = self.driver.feed(ServerSent(event.data, now(), read_quickly(event.data)), self)
        if not frames and event.id is not None:
            # The message was dropped, but a reader that resumes must not ask for it again.
            outbox.later(self.owner.stream_wrote, replace_data(event, None))

    def _end_stream(self) -> None:
        """The stream is over; a request that it left unanswered is lost unless it can resume."""
        if self.key is not None and not (self._saw_id and not self.driver.is_modern):
            self._event = Event(b"data:\n\n", None, None)
            at = now()
            self.driver.feed(NotSent(self.key, "upstream_connection_failed", at), self)
        self.driver.outbox.later(self.owner.stream_ended)

    def _take_whole(self, body: bytes) -> None:
        if self.key is None:
            sent = body if self._status >= _FIRST_ERROR and self._facts.is_json else b""
            headers = self._render_headers() if sent or self._status < _FIRST_ERROR else b""
            self.driver.outbox.later(self.owner.passed, self._said_status(), headers, sent)
            return
        line = one_line(body)
        if self._status >= _FIRST_ERROR:
            self._take_error(line)
        elif not self._facts.is_json or not self.driver.feed(
            unchecked(ServerSent, (line, now(), read_quickly(line))), self
        ):
            self.owner.failed("upstream_connection_failed")

    def _take_error(self, line: bytes) -> None:
        """A refusal by status: the server's own words when they are an error, else ours."""
        message = read_frame(line) if self._facts.is_json else None
        if not isinstance(message, Message) or message.shape != RESPONSE:
            told = self._status if self._status in _TELLING else _OK
            self.owner.failed("upstream_connection_failed", told)
        elif message.id == self.key or "error" not in message.body:
            if not self.driver.feed(ServerSent(line, now()), self):
                self.owner.failed("upstream_connection_failed")
        elif self._status in _NOT_OURS:
            self.owner.failed("upstream_connection_failed")
        else:
            # An error that names no request: this one has failed, and the agent is told why.
            self.take(ToAgent(message.raw))
            assert self.key is not None  # noqa: S101  requests only
            self.driver.feed(NotSent(self.key, "upstream_connection_failed", now()), _NOBODY)

    def _break_off(self, error: PeerError) -> None:
        if self._splitter is not None:
            self._end_stream()
        else:
            self.owner.failed(error.kind)

    def _said_status(self) -> int:
        return 502 if self._status in _NOT_OURS else self._status

    def _render_headers(self) -> bytes:
        session, headers = self._facts.session, self._facts.headers
        named = self.owner.session_named(session) if session else ""
        return headers + b"mcp-session-id: %b\r\n" % named.encode("latin-1") if named else headers


def downstream_headers(headers: Headers) -> bytes:
    """Render the headers of a server's answer that go back to the agent, but for its session."""
    lines = [
        b"%b: %b\r\n" % (name, value if name != b"content-type" else _as_read(value))
        for name, value in headers
        if name not in _NOT_DOWNSTREAM
    ]
    return b"".join(lines)


@lru_cache(maxsize=256)
def _as_read(content_type: bytes) -> bytes:
    """Return a content type that has the agent read an answer as the gate did: as UTF-8."""
    kind, _, parameters = content_type.partition(b";")
    parameters = parameters.lower().replace(b'"', b"").replace(b" ", b"")
    return content_type if parameters in {b"", b"charset=utf-8"} else kind.strip()


def _read_head(head: ResponseHead) -> _HeadFacts:
    kinds = [value for name, value in head.headers if name == b"content-type"]
    kind = kinds[0].partition(b";")[0].strip().lower() if kinds else b""
    is_readable = len(kinds) <= 1 and all(
        name != b"content-encoding" or value.strip().lower() == b"identity"
        for name, value in head.headers
    )
    session = next((value for name, value in head.headers if name == b"mcp-session-id"), b"")
    return _HeadFacts(
        kind == b"application/json",
        kind == b"text/event-stream",
        is_readable,
        session.decode("latin-1"),
        downstream_headers(head.headers),
    )


NO_HEAD: Final = _HeadFacts(
    is_json=False, is_stream=False, is_readable=True, session="", headers=b""
)
"""Before there is a head."""


class _Nobody:
    """A sink for frames that the agent has already been told in other words."""

    def take(self, frame: ToAgent) -> None:
        """Drop it."""

    def forward(self, frame: ToServer) -> None:
        """Drop it."""


_NOBODY: Final = _Nobody()
