"""Agent requests that carry no message: GET streams and the DELETE that ends a session."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.errors import PeerError
from thoughtgate.front.post import STREAM, UNBUFFERED, pass_on, retry_header
from thoughtgate.front.request_head import JSON
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.transports.http_server import Exchange
from thoughtgate.upstream.http_answer import HttpLeg
from thoughtgate.upstream.multiplexer import Listener
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render_error
from thoughtgate.wire.sse import render_event


class PassedStream:
    """An agent's GET or DELETE, forwarded to the server."""

    def __init__(
        self,
        exchange: Exchange,
        note_error: Callable[[str], str],
        on_done: Callable[[], None] | None = None,
    ) -> None:
        """Answer an exchange; ``note_error`` records a kind of error and returns its id."""
        self.exchange = exchange
        self._note_error = note_error
        self.leg: HttpLeg | None = None
        self._on_done = on_done
        exchange.on_gone = self._gone

    def take(self, frame: ToAgent) -> None:
        """Send a notification of the gate itself between those of the server."""
        exchange = self.exchange
        # Dropped for an agent that does not read: only the server's own stream can be paused.
        if exchange.is_streaming and not exchange.is_gone and not exchange.is_stalled:
            exchange.write(render_event(frame.data))

    def forward(self, frame: ToServer) -> None:
        """Do nothing: this stream carries no frames to the server."""

    def stream_started(self, status: int, headers: bytes) -> None:
        """Start the response to the agent once the server has opened the stream."""
        self.exchange.start(status, headers + UNBUFFERED)

    def stream_wrote(self, data: bytes) -> None:
        """Pass a chunk on to the agent."""
        pass_on(self.exchange, self.leg, data)

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """Pass on a response; on a GET stream it belongs to a request that the agent resumes."""
        del key
        self.stream_wrote(data)

    def stream_ended(self) -> None:
        """End the response once the server has closed the stream."""
        self.exchange.end()

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Pass on a single response; not expected, as a GET or DELETE carries no request."""
        self.exchange.respond(status, headers, data)

    def told(self, data: bytes) -> None:
        """Do nothing: a stream passes everything on as it arrives."""

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Pass on a plain HTTP response: there is no such stream, or the session has ended."""
        if self._on_done is not None and status < HTTPStatus.MULTIPLE_CHOICES:
            self._on_done()
        self.exchange.respond(status, headers, body)

    def failed(self, error: PeerError, status: int = 200) -> None:
        """Answer 502 when the server cannot be reached, or the status that says when to retry."""
        ident = self._note_error(error.kind)
        body = render_error(
            None, error.kind, message=str(error), details=error.facts, correlation_id=ident
        )
        shown = status if status != HTTPStatus.OK else HTTPStatus.BAD_GATEWAY
        self.exchange.respond(shown, JSON + retry_header(body), body)

    def session_named(self, upstream: str) -> str:
        """Return no id: only the response to ``initialize`` names a session."""
        del upstream
        return ""

    def close(self) -> None:
        """End the stream from the gate's side."""
        if self.leg is not None:
            self.leg.abort()
        if self.exchange.is_streaming:
            self.exchange.end()
        else:
            self.exchange.respond(503)

    def _gone(self) -> None:
        if self.leg is not None:
            self.leg.abort()


class Unlistens(Protocol):
    """The upstream that a push stream is registered with."""

    def unlisten(self, listener: Listener) -> None:
        """Stop delivering unsolicited messages to this listener."""


class PushStream:
    """An agent's GET stream with the messages of a stdio server that answer no request."""

    def __init__(self, exchange: Exchange, driver: SessionDriver, home: Unlistens) -> None:
        self.exchange = exchange
        self.driver = driver
        self._home = home
        driver.stream = self
        exchange.on_gone = self._gone
        exchange.start(200, STREAM)
        # Send a comment at once: some clients and proxies wait for the first byte before they
        # treat the stream as open.
        exchange.write(b": open\n\n")

    def take(self, frame: ToAgent) -> None:
        """Send a frame to the agent once the record is written."""
        self.driver.outbox.later(self.exchange.write, render_event(frame.data))

    def forward(self, frame: ToServer) -> None:
        """Send a response that the session gives the server on the agent's behalf."""
        self.driver.notify(frame)

    def close(self) -> None:
        """End the stream from the gate's side."""
        self._gone()
        self.exchange.end()

    def _gone(self) -> None:
        if self.driver.stream is self:
            self.driver.stream = None
        self._home.unlisten(self)
        self.driver.stream_ended(self)
