"""One client of the hub: who it is, what it can do, and what is open between it and the hub.

How frames reach it is its transport's business; what it may call is judged elsewhere.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thoughtgate.wire.message import RequestId

if TYPE_CHECKING:
    from thoughtgate.hub.channel import Channel

Send: TypeAlias = Callable[[bytes, RequestId | None, bool], None]
"""Takes a frame, the id of the client's request that it belongs to, and whether it answers it."""

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
    transport: str
    send: Send
    sole: bool = False
    """Whether it is the only client there can be: the one on stdio."""
    modern: bool = False
    capabilities: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    log_level: str = ""
    introduced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its capabilities are known."""
    channels: "dict[str, Channel]" = field(default_factory=dict)
    routes: "dict[RequestId, Channel]" = field(default_factory=dict)
    """Gated requests under way, with the channel that carries them."""
    work: dict[RequestId, asyncio.Task[None]] = field(default_factory=dict)
    """Requests that the hub itself works on."""
    questions: "dict[RequestId, Channel]" = field(default_factory=dict)
    """What servers asked it."""
    listens: dict[RequestId, Listen] = field(default_factory=dict)
    followed: dict[str, str] = field(default_factory=dict)
    """Resources it subscribed to, with their server."""
    claims: dict[str, Any] | None = None
    """What authentication says of the principal, as of its last request."""
    traces: dict[RequestId, str] = field(default_factory=dict)
    """The W3C trace contexts of its open requests, where its transport carries them, as HTTP does."""
    asked: int = 0
    is_gone: bool = False

    @property
    def held(self) -> int:
        """Calls of this client that wait for a person."""
        return sum(channel.session.held_calls for channel in self.channels.values())

    @property
    def open_requests(self) -> int:
        """Requests without an answer."""
        return len(self.routes) + len(self.work)

    @property
    def is_full(self) -> bool:
        """Whether it has too much open for another request."""
        return self.open_requests >= MAX_OPEN

    def is_taken(self, ident: RequestId) -> bool:
        """Tell whether a request with this id is open."""
        return ident in self.routes or ident in self.work or ident in self.listens

    def next_question(self) -> str:
        """Return a new id for something that a server asks this client."""
        self.asked += 1
        return f"thoughtgate-{self.asked}"

    def reply(self, data: bytes, ident: RequestId | None) -> None:
        """Answer a request of the client."""
        self.send(data, ident, True)

    def tell(self, data: bytes, about: RequestId | None) -> None:
        """Send a notification, or a request of a server."""
        self.send(data, about, False)

    def introduce(self, capabilities: Any, info: Any) -> None:
        """The client said who it is."""
        self.capabilities = capabilities if type(capabilities) is dict else {}
        self.info = info if type(info) is dict else self.info
        self.introduced.set()
