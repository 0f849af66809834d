"""The session between one client and one server of the hub, under the gate.

It is driven like every other session, so calls are judged, held, recorded, timed out and
refused in the same way everywhere. A relay knows how an allowed call reaches its server,
and in which revision.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Protocol

from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import (
    AgentGone,
    AgentSent,
    CallerGone,
    Event,
    KeptAlive,
    NotSent,
    ServerGone,
    ServerSent,
)
from thoughtgate.core.session_replies import CALLER_GONE, SessionSettings
from thoughtgate.core.task import without_task
from thoughtgate.errors import PeerError, PeerGone, ServerExited
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Sink
from thoughtgate.gate.session_driver import Caller, Engine, SessionDriver
from thoughtgate.hub.client import Client
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Message, RequestId
from thoughtgate.wire.methods import CANCELLED, PROGRESS
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import is_modern, progress_token

HIDDEN: Final = "not_exposed"

MAX_STRETCH: Final = 10
"""A call that reports progress may take at most this many times its timeout."""

QUESTION_S: Final = 600.0
"""How long a client may take to answer a server; often a person has to answer."""

JSON: Final = b"content-type: application/json\r\n"

_STATUS: Final = {-32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""HTTP statuses that 2026-07-28 prescribes by error code; any other response is 200."""


@dataclass(slots=True, eq=False)
class Carried:
    """A gated request of a client, from its arrival to its response."""

    key: RequestId
    method: str
    params: dict[str, Any]
    """The params for the server: with the server's own name, and the client's ``_meta``."""
    modern: bool
    task: asyncio.Task[None] | None = None
    since: float = 0.0
    """When it was forwarded; 0 before that."""

    @property
    def token(self) -> RequestId | None:
        """The client's own progress token."""
        return progress_token(self.params)


class Relay(Protocol):
    """Carries an allowed request to the server that answers it."""

    async def relay(self, session: "ServerSession", call: Carried) -> Message:
        """Return the response, with the client's request id and in the client's revision.

        Raises:
            PeerError: there is no response; the error says why.
            PeerGone: the server disconnected.
        """


class Owner(Protocol):
    """Passes a response on to the client."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Pass on the response."""

    def told(self, data: bytes) -> None:
        """Pass on a message that precedes the response."""


class Watch(Protocol):
    """Runs the timers of sessions with open requests."""

    def watch(self, session: "ServerSession") -> None:
        """Tick this session until it is idle."""


class ServerSession(SessionDriver):
    """The session between one client and one server."""

    __slots__ = (
        "_answers",
        "_asking",
        "_depth",
        "_prompted",
        "_relay",
        "_watch",
        "calls",
        "client",
    )

    def __init__(
        self, engine: Engine, watch: Watch, client: Client, setup: SessionSettings, relay: Relay
    ) -> None:
        super().__init__(engine, setup, client.principal, transport=client.transport)
        self.client = client
        self.calls: dict[RequestId, Carried] = {}
        self._prompted: dict[RequestId, RequestId] = {}
        """The id of the client's own prompt for each call that it asks about."""
        self._relay = relay
        self._watch = watch
        self._depth = 0
        self._answers: dict[RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._asking: dict[RequestId, RequestId] = {}
        """The call that waits for the answer to each open server request."""

    @property
    def server(self) -> str:
        """The server's id."""
        return self.session.setup.server

    # Called for the client.

    def ask(
        self, message: Message, params: dict[str, Any], shown: str, caller: Sink | None, trace: str
    ) -> int:
        """Submit a client's request to the gate; ``params`` are those for the server."""
        key = message.id
        if key is None:
            return 0
        # The hub itself implements tasks, so servers are not asked for one.
        modern = is_modern(params)
        self.calls[key] = Carried(key, message.method, without_task(params), modern)
        self.client.routes[key] = self
        self.trace, self.claims = trace, self.client.claims
        seen = message._replace(body={**message.body, "params": params})
        frames = self.feed(AgentSent(message.raw, now(), seen, shown), caller)
        self._watch.watch(self)
        return frames

    def caller_left(self, key: RequestId) -> None:
        """Handle the disconnect of the caller of one request."""
        call = self.calls.get(key)
        self.feed(CallerGone(key, now()), None)
        if call is not None and (call.modern or call.task is None):
            self.drop(key)

    def agent_left(self) -> None:
        """Drop the calls that were not forwarded yet: the client sends no more requests."""
        self.feed(AgentGone(now()), None)
        for key in [key for key, call in self.calls.items() if call.task is None]:
            self.drop(key)

    def close(self) -> None:
        """Drop all calls: the client is gone for good."""
        for key in list(self.calls):
            self.feed(CallerGone(key, now()), None)
            self.drop(key)
        if not self.session.is_idle:
            # Dropped calls get no response any more, so end them here for the record.
            self.feed(ServerGone(CALLER_GONE, now()), None)
        for answer in self._answers.values():
            answer.cancel()

    def prompted(self, key: RequestId, ident: RequestId) -> None:
        """Register the client's own prompt about a held call, so that its answer arrives here."""
        self._prompted[key] = ident
        self.client.questions[ident] = self

    # Sent to the server.

    def carry(self, frame: ToServer, owner: Owner | None) -> "RelayLeg | None":
        """Send an allowed request to the server; its response goes to ``owner``."""
        key, message = frame.key, frame.message
        if key is None or message is None:
            return None
        params = without_task(message.body.get("params") or {})
        call = self.calls.get(key)
        if call is None:
            # A call that became a task runs under an id that the gate assigned.
            call = self.calls[key] = Carried(key, message.method, params, is_modern(params))
            self._watch.watch(self)
        call.params = params
        call.since = now()
        leg = RelayLeg(owner, self, call)
        call.task = asyncio.get_running_loop().create_task(self._carry(call, leg))
        return leg

    async def _carry(self, call: Carried, leg: "RelayLeg") -> None:
        try:
            reply = await self._relay.relay(self, call)
        except PeerError as error:
            self._fail(call, error.kind, str(error))
        except PeerGone as gone:
            text = gone.before_answer if isinstance(gone, ServerExited) else ""
            self._fail(call, "upstream_connection_failed", str(gone), text)
        except Exception:  # noqa: BLE001  a fault of ours in one call must not leave its caller hanging
            self._fail(call, "internal_error")
        else:
            leg.reply = reply
            self.feed(ServerSent(reply.raw, now(), reply), leg)

    def _fail(self, call: Carried, kind: str, reason: str = "", text: str = "") -> None:
        self.feed(NotSent(call.key, kind, now(), "" if kind == HIDDEN else reason, text), None)

    def notified(self, frame: ToServer) -> None:
        """Handle a frame to the server that is not a request: a cancellation or a response."""
        message = frame.message
        if message is None:
            return
        if message.method == CANCELLED:
            ident = (message.body.get("params") or {}).get("requestId")
            if isinstance(ident, str | int):
                self.drop(ident)
        elif message.id is not None:
            answer = self._answers.pop(message.id, None)
            if answer is not None and not answer.done():
                answer.set_result(message.body)

    # Called for the server.

    async def question(
        self, method: str, params: dict[str, Any] | None, about: RequestId | None
    ) -> dict[str, Any]:
        """Send the client a request on the server's behalf, and return the body of the response."""
        ident = self.client.next_question()
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": ident, "method": method}
        if params is not None:
            body["params"] = params
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[ident] = answer
        self.client.questions[ident] = self
        if about is not None:
            self._asking[ident] = about
        self._say(Message(REQUEST, ident, method, body, render(body)), about)
        try:
            async with asyncio.timeout(QUESTION_S):
                return await answer
        except asyncio.CancelledError:
            self.notify_client(CANCELLED, {"requestId": ident, "reason": "no longer needed"}, about)
            raise
        except TimeoutError:
            raise PeerError("upstream_timeout", "the client did not answer in time") from None
        finally:
            self._answers.pop(ident, None)
            self._asking.pop(ident, None)
            self.client.questions.pop(ident, None)

    def notify_client(self, method: str, params: dict[str, Any], about: RequestId | None) -> None:
        """Send the client a notification on the server's behalf."""
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        self._say(Message(NOTIFICATION, None, method, body, render(body)), about)

    def progress(self, call: Carried, params: dict[str, Any]) -> None:
        """Pass on a server's progress notification, with the client's own token."""
        token = call.token
        if token is not None and call.key in self.calls:
            self.notify_client(PROGRESS, {**params, "progressToken": token}, call.key)

    def _say(self, message: Message, about: RequestId | None) -> None:
        self.feed(ServerSent(message.raw, now(), message), self.client.sink(about) or _NOBODY)

    def tick(self, at: float) -> None:
        """Handle timeouts; the time a client takes to answer does not count against its call."""
        for key in self._asking.values():
            # Directly, not through ``feed``: this event yields no commands to execute.
            self.session.receive(KeptAlive(key, at))
        oldest = at - (self.session.setup.timeout_s * MAX_STRETCH + QUESTION_S)
        for call in [one for one in self.calls.values() if 0.0 < one.since < oldest]:
            self._fail(call, "tool_call_timeout", "it took too long in spite of its progress")
        super().tick(at)

    # The table of calls is kept consistent with the session.

    def feed(self, event: Event, sink: Sink | None) -> int:
        """Pass an event to the session, and drop the calls that it has ended."""
        self._depth += 1
        try:
            frames = super().feed(event, sink)
        finally:
            self._depth -= 1
        # Feeding may recurse; only the outermost call sees the session in its final state.
        if not self._depth and self.calls:
            self._drop_ended(event)
        return frames

    def _drop_ended(self, event: Event) -> None:
        key: RequestId | None = getattr(event, "key", None)
        message = getattr(event, "message", None)
        if key is None and type(message) is Message and message.method != CANCELLED:
            key = message.id
            if key is None:
                return
        keys = list(self.calls) if key is None else [key]
        for one in keys:
            if one in self.calls and not self.session.is_open(one):
                self.drop(one)

    def drop(self, key: RequestId) -> None:
        """Remove a request that is over, and cancel the work that is still done for it."""
        call = self.calls.pop(key, None)
        self.client.routes.pop(key, None)
        self.client.questions.pop(self._prompted.pop(key, ""), None)
        if call is not None and call.task is not None and call.task is not asyncio.current_task():
            call.task.cancel()

    def _caller(self, key: RequestId | None) -> Caller | None:
        # A call that became a task has no waiting caller: it runs detached.
        if key is None or key not in self.calls:
            return None
        return self.client.callers.get(key, self.client.line)


class RelayLeg:
    """Passes the response to a call back to the client."""

    is_resumable = False
    passes_stream = False

    def __init__(self, owner: Owner | None, session: ServerSession, call: Carried) -> None:
        self.reply: Message | None = None
        self.is_over = False
        self._owner = owner
        self._session = session
        self._call = call

    def take(self, frame: ToAgent) -> None:
        """Pass on a frame of the server once the record is written."""
        if self._owner is None:
            return
        outbox = self._session.outbox
        if frame.carries != ANSWER:
            outbox.later(self._owner.told, frame.data)
            return
        self.is_over = True
        status = self._status() if self._call.modern else 200
        outbox.later(self._owner.answered, frame.data, status, JSON)

    def _status(self) -> int:
        """Return the HTTP status that 2026-07-28 prescribes for some errors."""
        error = self.reply.body.get("error") if self.reply is not None else None
        code = error.get("code") if type(error) is dict else None
        return _STATUS.get(code, 200) if type(code) is int else 200

    def forward(self, frame: ToServer) -> None:
        """Do nothing: a response carries no frames to the server."""

    def abort(self) -> None:
        """Drop the call: nobody waits for the response."""
        self.is_over = True
        self._session.drop(self._call.key)

    def pause(self) -> None:
        """Do nothing: the connection is shared, so one slow client must not stop it."""

    def resume(self) -> None:
        """Do nothing; see ``pause``."""


class _Nobody:
    """Discards messages that no client can receive."""

    def take(self, frame: ToAgent) -> None:
        """Discard the frame."""

    def forward(self, frame: ToServer) -> None:
        """Discard the frame."""


_NOBODY: Final = _Nobody()
