"""Agent requests that carry no message: GET streams and the DELETE that ends a session."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.front.post import STREAM, UNBUFFERED, pass_on
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

    def __init__(self, exchange: Exchange, on_done: Callable[[], None] | None = None) -> None:
        self.exchange = exchange
        self.leg: HttpLeg | None = None
        self._on_done = on_done
        exchange.on_gone = self._gone

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

    def failed(self, kind: str, status: int = 200) -> None:
        """Answer 502 when the server cannot be reached."""
        del status
        self.exchange.respond(502, JSON, render_error(None, kind))

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
    """An agent's GET stream that carries the unsolicited messages of a stdio server."""

    def __init__(self, exchange: Exchange, driver: SessionDriver, home: Unlistens) -> None:
        self.exchange = exchange
        self.driver = driver
        self._home = home
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
        self._home.unlisten(self)
        self.driver.stream_ended(self)
