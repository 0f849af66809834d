"""``serve`` on stdin and stdout: one client, in lines or with Content-Length, until it leaves.

Nothing but MCP reaches stdout: its place is given to stderr before anything else runs.
"""

import asyncio
import signal
from typing import Any, Final

from thoughtgate.gate.background import finish
from thoughtgate.hub.client import Client
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.requests import HubRequests
from thoughtgate.transports.blocking_streams import BlockingStreams
from thoughtgate.transports.stdio import StdioHost
from thoughtgate.wire.content_length import FrameSplitter
from thoughtgate.wire.message import RequestId

EOF_DRAIN_S: Final = 10.0
"""How long calls may take once the client has closed its side: it may still read the answers."""

SIGNAL_DRAIN_S: Final = 0.5
"""How long calls may take after a signal: clients kill what has not left within two seconds."""

PAUSE_AT: Final = 5000
"""Open requests from which on the client is not read: the pipe itself then holds it back."""

HIGH_WATER: Final = 16 * 1024 * 1024
"""Bytes that may wait for a client before it is not read any more."""

LOOK_S: Final = 0.02

TRANSPORT: Final = "mcp_stdio"


class StdioFront:
    """The client on this process's standard streams."""

    def __init__(self, hub: Hub, principal: str, stdout_fd: int) -> None:
        self._hub = hub
        self._over = asyncio.Event()
        self.signalled = 0
        """The signal that ended it; 0 when the client left."""
        self._paused = False
        self._splitter = FrameSplitter()
        self._files = BlockingStreams(0, stdout_fd)
        self._host = StdioHost(
            on_line=self._took,
            on_gone=self._over.set,
            stdin_fd=self._files.stdin_fd,
            stdout_fd=self._files.stdout_fd,
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
            channel.agent_left()
        await self._drain()
        await self._host.close()
        await asyncio.sleep(0)  # The transports close their descriptors in the loop's next turn.
        self._files.close()

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
        if not self._paused and self._is_busy(PAUSE_AT, HIGH_WATER):
            self._paused = True
            self._host.pause()
            asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _is_busy(self, requests: int, waiting: int) -> bool:
        return self._client.open_requests > requests or self._host.backlog > waiting

    def _look(self) -> None:
        """Read again once the client, or its servers, have caught up."""
        if self._is_busy(PAUSE_AT // 2, HIGH_WATER // 2):
            asyncio.get_running_loop().call_later(LOOK_S, self._look)
        else:
            self._paused = False
            self._host.resume()

    def _send(self, data: bytes, about: RequestId | None, final: bool) -> None:
        del about, final
        self._host.send(data)

    def _signal(self, number: int) -> None:
        self.signalled = number
        self._over.set()
