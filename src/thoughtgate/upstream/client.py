"""The hub as an MCP client: one negotiated connection to one server.

Requests get their own ids and progress tokens, responses are matched to their requests, and
unsolicited messages go to an audience. A carrier (``upstream.stdio_carrier``,
``upstream.http_carrier``) transports the bytes. Calls were judged before they arrive here.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from thoughtgate import __version__
from thoughtgate.core.negotiation import (
    UNSUPPORTED_VERSION,
    initialize_params,
    initialized_by,
    params_for_legacy,
    params_for_modern,
)
from thoughtgate.errors import PeerError, PeerGone, code_of
from thoughtgate.gate.background import finish, spawn
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Fault, Message, RequestId
from thoughtgate.wire.methods import CANCELLED, LISTEN, PROGRESS
from thoughtgate.wire.revisions import LATEST, LEGACY, META, SERVER_KEY

DISCOVER_S: Final = 2.0
"""How long ``server/discover`` may stay unanswered before ``initialize`` is sent as well."""

MAX_PENDING: Final = 10_000
"""Maximum number of open requests per server."""

Progress = Callable[[dict[str, Any]], None]


class Carrier(Protocol):
    """Transports frames to and from a server."""

    pid: int
    exit_code: int | None
    """The exit code of its process, once it has ended; a negative number is a signal."""

    async def open(self, upstream: "ServerConnection") -> None:
        """Connect, or start the process; received frames go to ``upstream.took``."""

    def send(self, body: dict[str, Any]) -> None:
        """Send one message; raises PeerGone if the server cannot be reached."""

    def abandon(self, ident: RequestId) -> bool:
        """Give up a request; return False if the server must be sent a cancellation."""

    async def close(self) -> None:
        """Disconnect, or stop the process and everything it started."""


class Audience(Protocol):
    """Receives the unsolicited messages of a server."""

    def server_asked(self, message: Message) -> None:
        """Handle a request of the server to the client."""

    def server_said(self, message: Message) -> None:
        """Handle a notification of the server."""

    def server_lost(self, gone: PeerGone) -> None:
        """Handle the loss of the connection, unless the gate closed it."""

    def server_refused(self, fault: Fault, line: bytes) -> None:
        """Handle a server frame that could not be read safely and was dropped."""


class ServerConnection:
    """One negotiated connection to a server."""

    def __init__(self, carrier: Carrier, audience: Audience) -> None:
        self._carrier = carrier
        self._audience = audience
        self._count = 0
        self._pending: dict[RequestId, asyncio.Future[Message]] = {}
        self._progress: dict[RequestId, Progress] = {}
        self._standing: set[RequestId] = set()
        """Requests that stay open as long as the connection does."""
        self._declared: dict[str, Any] = {}
        self._closing = False
        self._listening: asyncio.Task[None] | None = None
        self.is_open = False
        self.modern = False
        self.version = ""
        self.capabilities: dict[str, Any] = {}
        self.server_info: dict[str, Any] = {}
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
        return len(self._pending) - len(self._standing)

    # Opening and closing.

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
        self._fail_all(PeerGone("the connection was closed"))
        await self._carrier.close()

    async def _negotiate(self) -> None:
        # A modern server answers server/discover; a legacy one may refuse it, ignore it, or take
        # long because it is starting. So initialize follows without withdrawing the first request.
        discover = asyncio.ensure_future(self.ask("server/discover", {}, modern=True))
        initialize: asyncio.Task[Message] | None = None
        try:
            await asyncio.wait({discover}, timeout=DISCOVER_S)
            if self._discovered(discover):
                return
            if discover.done():
                discover.exception()
            initialize = asyncio.ensure_future(
                self.ask("initialize", initialize_params(__version__, self._declared), modern=False)
            )
            while not initialize.done():
                await asyncio.wait(
                    {initialize, discover} if not discover.done() else {initialize},
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if self._discovered(discover):
                    return
            reply = initialize.result()
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
            PeerError: the server is modern, but supports no revision that the gate supports.
        """
        if not discover.done():
            return False
        if isinstance(error := discover.exception(), PeerGone):
            raise error
        if error is not None:
            return False
        body = discover.result().body
        fault = body.get("error")
        if type(fault) is dict and fault.get("code") == UNSUPPORTED_VERSION:
            data = fault.get("data")
            spoken = data.get("supported") if type(data) is dict else None
            if type(spoken) is list and not any(version in LEGACY for version in spoken):
                raise PeerError("server_start_failed", "the server speaks no known revision")
            return False
        result = body.get("result")
        if type(result) is not dict or type(result.get("supportedVersions")) is not list:
            return False
        if LATEST not in result["supportedVersions"]:
            return False
        self.modern = True
        self.version = LATEST
        meta = result.get(META)
        said = meta.get(SERVER_KEY) if type(meta) is dict else None
        self._learn(result, said)
        return True

    def _initialized(self, reply: Message) -> None:
        result = initialized_by(reply.body)
        if result is None:
            raise PeerError("server_start_failed", "the server did not answer initialize properly")
        self.modern = False
        self.version = result["protocolVersion"]
        self._learn(result, result.get("serverInfo"))
        self.notify("notifications/initialized")

    def _learn(self, result: dict[str, Any], said: Any) -> None:
        capabilities = result.get("capabilities")
        self.capabilities = capabilities if type(capabilities) is dict else {}
        self.server_info = said if type(said) is dict else {}
        told = result.get("instructions")
        self.instructions = told if type(told) is str else ""

    # Sending.

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        modern: bool | None = None,
        capabilities: dict[str, Any] | None = None,
        log_level: str = "",
        on_progress: Progress | None = None,
    ) -> Message:
        """Send a request and return its response, which may be an error response.

        Cancelling the caller cancels the request at the server.

        Raises:
            PeerGone: the server ended, or cannot be written to.
            PeerError: there will be no response; the error says why.
        """
        if len(self._pending) >= MAX_PENDING:
            raise PeerError("service_unavailable", "too many requests are open at this server")
        self._count += 1
        ident = self._count
        token = ident if on_progress is not None else None
        if self.modern if modern is None else modern:
            own = capabilities if capabilities is not None else self._declared
            full = params_for_modern(
                params, capabilities=own, version=__version__, log_level=log_level, token=token
            )
        else:
            full = params_for_legacy(params, token=token)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._pending[ident] = answer
        if method == LISTEN:
            self._standing.add(ident)
        if on_progress is not None:
            self._progress[ident] = on_progress
        try:
            self._carrier.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": full})
            return await answer
        except asyncio.CancelledError:
            self._cancel(ident, method)
            raise
        finally:
            self._pending.pop(ident, None)
            self._standing.discard(ident)
            self._progress.pop(ident, None)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification; ignore a server that cannot be reached."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        try:
            self._carrier.send(body if params is None else {**body, "params": params})
        except PeerGone:
            return

    def answer(self, ident: RequestId | None, result: dict[str, Any]) -> None:
        """Answer a request of the server."""
        self._reply({"jsonrpc": "2.0", "id": ident, "result": result})

    def refuse(self, ident: RequestId | None, kind: str, text: str) -> None:
        """Refuse a request of the server."""
        error = {"code": code_of(kind), "message": text, "data": {"kind": kind}}
        self._reply({"jsonrpc": "2.0", "id": ident, "error": error})

    def pass_on(self, ident: RequestId | None, answer: dict[str, Any]) -> None:
        """Answer a request of the server with the client's result or error."""
        said: dict[str, Any] = {key: answer[key] for key in ("result", "error") if key in answer}
        self._reply({"jsonrpc": "2.0", "id": ident, **said})

    def listen(self, wanted: dict[str, Any]) -> None:
        """Subscribe to changes at a modern server; replaces the previous subscription."""
        earlier = self._listening
        # Open the new one before the old one ends, so that no change is missed in between.
        self._listening = spawn(self._listen(wanted))
        if earlier is not None:
            earlier.cancel()

    async def _listen(self, wanted: dict[str, Any]) -> None:
        try:
            await self.ask(LISTEN, {"notifications": wanted})
        except (PeerGone, PeerError):
            return

    def _reply(self, body: dict[str, Any]) -> None:
        try:
            self._carrier.send(body)
        except PeerGone:
            return

    def _cancel(self, ident: int, method: str) -> None:
        if self._closing or method == "initialize":
            # Before 2026-07-28, a client must not cancel initialize.
            return
        if not self._carrier.abandon(ident):
            self.notify(CANCELLED, {"requestId": ident, "reason": "nobody waits any more"})

    # Receiving.

    def took(self, line: bytes, message: Message | Fault | None = None) -> None:
        """Handle a frame of the server; ``message`` is the parsed frame, if already parsed."""
        if not line.strip():
            return
        if message is None:
            message = read_frame(line)
        if isinstance(message, Fault):
            self._audience.server_refused(message, line)
            if message.id is not None:
                self._fail(message.id, "the server's answer could not be read safely")
        elif message.shape == REQUEST:
            self._audience.server_asked(message)
        elif message.shape == NOTIFICATION:
            self._notified(message)
        else:
            self._answered(message)

    def failed(self, ident: RequestId, error: PeerError) -> None:
        """Fail a request that will get no response."""
        waiting = self._pending.get(ident)
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def lost(self, gone: PeerGone) -> None:
        """Fail all requests: the server has disconnected."""
        self.is_open = False
        self._fail_all(gone)
        if not self._closing:
            self._audience.server_lost(gone)

    def _notified(self, message: Message) -> None:
        params = message.body.get("params")
        if message.method == PROGRESS and type(params) is dict:
            token = params.get("progressToken")
            heard = self._progress.get(token) if type(token) is int else None
            if heard is not None:
                heard(params)
            return
        self._audience.server_said(message)

    def _answered(self, message: Message) -> None:
        waiting = self._pending.get(message.id) if message.id is not None else None
        if waiting is None:
            fault = Fault("invalid_request", "", "unknown_response", None, answerable=False)
            self._audience.server_refused(fault, message.raw)
        elif not waiting.done():
            waiting.set_result(message)

    def _fail(self, ident: RequestId, reason: str) -> None:
        self.failed(ident, PeerError("internal_error", reason))

    def _fail_all(self, gone: PeerGone) -> None:
        for waiting in self._pending.values():
            if not waiting.done():
                # One exception per request: a shared one would collect every waiter's traceback.
                waiting.set_exception(type(gone)(str(gone)))


def wanted_changes(capabilities: dict[str, Any], uris: list[str]) -> dict[str, Any]:
    """Return the changes to subscribe to at a modern server."""
    wanted: dict[str, Any] = {
        f"{name}ListChanged": True
        for name in ("tools", "prompts", "resources")
        if name in capabilities
    }
    return {**wanted, "resourceSubscriptions": uris} if uris else wanted
