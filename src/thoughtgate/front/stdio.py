"""An agent on this process's own standard streams, in lines or with Content-Length.

Nothing but MCP reaches stdout: its place is given to stderr before anything else runs.
``proxy --stdio`` and ``serve --stdio`` differ only in the peer behind it.
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
from thoughtgate.transports.blocking_streams import BlockingStreams
from thoughtgate.transports.stdio import StdioHost
from thoughtgate.wire.content_length import FrameSplitter
from thoughtgate.wire.message import RequestId

EOF_DRAIN_S: Final = 10.0
"""How long calls may take once the agent has closed its side: it may still read the answers."""

SIGNAL_DRAIN_S: Final = 0.5
"""How long calls may take after a signal: agents kill what has not left within two seconds."""

PAUSE_AT: Final = 5000
"""Open requests from which on the agent is not read: the pipe itself then holds it back."""

HIGH_WATER: Final = 16 * 1024 * 1024
"""Bytes that may wait for an agent before it is not read any more."""

LOOK_S: Final = 0.02
TICK_S: Final = 1.0


class StdioAgent:
    """The agent, as the sessions behind it see it: the caller of every request."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self.peer: Peer | None = None
        self.forward_to: Callable[[StdioAgent, ToServer], object] = lambda _agent, _frame: None
        """Sends a frame of this agent on to its server."""

    def take(self, frame: ToAgent) -> None:
        """A frame of the gate's own, sent once the record is written."""
        if self.peer is not None:
            self.peer.outbox.later(self._send, frame.data)

    def forward(self, frame: ToServer) -> None:
        """A frame for the server."""
        self.forward_to(self, frame)

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """The server's answer."""
        del status, headers
        self._send(data)

    def told(self, data: bytes) -> None:
        """Something of the server's before its answer."""
        self._send(data)

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """A notification has been taken: nothing is said to that."""

    def session_named(self, upstream: str) -> str:
        """Over stdio there are no session ids."""
        del upstream
        return ""

    def can_be_asked(self, *, modern: bool) -> bool:
        """A line carries everything."""
        del modern
        return True

    def held(self, key: RequestId) -> None:
        """Pipes need no keeping alive."""

    def withdrawn(self) -> None:
        """There is no exchange to end."""

    def keep_alive(self, at: float) -> None:
        """As for a held call."""


class StdioFront:
    """Reads the agent until it leaves or a signal comes."""

    def __init__(self, stdout_fd: int, *, content_length: bool = False) -> None:
        """``content_length`` also accepts that framing, if the agent opens with it."""
        self.signalled = 0
        """The signal that ended it; 0 when the agent left."""
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
        """Tells how many requests of the agent have no answer."""
        self.on_gone: Callable[[], None] = lambda: None
        """Told when the agent asks nothing more."""
        self.on_tick: Callable[[float], None] = lambda _at: None

    async def serve(self, peer: Peer) -> None:
        """Serve until the agent leaves or a signal comes; then let calls finish for a while."""
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
        # Whoever still waits is told, and may still read it.
        peer.stop("the gate is stopping", now())
        peer.outbox.flush()
        await self._host.close()
        await asyncio.sleep(0)  # The transports close their descriptors in the loop's next turn.
        self._files.close()

    async def _drain(self) -> None:
        """Let calls finish; a signal cuts the patience short."""
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
        """Read again once the agent, or its servers, have caught up."""
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
