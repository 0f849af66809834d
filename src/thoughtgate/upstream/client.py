"""The gate as an MCP client: one connection to one server.

Requests get their own ids and progress tokens, responses are matched to their requests, and
unsolicited messages go to an audience. A carrier (``upstream.stdio_carrier``,
``upstream.http_carrier``) transports the bytes. Calls were judged before they arrive here.

The hub negotiates the revision and sends requests of its own. ``upstream.multiplexer`` sends
the requests of agents; all it adds is the handshake of the older revisions.
"""

import asyncio
from collections.abc import Callable
from copy import copy
from typing import Any, Final, Protocol

from thoughtgate.core.events import NotSent
from thoughtgate.core.negotiation import (
    SUBSCRIPTION_KEY,
    UNSUPPORTED_VERSION,
    initialize_params,
    initialized_by,
    params_for_legacy,
    params_for_modern,
)
from thoughtgate.errors import CAUSES, PeerError, PeerGone, ServerExited, upstream_error
from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.wire.frame import find_id
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Fault, Message, RequestId
from thoughtgate.wire.methods import CANCELLED, LISTEN, PROGRESS
from thoughtgate.wire.replies import error_object, render
from thoughtgate.wire.revisions import LATEST, LEGACY, META

DISCOVER: Final = "server/discover"
INITIALIZED: Final = "notifications/initialized"

DISCOVER_S: Final = 2.0
"""How long ``server/discover`` may stay unanswered before ``initialize`` is sent as well."""

MAX_PENDING: Final = 10_000
"""Maximum number of open requests of the hub per server."""

LISTEN_AGAIN_S: Final = 1.0
MAX_LISTEN_AGAIN_S: Final = 30.0
"""Delays before a subscription that ended is made again. They double; after a subscription that has
lasted for the longest delay, they start again with the shortest."""

MAX_GIVEN_UP: Final = 10_000
"""Number of requests without a waiting caller whose late responses are recognised."""

Progress = Callable[[dict[str, Any]], None]


class Receiver(Protocol):
    """Receives what a carrier brings from the server."""

    def took(self, line: bytes, message: Message | Fault) -> None:
        """Handle a frame of the server: its bytes, and the parsed frame."""

    def failed(self, ident: RequestId, error: PeerError) -> None:
        """Handle a request that will get no response."""

    def lost(self, gone: PeerGone) -> None:
        """Handle the end of the process or session; a request that revealed it fails as well."""

    def reopened(self, result: dict[str, Any]) -> None:
        """Handle a new session in place of one that the server has forgotten."""


class Carrier(Protocol):
    """Transports frames to and from a server."""

    pid: int
    exit_code: int | None
    """The exit code of its process, once it has ended; a negative number is a signal."""

    async def open(self, receiver: Receiver) -> None:
        """Connect, or start the process."""

    def send(self, body: dict[str, Any]) -> None:
        """Send one message; raises PeerGone if the server cannot be reached."""

    def abandon(self, ident: RequestId, cause: str = "") -> bool:
        """Give up a request; return False if the server must be sent a cancellation.

        ``cause`` is the failure of the server that the request is given up for, if any.
        """

    async def close(self) -> None:
        """Disconnect, or stop the process and everything it started."""


class Audience(Protocol):
    """Receives the unsolicited messages of a server."""

    def server_sent(self, message: Message) -> None:
        """Handle a request or a notification of the server."""

    def server_lost(self, gone: PeerGone) -> None:
        """Handle the loss of the connection, unless the gate closed it."""

    def server_refused(self, fault: Fault, line: bytes) -> None:
        """Handle a server frame that could not be read safely and was dropped."""

    def server_reopened(self, connection: "ServerConnection") -> None:
        """Handle a new session in place of one that the server has forgotten."""


class Caller(Protocol):
    """Waits for the response to one request."""

    def answered(self, message: Message) -> None:
        """Handle the response, which may be an error response."""

    def told(self, message: Message, params: dict[str, Any]) -> None:
        """Handle a notification about the request, which is still open."""

    def failed(self, error: PeerError | PeerGone) -> None:
        """Handle that there will be no response."""


class ServerConnection:
    """One connection to a server."""

    def __init__(self, carrier: Carrier, audience: Audience) -> None:
        self._carrier = carrier
        self._audience = audience
        self._count = 0
        self._callers: dict[RequestId | None, Caller] = {}
        """Who waits for the open requests, by their ids on this connection."""
        self._standing: set[RequestId] = set()
        """Requests that stay open as long as the connection does."""
        self._given_up: dict[RequestId | None, None] = {}
        """Requests that nobody waits for any more, oldest first, so that a late response to one is
        not recorded as a fault of the server."""
        self._declared: dict[str, Any] = {}
        self._closing = False
        self._listening: asyncio.Task[None] | None = None
        self.is_open = False
        self.modern = False
        self.version = ""
        self.capabilities: dict[str, Any] = {}
        self.instructions = ""

    @property
    def pid(self) -> int:
        """The server's process id; 0 if the gate did not start it."""
        return self._carrier.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of the server's process, once it has ended."""
        return self._carrier.exit_code

    @property
    def open_requests(self) -> int:
        """Number of requests whose response somebody waits for."""
        return len(self._callers) - len(self._standing)

    # Opening and closing.

    async def connect(self) -> None:
        """Connect, and leave the negotiation to the agents.

        Raises:
            PeerGone: the server cannot be reached, or has ended.
        """
        await self._carrier.open(self)
        self.is_open = True

    async def open(self, declared: dict[str, Any]) -> None:
        """Connect and negotiate; ``declared`` are the client capabilities for a legacy server.

        Raises:
            PeerGone: the server cannot be reached, or has ended.
            PeerError: the server supports no revision that the gate supports.
        """
        self._declared = declared
        try:
            await self._carrier.open(self)
            await self._negotiate()
        except BaseException:
            await self.close()
            raise
        self.is_open = True

    async def close(self) -> None:
        """Close the connection; open requests fail."""
        self._closing = True
        self.is_open = False
        await finish(self._listening)
        self._fail_all(PeerGone("the server was stopped", "stopped"))
        await self._carrier.close()

    async def _negotiate(self) -> None:
        # A modern server answers server/discover; a legacy one may refuse it, ignore it, or take
        # long because it is starting. So initialize follows without withdrawing the first request.
        discover = asyncio.ensure_future(self.ask(DISCOVER, {}))
        initialize: asyncio.Task[Message] | None = None
        try:
            await asyncio.wait({discover}, timeout=DISCOVER_S)
            if self._discovered(discover):
                return
            if discover.done():
                discover.exception()  # retrieved, so that asyncio does not log it
            params = initialize_params(self._declared)
            initialize = asyncio.ensure_future(self.ask("initialize", params))
            while not initialize.done():
                await asyncio.wait(
                    {initialize, discover} if not discover.done() else {initialize},
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if self._discovered(discover):
                    return
            reply = initialize.result()
            # A modern server may refuse initialize before it has answered server/discover.
            if "result" not in reply.body and not discover.done():
                await asyncio.wait({discover})
                if self._discovered(discover):
                    return
            self._initialized(reply)
        finally:
            await finish(discover, initialize)

    def _discovered(self, discover: asyncio.Task[Message]) -> bool:
        """Return whether the server has answered ``server/discover`` as a modern server does.

        Raises:
            PeerGone: the server has ended.
            PeerError: the server is modern, but supports no revision that the gate supports; or it
                needs a login.
        """
        if not discover.done():
            return False
        if isinstance(error := discover.exception(), PeerGone):
            raise error
        if isinstance(error, PeerError) and error.cause == "login_required":
            raise error  # It says nothing about revisions, and ``initialize`` would fail too.
        if error is not None:
            return False
        body = discover.result().body
        fault = body.get("error")
        if type(fault) is dict and fault.get("code") == UNSUPPORTED_VERSION:
            data = fault.get("data")
            spoken = data.get("supported") if type(data) is dict else None
            if type(spoken) is list and not any(version in LEGACY for version in spoken):
                raise upstream_error("wrong_revision")
            return False
        result = body.get("result")
        if type(result) is not dict or type(result.get("supportedVersions")) is not list:
            return False
        if LATEST not in result["supportedVersions"]:
            return False
        self.modern = True
        self.version = LATEST
        self._learn(result)
        return True

    async def initialize(
        self, revision: str, params: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Make the handshake of the older revisions, and return the server's result.

        Without ``params``, the server is told that its client has no capabilities.

        Raises:
            PeerGone: the server has ended.
            PeerError: the server did not answer properly.
        """
        params = params or initialize_params({}, revision)
        return self._initialized(await self.ask("initialize", params))

    def _initialized(self, reply: Message) -> dict[str, Any]:
        result = initialized_by(reply.body)
        if result is None:
            raise upstream_error("bad_handshake")
        self.version = result["protocolVersion"]
        self._learn(result)
        self.say({"jsonrpc": "2.0", "method": INITIALIZED})
        return result

    def _learn(self, result: dict[str, Any]) -> None:
        capabilities = result.get("capabilities")
        self.capabilities = capabilities if type(capabilities) is dict else {}
        told = result.get("instructions")
        self.instructions = told if type(told) is str else ""

    # Sending.

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        capabilities: dict[str, Any] | None = None,
        log_level: str = "",
        on_progress: Progress | None = None,
    ) -> Message:
        """Send a request and return its response, which may be an error response.

        Cancelling the caller cancels the request at the server. If the cancellation has the cause of
        a failure as its message, the server's health is told of that failure.

        Raises:
            PeerGone: the server ended, or cannot be written to.
            PeerError: there will be no response; the error says why.
        """
        if len(self._callers) >= MAX_PENDING:
            raise PeerError("service_unavailable", "too many requests are open at this server")
        ident = self.new_id()
        token = ident if on_progress is not None else None
        # Only modern servers know server/discover, so it has their form before it is known
        # whether the server is one.
        if self.modern or method == DISCOVER:
            own = capabilities if capabilities is not None else self._declared
            full = params_for_modern(params, capabilities=own, log_level=log_level, token=token)
        else:
            full = params_for_legacy(params, token=token)
        caller = _Waiting(on_progress, self._audience)
        if method == LISTEN:
            self._standing.add(ident)
        try:
            self.request({"jsonrpc": "2.0", "id": ident, "method": method, "params": full}, caller)
            return await caller.response
        except asyncio.CancelledError as cancelled:
            self._cancel(ident, method, next((one for one in cancelled.args if one in CAUSES), ""))
            raise
        finally:
            self.forget(ident)

    def new_id(self) -> int:
        """Return an id for a request that is unique on this connection."""
        self._count += 1
        return self._count

    def request(self, body: dict[str, Any], caller: Caller) -> None:
        """Send a request with an id from ``new_id``; its response goes to the caller.

        Raises:
            PeerGone: the server cannot be written to.
        """
        self._callers[body["id"]] = caller
        self._carrier.send(body)

    def forget(self, ident: RequestId) -> None:
        """Forget a request that is over, or whose caller no longer waits."""
        self._standing.discard(ident)
        if self._callers.pop(ident, None) is None:
            return
        self._given_up[ident] = None
        if len(self._given_up) > MAX_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]

    def say(self, body: dict[str, Any]) -> None:
        """Send a message that expects no response; ignore a server that cannot be reached."""
        try:
            self._carrier.send(body)
        except PeerGone:
            return

    def answer(self, ident: RequestId | None, result: dict[str, Any]) -> None:
        """Answer a request of the server."""
        self.say({"jsonrpc": "2.0", "id": ident, "result": result})

    def refuse(self, ident: RequestId | None, kind: str, text: str = "") -> None:
        """Refuse a request of the server."""
        self.say({"jsonrpc": "2.0", "id": ident, "error": error_object(kind, message=text)})

    def pass_on(self, ident: RequestId | None, answer: dict[str, Any]) -> None:
        """Answer a request of the server with the client's result or error."""
        said: dict[str, Any] = {key: answer[key] for key in ("result", "error") if key in answer}
        self.say({"jsonrpc": "2.0", "id": ident, **said})

    def listen(self, wanted: dict[str, Any]) -> None:
        """Subscribe to changes at a modern server; replaces the previous subscription."""
        earlier = self._listening
        # Open the new one before the old one ends, so that no change is missed in between.
        self._listening = spawn(self._listen(wanted))
        if earlier is not None:
            earlier.cancel()

    async def _listen(self, wanted: dict[str, Any]) -> None:
        """Keep a subscription open, until the server refuses it or is gone."""
        delay = LISTEN_AGAIN_S
        while True:
            began = monotonic()
            try:
                reply = await self.ask(LISTEN, {"notifications": wanted})
            except PeerGone:
                return
            except PeerError:
                pass  # Such as a broken connection, which is worth another attempt.
            else:
                if "error" in reply.body:
                    return
            if monotonic() - began >= MAX_LISTEN_AGAIN_S:
                delay = LISTEN_AGAIN_S
            await asyncio.sleep(delay)
            delay = min(2 * delay, MAX_LISTEN_AGAIN_S)
            # After the next subscription is requested, because changes in between were not announced.
            asyncio.get_running_loop().call_soon(self._announce_missed, wanted)

    def _announce_missed(self, wanted: dict[str, Any]) -> None:
        for name in ("tools", "prompts", "resources"):
            if f"{name}ListChanged" in wanted and not self._closing:
                body = {"jsonrpc": "2.0", "method": f"notifications/{name}/list_changed"}
                message = Message(NOTIFICATION, None, body["method"], body, render(body))
                self._audience.server_sent(message)

    def _cancel(self, ident: int, method: str, cause: str) -> None:
        if self._closing or method == "initialize":
            # Before 2026-07-28, a client must not cancel initialize.
            return
        if not self._carrier.abandon(ident, cause):
            params = {"requestId": ident, "reason": "nobody waits any more"}
            self.say({"jsonrpc": "2.0", "method": CANCELLED, "params": params})

    # Receiving; called by the carrier.

    def took(self, line: bytes, message: Message | Fault) -> None:
        """Handle a frame of the server."""
        if isinstance(message, Fault):
            self._audience.server_refused(message, line)
            # The caller must not wait for a response that was dropped.
            ident = message.id if message.id is not None else find_id(line)
            if ident is not None:
                reason = "the server's answer could not be read safely"
                self.failed(ident, PeerError("internal_error", reason))
        elif message.shape == REQUEST:
            self._audience.server_sent(message)
        elif message.shape == NOTIFICATION:
            self._notified(message)
        elif caller := self._callers.pop(message.id, None):
            caller.answered(message)
        elif message.id in self._given_up:
            del self._given_up[message.id]
        else:
            fault = Fault("invalid_request", "", "unknown_response", None, answerable=False)
            self._audience.server_refused(fault, message.raw)

    def failed(self, ident: RequestId, error: PeerError) -> None:
        """Fail a request that will get no response."""
        caller = self._callers.pop(ident, None)
        if caller is not None:
            caller.failed(error)

    def lost(self, gone: PeerGone) -> None:
        """Fail all requests: the server has disconnected."""
        self.is_open = False
        self._fail_all(gone)
        if not self._closing:
            self._audience.server_lost(gone)

    def reopened(self, result: dict[str, Any]) -> None:
        """Learn what the server says of itself in its new session."""
        self.version = result["protocolVersion"]
        self._learn(result)
        self._audience.server_reopened(self)

    def _notified(self, message: Message) -> None:
        """Pass a notification that names a request to its caller, any other to the audience."""
        params = message.body.get("params") or {}
        meta = params.get(META)
        if message.method == PROGRESS:
            ident = params.get("progressToken")
        else:
            ident = meta.get(SUBSCRIPTION_KEY) if type(meta) is dict else None
        caller = self._callers.get(ident) if type(ident) is int else None
        if caller is not None:
            caller.told(message, params)
        elif message.method != PROGRESS:
            self._audience.server_sent(message)

    def _fail_all(self, gone: PeerGone) -> None:
        callers, self._callers = self._callers, {}
        for caller in callers.values():
            # One exception per request: a shared one would collect every waiter's traceback.
            caller.failed(copy(gone))


class _Waiting:
    """A coroutine that waits for the response to its request."""

    def __init__(self, on_progress: Progress | None, audience: Audience) -> None:
        self.response: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._on_progress = on_progress
        self._audience = audience

    def answered(self, message: Message) -> None:
        """Give the coroutine the response, unless it was cancelled meanwhile."""
        if not self.response.done():
            self.response.set_result(message)

    def told(self, message: Message, params: dict[str, Any]) -> None:
        """Report progress; any other notification is for a subscription, which serves everybody."""
        if message.method != PROGRESS:
            self._audience.server_sent(message)
        elif self._on_progress is not None:
            self._on_progress(params)

    def failed(self, error: PeerError | PeerGone) -> None:
        """Raise the error in the coroutine, unless it was cancelled meanwhile."""
        if not self.response.done():
            self.response.set_exception(error)


def not_sent(key: RequestId, error: PeerError | PeerGone) -> NotSent:
    """Return the event for a request of an agent that gets no response because of an error."""
    reason = str(error) if error.cause else ""
    text = error.before_answer if isinstance(error, ServerExited) else reason
    return NotSent(key, error.kind, now(), error.facts, text)


def wanted_changes(capabilities: dict[str, Any], uris: list[str]) -> dict[str, Any]:
    """Return the changes to subscribe to at a modern server."""
    wanted: dict[str, Any] = {
        f"{name}ListChanged": True
        for name in ("tools", "prompts", "resources")
        if name in capabilities
    }
    return {**wanted, "resourceSubscriptions": uris} if uris else wanted
