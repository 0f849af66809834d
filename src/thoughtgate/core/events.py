"""Events that a driver feeds to a session. Each event is a value and carries its own time.

The drivers (the shim's poll loop, the HTTP proxy, the hub) report what happened with these
events; ``core.session`` answers with commands. The session reads no clock of its own, so that
the same events always produce the same commands.
"""

from typing import NamedTuple, TypeAlias

from thoughtgate.policy.call import Verdict
from thoughtgate.wire.message import Fault, Json, Message, RequestId


class AgentSent(NamedTuple):
    """A complete frame arrived from the agent, without its line terminator."""

    line: bytes
    at: float
    message: Message | Fault | None = None
    """The parsed frame, if the driver has parsed it already."""
    shown: str = ""
    """The name that the caller used, if it differs from the server's own, as behind the hub."""


class ServerSent(NamedTuple):
    """A complete frame arrived from the server, without its line terminator."""

    line: bytes
    at: float
    message: Message | Fault | None = None
    """The parsed frame, if the driver has parsed it already."""


class CallJudged(NamedTuple):
    """A request has a verdict: the first one, or a later one after a person decided."""

    key: RequestId
    verdict: Verdict
    call_id: str
    at: float


class ListScreened(NamedTuple):
    """A list was screened; ``hidden`` names the entries to remove."""

    key: RequestId
    hidden: frozenset[str]
    at: float


class AnswerMasked(NamedTuple):
    """An answer was masked; the body is None if that failed."""

    key: RequestId
    body: dict[str, Json] | None
    at: float


class PersonAsked(NamedTuple):
    """A held call may be decided in the agent's own prompt: show it, if the client supports it."""

    key: RequestId
    ident: str
    """The prompt's id, random so that no server can send the agent a request with the same id."""
    text: str
    at: float


class TaskMade(NamedTuple):
    """A held call became a task, or failed to become one; the body is the reply to its request."""

    key: RequestId
    body: dict[str, Json]
    at: float


class TaskAnswered(NamedTuple):
    """A request about tasks has an answer; if the body is None, the server is asked instead."""

    key: RequestId
    body: dict[str, Json] | None
    at: float


class NotSent(NamedTuple):
    """A request could not be sent: the record could not be written, or the connection is closed."""

    key: RequestId
    kind: str
    at: float
    reason: str = ""
    """Why, for the caller to read; without URLs, paths or arguments, which may hold secrets."""
    text: str = ""
    """The error message, if it is not the default one of its kind."""


class KeptAlive(NamedTuple):
    """A request is still in progress: its server waits for an answer from the agent.

    The time a person takes to answer must not count towards the request's timeout.
    """

    key: RequestId
    at: float


class AgentGone(NamedTuple):
    """The agent closed its side and will send nothing more."""

    at: float


class GateStopping(NamedTuple):
    """The gate is stopping: held calls are not made, and their callers receive an error."""

    at: float


class CallerGone(NamedTuple):
    """The caller of one request has disconnected; the session may have other callers."""

    key: RequestId
    at: float
    is_given_up: bool = False
    """Whether the gate no longer waits for the response either, in any revision."""


class ServerGone(NamedTuple):
    """The server closed its side, exited, or could not be started."""

    reason: str
    """For the caller to read; without paths or arguments."""
    at: float
    kind: str = "upstream_connection_failed"


class Ticked(NamedTuple):
    """Time passed: the session checks its timeouts."""

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
