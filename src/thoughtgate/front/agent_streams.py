"""Requests of the agent that carry no message: GET streams and the end of a session."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.front.post import STREAM, UNBUFFERED
from thoughtgate.front.request_head import JSON
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.transports.http_server import Exchange
from thoughtgate.upstream.http import PausableLeg
from thoughtgate.upstream.multiplexer import Listener
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render_error
from thoughtgate.wire.sse import render_event


class PassedStream:
    """A GET or DELETE of the agent, passed on."""

    def __init__(self, exchange: Exchange, on_done: Callable[[], None] | None = None) -> None:
        self.exchange = exchange
        self.leg: PausableLeg | None = None
        self._on_done = on_done
        exchange.on_gone = self._gone

    def stream_started(self, status: int, headers: bytes) -> None:
        """The server has opened the stream."""
        self.exchange.start(status, headers + UNBUFFERED)

    def stream_wrote(self, data: bytes) -> None:
        """Pass a part on."""
        self.exchange.write(data)
        if self.exchange.is_stalled and self.leg is not None:
            self.leg.pause()
            self.exchange.on_writable = self.leg.resume

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """No request was asked on this stream; an answer that comes is one to a resumed request."""
        del key
        self.stream_wrote(data)

    def stream_ended(self) -> None:
        """The server has closed the stream."""
        self.exchange.end()

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Never on a stream that nobody asked anything on."""
        self.exchange.respond(status, headers, data)

    def told(self, data: bytes) -> None:
        """Never: a stream passes everything on as it comes."""

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """The server has no such stream, or has ended the session."""
        if self._on_done is not None and status < HTTPStatus.MULTIPLE_CHOICES:
            self._on_done()
        self.exchange.respond(status, headers, body)

    def failed(self, kind: str, status: int = 200) -> None:
        """The server cannot be reached."""
        del status
        self.exchange.respond(502, JSON, render_error(None, kind))

    def session_named(self, upstream: str) -> str:
        """Nothing new can be named here."""
        del upstream
        return ""

    def close(self) -> None:
        """End the stream from our side."""
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
    """Where a stream was opened."""

    def unlisten(self, listener: Listener) -> None:
        """An agent hears no more."""


class PushStream:
    """A stream of an agent on which a stdio server may speak unasked."""

    def __init__(self, exchange: Exchange, driver: SessionDriver, home: Unlistens) -> None:
        self.exchange = exchange
        self.driver = driver
        self._home = home
        exchange.on_gone = self._gone
        exchange.start(200, STREAM)
        # Something at once, so that clients and proxies know that the stream is open.
        exchange.write(b": open\n\n")

    def take(self, frame: ToAgent) -> None:
        """A frame for the agent."""
        self.driver.outbox.later(self.exchange.write, render_event(frame.data))

    def forward(self, frame: ToServer) -> None:
        """The session answers the server in the agent's place."""
        self.driver.notify(frame)

    def close(self) -> None:
        """End the stream from our side."""
        self._gone()
        self.exchange.end()

    def _gone(self) -> None:
        self._home.unlisten(self)
