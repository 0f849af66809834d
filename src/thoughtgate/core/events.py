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
    """A list or a handshake was screened; ``hidden`` names the entries to remove, None if it failed."""

    key: RequestId
    hidden: frozenset[str] | None
    at: float
    offers_tasks: bool = False
    """Whether calls may be held, so that the agent is told that they can become tasks."""


class AnswerInspected(NamedTuple):
    """A message of the server was inspected; without findings, the body is None if that failed."""

    key: RequestId
    body: dict[str, Json] | None
    """The message as the agent may get it; None if it must not."""
    at: float
    findings: tuple[tuple[str, str, str], ...] = ()
    """Check, tier and place of the findings, if the message is blocked or held."""
    held: str = ""
    """The id under which a person is asked to release the message; empty if nobody has to."""
    workflow: str = ""
    outcome: str = ""
    """What the production profile would have done, such as ``WOULD_REDACT``; the message passes."""


class PersonAsked(NamedTuple):
    """A call is held: tell the agent's program, and ask there if the workflow allows it."""

    key: RequestId
    ident: str
    """The prompt's id, random so that no server can send the agent a request with the same id."""
    text: str
    """The question of the agent's own prompt; empty if the call is decided elsewhere only."""
    at: float
    waits: str = ""
    """What waits and where to answer, for progress notifications and for a prompt without a question."""
    page: str = ""
    """The console's page about the request."""
    definition: str = ""
    """Digest of the definition of the tool; empty if it is not known."""


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


class TaskChanged(NamedTuple):
    """A task of this session has another status; ``body`` is the task as its caller sees it."""

    body: dict[str, Json]
    at: float


class NotSent(NamedTuple):
    """A request could not be sent: the record could not be written, or the connection is closed."""

    key: RequestId
    kind: str
    at: float
    facts: dict[str, Json] | None = None
    """Why: cause, HTTP status, time to retry and reason, as far as they are known. The caller reads
    them, so they contain no URLs, paths or arguments, which may hold secrets."""
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
    facts: dict[str, Json] | None = None
    """As in ``NotSent``."""


class ServerStarted(NamedTuple):
    """The server runs now; an earlier attempt to start it had failed."""

    at: float


class Ticked(NamedTuple):
    """Time passed: the session checks its timeouts."""

    at: float


Event: TypeAlias = (
    AgentSent
    | ServerSent
    | CallJudged
    | ListScreened
    | AnswerInspected
    | PersonAsked
    | TaskMade
    | TaskAnswered
    | TaskChanged
    | NotSent
    | KeptAlive
    | AgentGone
    | GateStopping
    | CallerGone
    | ServerGone
    | ServerStarted
    | Ticked
)
