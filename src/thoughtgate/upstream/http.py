"""An HTTP server in pass-through: each request of an agent becomes one request to the server.

The server manages its own sessions. ``upstream.http_answer`` reads the responses.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from thoughtgate.core.commands import ToServer
from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.http_client import ClientExchange, HttpPool, Receiver
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.upstream.health import ServerHealth
from thoughtgate.upstream.http_answer import HttpLeg, Owner
from thoughtgate.upstream.notices import Notices
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.revisions import version_in

LOOK_EVERY_S: Final = 15.0
RETRY_S: Final = 1.0

CONTENT: Final = (b"content-type", b"application/json")
_NOTICE: Final[Headers] = [CONTENT, (b"accept", b"application/json, text/event-stream")]


class HttpUpstream:
    """A server that is reached over HTTP."""

    names_sessions = True
    """True: the server assigns its own session ids, if it has sessions."""

    needs_sessions = False
    """False: the server itself refuses requests that need a session."""

    def __init__(self, pool: HttpPool, health: ServerHealth, *, traces: bool = False) -> None:
        self.pool = pool
        self.health = health
        self.traces = traces
        """Whether the trace headers name the gate's own span."""
        self.on_refused: Callable[[bytes, str], None] = lambda _line, _check: None
        """Never called: every frame of an HTTP server belongs to a request."""
        self.notices = Notices()
        self.is_up = False
        """Whether the server accepted the last connection attempt."""
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start checking whether the server is up; the gate also starts if it is not."""
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Close every connection."""
        if self._looking is not None:
            self._looking.cancel()
        await self.pool.close()

    async def _look(self) -> None:
        """Check regularly whether the server accepts connections, even while no calls arrive."""
        while True:
            self.pool.drop_idle()
            error = await self.pool.probe()
            self.is_up = error is None
            if error is not None:
                self.health.failed(error)
            elif not self.health.is_settled:
                self.health.reachable()
            await asyncio.sleep(LOOK_EVERY_S if self.is_up else RETRY_S)

    def send_prepared(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, head: bytes
    ) -> HttpLeg:
        """POST a frame with a head that is already rendered."""
        leg = HttpLeg(owner, driver, frame.key, self.health)
        leg.exchange = self.pool.send_prepared(head, frame.data, leg, driver.principal)
        return leg

    def send(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, headers: Headers
    ) -> HttpLeg:
        """POST a frame."""
        leg = HttpLeg(owner, driver, frame.key, self.health)
        headers = self.traced(headers, frame)
        leg.exchange = self._send(driver, b"POST", headers, frame.data, leg)
        return leg

    def request(
        self, owner: Owner, driver: SessionDriver, method: bytes, headers: Headers
    ) -> HttpLeg:
        """Forward an agent's GET or DELETE."""
        leg = HttpLeg(owner, driver, None, self.health)
        leg.exchange = self._send(driver, method, headers, b"", leg)
        return leg

    def _send(
        self,
        driver: SessionDriver,
        method: bytes,
        headers: Headers,
        body: bytes,
        receiver: Receiver,
    ) -> ClientExchange:
        """Send a request with the credentials of the agent's principal."""
        return self.pool.send(method, headers, body, receiver, b"", driver.principal)

    def notify(self, driver: SessionDriver, frame: ToServer) -> None:
        """Send a frame that belongs to none of the agent's requests, such as a cancellation."""
        if frame.cause:
            self.health.failed(upstream_error(frame.cause))
        if driver.is_modern:
            return  # 2026-07-28: closing the response stream is the cancellation.
        sent = self._send(driver, b"POST", _session_headers(driver), frame.data, _Ignored())
        self.notices.add(sent)

    def send_detached(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, tools: ToolHeaders
    ) -> None:
        """Send a frame that no client waits for."""
        headers = _session_headers(driver)
        message = frame.message
        # 2026-07-28: headers repeat the method, the name and some arguments.
        if driver.is_modern and message is not None:
            params = message.body.get("params") or {}
            wanted = tools.of(str(params.get("name")))
            headers += mirror.mirrored(message.method, params, version_in(params) or "", wanted)
        self.send(owner, driver, frame, headers)

    def traced(self, headers: Headers, frame: ToServer) -> Headers:
        """Put the gate's own span into the trace headers, if the gate traces."""
        if frame.message is None or not self.traces:
            return headers
        traced = mirror.trace_headers(frame.message.body.get("params"))
        if traced:
            # The gate's span becomes the parent, so the agent's own header must not remain.
            headers = [header for header in headers if header[0] != mirror.TRACE]
        return headers + traced

    def forget(self, driver: SessionDriver) -> None:
        """Do nothing: the server expires its own sessions."""


def _session_headers(driver: SessionDriver) -> Headers:
    headers = list(_NOTICE)
    if driver.upstream_session:
        headers.append((mirror.SESSION, driver.upstream_session.encode("latin-1")))
    return headers


class _Ignored:
    """Discards the server's response to a notification: nobody waits for it."""

    def started(self, head: ResponseHead) -> None:
        """Ignore the head."""

    def received(self, chunk: bytes) -> None:
        """Ignore the body."""

    def ended(self) -> None:
        """Do nothing: there is nothing to release."""

    def failed(self, error: PeerError) -> None:
        """Do nothing: a notification is not sent again."""
