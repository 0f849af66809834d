"""Shares one stdio server among many callers, by translating ids and progress tokens.

Every request gets a number that is unique on the pipe, and its own id back in the response,
so that two agents that both use id 1 cannot read each other's responses. The handshake of
the older revisions is made once per process, and its result is given to every agent.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.events import ServerSent
from thoughtgate.core.negotiation import initialize_params, initialized_by
from thoughtgate.core.record_events import Record
from thoughtgate.errors import PeerGone, ServerExited
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Sink
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.transports.child_process import ChildCommand, Watcher
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.server_runner import ServerRunner
from thoughtgate.upstream.stdio_carrier import StdioCarrier
from thoughtgate.wire.frame import find_id, read_frame
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Message, RequestId
from thoughtgate.wire.methods import CANCELLED, PROGRESS
from thoughtgate.wire.replies import error_object, render
from thoughtgate.wire.revisions import LATEST_LEGACY, META

SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
INITIALIZED: Final = "notifications/initialized"
MAX_WAITING: Final = 1000
"""Maximum number of messages that wait for the handshake."""

MAX_WATCHED: Final = 1000
MAX_URI: Final = 8192
"""Limits on the number and length of resource URIs that are kept per agent."""

STOP_GRACE_S: Final = 2.0
"""Time from closing stdin to SIGTERM; agents over HTTP do not wait for the server to end."""


class Line(Sink, Protocol):
    """The caller of one request, as the multiplexer sees it."""

    driver: SessionDriver
    key: RequestId | None
    is_over: bool

    def lost(self, kind: str, reason: str = "", text: str = "") -> None:
        """Report that there is no response, and why; see ``events.NotSent``."""


class Listener(Sink, Protocol):
    """A stream to one agent that carries the server's unsolicited messages."""

    driver: SessionDriver


class Multiplexer(ServerRunner[StdioCarrier]):
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
        self._count = 0
        self._lines: dict[int, Line] = {}
        self._numbers: dict[tuple[SessionDriver, RequestId], int] = {}
        self._tokens: dict[int, RequestId] = {}
        self._listeners: dict[SessionDriver, Listener] = {}
        self._watched: dict[SessionDriver, set[str]] = {}
        """The resources that each agent has subscribed to."""
        self._greeting = 0
        """The number of the handshake request in progress; 0 if there is none."""
        self._welcome: dict[str, Any] | None = None
        """The server's response to the handshake."""
        self._waiting: list[Callable[[], object]] = []

    # Start and stop; see ``ServerRunner``.

    def _connect(self) -> StdioCarrier:
        return StdioCarrier(self.id, self._command, self.log, self._watcher, grace_s=STOP_GRACE_S)

    async def _open(self, connection: StdioCarrier) -> None:
        await connection.open(self)

    def _went_down(self, gone: PeerGone) -> None:
        self._welcome = None
        self._greeting = 0
        waiting, self._waiting = self._waiting, []
        for number in list(self._lines):
            self._lose(number, "upstream_connection_failed", gone)
        for action in waiting:
            action()

    # To the server.

    def send(self, line: Line, message: Message) -> None:
        """Send a caller's request."""
        if self._is_shared and not line.driver.is_modern:
            if message.method == "initialize":
                params = message.body.get("params")
                version = params.get("protocolVersion") if type(params) is dict else None
                self._greet(version if type(version) is str else LATEST_LEGACY)
                self._when_welcome(lambda: self._tell_welcome(line))
                return
            self._greet(LATEST_LEGACY)
        self._when_welcome(lambda: self._send(line, message))

    def send_notice(self, driver: SessionDriver, message: Message) -> None:
        """Send an agent's notification or response."""
        if self._is_shared and message.method == INITIALIZED:
            return
        body = message.body
        if message.method == CANCELLED:
            params: dict[str, Any] = body.get("params") or {}
            ident = params.get("requestId")
            if type(ident) is not str and type(ident) is not int:
                return  # The cancellation names no request.
            number = self._numbers.get((driver, ident))
            if number is None:
                return
            body = {**body, "params": {**params, "requestId": number}}
        if message.shape != NOTIFICATION and self._is_shared:
            return  # A shared server sends agents no requests, so no response is expected.
        self._when_welcome(lambda: self._write(body))

    def forget(self, line: Line) -> None:
        """Forget a request whose caller no longer waits."""
        if line.key is not None:
            number = self._numbers.pop((line.driver, line.key), None)
            if number is not None:
                self._lines.pop(number, None)
                self._tokens.pop(number, None)

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

    def _send(self, line: Line, message: Message) -> None:
        if line.is_over or line.key is None:
            return
        self._count += 1
        number = self._count
        body = {**message.body, "id": number}
        params: Any = body.get("params")
        meta = params.get(META) if type(params) is dict else None
        if type(meta) is dict and type(meta.get("progressToken")) in {str, int}:
            self._tokens[number] = meta["progressToken"]
            body["params"] = {**params, META: {**meta, "progressToken": number}}
        self._lines[number] = line
        self._numbers[line.driver, line.key] = number
        if message.method in {"resources/subscribe", "resources/unsubscribe"}:
            self._watch(line.driver, message.method, params)
        if not self._write(body):
            self.forget(line)
            line.lost("server_not_running")

    def _watch(self, driver: SessionDriver, method: str, params: Any) -> None:
        uri = params.get("uri") if type(params) is dict else None
        if type(uri) is not str or len(uri) > MAX_URI:
            return
        watched = self._watched.setdefault(driver, set())
        if method != "resources/subscribe":
            watched.discard(uri)
        elif len(watched) < MAX_WATCHED:
            watched.add(uri)

    def _write(self, body: dict[str, Any]) -> bool:
        if self._connection is None:
            return False
        try:
            self._connection.send(body)
        except PeerGone:
            return False
        return True

    # The handshake of a shared server.

    def _greet(self, version: str) -> None:
        if self._greeting or self._welcome is not None:
            return
        self._count += 1
        self._greeting = self._count
        # The gate cannot tell for which agent a request of a shared server is meant, so it
        # declares no client capabilities.
        params = initialize_params({}, version)
        if not self._write(
            {"jsonrpc": "2.0", "id": self._greeting, "method": "initialize", "params": params}
        ):
            self._greeting = 0  # No response will come, so nothing may wait for it.

    def _when_welcome(self, action: Callable[[], object]) -> None:
        if not self._greeting:
            action()
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(action)

    def _tell_welcome(self, line: Line) -> None:
        if line.is_over:
            return
        if self._welcome is None:
            line.lost("server_not_running")
            return
        reply = render({"jsonrpc": "2.0", "id": line.key, **self._welcome})
        line.driver.feed(ServerSent(reply, now()), line)

    def _welcomed(self, message: Message) -> None:
        self._greeting = 0
        answer = {key: value for key, value in message.body.items() if key in {"result", "error"}}
        if initialized_by(answer) is not None:
            self._welcome = answer
            self._write({"jsonrpc": "2.0", "method": INITIALIZED})
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()

    # From the server.

    def took(self, line: bytes) -> None:
        """Handle a line that the server wrote."""
        if not line.strip():
            return
        message = read_frame(line)
        if not isinstance(message, Message):
            self._refuse(line, message.check)
            number = find_id(line)
            if type(number) is int and number in self._lines:
                self._lose(number, "internal_error")
        elif message.shape == REQUEST:
            self._asked(message)
        elif message.shape == NOTIFICATION:
            self._notified(message)
        else:
            self._answered(message)

    def _refuse(self, line: bytes, check: str) -> None:
        if self.check_noise():
            self._on_refused(line, check)

    def _answered(self, message: Message) -> None:
        number = message.id
        if number is not None and number == self._greeting:
            self._welcomed(message)
            return
        line = self._lines.get(number) if type(number) is int else None
        if line is None:
            self._refuse(message.raw, "unknown_response")
            return
        self.forget(line)
        body = {**message.body, "id": line.key}
        result = body.get("result")
        if type(result) is dict and type(result.get(META)) is dict and SUBSCRIPTION in result[META]:
            body["result"] = {**result, META: {**result[META], SUBSCRIPTION: line.key}}
        line.driver.feed(ServerSent(render(body), now()), line)

    def _asked(self, message: Message) -> None:
        if self._is_shared:
            if message.method == "ping":
                self._write({"jsonrpc": "2.0", "id": message.id, "result": {}})
            else:
                self._write(_refusal(message.id, error_object("method_not_found")))
            return
        target = self._hearer()
        if target is None:
            said = "the agent has no stream open to be asked on"
            self._write(_refusal(message.id, error_object("method_not_found", message=said)))
            return
        target.driver.feed(ServerSent(message.raw, now()), target)

    def _notified(self, message: Message) -> None:
        params = message.body.get("params")
        params = params if type(params) is dict else {}
        if message.method == PROGRESS:
            number = params.get("progressToken")
            line = self._lines.get(number) if type(number) is int else None
            if line is not None and type(number) is int:
                told = {**params, "progressToken": self._tokens.get(number)}
                body = {**message.body, "params": told}
                line.driver.feed(ServerSent(render(body), now()), line)
            return
        meta = params.get(META)
        subscribed = meta.get(SUBSCRIPTION) if type(meta) is dict else None
        if subscribed is not None:
            line = self._lines.get(subscribed) if type(subscribed) is int else None
            if line is not None and type(meta) is dict:
                told = {**params, META: {**meta, SUBSCRIPTION: line.key}}
                raw = render({**message.body, "params": told})
                line.driver.feed(ServerSent(raw, now()), line)
            return
        self._spread(message, params)

    def _spread(self, message: Message, params: dict[str, Any]) -> None:
        """Send a notification to the agents it concerns, and to no others."""
        if not self._is_shared:
            target = self._hearer()
            if target is not None:
                target.driver.feed(ServerSent(message.raw, now()), target)
            return
        uri = params.get("uri")
        for driver, listener in list(self._listeners.items()):
            if message.method == "notifications/resources/updated":
                wanted = type(uri) is str and uri in self._watched.get(driver, ())
            elif message.method == "notifications/message":
                # A log message does not say whose call caused it, and may contain that call's data.
                wanted = len(self._listeners) == 1
            else:
                wanted = True
            if wanted:
                driver.feed(ServerSent(message.raw, now()), listener)

    def _hearer(self) -> Listener | None:
        """Return the sink for messages that belong to no request, if each session has a process."""
        for listener in self._listeners.values():
            return listener
        for line in reversed(self._lines.values()):
            return line
        return None

    def _lose(self, number: int, kind: str, gone: PeerGone | None = None) -> None:
        line = self._lines.get(number)
        if line is not None:
            self.forget(line)
            text = gone.before_answer if isinstance(gone, ServerExited) else ""
            line.lost(kind, str(gone) if gone is not None else "", text)


def _refusal(ident: RequestId | None, error: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "error": error}
