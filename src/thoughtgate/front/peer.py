"""The interface of an agent's session, whatever is behind the endpoint.

For a single server, a peer is the driver of the session; for a catalogue of servers, it is
a client with one session per server that it calls.
"""

from collections.abc import Callable, MutableMapping
from typing import Any, Protocol

from thoughtgate.core.events import AgentSent, Event
from thoughtgate.gate.outbox import Outbox, Sink
from thoughtgate.gate.session_driver import Caller
from thoughtgate.wire.message import RequestId


class Peer(Protocol):
    """An HTTP session, one request without a session, or the agent on stdio."""

    principal: str
    address: str
    claims: dict[str, Any] | None
    is_modern: bool
    trace: str
    wants_session: bool

    @property
    def callers(self) -> MutableMapping[RequestId, Caller]:
        """The caller that waits for the response to each open request."""

    @property
    def header_checks(self) -> MutableMapping[RequestId, Callable[[], bool]]:
        """Calls whose headers are compared once the server's tools are known.

        A check that fails answers the call itself.
        """

    @property
    def outbox(self) -> Outbox:
        """The queue of messages that are sent once the record is written."""

    @property
    def label(self) -> str:
        """The session's id on the record."""

    @property
    def is_busy(self) -> bool:
        """Whether any request is open."""

    @property
    def is_spent(self) -> bool:
        """Whether its only request is over and left no state behind, so that it can be reused."""

    def feed(self, event: Event, sink: Sink | None) -> int:
        """Process an event; return how many frames the agent gets."""

    def is_open(self, key: RequestId) -> bool:
        """Return whether a request still has no response."""

    def is_undecided(self, key: RequestId) -> bool:
        """Return whether a call still waits for its first verdict."""

    def is_answered_by(self, event: AgentSent) -> bool:
        """Return whether an event is the response to one of the gate's own prompts."""

    def is_asked(self, ident: RequestId | None) -> bool:
        """Return whether the agent owes a server or the gate the response with this id."""

    def stream_ended(self, sink: Sink) -> None:
        """Refuse the server's held requests that can no longer reach the agent through a sink."""

    def tick(self, at: float) -> None:
        """Handle timeouts."""

    def stop(self, reason: str, at: float) -> None:
        """Answer every request that is still open, because the gate stops."""
