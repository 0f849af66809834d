"""The stdio front: an agent on this process's standard streams, in lines or Content-Length.

Only MCP messages reach stdout: before anything else runs, file descriptor 1 is pointed at
stderr. ``proxy --stdio`` and ``serve --stdio`` differ only in the peer behind it.
"""

import asyncio
import signal
from collections.abc import Callable
from typing import Any, Final

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.core.events import AgentSent, GateStopping
from thoughtgate.front.peer import Peer
from thoughtgate.gate.background import finish
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import PipeCaller
from thoughtgate.transports.blocking_streams import BlockingStreams
from thoughtgate.transports.stdio import StdioHost
from thoughtgate.wire.content_length import FrameSplitter

EOF_DRAIN_S: Final = 10.0
"""Time for calls to finish after the agent closed its side; it may still read responses."""

SIGNAL_DRAIN_S: Final = 0.5
"""Time for calls to finish after a signal; agents kill a process after about two seconds."""

PAUSE_AT: Final = 5000
"""Number of open requests at which the gate stops reading; the full pipe slows the agent."""

HIGH_WATER: Final = 16 * 1024 * 1024
"""Bytes that may wait for the agent before the gate stops reading from it."""

LOOK_S: Final = 0.02
TICK_S: Final = 1.0


class StdioAgent(PipeCaller):
    """The agent as its sessions see it: the caller of every request."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self.peer: Peer | None = None
        self.forward_to: Callable[[StdioAgent, ToServer], object] = lambda _agent, _frame: None
        """Sends a frame of this agent to its server."""

    def take(self, frame: ToAgent) -> None:
        """Send a frame of the gate itself once the record is written."""
        if self.peer is not None:
            self.peer.outbox.later(self._send, frame.data)

    def forward(self, frame: ToServer) -> None:
        """Send a frame to the server."""
        self.forward_to(self, frame)

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Pass on the server's response."""
        del status, headers
        self._send(data)

    def told(self, data: bytes) -> None:
        """Pass on a message that precedes the response."""
        self._send(data)

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Do nothing: over stdio a notification is not acknowledged."""

    def session_named(self, upstream: str) -> str:
        """Return no id: over stdio there are no session ids."""
        del upstream
        return ""


class StdioFront:
    """Serves the agent until it disconnects or a signal arrives."""

    def __init__(self, stdout_fd: int, *, content_length: bool = False) -> None:
        """Take over the standard streams; ``content_length`` also accepts that framing."""
        self.signalled = 0
        """The signal that ended the process; 0 if the agent disconnected."""
        self._over = asyncio.Event()
        self._paused = False
        self._files = BlockingStreams(0, stdout_fd)
        self._host = StdioHost(
            on_line=self._took,
            on_gone=self._over.set,
            stdin_fd=self._files.stdin_fd,
            stdout_fd=self._files.stdout_fd,
            splitter=FrameSplitter() if content_length else None,
        )
        self.agent = StdioAgent(self._host.send)
        self._timer: asyncio.TimerHandle | None = None
        self.open_requests: Callable[[], int] = lambda: 0
        """Returns how many of the agent's requests have no response yet."""
        self.on_gone: Callable[[], None] = lambda: None
        """Called when the agent will send no more requests."""
        self.on_tick: Callable[[float], None] = lambda _at: None

    async def serve(self, peer: Peer) -> None:
        """Serve until the agent disconnects or a signal arrives; then give calls time to finish."""
        self.agent.peer = peer
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signal, number)
        await self._host.start()
        self._tick()
        await self._over.wait()
        if self.signalled:
            peer.feed(GateStopping(now()), None)
        else:
            self.on_gone()
        await self._drain()
        if self._timer is not None:
            self._timer.cancel()
        # Answer the requests that are still open: the agent may still be reading.
        peer.stop("the gate is stopping", now())
        peer.outbox.flush()
        await self._host.close()
        await asyncio.sleep(0)  # Transports close their descriptors in the loop's next iteration.
        self._files.close()

    async def _drain(self) -> None:
        """Give calls time to finish; a signal shortens that time."""
        if not self.signalled:
            self._over.clear()
            drained = asyncio.ensure_future(self._drained(EOF_DRAIN_S))
            signalled = asyncio.ensure_future(self._over.wait())
            both: list[asyncio.Future[Any]] = [drained, signalled]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            await finish(drained, signalled)
        if self.signalled:
            self.on_gone()
            await self._drained(SIGNAL_DRAIN_S)

    async def _drained(self, seconds: float) -> None:
        for _ in range(round(seconds / LOOK_S)):
            if not self.open_requests():
                return
            await asyncio.sleep(LOOK_S)

    def _took(self, line: bytes) -> None:
        peer = self.agent.peer
        if peer is None:
            return
        peer.feed(AgentSent(line, now()), self.agent)
        if not self._paused and self._is_busy(PAUSE_AT, HIGH_WATER):
            self._paused = True
            self._host.pause()
            asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _is_busy(self, requests: int, waiting: int) -> bool:
        return self.open_requests() > requests or self._host.backlog > waiting

    def _look(self) -> None:
        """Resume reading once the agent or its servers have caught up."""
        # Resume at half the limit, so that reading does not toggle with every message.
        if self._is_busy(PAUSE_AT // 2, HIGH_WATER // 2):
            asyncio.get_running_loop().call_later(LOOK_S, self._look)
        else:
            self._paused = False
            self._host.resume()

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self.on_tick(now())

    def _signal(self, number: int) -> None:
        self.signalled = number
        self._over.set()
