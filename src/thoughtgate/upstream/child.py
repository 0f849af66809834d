"""A stdio server for agents over HTTP: one process for all, or one per session.

With ``shared``, all agents use one process, which cannot send requests to any of them. With
``session``, each session has its own process. Legacy and modern clients never share a
process, because a server commits to the revision of the first message it gets.
"""

import asyncio
import shutil
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Final

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import NotSent
from thoughtgate.core.record_events import Record
from thoughtgate.errors import PeerError
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.child_process import ChildCommand, Watcher
from thoughtgate.upstream.http_answer import Owner
from thoughtgate.upstream.multiplexer import Listener, Multiplexer
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import REQUEST, Message, RequestId

SHARED: Final = "shared"
JSON: Final = b"content-type: application/json\r\n"

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

    @property
    def needs_sessions(self) -> bool:
        """Whether requests must name a session: yes, if each session has its own process."""
        return not self._is_shared

    @property
    def adopts_sessions(self) -> bool:
        """Whether other workers can continue a session: not if it has a process in this one."""
        return self._is_shared

    @property
    def is_up(self) -> bool:
        """Whether the server runs, or can be started when a session needs it."""
        if not self._is_shared:
            return True
        return any(mux.is_up for mux in [*self._muxes.values(), self._spare] if mux is not None)

    async def start(self) -> None:
        """Start the shared process, or check that a process could be started.

        Raises:
            PeerError: the server cannot be started.
        """
        if self._is_shared:
            # Started before it is known which era its first client has; the first to call gets it.
            self._spare = self._new_mux()
            await self._spare.ready()
        elif shutil.which(self._command.command, path=self._command.env.get("PATH")) is None:
            reason = "the server could not be started: No such file or directory"
            raise PeerError("server_start_failed", reason)

    async def close(self) -> None:
        """Stop every process."""
        if self._tasks:
            # Wait for processes that are being stopped, so that none outlives the gate.
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_S)
            for task in late:
                task.cancel()
        muxes = [*self._muxes.values()] + ([self._spare] if self._spare is not None else [])
        await asyncio.gather(*(mux.dispose() for mux in muxes), return_exceptions=True)

    # Sending.

    def send(self, owner: Owner, driver: SessionDriver, frame: ToServer) -> "ChildLine":
        """Send a frame; its response goes to the owner."""
        opens = frame.message is not None and frame.message.method == "initialize"
        line = ChildLine(owner, driver, frame.key, self, opens_session=opens)
        self._dispatch(line, frame)
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

    def drop(self, line: "ChildLine") -> None:
        """Forget a request whose caller no longer waits."""
        mux = self._muxes.get(self._key_of(line.driver))
        if mux is not None:
            mux.forget(line)

    def _dispatch(self, line: "ChildLine", frame: ToServer) -> None:
        message = frame.message
        if message is None:
            # Only the development profile forwards frames that are not valid messages, and on a
            # pipe such a frame could be read as several messages.
            line.lost("invalid_request")
            return
        mux = self._mux_for(line.driver)
        if mux.is_up:
            _put(mux, line, message)
        else:
            self._spawn(self._start_and_put(mux, line, message))

    async def _start_and_put(self, mux: Multiplexer, line: "ChildLine", message: Message) -> None:
        try:
            await mux.ready()
        except PeerError as error:
            line.lost(error.kind, str(error))
            return
        _put(mux, line, message)

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
        return Multiplexer(
            self._server,
            self._command,
            is_shared=self._is_shared,
            note=self._note,
            on_refused=self._refused,
            watcher=self._watcher,
            log=self._log,
        )

    def _refused(self, line: bytes, check: str) -> None:
        self.on_refused(line, check)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = spawn(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _put(mux: Multiplexer, line: "ChildLine", message: Message) -> None:
    if message.shape == REQUEST:
        mux.send(line, message)
    else:
        mux.send_notice(line.driver, message)


class ChildLine:
    """One request to a stdio server."""

    is_resumable = False
    passes_stream = False

    def __init__(
        self,
        owner: Owner,
        driver: SessionDriver,
        key: RequestId | None,
        home: ChildUpstream,
        *,
        opens_session: bool,
    ) -> None:
        self._owner = owner
        self._home = home
        self._opens_session = opens_session
        self._session: str | None = None
        """The agent's id for the session that this request opens; None if it is not named yet."""
        self.driver = driver
        self.key = key
        self.is_over = False

    def take(self, frame: ToAgent) -> None:
        """Pass on a frame of the server once the record is written."""
        outbox = self.driver.outbox
        if frame.carries != ANSWER:
            if self._opens_session:
                # This message turns the response into a stream, and the id is in its head.
                self._name_session()
            outbox.later(self._owner.told, frame.data)
            return
        self.is_over = True
        headers = JSON + self._session_header(frame) if self._opens_session else JSON
        outbox.later(self._owner.answered, frame.data, 200, headers)

    def forward(self, frame: ToServer) -> None:
        """Send a response that the session gives the server on the agent's behalf."""
        self.driver.notify(frame)

    def lost(self, kind: str, reason: str = "", text: str = "") -> None:
        """Tell the session that the server did not respond."""
        if self.key is not None and not self.is_over:
            self.driver.feed(NotSent(self.key, kind, now(), reason, text), self)

    def abort(self) -> None:
        """Give up the request: nobody waits for the response."""
        if not self.is_over:
            self.is_over = True
            # A cancellation may still have to be sent, and it needs the request's number.
            asyncio.get_running_loop().call_soon(self._home.drop, self)

    def pause(self) -> None:
        """Do nothing: the pipe is shared, so one slow agent must not stop it."""

    def resume(self) -> None:
        """Do nothing; see ``pause``."""

    def _session_header(self, frame: ToAgent) -> bytes:
        message = read_frame(frame.data)
        is_opened = isinstance(message, Message) and "result" in message.body
        named = self._name_session() if is_opened else ""
        return b"mcp-session-id: %b\r\n" % named.encode() if named else b""

    def _name_session(self) -> str:
        if self._session is None:
            is_modern = self.driver.is_modern
            self._session = "" if is_modern else self._owner.session_named(uuid.uuid4().hex)
        return self._session
