"""Sharing one stdio server among many callers, by translating ids and progress tokens.

Every request gets a number that is unique on the pipe, and its own id back in the response,
so that two agents that both use id 1 cannot read each other's responses. The handshake of
the older revisions is made once per process, and its result is given to every agent. A process
that replaces one that ended gets the same handshake and subscriptions before anything else.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from typing import Any, Final, Protocol

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import ServerSent
from thoughtgate.core.negotiation import SUBSCRIPTION_KEY, changed_lists, initialize_params
from thoughtgate.core.record_events import Record
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Sink
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.transports.child_process import ChildCommand, Watcher
from thoughtgate.upstream.client import INITIALIZED, ServerConnection, not_sent
from thoughtgate.upstream.http_answer import Owner
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.server_runner import ServerRunner, repeated
from thoughtgate.upstream.shared_tasks import SharedTasks
from thoughtgate.upstream.stdio_carrier import StdioCarrier
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Fault, Message, RequestId
from thoughtgate.wire.methods import CANCELLED, LISTS_CHANGED, PROGRESS
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import LATEST_LEGACY, META

JSON: Final = b"content-type: application/json\r\n"

MAX_WAITING: Final = 1000
"""Maximum number of messages that wait for the handshake."""

MAX_WATCHED: Final = 1000
MAX_URI: Final = 8192
"""Limits on the number and length of resource URIs that are kept per agent."""

STOP_GRACE_S: Final = 2.0
"""Time from closing stdin to SIGTERM; agents over HTTP do not wait for the server to end."""


class Listener(Sink, Protocol):
    """A stream to one agent that carries the server's unsolicited messages."""

    driver: SessionDriver


class Multiplexer(ServerRunner):
    """One child process and all its callers."""

    def __init__(
        self,
        settings: ServerSettings,
        command: ChildCommand,
        *,
        is_shared: bool,
        note: Callable[[Record], None],
        on_refused: Callable[[bytes, str], None],
        watcher: Watcher | None = None,
        log: ServerLog | None = None,
    ) -> None:
        super().__init__(settings, note, log)
        self._command = command
        self._watcher = watcher
        self._is_shared = is_shared
        self._on_refused = on_refused
        self._lines: dict[tuple[SessionDriver, RequestId | None], ChildLine] = {}
        """The open requests by agent and the agent's own id."""
        self._listeners: dict[SessionDriver, Listener] = {}
        self._watched: dict[SessionDriver, set[str]] = {}
        """The resources that each agent has subscribed to."""
        self._handshaking: asyncio.Task[None] | None = None
        """The handshake in progress."""
        self._result: dict[str, Any] | None = None
        """The server's result of the handshake."""
        self.handshake: dict[str, Any] | None = None
        """The params of an ``initialize`` that the gate sends for an agent that sent it elsewhere."""
        self.is_spread = False
        """Whether the messages of a session may arrive at several gates."""
        self._is_confirmed = False
        """Whether a process of a single session was told that its handshake is complete."""
        self._opened_with: dict[str, Any] | None = None
        """The params of the ``initialize`` that the process has answered; the next one gets them too."""
        self._waiting: list[Callable[[], object]] = []
        self.tasks = SharedTasks() if is_shared else None
        """The owners of the server's tasks, if the server cannot tell its agents apart."""

    # Start and stop; see ``ServerRunner``.

    def _connect(self) -> ServerConnection:
        carrier = StdioCarrier(
            self.id, self._command, self.log, self._watcher, grace_s=STOP_GRACE_S
        )
        return ServerConnection(carrier, self)

    async def _open(self, connection: ServerConnection) -> None:
        await connection.connect()
        if self._opened_with is None:
            return
        try:
            self._result = await connection.initialize("", self._opened_with)
        except BaseException:
            await connection.close()
            raise
        self._is_confirmed = True

    def _came_up(self, connection: ServerConnection) -> None:
        if self._result is None:
            return
        for line in map(render, changed_lists(self._result)):
            message = read_frame(line)
            if isinstance(message, Message):
                self._spread(message, {})
        spawn(self._subscribe_again(connection))

    async def _subscribe_again(self, connection: ServerConnection) -> None:
        """Subscribe a new process to the resources that the agents follow."""
        with contextlib.suppress(PeerError, PeerGone, TimeoutError):
            for uri in sorted(set().union(*self._watched.values())):
                async with asyncio.timeout(self.settings.timeout_s):
                    await connection.ask("resources/subscribe", {"uri": uri})

    def _went_down(self, gone: PeerGone) -> None:
        self._result = None
        self._is_confirmed = False
        for line in list(self._lines.values()):
            line.failed(gone)

    # To the server.

    def send(self, line: "ChildLine", message: Message) -> None:
        """Send a caller's request."""
        line.method = message.method
        self.used_by(line.driver.principal)
        params = message.body.get("params") or {}
        if message.method == "initialize":
            line.handshake = params
        if self.tasks is not None and not self.tasks.may_use(line.driver, line.method, params):
            line.failed(PeerError("task_not_found", ""))
            return
        if self._is_shared and not line.driver.is_modern:
            if message.method == "initialize":
                version = params.get("protocolVersion")
                self._begin_handshake(version if type(version) is str else LATEST_LEGACY)
                self._after_handshake(lambda: self._answer_initialize(line))
                return
            self._begin_handshake(LATEST_LEGACY)
        elif self.is_spread and not line.driver.is_modern:
            self._complete_handshake(message.method)
        self._after_handshake(lambda: self._send(line, message))

    def send_notice(self, driver: SessionDriver, message: Message) -> None:
        """Send an agent's notification or response."""
        # The process was told after its only handshake.
        if self._is_shared and message.method == INITIALIZED:
            return
        if self.is_spread and not driver.is_modern:
            self._complete_handshake(message.method)
            if message.method == INITIALIZED:
                return
        body = message.body
        params: dict[str, Any] = body.get("params") or {}
        if self.tasks is not None and not self.tasks.may_use(driver, message.method, params):
            return
        if message.method == CANCELLED:
            ident = params.get("requestId")
            if type(ident) is not str and type(ident) is not int:
                return  # The cancellation names no request.
            line = self._lines.get((driver, ident))
            if line is None:
                return
            body = {**body, "params": {**params, "requestId": line.number}}
        if message.shape != NOTIFICATION and self._is_shared:
            return  # A shared server sends agents no requests, so no response is expected.
        self._after_handshake(lambda: self._say(body))

    def initialized(self, params: dict[str, Any]) -> None:
        """Note that the process of a session has answered the agent's own handshake."""
        self._opened_with = params

    def forget(self, line: "ChildLine") -> None:
        """Forget a request that is over, or whose caller no longer waits."""
        self._lines.pop((line.driver, line.key), None)
        if self.upstream is not None:
            self.upstream.forget(line.number)

    def listen(self, listener: Listener) -> Listener | None:
        """Deliver unsolicited messages to this listener; return the agent's previous listener."""
        before = self._listeners.get(listener.driver)
        self._listeners[listener.driver] = listener
        return before

    def unlisten(self, listener: Listener) -> None:
        """Stop delivering unsolicited messages to this listener."""
        if self._listeners.get(listener.driver) is listener:
            del self._listeners[listener.driver]

    def leave(self, driver: SessionDriver) -> None:
        """Forget the subscriptions of an agent that has left."""
        self._watched.pop(driver, None)

    def _send(self, line: "ChildLine", message: Message) -> None:
        connection = self.upstream
        if line.is_over or line.key is None:
            return
        if connection is None:
            line.failed(self._not_running())
            return
        line.number = connection.new_id()
        body = {**message.body, "id": line.number}
        params = body.get("params") or {}
        meta = params.get(META)
        if type(meta) is dict and type(meta.get("progressToken")) in {str, int}:
            line.token = meta["progressToken"]
            body["params"] = {**params, META: {**meta, "progressToken": line.number}}
        self._lines[line.driver, line.key] = line
        if message.method in {"resources/subscribe", "resources/unsubscribe"}:
            self._watch(line.driver, message.method, params)
        try:
            connection.request(body, line)
        except PeerGone as gone:
            line.failed(gone)

    def _not_running(self) -> PeerError:
        """Return the error for a request that finds no process."""
        if self.failure is not None:
            return repeated(self.failure, str(self.failure))
        return PeerError("server_not_running", "the server is not running", "stopped")

    def _watch(self, driver: SessionDriver, method: str, params: dict[str, Any]) -> None:
        uri = params.get("uri")
        if type(uri) is not str or len(uri) > MAX_URI:
            return
        watched = self._watched.setdefault(driver, set())
        if method != "resources/subscribe":
            watched.discard(uri)
        elif len(watched) < MAX_WATCHED:
            watched.add(uri)

    def _say(self, body: dict[str, Any]) -> None:
        if self.upstream is not None:
            self.upstream.say(body)

    # The handshake of a shared server.

    def _begin_handshake(self, version: str) -> None:
        connection = self.upstream
        if connection is not None and self._handshaking is None and self._result is None:
            self._handshaking = spawn(self._shake_hands(connection, version))

    def _complete_handshake(self, method: str) -> None:
        """Send a process of a single session the part of the handshake that other gates received."""
        if self.handshake is not None:
            self._begin_handshake(str(self.handshake["protocolVersion"]) or LATEST_LEGACY)
        elif method not in {"initialize", "ping"} and not self._is_confirmed:
            self._is_confirmed = True
            self._say({"jsonrpc": "2.0", "method": INITIALIZED})

    async def _shake_hands(self, connection: ServerConnection, version: str) -> None:
        result = None
        # On failure, the waiting requests fail because there is no result, and the next one retries.
        with contextlib.suppress(PeerError, PeerGone):
            # The gate cannot tell for which agent a request of a shared server is meant, so it
            # declares no client capabilities.
            params = self.handshake or initialize_params({}, version)
            result = await connection.initialize(version, params)
            self._opened_with = params
        # The process may have ended since it answered.
        self._result = result if connection is self.upstream else None
        self._handshaking = None
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()

    def _after_handshake(self, action: Callable[[], object]) -> None:
        if self._handshaking is None:
            action()
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(action)

    def _answer_initialize(self, line: "ChildLine") -> None:
        if line.is_over:
            return
        if self._result is None:
            line.failed(self._not_running())
            return
        line.hear({"jsonrpc": "2.0", "id": line.key, "result": self._result})

    # Callbacks of the connection; see ``client.Audience``.

    def server_sent(self, message: Message) -> None:
        """Handle a message that belongs to no request of an agent."""
        if message.shape == REQUEST:
            self._asked(message)
            return
        params = message.body.get("params") or {}
        meta = params.get(META)
        # With a subscription's id, the message is for a subscription that no longer exists.
        if type(meta) is not dict or meta.get(SUBSCRIPTION_KEY) is None:
            self._spread(message, params)

    def server_lost(self, gone: PeerGone) -> None:
        """Handle the end of the process."""
        self.lost(gone)

    def server_reopened(self, connection: ServerConnection) -> None:
        """Do nothing: a process has no session that it could forget."""

    def server_refused(self, fault: Fault, line: bytes) -> None:
        """Report a server frame that was dropped, unless there are too many."""
        if self.check_noise():
            self._on_refused(line, fault.check)

    def _asked(self, message: Message) -> None:
        connection, target = self.upstream, None if self._is_shared else self._hearer()
        if target is not None:
            target.driver.feed(ServerSent(message.raw, now()), target)
        elif connection is None:
            return
        elif not self._is_shared:
            said = "the agent has no stream open to be asked on"
            connection.refuse(message.id, "method_not_found", said)
        elif message.method == "ping":
            connection.answer(message.id, {})
        else:
            connection.refuse(message.id, "method_not_found")

    def _spread(self, message: Message, params: dict[str, Any]) -> None:
        """Send a notification to the agents it concerns, and to no others."""
        if not self._is_shared:
            target = self._hearer()
            if target is not None:
                target.driver.feed(ServerSent(message.raw, now()), target)
            return
        uri = params.get("uri")
        for driver, listener in list(self._listeners.items()):
            about_task = self.tasks.concerns(driver, params) if self.tasks is not None else None
            if about_task is not None:
                wanted = about_task
            elif message.method == "notifications/resources/updated":
                wanted = type(uri) is str and uri in self._watched.get(driver, ())
            else:
                # Other notifications, such as log messages, do not say whose call caused them.
                is_alone = len(self._listeners) == 1 and self.may_hear(driver.principal)
                wanted = message.method in LISTS_CHANGED or is_alone
            if wanted:
                driver.feed(ServerSent(message.raw, now()), listener)

    def _hearer(self) -> Listener | None:
        """Return the sink for messages that belong to no request, if each session has a process."""
        for listener in self._listeners.values():
            return listener
        for line in reversed(self._lines.values()):
            return line
        return None


class ChildLine:
    """One request to a stdio server, under a number of the connection instead of its own id."""

    is_resumable = False
    passes_stream = False

    def __init__(
        self,
        owner: Owner,
        driver: SessionDriver,
        key: RequestId | None,
        mux: Multiplexer,
        *,
        opens_session: bool = False,
    ) -> None:
        self._owner = owner
        self._mux = mux
        self._opens_session = opens_session
        self._session: str | None = None
        """The agent's id for the session that this request opens; None if it is not named yet."""
        self.driver = driver
        self.key = key
        self.method = ""
        self.number = 0
        """The request's id on the pipe, once it is sent."""
        self.token: RequestId | None = None
        """The agent's own progress token."""
        self.handshake: dict[str, Any] | None = None
        """The params of the request, if it is ``initialize``."""
        self.is_over = False

    # Called by the connection; see ``client.Caller``.

    def answered(self, message: Message) -> None:
        """Give the session the response, with the agent's own id."""
        self._mux.forget(self)
        body = {**message.body, "id": self.key}
        result = body.get("result")
        meta = result.get(META) if type(result) is dict else None
        if self.handshake is not None and type(result) is dict:
            self._mux.initialized(self.handshake)
        if type(result) is dict and type(meta) is dict and SUBSCRIPTION_KEY in meta:
            body["result"] = {**result, META: {**meta, SUBSCRIPTION_KEY: self.key}}
        if self._mux.tasks is not None and "result" in body:
            body["result"] = self._mux.tasks.answered(self.driver, self.method, body["result"])
        self.hear(body)

    def told(self, message: Message, params: dict[str, Any]) -> None:
        """Give the session a notification, with the agent's own token or id."""
        if message.method == PROGRESS:
            own = {**params, "progressToken": self.token}
        else:
            own = {**params, META: {**params[META], SUBSCRIPTION_KEY: self.key}}
        self.hear({**message.body, "params": own})

    def failed(self, error: PeerError | PeerGone) -> None:
        """Tell the session that the server did not respond."""
        self._mux.forget(self)
        if self.key is not None and not self.is_over:
            self.driver.feed(not_sent(self.key, error), self)

    def hear(self, body: dict[str, Any]) -> None:
        """Give the session a message of the server."""
        self.driver.feed(ServerSent(render(body), now()), self)

    # Called by the session.

    def take(self, frame: ToAgent) -> None:
        """Pass on a frame of the server once the record is written."""
        outbox = self.driver.outbox
        if frame.carries != ANSWER:
            if self._opens_session:
                # This message turns the response into a stream, whose head contains the session id.
                self._name_session()
            outbox.later(self._owner.told, frame.data)
            return
        self.is_over = True
        self.driver.stream_ended(self)
        headers = JSON + self._session_header(frame) if self._opens_session else JSON
        outbox.later(self._owner.answered, frame.data, 200, headers)

    def forward(self, frame: ToServer) -> None:
        """Send a response that the session gives the server on the agent's behalf."""
        self.driver.notify(frame)

    # Called for the agent.

    def abort(self) -> None:
        """Give up the request: nobody waits for the response."""
        if not self.is_over:
            self.is_over = True
            self.driver.stream_ended(self)
            # A cancellation may still have to be sent, and it needs the request's number.
            asyncio.get_running_loop().call_soon(self._mux.forget, self)

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
