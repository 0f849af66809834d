"""What a session wants done. A driver carries the commands out in their order.

Records come before the bytes they speak of: a driver must have written every
``WriteRecord`` of a batch before it sends the batch's first ``ToServer``.
"""

from typing import Final, NamedTuple, TypeAlias

from thoughtgate.core.record_events import Record
from thoughtgate.wire.message import Json, Message, RequestId
from thoughtgate.wire.methods import Named

ANSWER: Final = "answer"
"""The response to the request of the agent that the key names."""
NOTICE: Final = "notice"
"""A notification, about the request that the key names or about none."""
PROMPT: Final = "prompt"
"""A request to the agent, from the server or from the gate."""


class ToServer(NamedTuple):
    """Send one frame to the server. If it cannot be sent, report ``NotSent`` with the key."""

    data: bytes
    key: RequestId | None = None
    """The id of the request it carries; None when nobody waits for an answer."""
    message: Message | None = None
    """What the frame says; None for one without a reading, which the development profile passes."""


class ToAgent(NamedTuple):
    """Send one frame to the agent."""

    data: bytes
    key: RequestId | None = None
    """The id of the agent's request that it belongs to; None when it belongs to none."""
    carries: str = ANSWER
    """``ANSWER``, ``NOTICE`` or ``PROMPT``."""
    error: str = ""
    """The kind of error, when it is an answer of the gate's own that refuses the request."""
    gate: str = ""
    """The gate that refused, for such an answer."""


class WriteRecord(NamedTuple):
    """Put an event on the record."""

    record: Record


class JudgeCall(NamedTuple):
    """Ask the judge about a request; the answer comes back as ``CallJudged``."""

    key: RequestId
    method: str
    named: tuple[Named, ...]
    params: dict[str, Json]
    bytes_in: int
    modern: bool
    at: float


class ScreenList(NamedTuple):
    """Ask the judge which entries of a list are hidden; answered by ``ListScreened``."""

    key: RequestId
    method: str
    entries: tuple[dict[str, Json], ...]
    """The entries as the server offered them, those without a name included."""
    at: float


class MaskAnswer(NamedTuple):
    """A rule wants secrets out of this answer; comes back as ``AnswerMasked``."""

    key: RequestId
    body: dict[str, Json]
    at: float


class AskPeople(NamedTuple):
    """Hold this call and ask; a second ``CallJudged`` brings the outcome."""

    key: RequestId
    call_id: str
    workflow: str
    at: float
    params: dict[str, Json] | None = None
    """The request's params when its caller takes a task: answer with ``TaskMade`` then."""
    modern: bool = False


class AskTask(NamedTuple):
    """A request about tasks of the gate's own; answered by ``TaskAnswered``."""

    key: RequestId
    method: str
    params: dict[str, Json]
    modern: bool
    at: float
    body: dict[str, Json] | None = None
    """For ``tasks/list``: what the server answered, to be merged with."""


class EndTask(NamedTuple):
    """A call that is a task has ended; the body is its response."""

    call_id: str
    body: dict[str, Json]
    at: float


class PersonAnswered(NamedTuple):
    """The person in front of the agent has answered the prompt about a held call."""

    call_id: str
    approve: bool
    reason: str
    at: float
    by: str = ""
    """Who is in front of an agent elsewhere; empty for the login of this process."""


class Withdraw(NamedTuple):
    """Nobody waits for this held call any more: take the question back everywhere."""

    key: RequestId
    call_id: str
    reason: str


Command: TypeAlias = (
    ToServer
    | ToAgent
    | WriteRecord
    | JudgeCall
    | ScreenList
    | MaskAnswer
    | AskPeople
    | AskTask
    | EndTask
    | PersonAnswered
    | Withdraw
)
