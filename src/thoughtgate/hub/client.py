"""One client of the hub, and its sessions with servers.

To the front, a client is a peer, like the driver of a session; its callers know how to send
frames to it. Behind it there is one session per server that it calls. A session is driven like
every other session, so calls are judged, held, recorded, timed out and refused in the same way
everywhere. Client and session are one module because each keeps track of the other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from thoughtgate.core.commands import ANSWER, NOTICE, ToAgent, ToServer
from thoughtgate.core.events import (
    AgentGone,
    AgentSent,
    CallerGone,
    Event,
    GateStopping,
    KeptAlive,
    NotSent,
    ServerGone,
    ServerSent,
    Ticked,
)
from thoughtgate.core.session_replies import CALLER_GONE, SessionSettings
from thoughtgate.core.task import without_task
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Outbox, Sink
from thoughtgate.gate.session_driver import HTTP, Caller, Engine, SessionDriver
from thoughtgate.upstream.client import not_sent
from thoughtgate.upstream.http_answer import NOBODY
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Message, RequestId
from thoughtgate.wire.methods import CANCELLED, PROGRESS
from thoughtgate.wire.replies import render, render_error
from thoughtgate.wire.revisions import META, client_name, is_modern, progress_token

MAX_OPEN: Final = 10_000
"""Maximum number of open requests per client."""

MAX_LISTENS: Final = 100
"""Maximum number of open listens per client; most clients have one."""

HIDDEN: Final = "not_exposed"

MAX_STRETCH: Final = 10
"""A call that reports progress may take at most this many times its timeout."""

QUESTION_S: Final = 600.0
"""How long a client may take to answer a server; often a person has to answer."""

JSON: Final = b"content-type: application/json\r\n"

_LOGIN: Final = "login of "
"""Prefix that distinguishes the owner of a login from the owner of a process."""
_STATUS: Final = {-32601: 404, -32602: 400, -32020: 400, -32021: 400, -32022: 400}
"""HTTP statuses that 2026-07-28 prescribes by error code; any other response is 200."""


@dataclass(slots=True)
class Listen:
    """A modern client's open ``subscriptions/listen`` request."""

    wanted: dict[str, Any]
    uris: dict[str, str]
    """The server of each resource that this listen follows."""


@dataclass(slots=True, eq=False)
class Client:
    """One connection, HTTP session, or modern HTTP request."""

    id: str
    principal: str
    outbox: Outbox
    transport: str = HTTP
    sole: bool = False
    """Whether it is the only possible client: the one on stdio."""
    is_modern: bool = False
    receive: Callable[["Client", AgentSent, Sink | None], int] = lambda _client, _event, _sink: 0
    """Handles what the client sends; returns how many frames answer it at once."""
    on_error: Callable[["Client", str, str], str] = lambda _client, _method, _kind: ""
    """Records an error that no session reports, by method and kind; returns its id."""
    agent: Sink | None = None
    """Receives what belongs to no request: the agent on stdio, or the stream of a session."""
    line: Caller | None = None
    """The caller of every request if all share one connection: the agent on stdio."""
    callers: dict[RequestId, Caller] = field(default_factory=dict)
    header_checks: dict[RequestId, Callable[[], bool]] = field(default_factory=dict)
    """Calls whose headers are compared once their server's tools are known."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    says_it_is: str = ""
    """Its name and version, as it gave them itself."""
    log_level: str = ""
    introduced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its capabilities are known."""
    sessions: dict[str, "ServerSession"] = field(default_factory=dict)
    """Its sessions by server."""
    routes: dict[RequestId, "ServerSession"] = field(default_factory=dict)
    """The session that carries each open gated request."""
    work: dict[RequestId, asyncio.Task[None]] = field(default_factory=dict)
    """The tasks for requests that the hub itself answers."""
    learning: set[RequestId] = field(default_factory=set)
    """Calls that wait for their server's list before they are judged."""
    questions: dict[RequestId, "ServerSession"] = field(default_factory=dict)
    """The session of each server request to this client that has no answer yet."""
    listens: dict[RequestId, Listen] = field(default_factory=dict)
    followed: dict[str, str] = field(default_factory=dict)
    """The server of each resource that this client subscribed to."""
    address: str = ""
    """The address of the client, as of its last request; empty on stdio."""
    session_name: str = ""
    """The name of its HTTP session, the same at every gate that continues it."""
    claims: dict[str, Any] | None = None
    """The token claims of the principal, as of its last request."""
    trace: str = ""
    """The W3C trace context of the request that is being received."""
    wants_session: bool = False
    asks_as: str = "thoughtgate"
    """Prefix of the ids of servers' requests to this client."""
    asked: int = 0
    is_gone: bool = False

    @property
    def owner(self) -> tuple[bool, str]:
        """The owner of a private server process: the session or, without one, the principal."""
        return (True, self.principal) if self.is_modern else (False, self.id)

    @property
    def login_owner(self) -> tuple[bool, str]:
        """The owner of a connection with the principal's login, which all its sessions share."""
        return (True, f"{_LOGIN}{self.principal}")

    # The interface that the front uses; see ``front.peer.Peer``.

    @property
    def label(self) -> str:
        """The session's id on the record."""
        return self.id

    @property
    def is_busy(self) -> bool:
        """Whether any request is open."""
        return bool(self.callers or self.routes or self.work)

    @property
    def is_spent(self) -> bool:
        """Whether it can be reused: never, because it holds state of its request."""
        return False

    def feed(self, event: Event, sink: Sink | None) -> int:
        """Process an event of the front; return how many frames the agent gets at once."""
        if isinstance(event, AgentSent):
            return self.receive(self, event, sink)
        if isinstance(event, CallerGone):
            self._caller_left(event)
        elif isinstance(event, GateStopping):
            for session in list(self.sessions.values()):
                session.feed(event, sink)
        elif isinstance(event, NotSent) and event.key in self.routes:
            return self.routes[event.key].feed(event, sink)
        return 0

    def _caller_left(self, event: CallerGone) -> None:
        key = event.key
        session = self.routes.get(key)
        if session is not None:
            session.caller_left(key, is_given_up=event.is_given_up)
        elif (self.is_modern or event.is_given_up) and key in self.work:
            # 2026-07-28: closing the response stream cancels the request.
            self.work[key].cancel()

    def is_open(self, key: RequestId) -> bool:
        """Return whether a request with this id is open."""
        return key in self.routes or key in self.work or key in self.listens

    def is_undecided(self, key: RequestId) -> bool:
        """Return whether a call still waits for its first verdict."""
        return key in self.learning

    def is_answered_by(self, event: AgentSent) -> bool:
        """Return whether an event is the response to one of the gate's own prompts."""
        said = event.message
        session = self.questions.get(said.id) if type(said) is Message and said.id else None
        return session is not None and session.is_answered_by(event)

    def is_asked(self, ident: RequestId | None) -> bool:
        """Return whether the client owes a server or the gate the response with this id."""
        return ident in self.questions

    def stream_ended(self, sink: Sink) -> None:
        """Refuse servers' held requests that can no longer reach this client through a sink."""
        for session in list(self.sessions.values()):
            session.stream_ended(sink)

    def tick(self, at: float) -> None:
        """Keep the connections of waiting callers alive."""
        for caller in list(self.callers.values()):
            caller.keep_alive(at)

    def agent_left(self) -> None:
        """Note that the client sends no more requests; open ones may still be answered."""
        for session in list(self.sessions.values()):
            session.agent_left()

    def stop(self, reason: str, at: float) -> None:
        """Answer every request that is still open, because the gate or the session ends."""
        for session in list(self.sessions.values()):
            session.stop(reason, at)
        for ident, task in list(self.work.items()):
            task.cancel()
            kind = "upstream_connection_failed"
            details = {"reason": reason}
            correlation_id = self.note_error("", kind)
            error = render_error(
                ident,
                kind,
                modern=self.is_modern,
                details=details,
                correlation_id=correlation_id,
            )
            self.reply(error, ident, kind)

    # For the hub.

    @property
    def held(self) -> int:
        """Number of this client's calls that wait for approval."""
        return sum(session.session.held_calls for session in self.sessions.values())

    @property
    def open_requests(self) -> int:
        """Number of open requests."""
        return len(self.routes) + len(self.work)

    @property
    def is_full(self) -> bool:
        """Whether it has too many open requests to send another."""
        return self.open_requests >= MAX_OPEN

    def next_question(self) -> str:
        """Return a new id for a server's request to this client."""
        self.asked += 1
        return f"{self.asks_as}-{self.asked}"

    def sink(self, about: RequestId | None) -> Sink | None:
        """Return the sink for messages about a request, or about the client as a whole."""
        if about is None:
            return self.agent
        return self.callers.get(about, self.line)

    def reply(self, data: bytes, ident: RequestId | None, error: str = "") -> None:
        """Answer a request of the client; ``error`` is the kind of a refusal."""
        sink = self.sink(ident)
        if sink is not None:
            sink.take(ToAgent(data, ident, ANSWER, error))

    def note_error(self, method: str, kind: str) -> str:
        """Record an error that no session reports; return the id to tell the client."""
        return self.on_error(self, method, kind)

    def tell(self, data: bytes, about: RequestId | None) -> None:
        """Send a notification."""
        sink = self.sink(about)
        if sink is not None:
            sink.take(ToAgent(data, about, NOTICE))

    def introduce(self, capabilities: Any, info: Any) -> None:
        """Store the capabilities that the client declared, and its name and version."""
        self.says_it_is = client_name(info)
        self.capabilities = capabilities if type(capabilities) is dict else {}
        self.introduced.set()


@dataclass(slots=True, eq=False)
class Carried:
    """A gated request of a client, from its arrival to its response."""

    key: RequestId
    method: str
    params: dict[str, Any]
    """The params for the server: with the server's own name, and the client's ``_meta``. Before
    the call is forwarded, ``_meta`` alone."""
    modern: bool
    task: asyncio.Task[None] | None = None
    since: float = 0.0
    """When it was forwarded; 0 before that."""
    told: bool = False
    """Whether the server has reported progress."""

    @property
    def token(self) -> RequestId | None:
        """The client's own progress token."""
        return progress_token(self.params)


Relay = Callable[["ServerSession", Carried], Awaitable[Message]]
"""Carries an allowed request to its server.

It returns the response with the client's request id and in the client's revision, and raises
PeerError or PeerGone if there is none.
"""


class Owner(Protocol):
    """Passes a response on to the client."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Pass on the response."""

    def told(self, data: bytes) -> None:
        """Pass on a message that precedes the response."""


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
        self,
        engine: Engine,
        watch: Callable[["ServerSession"], None],
        client: Client,
        setup: SessionSettings,
        relay: Relay,
    ) -> None:
        """Prepare; ``watch`` ticks a session until it is idle."""
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
        # Only ``_meta`` is kept for now: the call may be large and held. ``carry`` sets the params.
        meta = {META: params[META]} if META in params else {}
        self.calls[key] = Carried(key, message.method, meta, is_modern(params))
        self.client.routes[key] = self
        self.trace, self.claims = trace, self.client.claims
        self.address, self.session_name = self.client.address, self.client.session_name
        self.session.prompts.client = self.client.says_it_is
        seen = message._replace(body={**message.body, "params": params})
        frames = self.feed(AgentSent(message.raw, now(), seen, shown), caller)
        self._watch(self)
        return frames

    def caller_left(self, key: RequestId, *, is_given_up: bool = False) -> None:
        """Handle the disconnect of the caller of one request."""
        call = self.calls.get(key)
        self.feed(CallerGone(key, now(), is_given_up), None)
        if call is not None and (call.modern or call.task is None or is_given_up):
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
        # The hub itself implements tasks, so servers are not asked for one.
        params = without_task(message.body.get("params") or {})
        call = self.calls.get(key)
        if call is None:
            # A call that became a task runs under an id that the gate assigned.
            call = self.calls[key] = Carried(key, message.method, params, is_modern(params))
            self._watch(self)
        call.params = params
        call.since = now()
        leg = RelayLeg(owner, self, call)
        call.task = asyncio.get_running_loop().create_task(self._carry(call, leg))
        return leg

    async def _carry(self, call: Carried, leg: "RelayLeg") -> None:
        try:
            reply = await self._relay(self, call)
        except (PeerError, PeerGone) as error:
            self.feed(not_sent(call.key, error), None)
        except Exception:  # noqa: BLE001  whatever fails, the caller must get an answer
            self.feed(NotSent(call.key, "internal_error", now()), None)
        else:
            leg.reply = reply
            self.feed(ServerSent(reply.raw, now(), reply), leg)

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
        call.told, token = True, call.token
        if token is not None and call.key in self.calls:
            self.notify_client(PROGRESS, {**params, "progressToken": token}, call.key)

    def _say(self, message: Message, about: RequestId | None) -> None:
        self.feed(ServerSent(message.raw, now(), message), self.client.sink(about) or NOBODY)

    def tick(self, at: float) -> None:
        """Handle timeouts; the time a client takes to answer does not count against its call."""
        for key in self._asking.values():
            # Directly, not through ``feed``: this event yields no commands to execute.
            self.session.receive(KeptAlive(key, at))
        oldest = at - (self.session.setup.timeout_s * MAX_STRETCH + QUESTION_S)
        for call in [one for one in self.calls.values() if 0.0 < one.since < oldest]:
            reason = "it took too long in spite of its progress"
            facts = {"cause": "answer_timeout", "reason": reason}
            self.feed(NotSent(call.key, "tool_call_timeout", at, facts), None)
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
                self.drop(one, is_late=type(event) is Ticked)

    def drop(self, key: RequestId, *, is_late: bool = False) -> None:
        """Remove a request that is over, and cancel the work that is still done for it."""
        call = self.calls.pop(key, None)
        self.client.routes.pop(key, None)
        self.client.questions.pop(self._prompted.pop(key, ""), None)
        if call is not None and call.task is not None and call.task is not asyncio.current_task():
            late = "idle_timeout" if call.told else "answer_timeout"
            call.task.cancel(late if is_late else "")

    def _open_stream(self) -> Sink | None:
        return self.client.agent

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
