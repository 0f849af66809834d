"""A POST that carries a JSON-RPC batch (revision 2025-03-26, or no revision stated).

Each message is judged and sent to the server as if it had arrived alone. If any of them
waits for approval, all wait; if that call is not approved, or may not run any more, none is sent.
A batch is answered as a whole, so none of its calls becomes a task, whatever it asks for.
"""

from collections.abc import Sequence
from typing import Protocol

from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import AgentSent, CallerGone, NotSent
from thoughtgate.errors import PeerError
from thoughtgate.front.peer import Peer
from thoughtgate.front.post import KEEP_ALIVE_S, STREAM, Leg
from thoughtgate.front.request_head import JSON
from thoughtgate.gate.clock import now
from thoughtgate.transports.http_server import Exchange
from thoughtgate.upstream.client import not_sent
from thoughtgate.wire.batch import join_replies
from thoughtgate.wire.message import REQUEST, RESPONSE, Fault, Message, RequestId
from thoughtgate.wire.replies import render_error
from thoughtgate.wire.sse import render_event


class BatchHome(Protocol):
    """The part of the endpoint that a batch needs."""

    @property
    def last_error(self) -> str:
        """The id of the error that was recorded last."""

    def send_part(self, batch: "Batch", frame: ToServer) -> Leg | None:
        """Send one message to the server; its response goes to a ``BatchItem``."""

    def closed(self, peer: Peer, *, is_spare: bool) -> None:
        """Release the peer of a batch that was answered or abandoned."""


class Batch:
    """One POST with several messages."""

    def __init__(
        self,
        home: BatchHome,
        exchange: Exchange,
        peer: Peer,
        *,
        accepts_stream: bool,
        upstream_session: str,
    ) -> None:
        self._home = home
        self.exchange = exchange
        self.peer = peer
        self.accepts_stream = accepts_stream
        self.upstream_session = upstream_session
        self._replies: list[bytes] = []
        self._expected: set[RequestId] = set()
        self._taken: set[RequestId] = set()
        """Requests that the gate itself answers, with the reply still in the outbox."""
        self._held: set[RequestId] = set()
        self._ready: list[ToServer] = []
        self._legs: list[Leg] = []
        self._spoke_at = 0.0
        self._is_refused = False
        self._is_wanted = False
        """Whether the batch contains anything but responses that nobody expects."""
        self._is_fed = False
        self._is_closed = False
        exchange.on_gone = self.gone

    def feed(self, messages: Sequence[Message | Fault], at: float) -> None:
        """Judge every message; forward the allowed ones once all are decided."""
        self._spoke_at = at
        for message in messages:
            if isinstance(message, Message) and message.shape == REQUEST:
                ident = message.id
                if ident is not None and ident not in self.peer.callers:
                    self._expected.add(ident)
                    self.peer.callers[ident] = self
            raw = message.raw if isinstance(message, Message) else b"{}"
            self._feed_one(AgentSent(raw, at, message))
        for ident in self._expected - self._taken:
            if not self.peer.is_open(ident):
                # It was refused as a malformed frame: that reply carries no id to match it by.
                self.peer.outbox.later(self._forget, ident)
        self.peer.outbox.later(self._fed)

    def _feed_one(self, event: AgentSent) -> None:
        message = event.message
        is_response = isinstance(message, Message) and message.shape == RESPONSE
        # Ask before feeding: the session forgets its prompt once it has the answer.
        self._is_wanted |= not is_response or self.peer.is_answered_by(event)
        self.peer.feed(event, self)

    def _fed(self) -> None:
        self._is_fed = True
        self._go_on()

    # Called by the session.

    def take(self, frame: ToAgent) -> None:
        """Collect a reply of the gate itself, or pass on a message that is not a reply."""
        if frame.carries != ANSWER:
            self.peer.outbox.later(self.part_said, frame.data)
            return
        if frame.key is not None:
            self._taken.add(frame.key)
        self.peer.outbox.later(self._reply, frame.data, frame.key, bool(frame.error))

    def forward(self, frame: ToServer) -> None:
        """Keep an allowed message until every message of the batch is decided."""
        if frame.key is not None:
            self._held.discard(frame.key)
        self._is_wanted = True
        self._ready.append(frame)
        if self._is_fed:
            self._go_on()

    def can_be_asked(self, *, modern: bool) -> bool:
        """Whether the agent can be prompted: only on a stream.

        A prompt returned in place of the result would end that message of the batch.
        """
        return self.accepts_stream and not modern

    def can_take_task(self) -> bool:
        """Return False: with a task, the other messages would run before this one may."""
        return False

    def held(self, key: RequestId) -> None:
        """Note that one of the calls waits for approval."""
        self._spoke_at = now()
        self._held.add(key)

    def withdrawn(self) -> None:
        """Stop expecting a reply to a call that its caller has cancelled."""
        self.peer.outbox.later(self._drop_unknown)

    def _drop_unknown(self) -> None:
        for key in [key for key in self._expected if not self.peer.is_open(key)]:
            self._expected.discard(key)
            self._held.discard(key)
        self._go_on()

    def keep_alive(self, at: float) -> None:
        """Write a comment on the stream, so that proxies do not close it as idle."""
        is_over = self._is_closed or self.exchange.is_gone
        if self.accepts_stream and not is_over and at - self._spoke_at > KEEP_ALIVE_S:
            self._spoke_at = at
            self._tell(b": waiting for approval\n\n" if self._held else b": still here\n\n")

    # Called by the batch items, with what the server sent.

    def part_said(self, data: bytes) -> None:
        """Pass on a message that the server sent before its response."""
        if self.accepts_stream:
            self._spoke_at = now()
            self._tell(render_event(data))

    def part_answered(self, data: bytes, key: RequestId | None) -> None:
        """Collect the server's response to one of the messages."""
        self._reply(data, key)

    def part_failed(self, error: PeerError, key: RequestId | None) -> None:
        """Have the session answer a message to which the server did not respond."""
        if key is not None:
            self.peer.feed(not_sent(key, error), self)

    # The end of the batch.

    def gone(self) -> None:
        """Abandon the batch: the agent has disconnected."""
        at = now()
        for key in list(self._expected):
            self.peer.feed(CallerGone(key, at), None)
        self.peer.outbox.schedule()
        self._ready.clear()
        self._close()

    def _reply(self, data: bytes, key: RequestId | None, is_refusal: bool = False) -> None:
        self._replies.append(data)
        if key is not None:
            self._forget(key)
            if key in self._held:
                self._held.discard(key)
                # Any refusal counts: if this call does not run, the others must not run either.
                self._is_refused |= is_refusal
        self._go_on()

    def _forget(self, key: RequestId) -> None:
        self._expected.discard(key)
        if self.peer.callers.get(key) is self:
            del self.peer.callers[key]

    def _go_on(self) -> None:
        """Send the messages that waited for the others, and answer once no reply is missing."""
        if not self._is_fed or self._held or self._is_closed:
            return
        if any(self.peer.is_undecided(key) for key in self._expected):
            return  # No call runs before all calls are decided.
        ready, self._ready = self._ready, []
        for frame in ready:
            if not self._is_refused:
                leg = self._home.send_part(self, frame)
                if leg is not None:
                    self._legs.append(leg)
            elif frame.key is not None:
                self.peer.feed(NotSent(frame.key, "approval_withdrawn", now()), self)
        if not self._expected:
            self._finish()

    def _finish(self) -> None:
        if not self._replies and not self._is_wanted:
            # Every message of it was refused; the id is that of the last refusal.
            error = render_error(None, "invalid_request", correlation_id=self._home.last_error)
            self.exchange.respond(400, JSON, error)
        elif not self._replies:
            self.exchange.respond(202)
        elif self.exchange.is_streaming:
            self.exchange.write(render_event(join_replies(self._replies)))
            self.exchange.end()
        else:
            self.exchange.respond(200, JSON, join_replies(self._replies))
        self._close()

    def _tell(self, data: bytes) -> None:
        if not self.exchange.is_streaming:
            self.exchange.start(200, STREAM)
        self.exchange.write(data)

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.exchange.on_gone = None
        for key in self._expected:
            if self.peer.callers.get(key) is self:
                del self.peer.callers[key]
        if self.exchange.is_gone:
            for leg in self._legs:
                leg.abort()
        self.peer.stream_ended(self)
        # Not reusable: the server may still send messages for one of the batch's requests.
        self._home.closed(self.peer, is_spare=False)
