"""Commands that a session returns; a driver carries them out in order.

Events are recorded before the frames that they describe are sent: a driver must have written
every ``WriteRecord`` of a batch before it sends the first ``ToServer`` of that batch.
"""

from typing import Final, NamedTuple, TypeAlias

from thoughtgate.core.record_events import Record
from thoughtgate.wire.message import Json, Message, RequestId
from thoughtgate.wire.methods import Named

ANSWER: Final = "answer"
"""The response to the agent's request with this key."""
NOTICE: Final = "notice"
"""A notification, which may belong to the request with this key."""
PROMPT: Final = "prompt"
"""A request to the agent, from the server or from the gate."""


class ToServer(NamedTuple):
    """Send a frame to the server. If it cannot be sent, the driver feeds ``NotSent`` with the key."""

    data: bytes
    key: RequestId | None = None
    """The id of the request in the frame; None if the frame has no answer to wait for."""
    message: Message | None = None
    """The parsed frame; None for an unreadable frame, which the development profile forwards."""
    detached: bool = False
    """Whether the frame is the gate's own and belongs to no caller."""
    cause: str = ""
    """Which failure of the server the frame cancels a request for, if any."""


class ToAgent(NamedTuple):
    """Send a frame to the agent."""

    data: bytes
    key: RequestId | None = None
    """The id of the agent's request that the frame belongs to, if any."""
    carries: str = ANSWER
    """``ANSWER``, ``NOTICE`` or ``PROMPT``."""
    error: str = ""
    """The kind of error if ThoughtGate itself refuses the request with this answer."""
    gate: str = ""
    """The gate that refused the request, for such an answer."""
    scopes: str = ""
    """For ``insufficient_scope``: the scopes that the request needs, separated by spaces."""


class WriteRecord(NamedTuple):
    """Write an event to the record."""

    record: Record


class JudgeCall(NamedTuple):
    """Have a request judged; the verdict comes back as ``CallJudged``."""

    key: RequestId
    method: str
    named: tuple[Named, ...]
    params: dict[str, Json]
    bytes_in: int
    modern: bool
    at: float
    listed: str = ""
    """Whether the gate has fetched the server's tools for this call: empty for not yet, or ``done``
    or ``failed``."""
    frame: bytes = b""
    """The frame of the request, or of the message that carries a server's requests: of a large one
    that is held, the judge keeps only this."""


class ScreenList(NamedTuple):
    """Have a list or a handshake screened; what to change comes back as ``ListScreened``."""

    key: RequestId
    method: str
    entries: tuple[dict[str, Json], ...]
    """The entries as the server offered them, including those without a name; of a handshake, what
    the server says about itself."""
    at: float
    is_last: bool = True
    """Whether no further page of the list follows."""


class InspectAnswer(NamedTuple):
    """Have a message of the server inspected, and changed as the policy says.

    It comes back as ``AnswerInspected``. The message answers a call, or is the server's own request
    or notification.
    """

    key: RequestId
    call_id: str
    """The call; empty if nothing was judged, as for what a server says about its own tasks."""
    body: dict[str, Json]
    at: float
    of_task: bool = False
    """The answer is about a task of the server. The gate does not know which rule allowed its call,
    so the answer is masked if any rule has results masked."""
    can_wait: bool = True
    """Whether the message can be held; if not, it is blocked instead."""


CONTENT_SEEN: Final = "content_seen"
"""The type of event with which a shim has its service inspect a message afterwards; it is never
recorded."""


class InspectLater(NamedTuple):
    """Have a message of the server inspected after the agent has got it; nothing comes back."""

    call_id: str
    """The call; empty if nothing was judged."""
    body: dict[str, Json]
    size: int
    """Bytes of the frame, by which the messages that wait are limited."""
    at: float


class AskPeople(NamedTuple):
    """Hold a call and request approval; the outcome comes back as a second ``CallJudged``."""

    key: RequestId
    call_id: str
    workflow: str
    at: float
    params: dict[str, Json] | None = None
    """The request's params if its caller accepts a task; the driver then feeds ``TaskMade``."""
    modern: bool = False


class AskTask(NamedTuple):
    """Answer a request about ThoughtGate's own tasks; the reply comes back as ``TaskAnswered``."""

    key: RequestId
    method: str
    params: dict[str, Json]
    modern: bool
    at: float
    body: dict[str, Json] | None = None
    """For ``tasks/list``: the server's answer, to be merged with our own tasks."""


class EndTask(NamedTuple):
    """Store the result of a task's call; the body is the response."""

    call_id: str
    body: dict[str, Json]
    at: float


class PersonAnswered(NamedTuple):
    """Store the answer that a person gave to the agent's own prompt about a held call."""

    call_id: str
    approve: bool
    reason: str
    at: float
    by: str = ""
    """The principal that answered over HTTP; empty for the user that this process runs as."""
    definition: str = ""
    """The definition of the tool that the prompt was about; empty if it was not known, or if the call
    itself has waited since then."""


class Withdraw(NamedTuple):
    """Withdraw the approval request of a held call that its caller no longer waits for."""

    key: RequestId
    call_id: str
    reason: str


Command: TypeAlias = (
    ToServer
    | ToAgent
    | WriteRecord
    | JudgeCall
    | ScreenList
    | InspectAnswer
    | InspectLater
    | AskPeople
    | AskTask
    | EndTask
    | PersonAnswered
    | Withdraw
)
