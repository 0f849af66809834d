"""One client of the hub: who it is, what it can do, and what is open between it and the hub.

To the front it is a peer like a session's driver; behind it there is a session for each
server that it calls. How frames reach it is its callers' business.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from thoughtgate.core.commands import ANSWER, NOTICE, ToAgent
from thoughtgate.core.events import AgentSent, CallerGone, Event, GateStopping, NotSent
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import HTTP, Caller, Sink
from thoughtgate.wire.message import Message, RequestId

if TYPE_CHECKING:
    from thoughtgate.hub.server_session import ServerSession

MAX_OPEN: Final = 10_000
"""Requests of one client without an answer."""

MAX_LISTENS: Final = 100
"""Listens of one client at once; a usual client has one."""


@dataclass(slots=True)
class Listen:
    """A modern client's standing wish to hear of changes."""

    wanted: dict[str, Any]
    uris: dict[str, str]
    """Resources it follows, with their server."""


@dataclass(slots=True, eq=False)
class Client:
    """One connection, HTTP session, or modern HTTP request."""

    id: str
    principal: str
    outbox: Outbox
    transport: str = HTTP
    sole: bool = False
    """Whether it is the only client there can be: the one on stdio."""
    is_modern: bool = False
    receive: Callable[["Client", AgentSent, Sink | None], int] = lambda _client, _event, _sink: 0
    """Takes what the client sends; returns how many frames it is answered with at once."""
    agent: Sink | None = None
    """Hears what belongs to no request: the agent on stdio, or the stream of a session."""
    line: Caller | None = None
    """The caller of every request, where all come on one line: the agent on stdio."""
    callers: dict[RequestId, Caller] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    log_level: str = ""
    introduced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its capabilities are known."""
    sessions: "dict[str, ServerSession]" = field(default_factory=dict)
    """Its sessions, by server."""
    routes: "dict[RequestId, ServerSession]" = field(default_factory=dict)
    """Gated requests under way, with the session that carries them."""
    work: dict[RequestId, asyncio.Task[None]] = field(default_factory=dict)
    """Requests that the hub itself works on."""
    learning: set[RequestId] = field(default_factory=set)
    """Calls that wait for their server's list before they are judged."""
    questions: "dict[RequestId, ServerSession]" = field(default_factory=dict)
    """Requests of servers to this client that have no answer yet."""
    listens: dict[RequestId, Listen] = field(default_factory=dict)
    followed: dict[str, str] = field(default_factory=dict)
    """Resources it subscribed to, with their server."""
    claims: dict[str, Any] | None = None
    """What authentication says of the principal, as of its last request."""
    trace: str = ""
    """The W3C trace context of the request that is being taken in."""
    wants_session: bool = False
    asked: int = 0
    is_gone: bool = False

    @property
    def owner(self) -> tuple[bool, str]:
        """Whose process of its own it uses: the session's or, without one, its principal's."""
        return (True, self.principal) if self.is_modern else (False, self.id)

    # As a peer of the front.

    @property
    def label(self) -> str:
        """The session's id on the record."""
        return self.id

    @property
    def is_busy(self) -> bool:
        """Whether anything is open."""
        return bool(self.callers or self.routes or self.work)

    @property
    def is_spent(self) -> bool:
        """Whether it may serve the next request: never, it knows too much."""
        return False

    def feed(self, event: Event, sink: Sink | None) -> int:
        """Take what the front reports; return how many frames the agent gets at once."""
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
            # From 2026-07-28 on leaving cancels.
            self.work[key].cancel()

    def is_open(self, key: RequestId) -> bool:
        """Tell whether a request with this id is open."""
        return key in self.routes or key in self.work or key in self.listens

    def is_undecided(self, key: RequestId) -> bool:
        """Tell whether a call still waits for its first verdict."""
        return key in self.learning

    def is_answered_by(self, event: AgentSent) -> bool:
        """Tell whether a response is one to a prompt of the gate."""
        said = event.message
        session = self.questions.get(said.id) if type(said) is Message and said.id else None
        return session is not None and session.is_answered_by(event)

    def tick(self, at: float) -> None:
        """Show callers that their calls still wait."""
        for caller in list(self.callers.values()):
            caller.keep_alive(at)

    def agent_left(self) -> None:
        """The client asks nothing more; what it asked may still be answered."""
        for session in list(self.sessions.values()):
            session.agent_left()

    def stop(self, reason: str, at: float) -> None:
        """The gate stops: whoever still waits is told."""
        for session in list(self.sessions.values()):
            session.stop(reason, at)

    # For the hub.

    @property
    def held(self) -> int:
        """Calls of this client that wait for a person."""
        return sum(session.session.held_calls for session in self.sessions.values())

    @property
    def open_requests(self) -> int:
        """Requests without an answer."""
        return len(self.routes) + len(self.work)

    @property
    def is_full(self) -> bool:
        """Whether it has too much open for another request."""
        return self.open_requests >= MAX_OPEN

    def next_question(self) -> str:
        """Return a new id for something that a server asks this client."""
        self.asked += 1
        return f"thoughtgate-{self.asked}"

    def sink(self, about: RequestId | None) -> Sink | None:
        """Return who hears what concerns a request, or the client as a whole."""
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
        """The client said who it is."""
        self.capabilities = capabilities if type(capabilities) is dict else {}
        self.info = info if type(info) is dict else self.info
        self.introduced.set()
