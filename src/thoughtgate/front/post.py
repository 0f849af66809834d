"""One POST that carries one message: from the agent to the session, and the answer back.

The answer is JSON until something must be said before it; then it becomes a stream, if
the agent can read one. A post knows nothing of the server's side but that it forwards.
"""

import asyncio
from typing import Final, Protocol

from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import CallerGone, NotSent
from thoughtgate.front.peer import Peer
from thoughtgate.front.request_head import JSON, facts_of
from thoughtgate.gate.clock import now
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render_error
from thoughtgate.wire.sse import render_event

STREAM: Final = (
    b"content-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\n"
    b"x-accel-buffering: no\r\n"
)
UNBUFFERED: Final = b"x-accel-buffering: no\r\n"

KEEP_ALIVE_S: Final = 15.0
"""Between comments on the stream of a call without an answer; proxies cut silent streams."""

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
}
"""HTTP statuses of refusals, by kind and whether the revision prescribes statuses; others are 200."""


class Leg(Protocol):
    """The server's side of a post, as far as the post needs it."""

    @property
    def is_over(self) -> bool:
        """Whether the answer is complete."""

    @property
    def is_resumable(self) -> bool:
        """Whether the rest of the answer can be asked for later."""

    @property
    def passes_stream(self) -> bool:
        """Whether the server's own stream, with its comments, goes on to the agent."""

    def abort(self) -> None:
        """Nobody waits any more."""

    def pause(self) -> None:
        """Read no more until ``resume``."""

    def resume(self) -> None:
        """Read again."""


class Home(Protocol):
    """The gateway, as far as a post needs it."""

    def send(self, post: "Post", frame: ToServer) -> None:
        """Send a frame to the server."""

    def prevented(self) -> None:
        """Count an approved call that is not made, because its caller has left."""

    def closed(self, post: "Post") -> None:
        """The post is answered or given up."""

    def open_session(self, post: "Post", upstream: str) -> str:
        """The server named a session; return the id for the agent."""


class Post:
    """One POST with one message."""

    __slots__ = (
        "_held_at",
        "_home",
        "_is_closed",
        "_orphaned_at",
        "_spoke_at",
        "accepts_stream",
        "exchange",
        "is_touched",
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
        facts = facts_of(exchange)
        self._home = home
        self.exchange = exchange
        self.peer = peer
        peer.trace = facts.trace
        self.key = key
        """The id of the request; None for a notification or a response."""
        self.method = method
        self.accepts_stream = facts.accepts_stream
        self.started_at = at
        self.leg: Leg | None = None
        self.session = ""
        """The session id that the answer names to the agent."""
        self.upstream_session = ""
        """The session id that the request names to the server."""
        self.is_touched = False
        """Whether anything became of the message."""
        self._held_at = 0.0
        self._spoke_at = at
        self._is_closed = False
        self._orphaned_at = 0.0
        exchange.on_gone = self.gone

    # What the session wants.

    def take(self, frame: ToAgent) -> None:
        """A frame of the gate's own for the agent."""
        self.is_touched = True
        self.peer.outbox.later(self._tell, frame)

    def forward(self, frame: ToServer) -> None:
        """The message may go to the server."""
        if self._held_at and self.exchange.is_gone:
            # Approved, but nobody would learn the result and a retry would do it twice.
            self._home.prevented()
            if frame.key is not None:
                self.peer.feed(NotSent(frame.key, "approval_withdrawn", now()), self)
            return
        self._held_at = 0.0
        self._home.send(self, frame)

    def can_be_asked(self, *, modern: bool) -> bool:
        """A modern caller is answered with the prompt; others must be able to read a stream."""
        return modern or self.accepts_stream

    def held(self, key: RequestId) -> None:
        """The call waits for a person."""
        del key
        self.is_touched = True
        self._held_at = self._spoke_at = now()

    def withdrawn(self) -> None:
        """The caller took the call back: there is nothing to say, but the exchange must end."""
        self.peer.outbox.later(self._end_unanswered)

    def _end_unanswered(self) -> None:
        # Whatever the session still has to say to this caller is said first.
        asyncio.get_running_loop().call_soon(self._close)

    def keep_alive(self, at: float) -> None:
        """Show the agent that its call is not lost; end an exchange that nothing will answer."""
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
        """Whether a stream of the gate's own can be, or is, open."""
        exchange = self.exchange
        if not self.accepts_stream or exchange.is_gone or exchange.is_answered:
            return False
        if self.method == "initialize":
            return False  # The head of its answer names the session, which is not known yet.
        return bool(self._held_at) or self.leg is None or not self.leg.passes_stream

    # What the server's side brings.

    def stream_started(self, status: int, headers: bytes) -> None:
        """The server answers with a stream."""
        if not self.exchange.is_streaming:
            self.exchange.start(status, headers + UNBUFFERED)

    def stream_wrote(self, data: bytes) -> None:
        """Pass a part of the stream on."""
        self.exchange.write(data)
        if self.exchange.is_stalled and self.leg is not None:
            self.leg.pause()
            self.exchange.on_writable = self.leg.resume

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """The answer is a part of the stream like any other; the agent finds it by its id."""
        del key
        self.stream_wrote(data)

    def stream_ended(self) -> None:
        """The server's stream is complete."""
        self.exchange.end()
        self._close()

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """The server answered with one message."""
        if self.exchange.is_streaming:
            self.exchange.write(render_event(data))
            self.exchange.end()
        else:
            self.exchange.respond(status, headers, data)
        self._close()

    def told(self, data: bytes) -> None:
        """The server sent something that is not the answer yet."""
        if self.exchange.is_gone or self.exchange.is_answered or not self.accepts_stream:
            return
        self._spoke_at = now()
        self._open_stream()
        self.stream_wrote(render_event(data))

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """What the server said to a notification or a response."""
        self.exchange.respond(status, headers, body)
        self._close()

    def failed(self, kind: str, status: int = 200) -> None:
        """The server gave no answer."""
        if self.key is None:
            self.exchange.respond(502, JSON, render_error(None, kind))
            self._close()
            return
        if status != 200 and not self.exchange.is_streaming:  # noqa: PLR2004  the status that says nothing
            self.exchange.respond(status, JSON, render_error(self.key, kind))
        if not self.peer.feed(NotSent(self.key, kind, now()), self):
            self._close()

    def session_named(self, upstream: str) -> str:
        """The server named a session in its answer."""
        if not self.session:
            self.session = self._home.open_session(self, upstream)
        return self.session

    # Ends.

    def gone(self) -> None:
        """The agent left before it was answered."""
        key, leg = self.key, self.leg
        if key is not None:
            self.peer.feed(CallerGone(key, now()), None)
            self.peer.outbox.schedule()
        if leg is None or self.peer.is_modern or leg.is_resumable:
            # Where the agent can resume, the server must see it leave: it keeps the rest.
            self._close()

    def refuse(self, status: int, body: bytes) -> None:
        """Answer without asking the server."""
        self.exchange.respond(status, JSON, body)
        self._close()

    def unheard(self, is_wanted: bool) -> None:
        """Nothing goes on: a response to the gate's own prompt, or one that nobody asked for."""
        if is_wanted:
            self.passed(202, b"", b"")
        else:
            self.refuse(400, render_error(None, "invalid_request"))

    def _tell(self, frame: ToAgent) -> None:
        if frame.carries == ANSWER:
            status = _STATUS.get((frame.error, self.peer.is_modern), 200)
            self.answered(frame.data, status, JSON + self._session_header())
        else:
            self.told(frame.data)

    def _session_header(self) -> bytes:
        """The answer to ``initialize`` names the session that it opened."""
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
            # The request was cancelled: no answer will come, and none is wanted.
            if exchange.is_streaming:
                exchange.end()
            else:
                exchange.respond(204)
        callers = self.peer.callers
        if self.key is not None and callers.get(self.key) is self:
            del callers[self.key]
        leg, self.leg = self.leg, None  # they know each other; apart, they go without a collection
        if leg is not None and not leg.is_over:
            leg.abort()
        self._home.closed(self)
