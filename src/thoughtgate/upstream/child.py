"""A stdio server for agents over HTTP: one process for all, or one per session.

With ``shared``, all agents use one process, which cannot send requests to any of them. With
``session``, each session has its own process. Legacy and modern clients never share a
process, because a server commits to the revision of the first message it gets.
"""

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from typing import Any, Final

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.commands import ToServer
from thoughtgate.core.record_events import Record
from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.gate.background import spawn
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.child_process import ChildCommand, Watcher
from thoughtgate.upstream.http_answer import Owner
from thoughtgate.upstream.multiplexer import ChildLine, Listener, Multiplexer
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.wire.message import REQUEST, Message

SHARED: Final = "shared"

CLOSE_S: Final = 5.0
"""How long a shutdown waits for processes that are starting or stopping."""


class ChildUpstream:
    """A server that runs as a child process."""

    names_sessions = False
    """False: a stdio server has no session ids, so the gate assigns them."""

    def __init__(
        self,
        server: ServerSettings,
        command: ChildCommand,
        note: Callable[[Record], None],
        *,
        watcher: Watcher | None = None,
        log: ServerLog | None = None,
    ) -> None:
        """Prepare; ``note`` records events. Without a log, stderr goes to the gate's own."""
        self._server = server
        self._command = command
        self._note = note
        self._watcher = watcher
        self._log = log
        self._is_shared = server.isolation == SHARED
        self._muxes: dict[object, Multiplexer] = {}
        self._spare: Multiplexer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_refused: Callable[[bytes, str], None] = lambda _line, _check: None
        """Called with server frames that cannot be passed on."""
        self.is_spread = False
        """Whether the messages of a session may arrive at several gates."""

    @property
    def needs_sessions(self) -> bool:
        """Whether requests must name a session: yes, if each session has its own process."""
        return not self._is_shared

    @property
    def is_up(self) -> bool:
        """Whether the server runs, or can be started when a session needs it."""
        if not self._is_shared:
            return True
        return any(mux.is_up for mux in self._all_muxes())

    async def start(self) -> None:
        """Start the shared process, or check that a process could be started.

        Raises:
            PeerError: the server cannot be started.
        """
        if self._is_shared:
            # The era is chosen by the first message, so the first caller of either era gets it.
            self._spare = self._new_mux()
            await self._spare.ready()
        elif shutil.which(self._command.command, path=self._command.env.get("PATH")) is None:
            reason = "the server could not be started: No such file or directory"
            raise upstream_error("start_failed", reason)

    async def close(self) -> None:
        """Stop every process."""
        if self._tasks:
            # Wait for processes that are being stopped, so that none outlives the gate.
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_S)
            for task in late:
                task.cancel()
        disposed = (mux.dispose() for mux in self._all_muxes())
        await asyncio.gather(*disposed, return_exceptions=True)

    def _all_muxes(self) -> list[Multiplexer]:
        return [mux for mux in (*self._muxes.values(), self._spare) if mux is not None]

    # Sending.

    def send(self, owner: Owner, driver: SessionDriver, frame: ToServer) -> ChildLine:
        """Send a frame; its response goes to the owner."""
        message, mux = frame.message, self._mux_for(driver)
        opens = message is not None and message.method == "initialize"
        line = ChildLine(owner, driver, frame.key, mux, opens_session=opens)
        if message is None:
            # Only the development profile forwards frames that are not valid messages, and on a
            # pipe such a frame could be read as several messages.
            line.failed(PeerError("invalid_request", ""))
        elif mux.is_up:
            _put(mux, line, message)
        else:
            self._spawn(_start_and_put(mux, line, message))
        return line

    def notify(self, driver: SessionDriver, frame: ToServer) -> None:
        """Send a frame that belongs to none of the agent's requests, such as a cancellation."""
        mux = self._muxes.get(self._key_of(driver))
        if mux is not None and frame.message is not None:
            mux.send_notice(driver, frame.message)

    def send_detached(
        self, owner: Owner, driver: SessionDriver, frame: ToServer, tools: ToolHeaders
    ) -> None:
        """Send a frame that no client waits for."""
        del tools
        self.send(owner, driver, frame)
        if frame.key is None:
            # A pipe preserves the order, so the next frame can be sent now.
            owner.passed(202, b"", b"")

    def listen(self, listener: Listener) -> Listener | None:
        """Deliver unsolicited messages to this listener; return the agent's previous listener."""
        return self._mux_for(listener.driver).listen(listener)

    def introduce(self, driver: SessionDriver, params: dict[str, Any]) -> None:
        """Initialise the process of a session that another gate opened, with the agent's params."""
        if not self._is_shared:
            self._mux_for(driver).handshake = params

    def forget(self, driver: SessionDriver) -> None:
        """Release a session that is over or was never opened, and stop its own process."""
        if self._is_shared or driver.is_modern:
            shared = self._muxes.get(self._key_of(driver))
            if shared is not None:
                shared.leave(driver)
            return
        mux = self._muxes.pop(driver, None)
        if mux is not None:
            self._spawn(mux.dispose())

    def unlisten(self, listener: Listener) -> None:
        """Stop delivering unsolicited messages to this listener."""
        mux = self._muxes.get(self._key_of(listener.driver))
        if mux is not None:
            mux.unlisten(listener)

    def _key_of(self, driver: SessionDriver) -> object:
        if self._is_shared:
            return driver.is_modern
        return driver.principal if driver.is_modern else driver

    def _mux_for(self, driver: SessionDriver) -> Multiplexer:
        key = self._key_of(driver)
        mux = self._muxes.get(key)
        if mux is None:
            mux, self._spare = self._spare or self._new_mux(), None
            self._muxes[key] = mux
        return mux

    def _new_mux(self) -> Multiplexer:
        mux = Multiplexer(
            self._server,
            self._command,
            is_shared=self._is_shared,
            note=self._note,
            on_refused=self._refused,
            watcher=self._watcher,
            log=self._log,
        )
        mux.is_spread = self.is_spread and not self._is_shared
        return mux

    def _refused(self, line: bytes, check: str) -> None:
        # Looked up per frame, because the endpoint sets its callback later.
        self.on_refused(line, check)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = spawn(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _start_and_put(mux: Multiplexer, line: ChildLine, message: Message) -> None:
    try:
        await mux.ready()
    except PeerError as error:
        line.failed(error)
    else:
        _put(mux, line, message)


def _put(mux: Multiplexer, line: ChildLine, message: Message) -> None:
    if message.shape == REQUEST:
        mux.send(line, message)
    else:
        mux.send_notice(line.driver, message)
