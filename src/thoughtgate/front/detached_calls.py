"""Calls without a waiting connection: tasks that run after their approval was granted.

Their responses pass through the session like any other; the session knows that they belong
to a task and stores them there. If the session of a call no longer exists, because its agent
left or the gate was restarted, the gate opens a session of its own first.
"""

import asyncio
import json
import uuid
from collections.abc import Callable
from typing import Final, Protocol

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.core.events import AgentSent
from thoughtgate.core.negotiation import initialize_params, initialized_by
from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.upstream.client import not_sent
from thoughtgate.upstream.http_answer import Owner
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render
from thoughtgate.wire.sse import parse_event

OPENING: Final = "tg-open"
"""The request id of the gate's own ``initialize``."""

FINISH_STEP_S: Final = 0.05
"""How often a stopping gate checks whether its calls have ended."""


class DetachedCall:
    """Receives the server's response to a call without a waiting client."""

    def __init__(self, driver: SessionDriver, key: RequestId | None) -> None:
        self.driver = driver
        self.key = key

    def stream_started(self, status: int, headers: bytes) -> None:
        """Do nothing: the session handles the response, and no client reads the rest."""

    def stream_wrote(self, data: bytes) -> None:
        """Do nothing; see ``stream_started``."""

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """Do nothing; see ``stream_started``."""

    def stream_ended(self) -> None:
        """Do nothing; see ``stream_started``."""

    def told(self, data: bytes) -> None:
        """Do nothing; see ``stream_started``."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Do nothing: the session has already taken the response."""

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Do nothing: only messages without an id end here, and a call has one."""

    def failed(self, error: PeerError, status: int = 200) -> None:
        """Tell the session that the server did not respond."""
        del status
        if self.key is not None:
            self.driver.feed(not_sent(self.key, error), None)

    def session_named(self, upstream: str) -> str:
        """Return no id: a tool call does not open a session."""
        del upstream
        return ""


class Handshake(DetachedCall):
    """Opens a session with the server, as an agent does in revisions before 2026-07-28."""

    def __init__(
        self,
        driver: SessionDriver,
        send: "Callable[[Handshake, ToServer], None]",
        *,
        opened: Callable[[], None],
        lost: Callable[[PeerError], object],
    ) -> None:
        """Send frames with ``send``; finally call ``opened`` on success, or ``lost`` on failure."""
        super().__init__(driver, OPENING)
        self._send = send
        self._opened = opened
        self._lost = lost
        self._error: PeerError | None = None
        self._is_over = False

    def start(self) -> None:
        """Send ``initialize``."""
        # Without capabilities: no agent could answer a request of the server.
        params = initialize_params({})
        self._say({"id": OPENING, "method": "initialize", "params": params})

    # Called by the session.

    def take(self, frame: ToAgent) -> None:
        """Fail: the session refused the handshake instead of sending it."""
        del frame
        self._fail(upstream_error("bad_handshake"))

    def forward(self, frame: ToServer) -> None:
        """Send a frame of the handshake to the server."""
        self._send(self, frame)

    # Called with what the server sent.

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """Check a response that arrived as an SSE event."""
        del key
        self._check(parse_event(data).data or b"{}")

    def stream_ended(self) -> None:
        """Go on once the response stream is complete."""
        self._welcomed()

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Check a response that arrived as JSON, and go on."""
        del status, headers
        self._check(data)
        self._welcomed()

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Finish: the server has accepted ``notifications/initialized``."""
        del status, headers, body
        if not self._is_over:
            self._is_over = True
            self._opened()

    def failed(self, error: PeerError, status: int = 200) -> None:
        """Fail: the server did not respond."""
        super().failed(error, status)
        self._fail(error)

    def session_named(self, upstream: str) -> str:
        """Store the session id that the server assigned; no agent needs one."""
        self.driver.upstream_session = upstream
        return ""

    def _check(self, answer: bytes) -> None:
        if initialized_by(json.loads(answer)) is None:
            self._error = upstream_error("bad_handshake")

    def _welcomed(self) -> None:
        if self._error is not None:
            self._fail(self._error)
            return
        self.key = None
        self._say({"method": "notifications/initialized"})

    def _fail(self, error: PeerError) -> None:
        if not self._is_over:
            self._is_over = True
            self._lost(error)

    def _say(self, body: dict[str, object]) -> None:
        self.driver.feed(AgentSent(render({"jsonrpc": "2.0", **body}), now()), self)


class Server(Protocol):
    """The part of an upstream that detached calls need."""

    @property
    def names_sessions(self) -> bool:
        """Whether the server, not the gate, assigns session ids."""

    def send_detached(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, tools: ToolHeaders
    ) -> None:
        """Send a frame that no client waits for."""

    def forget(self, driver: SessionDriver) -> None:
        """Release a session that is over."""


class DetachedCalls:
    """Runs the calls that no client waits for."""

    def __init__(self, server: Server, tools: ToolHeaders) -> None:
        self._server = server
        self._tools = tools
        self._drivers: set[SessionDriver] = set()
        self._opened: set[SessionDriver] = set()
        """Drivers whose session with the server was opened by the gate itself."""

    def __len__(self) -> int:
        return len(self._drivers)

    def run(self, driver: SessionDriver, frame: ToServer) -> None:
        """Make a call; if its session no longer exists, open a new one first."""
        key = frame.key
        if key is None:
            return
        self._drivers.add(driver)
        if driver.upstream_session or not driver.wants_session:
            self._send(DetachedCall(driver, key), frame)
            return
        self._opened.add(driver)

        def opened() -> None:
            if not self._server.names_sessions:
                # Behind a stdio server, the gate assigns the ids, as for the sessions of agents.
                driver.upstream_session = uuid.uuid4().hex
            self._send(DetachedCall(driver, key), frame)

        Handshake(
            driver,
            self._send,
            opened=opened,
            lost=lambda error: driver.feed(not_sent(key, error), None),
        ).start()

    def tick(self, at: float) -> None:
        """Time out calls that the server has not answered, and release finished drivers."""
        for driver in list(self._drivers):
            driver.tick(at)
            if driver.session.is_idle:
                self._drivers.discard(driver)
                if driver in self._opened:
                    self._opened.discard(driver)
                    self._server.forget(driver)

    async def finish(self, seconds: float) -> None:
        """Wait for calls in progress, so that the next run need not mark their tasks as lost."""
        for _ in range(round(seconds / FINISH_STEP_S)):
            self.tick(now())
            if not self._drivers:
                return
            await asyncio.sleep(FINISH_STEP_S)

    def _send(self, call: DetachedCall, frame: ToServer) -> None:
        self._server.send_detached(call, call.driver, frame, self._tools)
