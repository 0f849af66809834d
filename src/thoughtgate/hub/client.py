"""One client of the hub: its identity, its capabilities and its open requests.

To the front it is a peer, like the driver of a session; behind it there is one session per
server that it calls. Its callers know how to send frames to it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from thoughtgate.core.commands import ANSWER, NOTICE, ToAgent
from thoughtgate.core.events import AgentSent, CallerGone, Event, GateStopping, NotSent
from thoughtgate.gate.outbox import Outbox, Sink
from thoughtgate.gate.session_driver import HTTP, Caller
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.replies import render_error

if TYPE_CHECKING:
    from thoughtgate.hub.server_session import ServerSession

MAX_OPEN: Final = 10_000
"""Maximum number of open requests per client."""

MAX_LISTENS: Final = 100
"""Maximum number of open listens per client; most clients have one."""


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
    agent: Sink | None = None
    """Receives what belongs to no request: the agent on stdio, or the stream of a session."""
    line: Caller | None = None
    """The caller of every request if all share one connection: the agent on stdio."""
    callers: dict[RequestId, Caller] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    log_level: str = ""
    introduced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its capabilities are known."""
    sessions: "dict[str, ServerSession]" = field(default_factory=dict)
    """Its sessions by server."""
    routes: "dict[RequestId, ServerSession]" = field(default_factory=dict)
    """The session that carries each open gated request."""
    work: dict[RequestId, asyncio.Task[None]] = field(default_factory=dict)
    """The tasks for requests that the hub itself answers."""
    learning: set[RequestId] = field(default_factory=set)
    """Calls that wait for their server's list before they are judged."""
    questions: "dict[RequestId, ServerSession]" = field(default_factory=dict)
    """The session of each server request to this client that has no answer yet."""
    listens: dict[RequestId, Listen] = field(default_factory=dict)
    followed: dict[str, str] = field(default_factory=dict)
    """The server of each resource that this client subscribed to."""
    claims: dict[str, Any] | None = None
    """The token claims of the principal, as of its last request."""
    trace: str = ""
    """The W3C trace context of the request that is being received."""
    wants_session: bool = False
    asked: int = 0
    is_gone: bool = False

    @property
    def owner(self) -> tuple[bool, str]:
        """The owner of a private server process: the session or, without one, the principal."""
        return (True, self.principal) if self.is_modern else (False, self.id)

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
            self._caller_left(event.key)
        elif isinstance(event, GateStopping):
            for session in list(self.sessions.values()):
                session.feed(event, sink)
        elif isinstance(event, NotSent) and event.key in self.routes:
            return self.routes[event.key].feed(event, sink)
        return 0

    def _caller_left(self, key: RequestId) -> None:
        session = self.routes.get(key)
        if session is not None:
            session.caller_left(key)
        elif self.is_modern and key in self.work:
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
            error = render_error(ident, kind, modern=self.is_modern, details=details)
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
        return f"thoughtgate-{self.asked}"

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

    def tell(self, data: bytes, about: RequestId | None) -> None:
        """Send a notification."""
        sink = self.sink(about)
        if sink is not None:
            sink.take(ToAgent(data, about, NOTICE))

    def introduce(self, capabilities: Any, info: Any) -> None:
        """Store the capabilities and the description that the client declared."""
        self.capabilities = capabilities if type(capabilities) is dict else {}
        self.info = info if type(info) is dict else self.info
        self.introduced.set()
