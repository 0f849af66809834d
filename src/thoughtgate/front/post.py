"""One POST that carries one message: from the agent to the session, and the response back.

The response is JSON unless something must be sent before it; then it becomes a stream, if
the agent accepts one. A post does not know how its message reaches the server.
"""

import asyncio
import json
from typing import Final, Protocol

from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import CallerGone, NotSent
from thoughtgate.errors import PeerError
from thoughtgate.front.peer import Peer
from thoughtgate.front.request_head import JSON, HeadFacts
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Sink
from thoughtgate.transports.http_server import Exchange
from thoughtgate.upstream.client import not_sent
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render_error
from thoughtgate.wire.sse import render_event

STREAM: Final = (
    b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\n"
    b"x-accel-buffering: no\r\n"
)
UNBUFFERED: Final = b"x-accel-buffering: no\r\n"

KEEP_ALIVE_S: Final = 15.0
"""Interval of comments on the stream of an unanswered call; proxies close silent streams."""

ORPHAN_S: Final = 5.0
"""How long a server may keep a stream open after the request was answered or cancelled."""

_STATUS: Final = {
    ("parse_error", False): 400,
    ("parse_error", True): 400,
    ("invalid_request", False): 400,
    ("invalid_request", True): 400,
    ("invalid_params", True): 400,
    ("method_not_found", True): 404,
    ("task_not_found", True): 400,
    ("insufficient_scope", False): 403,
    ("insufficient_scope", True): 403,
}
"""HTTP status by kind of refusal and whether the revision prescribes it; 200 otherwise."""


class Leg(Sink, Protocol):
    """The part of the request to the server that a post needs."""

    @property
    def is_over(self) -> bool:
        """Whether the response is complete."""

    @property
    def is_resumable(self) -> bool:
        """Whether the agent can fetch the rest of the response later (``Last-Event-ID``)."""

    @property
    def passes_stream(self) -> bool:
        """Whether the server's own stream, including its comments, is passed on to the agent."""

    def abort(self) -> None:
        """Stop the request: nobody waits for the response."""

    def pause(self) -> None:
        """Stop reading until ``resume``."""

    def resume(self) -> None:
        """Continue reading."""


def pass_on(exchange: Exchange, leg: Leg | None, data: bytes) -> None:
    """Pass a chunk on to the agent, and stop reading the server while the agent is slow."""
    exchange.write(data)
    if leg is not None and exchange.is_stalled:
        leg.pause()
        exchange.on_writable = leg.resume


def retry_header(error: bytes) -> bytes:
    """Return the Retry-After header for an error response that says when to try again."""
    data = json.loads(error)["error"]["data"]
    seconds = data.get("retry_after")
    return b"retry-after: %d\r\n" % seconds if type(seconds) is int else b""


class Home(Protocol):
    """The part of the endpoint that a post needs."""

    def send(self, post: "Post", frame: ToServer) -> None:
        """Send a frame to the server."""

    def prevented(self) -> None:
        """Count an approved call that is not made because its caller has disconnected."""

    def closed(self, peer: Peer, *, left: "Post | None") -> None:
        """Release the peer of a post that was answered or abandoned.

        ``left`` is the post if its agent had left before.
        """

    def left(self, post: "Post") -> None:
        """Stop counting a post as a call in progress: its agent left before the response."""

    def note_error(self, peer: Peer, method: str, kind: str) -> str:
        """Record an error that no session reports; return its id."""

    def scope_challenge(self, scopes: str) -> bytes:
        """Return the header that tells a client which scopes its token must have."""

    def open_session(self, post: "Post", upstream: str) -> str:
        """Register the session that the server named; return the agent's id for it."""


class Post:
    """One POST with one message."""

    __slots__ = (
        "_failed_with",
        "_held_at",
        "_home",
        "_is_closed",
        "_is_left",
        "_orphaned_at",
        "_spoke_at",
        "accepts_stream",
        "exchange",
        "key",
        "leg",
        "method",
        "peer",
        "session",
        "started_at",
        "upstream_session",
    )

    def __init__(
        self,
        home: Home,
        exchange: Exchange,
        peer: Peer,
        *,
        key: RequestId | None,
        method: str,
        at: float,
    ) -> None:
        facts: HeadFacts = exchange.head.memo
        self._home = home
        self.exchange = exchange
        self.peer = peer
        peer.trace, peer.address = facts.trace, exchange.peer
        self.key = key
        """The id of the request; None for a notification or a response."""
        self.method = method
        self.accepts_stream = facts.accepts_stream
        self.started_at = at
        self.leg: Leg | None = None
        self.session = ""
        """The session id that the agent uses."""
        self.upstream_session = ""
        """The session id that the server uses."""
        self._failed_with = 200
        """The HTTP status of an answer that says that the server did not respond."""
        self._held_at = 0.0
        self._spoke_at = at
        self._is_closed = False
        self._is_left = False
        self._orphaned_at = 0.0
        exchange.on_gone = self.gone

    # Called by the session.

    def take(self, frame: ToAgent) -> None:
        """Send a frame of the gate itself once the record is written."""
        self.peer.outbox.later(self._tell, frame)

    def forward(self, frame: ToServer) -> None:
        """Send the message to the server, unless the caller left during the approval."""
        if self._held_at and self.exchange.is_gone:
            # Approved, but nobody would receive the result, and a retry would run the call twice.
            self._home.prevented()
            if frame.key is not None:
                self.peer.feed(NotSent(frame.key, "approval_withdrawn", now()), self)
            return
        self._held_at = 0.0
        self._home.send(self, frame)

    def can_be_asked(self, *, modern: bool) -> bool:
        """Whether the agent can be prompted.

        From 2026-07-28 on the prompt is the response; before, it needs a stream.
        """
        return modern or self.accepts_stream

    def can_take_task(self) -> bool:
        """Return True: a POST with one message is answered by itself."""
        return True

    def held(self, key: RequestId) -> None:
        """Note that the call waits for approval."""
        del key
        self._held_at = self._spoke_at = now()

    def withdrawn(self) -> None:
        """End the exchange of a call that its caller has cancelled; no response is due."""
        self.peer.outbox.later(self._end_unanswered)

    def _end_unanswered(self) -> None:
        # In the next turn of the loop, after everything the session still sends to this caller.
        asyncio.get_running_loop().call_soon(self._close)

    def keep_alive(self, at: float) -> None:
        """Write a comment on an idle stream; end an exchange that will get no response."""
        if self.key is not None and not self.peer.is_open(self.key):
            self._orphaned_at = self._orphaned_at or at
            if at - self._orphaned_at > ORPHAN_S:
                self._close()
            return
        if at - self._spoke_at > KEEP_ALIVE_S and self._may_comment():
            self._spoke_at = at
            self._open_stream()
            said = b": waiting for approval\n\n" if self._held_at else b": still here\n\n"
            self.exchange.write(said)

    def _may_comment(self) -> bool:
        """Whether the gate may write a comment, on its own stream or on one it may open."""
        exchange = self.exchange
        if not self.accepts_stream or exchange.is_gone or exchange.is_answered:
            return False
        if self.method == "initialize":
            return False  # The head of this response carries the session id, not known yet.
        return bool(self._held_at) or self.leg is None or not self.leg.passes_stream

    # Called with what the server sent.

    def stream_started(self, status: int, headers: bytes) -> None:
        """Start a stream to the agent: the server responds with one."""
        if not self.exchange.is_streaming:
            self.exchange.start(status, headers + UNBUFFERED)

    def stream_wrote(self, data: bytes) -> None:
        """Pass a chunk on to the agent."""
        pass_on(self.exchange, self.leg, data)

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """Pass the response on like any other event; the agent recognises it by its id."""
        del key
        self.stream_wrote(data)

    def stream_ended(self) -> None:
        """End the stream once the server's stream is complete."""
        self.exchange.end()
        self._close()

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Pass on a response that is a single message."""
        if self.exchange.is_streaming:
            self.exchange.write(render_event(data))
            self.exchange.end()
        else:
            self.exchange.respond(status, headers, data)
        self._close()

    def told(self, data: bytes) -> None:
        """Pass on a message that precedes the response, if the agent accepts a stream."""
        if self.key is None:
            return  # The response to a notification has no body, and is no stream.
        if self.exchange.is_gone or self.exchange.is_answered or not self.accepts_stream:
            return
        self._spoke_at = now()
        self._open_stream()
        self.stream_wrote(render_event(data))

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Pass on the server's HTTP response to a notification or a response."""
        self.exchange.respond(status, headers, body)
        self._close()

    def failed(self, error: PeerError, status: int = 200) -> None:
        """Answer the agent: the server did not respond."""
        if self.key is None:
            ident = self._home.note_error(self.peer, self.method, error.kind)
            body = render_error(
                None, error.kind, message=str(error), details=error.facts, correlation_id=ident
            )
            self.exchange.respond(502, JSON + retry_header(body), body)
            self._close()
            return
        self._failed_with = status
        if not self.peer.feed(not_sent(self.key, error), self):
            self._close()

    def session_named(self, upstream: str) -> str:
        """Return the agent's id for the session that the server named in its response."""
        if not self.session:
            self.session = self._home.open_session(self, upstream)
        return self.session

    # The end of the post.

    def gone(self) -> None:
        """Tell the session that the agent disconnected before it was answered."""
        key, leg = self.key, self.leg
        if key is not None:
            self.peer.feed(CallerGone(key, now()), None)
            self.peer.outbox.schedule()
        if leg is not None:
            self.peer.stream_ended(leg)
        self.peer.stream_ended(self)
        if leg is None or self.peer.is_modern or leg.is_resumable:
            # If the agent can resume, the server must see the disconnect, so that it keeps the
            # rest of the response.
            self._close()
        elif key is None:
            # No timeout of the session ends it, and the server may never respond.
            asyncio.get_running_loop().call_later(ORPHAN_S, self._close)
        else:
            # Before 2026-07-28 a disconnect cancels nothing, so the response is still recorded.
            self._is_left = True
            self._home.left(self)

    def give_up(self) -> None:
        """Give up the request of an agent that is gone: too many others left after it."""
        if self.key is not None:
            self.peer.feed(CallerGone(self.key, now(), is_given_up=True), None)
            self.peer.outbox.schedule()
        self._close()

    def refuse(self, status: int, body: bytes) -> None:
        """Answer without involving the server."""
        self.exchange.respond(status, JSON, body)
        self._close()

    def unheard(self, is_wanted: bool, correlation_id: str) -> None:
        """Answer a message that is not forwarded: the reply to a prompt, or an unexpected one."""
        if is_wanted:
            self.passed(202, b"", b"")
        else:
            error = render_error(None, "invalid_request", correlation_id=correlation_id)
            self.refuse(400, error)

    def _tell(self, frame: ToAgent) -> None:
        if frame.carries == ANSWER:
            status = _STATUS.get((frame.error, self.peer.is_modern), self._failed_with)
            headers = JSON + self._session_header()
            if frame.error == "upstream_bad_response":
                headers += retry_header(frame.data)
            if frame.scopes:
                headers += self._home.scope_challenge(frame.scopes)
            self.answered(frame.data, status, headers)
        else:
            self.told(frame.data)

    def _session_header(self) -> bytes:
        """Return the header with the new session's id, for the response to ``initialize``."""
        if self.method != "initialize" or not self.session:
            return b""
        return b"mcp-session-id: %b\r\n" % self.session.encode()

    def _open_stream(self) -> None:
        if not self.exchange.is_streaming:
            self.exchange.start(200, STREAM + self._session_header())

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        exchange = self.exchange
        exchange.on_gone = None
        if not exchange.is_answered:
            # The request was cancelled, so it gets no response.
            if exchange.is_streaming:
                exchange.end()
            else:
                exchange.respond(204)
        callers = self.peer.callers
        if self.key is not None and callers.get(self.key) is self:
            del callers[self.key]
            self.peer.header_checks.pop(self.key, None)
        # Break the reference cycle, so that both are freed without a garbage collection.
        leg, self.leg = self.leg, None
        if leg is not None and not leg.is_over:
            leg.abort()
        self.peer.stream_ended(self)
        self._home.closed(self.peer, left=self if self._is_left else None)
