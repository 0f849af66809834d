"""Calls that no agent waits for on a line: tasks that run once their approval has landed.

Their answers go through the session like any other; the session knows that they belong
to a task and says so. A call whose session is gone, with its agent or with an earlier run
of the gate, gets a session of the gate's own first.
"""

import asyncio
import json
import uuid
from collections.abc import Callable
from typing import Final, Protocol

from thoughtgate import __version__
from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.core.events import AgentSent, NotSent
from thoughtgate.core.negotiation import initialize_params, initialized_by
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.upstream.http_answer import Owner
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render
from thoughtgate.wire.sse import parse_event

OPENING: Final = "tg-open"
"""The id of the gate's own handshake."""

FINISH_STEP_S: Final = 0.05


class DetachedCall:
    """Owns the server's side of a call without a caller."""

    def __init__(self, driver: SessionDriver, key: RequestId | None) -> None:
        self.driver = driver
        self.key = key

    def stream_started(self, status: int, headers: bytes) -> None:
        """Only the answer matters."""

    def stream_wrote(self, data: bytes) -> None:
        """As above."""

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """As above."""

    def stream_ended(self) -> None:
        """As above."""

    def told(self, data: bytes) -> None:
        """As above."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """The session has taken the answer already."""

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Never: a call has a key."""

    def failed(self, kind: str, status: int = 200) -> None:
        """There is no answer."""
        del status
        if self.key is not None:
            self.driver.feed(NotSent(self.key, kind, now()), None)

    def session_named(self, upstream: str) -> str:
        """No session begins with a tool call."""
        del upstream
        return ""


class Handshake(DetachedCall):
    """Opens a session with the server, as an agent of revisions before 2026-07-28 does."""

    def __init__(
        self,
        driver: SessionDriver,
        send: "Callable[[Handshake, ToServer], None]",
        *,
        opened: Callable[[], None],
        lost: Callable[[str], object],
    ) -> None:
        """Send with ``send``; call ``opened`` in the end, or ``lost``."""
        super().__init__(driver, OPENING)
        self._send = send
        self._opened = opened
        self._lost = lost
        self._error = ""
        self._is_over = False

    def start(self) -> None:
        """Say hello to the server."""
        params = initialize_params(__version__, {})
        self._say({"id": OPENING, "method": "initialize", "params": params})

    # As the sink of the session.

    def take(self, frame: ToAgent) -> None:
        """The session refuses the handshake in the server's place."""
        del frame
        self._fail("upstream_connection_failed")

    def forward(self, frame: ToServer) -> None:
        """A frame of the handshake may go to the server."""
        self._send(self, frame)

    # As the owner of the server's side.

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """The answer, as an event."""
        del key
        self._check(parse_event(data).data or b"{}")

    def stream_ended(self) -> None:
        """The answer is complete."""
        self._welcomed()

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """The server has answered."""
        del status, headers
        self._check(data)
        self._welcomed()

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """The server knows that the handshake is complete."""
        del status, headers, body
        if not self._is_over:
            self._is_over = True
            self._opened()

    def failed(self, kind: str, status: int = 200) -> None:
        """There is no answer."""
        super().failed(kind, status)
        self._fail(kind)

    def session_named(self, upstream: str) -> str:
        """The server named the session."""
        self.driver.upstream_session = upstream
        return ""

    def _check(self, answer: bytes) -> None:
        if initialized_by(json.loads(answer)) is None:
            self._error = "upstream_connection_failed"

    def _welcomed(self) -> None:
        if self._error:
            self._fail(self._error)
            return
        self.key = None
        self._say({"method": "notifications/initialized"})

    def _fail(self, kind: str) -> None:
        if not self._is_over:
            self._is_over = True
            self._lost(kind)

    def _say(self, body: dict[str, object]) -> None:
        self.driver.feed(AgentSent(render({"jsonrpc": "2.0", **body}), now()), self)


class Server(Protocol):
    """A server, as far as these calls need it."""

    @property
    def names_sessions(self) -> bool:
        """Whether the server, not the gate, names the sessions."""

    def send_detached(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, tools: ToolHeaders
    ) -> None:
        """Send a frame that no caller waits for."""

    def forget(self, driver: SessionDriver) -> None:
        """A session is over."""


class DetachedCalls:
    """The calls under way that nobody waits for."""

    def __init__(self, server: Server, tools: ToolHeaders) -> None:
        self._server = server
        self._tools = tools
        self._drivers: set[SessionDriver] = set()
        self._opened: set[SessionDriver] = set()
        """Those whose session with the server the gate opened itself."""

    def __len__(self) -> int:
        return len(self._drivers)

    def run(self, driver: SessionDriver, frame: ToServer) -> None:
        """Make a call; if its session is gone, the server is asked for another first."""
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
                driver.upstream_session = uuid.uuid4().hex
            self._send(DetachedCall(driver, key), frame)

        Handshake(
            driver,
            self._send,
            opened=opened,
            lost=lambda kind: driver.feed(NotSent(key, kind, now()), None),
        ).start()

    def tick(self, at: float) -> None:
        """Time passed; what the server does not answer in time ends."""
        for driver in list(self._drivers):
            driver.tick(at)
            if driver.session.is_idle:
                self._drivers.discard(driver)
                if driver in self._opened:
                    self._opened.discard(driver)
                    self._server.forget(driver)

    async def finish(self, seconds: float) -> None:
        """Wait for what is under way, so that the next gate need not call it lost."""
        for _ in range(round(seconds / FINISH_STEP_S)):
            self.tick(now())
            if not self._drivers:
                return
            await asyncio.sleep(FINISH_STEP_S)

    def _send(self, call: DetachedCall, frame: ToServer) -> None:
        self._server.send_detached(call, call.driver, frame, self._tools)
