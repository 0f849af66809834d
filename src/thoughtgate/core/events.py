"""What can happen to a session. Each event is a value and carries its own time.

The drivers (the shim's loop, the HTTP gateway, the hub) report what they saw with
these; ``core.session`` answers with commands.
"""

from typing import NamedTuple, TypeAlias

from thoughtgate.policy.call import Verdict
from thoughtgate.wire.message import Fault, Json, Message, RequestId


class AgentSent(NamedTuple):
    """A whole frame arrived from the agent, without its line end."""

    line: bytes
    at: float
    message: Message | Fault | None = None
    """What the line says, when the driver has read it already."""
    shown: str = ""
    """The name by which the caller knows what it asks for, where that is not the server's own."""


class ServerSent(NamedTuple):
    """A whole frame arrived from the server, without its line end."""

    line: bytes
    at: float
    message: Message | Fault | None = None
    """What the line says, when the driver has read it already."""


class CallJudged(NamedTuple):
    """The judge has spoken on a request: at once, or after a person decided."""

    key: RequestId
    verdict: Verdict
    call_id: str
    at: float


class ListScreened(NamedTuple):
    """The judge has said which entries of a list stay hidden."""

    key: RequestId
    hidden: frozenset[str]
    at: float


class AnswerMasked(NamedTuple):
    """An answer without its secrets; None when it could not be masked."""

    key: RequestId
    body: dict[str, Json] | None
    at: float


class PersonAsked(NamedTuple):
    """The workflow of a held call lets the agent's own prompt ask: do so, if the client can."""

    key: RequestId
    ident: str
    """The prompt's own id, unguessable."""
    text: str
    at: float


class TaskMade(NamedTuple):
    """A held call became a task, or could not: the body answers its request."""

    key: RequestId
    body: dict[str, Json]
    at: float


class TaskAnswered(NamedTuple):
    """The answer to a request about tasks; None sends the request to the server."""

    key: RequestId
    body: dict[str, Json] | None
    at: float


class NotSent(NamedTuple):
    """A request could not be sent on: its record could not be written, or the way is closed."""

    key: RequestId
    kind: str
    at: float
    reason: str = ""
    """Why, in words for the caller; without URLs, paths and arguments."""
    text: str = ""
    """The error's message, where it is not the usual one of its kind."""


class KeptAlive(NamedTuple):
    """The server waits for the agent to answer something before it can go on with a request."""

    key: RequestId
    at: float


class AgentGone(NamedTuple):
    """The agent closed its side; nobody will read an answer."""

    at: float


class GateStopping(NamedTuple):
    """The gate stops: calls that wait for a person are not made, and their callers are told."""

    at: float


class CallerGone(NamedTuple):
    """The caller of one request is gone; others of the same session may still be there."""

    key: RequestId
    at: float


class ServerGone(NamedTuple):
    """The server's side is closed, or the server could not be started."""

    reason: str
    """In words for the caller, without paths or arguments."""
    at: float
    kind: str = "upstream_connection_failed"


class Ticked(NamedTuple):
    """Time passed."""

    at: float


Event: TypeAlias = (
    AgentSent
    | ServerSent
    | CallJudged
    | ListScreened
    | AnswerMasked
    | PersonAsked
    | TaskMade
    | TaskAnswered
    | NotSent
    | KeptAlive
    | AgentGone
    | GateStopping
    | CallerGone
    | ServerGone
    | Ticked
)
