"""What the front knows of an agent: one connection, whatever is behind the endpoint.

Before one server a peer is the session's driver itself; before a catalogue of servers it
is a client with a session for each server that it calls.
"""

from collections.abc import MutableMapping
from typing import Any, Protocol

from thoughtgate.core.events import AgentSent, Event
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import Caller, Sink
from thoughtgate.wire.message import RequestId


class Peer(Protocol):
    """An HTTP session, one request without a session, or the agent on stdio."""

    principal: str
    claims: dict[str, Any] | None
    is_modern: bool
    trace: str
    wants_session: bool

    @property
    def callers(self) -> MutableMapping[RequestId, Caller]:
        """Who waits for the answer to each open request."""

    @property
    def outbox(self) -> Outbox:
        """What is sent once the record is written."""

    @property
    def label(self) -> str:
        """The session's id on the record."""

    @property
    def is_busy(self) -> bool:
        """Whether anything is open."""

    @property
    def is_spent(self) -> bool:
        """Whether its one request is over and has left no trace."""

    def feed(self, event: Event, sink: Sink | None) -> int:
        """Report an event; return how many frames the agent gets."""

    def is_open(self, key: RequestId) -> bool:
        """Tell whether a request still has no answer."""

    def is_undecided(self, key: RequestId) -> bool:
        """Tell whether a call still waits for its first verdict."""

    def is_answered_by(self, event: AgentSent) -> bool:
        """Tell whether a response is one to a prompt of the gate."""

    def tick(self, at: float) -> None:
        """Time passed."""

    def stop(self, reason: str, at: float) -> None:
        """The gate stops: whoever still waits is told."""
