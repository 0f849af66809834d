"""A server over HTTP, passed through: each request of the agent becomes one to the server.

Sessions are the server's own. How an answer is read is ``upstream.http_answer``'s business.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from thoughtgate.core.commands import ToServer
from thoughtgate.errors import PeerError
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.transports.http_heads import Headers, ResponseHead
from thoughtgate.upstream.http_answer import HttpLeg, Owner
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.revisions import version_in

LOOK_EVERY_S: Final = 15.0
RETRY_S: Final = 1.0

CONTENT: Final = (b"content-type", b"application/json")
_NOTICE: Final[Headers] = [CONTENT, (b"accept", b"application/json, text/event-stream")]


class HttpUpstream:
    """A server that is reached over HTTP."""

    names_sessions = True
    """The server names its sessions itself, if it has any."""

    needs_sessions = False
    """Whether a request needs a session is for the server to say."""

    adopts_sessions = True
    """The server itself knows its sessions."""

    def __init__(self, pool: HttpPool, *, traces: bool = False) -> None:
        self.pool = pool
        self.traces = traces
        """Whether the gate's own span goes on in the headers."""
        self.on_refused: Callable[[bytes, str], None] = lambda _line, _check: None
        """Never called: every frame of an HTTP server has its session."""
        self._notices: set[_Notice] = set()
        self._is_up = False
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look whether the server is there; an absent one is no reason not to start."""
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Close every connection."""
        if self._looking is not None:
            self._looking.cancel()
        await self.pool.close()

    @property
    def is_up(self) -> bool:
        """Whether the server took the last connection that was tried."""
        return self._is_up

    async def _look(self) -> None:
        """Look from time to time whether the server takes connections, while nobody asks it."""
        while True:
            self.pool.drop_idle()
            self._is_up = await self.pool.probe()
            await asyncio.sleep(LOOK_EVERY_S if self._is_up else RETRY_S)

    def send_prepared(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, head: bytes
    ) -> "PausableLeg":
        """POST a frame with a head that was rendered before."""
        leg = PausableLeg(owner, driver, frame.key)
        leg.exchange = self.pool.send_prepared(head, frame.data, leg)
        return leg

    def send(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, headers: Headers
    ) -> "PausableLeg":
        """POST a frame."""
        leg = PausableLeg(owner, driver, frame.key)
        headers = self.traced(headers, frame)
        leg.exchange = self.pool.send(b"POST", headers, frame.data, leg)
        return leg

    def request(
        self, owner: Owner, driver: SessionDriver, method: bytes, headers: Headers
    ) -> "PausableLeg":
        """Pass a GET or DELETE of the agent on."""
        leg = PausableLeg(owner, driver, None)
        leg.exchange = self.pool.send(method, headers, b"", leg)
        return leg

    def notify(self, driver: SessionDriver, frame: ToServer) -> None:
        """Send a frame that belongs to no request of the agent, such as a cancellation."""
        if driver.is_modern:
            return  # From 2026-07-28 on a closed stream says it all.
        notice = _Notice(self._notices)
        self._notices.add(notice)
        self.pool.send(b"POST", _session_headers(driver), frame.data, notice)

    def send_detached(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, tools: ToolHeaders
    ) -> None:
        """Send a frame that no caller waits for."""
        headers = _session_headers(driver)
        message = frame.message
        if driver.is_modern and message is not None:
            params = message.body.get("params") or {}
            wanted = tools.of(str(params.get("name")))
            headers += mirror.mirrored(message.method, params, version_in(params) or "", wanted)
        self.send(owner, driver, frame, headers)

    def traced(self, headers: Headers, frame: ToServer) -> Headers:
        """Name the gate's own span in the header too, where the gate traces."""
        if frame.message is None or not self.traces:
            return headers
        traced = mirror.trace_headers(frame.message.body.get("params"))
        if traced:
            headers = [header for header in headers if header[0] != mirror.TRACE]
        return headers + traced

    def forget(self, driver: SessionDriver) -> None:
        """The server forgets its sessions itself."""


def _session_headers(driver: SessionDriver) -> Headers:
    headers = list(_NOTICE)
    if driver.upstream_session:
        headers.append((mirror.SESSION, driver.upstream_session.encode("latin-1")))
    return headers


class PausableLeg(HttpLeg):
    """A leg whose reading can follow the agent's pace."""

    __slots__ = ()

    def pause(self) -> None:
        """Read no more until ``resume``."""
        if self.exchange is not None:
            self.exchange.pause()

    def resume(self) -> None:
        """Read again."""
        if self.exchange is not None:
            self.exchange.resume()


class _Notice:
    """Nobody waits for what the server says to a notice."""

    def __init__(self, open_notices: "set[_Notice]") -> None:
        self._open = open_notices

    def started(self, head: ResponseHead) -> None:
        """Not of interest."""

    def received(self, chunk: bytes) -> None:
        """Not of interest."""

    def ended(self) -> None:
        """Done."""
        self._open.discard(self)

    def failed(self, error: PeerError) -> None:
        """Not to be mended."""
        del error
        self._open.discard(self)
