"""``serve`` on stdin and stdout: one client, in lines or with Content-Length, until it leaves.

Nothing but MCP reaches stdout: its place is given to stderr before anything else runs.
"""

import asyncio
import signal
from typing import Any, Final

from thoughtgate.core.events import AgentGone
from thoughtgate.runtime.clock import now
from thoughtgate.runtime.hub import Hub
from thoughtgate.runtime.hub_client import Client
from thoughtgate.runtime.hub_requests import HubRequests
from thoughtgate.runtime.tasks import finish
from thoughtgate.transports.stdio import StdioHost
from thoughtgate.wire.content_length import FrameSplitter
from thoughtgate.wire.message import RequestId

EOF_DRAIN_S: Final = 10.0
"""How long calls may take once the client has closed its side: it may still read the answers."""

SIGNAL_DRAIN_S: Final = 0.5
"""How long calls may take after a signal: clients kill what has not left within two seconds."""

TRANSPORT: Final = "mcp_stdio"


class StdioFront:
    """The client on this process's standard streams."""

    def __init__(self, hub: Hub, principal: str, stdout_fd: int) -> None:
        self._hub = hub
        self._over = asyncio.Event()
        self.signalled = 0
        """The signal that ended it; 0 when the client left."""
        self._splitter = FrameSplitter()
        self._host = StdioHost(
            on_line=self._took,
            on_gone=self._over.set,
            stdout_fd=stdout_fd,
            splitter=self._splitter,
        )
        self._requests = HubRequests(hub)
        self._client = Client(hub.new_session(), principal, TRANSPORT, self._send, sole=True)

    async def serve(self, *, eager: bool) -> None:
        """Serve until the client leaves or a signal comes; then let calls finish for a while."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signal, number)
        self._hub.join(self._client)
        self._hub.start_eager(everything=eager)
        await self._host.start()
        await self._over.wait()
        for channel in self._client.channels.values():
            channel.feed(AgentGone(now()))
        await self._drain()
        await self._host.close()

    async def _drain(self) -> None:
        """Let calls finish; a signal cuts the patience short."""
        if not self.signalled:
            self._over.clear()
            drained = asyncio.ensure_future(self._hub.drain(EOF_DRAIN_S))
            signalled = asyncio.ensure_future(self._over.wait())
            both: list[asyncio.Future[Any]] = [drained, signalled]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            await finish(drained, signalled)
        if self.signalled:
            await self._hub.drain(SIGNAL_DRAIN_S)

    def _took(self, line: bytes) -> None:
        self._requests.receive(self._client, line)

    def _send(self, data: bytes, about: RequestId | None, final: bool) -> None:
        del about, final
        self._host.send(data)

    def _signal(self, number: int) -> None:
        self.signalled = number
        self._over.set()
