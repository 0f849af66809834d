"""Requests that a server makes to the agent: sampling, elicitation and roots.

They are calls in the other direction. Rules can forward, deny or hold them; what is denied is
answered to the server and never reaches the agent.

Since MCP 2026-07-28 a server puts such requests into a result. The result then waits until they
are judged, and the agent gets an error in its place if they are denied. Errors that carry
elicitations (2025-11-25) are treated in the same way. Notifications about tasks wait too, and are
dropped if their requests are denied.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.core.answers import outcome_of
from thoughtgate.core.commands import (
    NOTICE,
    PROMPT,
    AskPeople,
    Command,
    InspectAnswer,
    InspectLater,
    JudgeCall,
    ToAgent,
    Withdraw,
)
from thoughtgate.core.contents.inspected_answers import inspect_later, rendered
from thoughtgate.core.events import AnswerInspected, CallJudged
from thoughtgate.core.record_events import CANCELLED, ERROR, OK, SERVER_TO_AGENT
from thoughtgate.core.session_replies import (
    CALLER_GONE,
    CONTENTS,
    PendingRequest,
    SessionReplies,
    reply_to_server,
)
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, INSPECT_AFTER, INSPECT_BEFORE, Verdict
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Fault, Message, RequestId
from thoughtgate.wire.methods import (
    INPUT_REQUIRED,
    PROGRESS,
    Named,
    named_by_server,
    named_in_requests,
)
from thoughtgate.wire.replies import MESSAGES, render_error

FIRST_KEY: Final = 2**60
"""Keys of server requests begin here: the ids of agents' requests have at most 53 bits."""

MAX_REQUESTS: Final = 256
"""Unanswered requests of one server in one session; further ones are refused."""

MAX_TOKEN: Final = 128
"""Characters of a progress token that needs no inspection; agents use numbers and UUIDs."""

_TASK_NOTICES: Final = "notifications/tasks"
"""MCP 2026-07-28, tasks: a notification has the whole task, with the result of its call."""

_NOTICE: Final = frozenset({"jsonrpc", "method", "params"})
"""The members of a notification."""

MEMBER: Final = "inputRequests"
"""The member of a result with the server's requests."""

ABANDONED: Final = "the server no longer waits"


def is_server_key(key: RequestId) -> bool:
    """Tell whether a key belongs to a request of the server."""
    return type(key) is int and key >= FIRST_KEY


class ServerRequests(dict[RequestId, PendingRequest]):
    """The unanswered requests of one server, by its own ids."""

    __slots__ = ("_ids", "_next", "_replies")

    def __init__(self, replies: SessionReplies) -> None:
        super().__init__()
        self._replies = replies
        self._next = FIRST_KEY
        self._ids: dict[RequestId, RequestId] = {}
        """The ids of requests without a verdict and of held ones, by their keys."""

    def clear(self) -> None:
        """Forget all requests."""
        super().clear()
        self._ids.clear()

    def new_key(self) -> int:
        """Return a key that no request of the agent can have."""
        self._next += 1
        return self._next

    def ask(self, message: Message, at: float, *, inspect: int = 0) -> list[Command]:
        """Have a request judged; if no gate judges its method, inspect it or pass it on."""
        ident, params = message.id, message.body.get("params")
        assert ident is not None
        fault = self._fault(ident)
        named = named_by_server(message.method, params)
        if isinstance(named, str):
            fault = fault or Fault("invalid_params", named, "wrong_params", ident)
            named = []
        if fault is not None:
            return self._replies.refused(fault, message.raw, at, SERVER_TO_AGENT, message)
        name = named[0].name if named else ""
        self[ident] = PendingRequest(message, message.method, name, at, modern=False, token=None)
        seen = [] if named else [self._replies.seen(message, at, SERVER_TO_AGENT)]
        when = inspect if params else 0  # without params there is nothing to inspect
        if not named and not when & INSPECT_BEFORE:
            self[ident] = self[ident]._replace(message=None)
            later = [inspect_later(message, "", at)] if when else []
            return [*seen, *later, ToAgent(message.raw, None, PROMPT)]
        key = self.new_key()
        self._ids[key] = ident
        if not named:
            return [*seen, InspectAnswer(key, "", message.body, at, can_wait=False)]
        said, raw = params or {}, message.raw
        return [JudgeCall(key, message.method, tuple(named), said, len(raw), False, at, "", raw)]

    def judged(self, event: CallJudged) -> list[Command]:
        """Forward, deny or hold a request, as its verdict says."""
        key, verdict, call_id, at = event
        ident = self._ids.get(key)
        asked = self.get(ident) if ident is not None else None
        if ident is None or asked is None or asked.message is None:
            return []
        if verdict.action == APPROVE and not asked.held_since:
            # Only its bytes are needed from now on.
            kept = asked.message._replace(body={})
            self[ident] = asked._replace(message=kept, call_id=call_id, held_since=at)
            return [AskPeople(key, call_id, verdict.workflow, at)]
        if asked.release:
            # A person has decided whether the agent gets the request in spite of the findings.
            call_id = asked.call_id
        elif verdict.action == FORWARD and verdict.inspect:
            whole = _whole(asked.message)
            body, raw = whole.body, whole.raw
            self[ident] = asked._replace(call_id=call_id, held_since=0.0)
            if verdict.inspect == INSPECT_BEFORE:
                return [InspectAnswer(key, call_id, body, at)]
            later = InspectLater(call_id, body, len(raw), at)
            return [later, *self._pass_on(key, ident, self[ident], raw)]
        if verdict.action == FORWARD:
            return self._pass_on(key, ident, asked._replace(call_id=call_id), asked.message.raw)
        return self._refuse(key, ident, asked._replace(call_id=call_id), verdict, at)

    def inspected(self, event: AnswerInspected) -> list[Command]:
        """Pass on, hold or refuse a request that was inspected."""
        key, body, at, findings, held, workflow, _ = event
        ident = self._ids.get(key)
        asked = self.get(ident) if ident is not None else None
        if ident is None or asked is None or asked.message is None:
            return [Withdraw(key, held, ABANDONED)] if held else []
        if body is None:
            kind = "content_blocked" if findings else "internal_error"
            verdict = Verdict(DENY, CONTENTS, kind, findings=findings)
            return self._refuse(key, ident, asked, verdict, at)
        raw = rendered(_whole(asked.message), body)
        if not held:
            return self._pass_on(key, ident, asked, raw)
        kept = asked.message._replace(body={}, raw=raw)
        self[ident] = asked._replace(message=kept, held_since=at, release=held)
        return [AskPeople(key, held, workflow, at)]

    def _pass_on(
        self, key: RequestId, ident: RequestId, asked: PendingRequest, raw: bytes
    ) -> list[Command]:
        del self._ids[key]
        self[ident] = asked._replace(held_since=0.0, message=None, release="")
        return [ToAgent(raw, None, PROMPT)]

    def _refuse(
        self,
        key: RequestId,
        ident: RequestId,
        asked: PendingRequest,
        verdict: Verdict,
        at: float,
    ) -> list[Command]:
        del self._ids[key]
        del self[ident]
        kind = verdict.kind if verdict.kind in MESSAGES else "internal_error"
        reply = render_error(ident, kind, gate=verdict.gate, correlation_id=asked.call_id)
        error = {"class": "policy_block", "kind": kind, "message": MESSAGES[kind]}
        return [*self._replies.ended(asked, at, ERROR, len(reply), error), reply_to_server(reply)]

    def answered(self, message: Message, at: float) -> list[Command] | None:
        """Return the events that record the agent's answer; None if the server did not ask."""
        ident = message.id
        asked = self.get(ident) if ident is not None else None
        # The agent does not know a held request, so this cannot be its answer.
        if ident is None or asked is None or asked.message is not None:
            return None
        del self[ident]
        if not asked.call_id:
            return [self._replies.seen(message, at, "agent_to_server", asked.method)]
        status, error = outcome_of(message.body)
        return self._replies.ended(asked, at, status, len(message.raw), error)

    def is_asked(self, ident: RequestId | None) -> bool:
        """Tell whether the agent has received a request with this id and not answered it."""
        asked = self.get(ident) if ident is not None else None
        return asked is not None and asked.message is None

    def cancelled(self, params: Any, at: float) -> tuple[list[Command], bool]:
        """End a request that the server cancels; also return whether the agent may know of it."""
        ident = params.get("requestId") if type(params) is dict else None
        asked = self.get(ident) if type(ident) is str or type(ident) is int else None
        if asked is None or ident is None:
            return [], True
        if asked.message is not None:
            return self._withdraw(ident, asked, ABANDONED, at), False
        # The agent's answer may be on its way, and is still passed on.
        self[ident] = asked._replace(call_id="")
        return self._replies.ended(asked, at, CANCELLED, 0), True

    def withdraw_waiting(self, reason: str, at: float) -> list[Command]:
        """Withdraw every request that the agent has not received."""
        waiting = [(ident, asked) for ident, asked in self.items() if asked.message is not None]
        return [
            command
            for ident, asked in waiting
            for command in self._withdraw(ident, asked, reason, at)
        ]

    def end_all(self, reason: str, at: float) -> list[Command]:
        """Record the end of every request, because the server is gone."""
        commands = self.withdraw_waiting(reason, at)
        for asked in self.values():
            commands += self._replies.ended(asked, at, CANCELLED, 0)
        return commands

    def _fault(self, ident: RequestId) -> Fault | None:
        if ident in self:
            return Fault("invalid_request", "the id is already in use", "id_in_use", ident)
        if len(self) >= MAX_REQUESTS:
            return Fault("service_unavailable", "too many requests are open", "too_many", ident)
        return None

    def _withdraw(
        self, ident: RequestId, asked: PendingRequest, reason: str, at: float
    ) -> list[Command]:
        del self[ident]
        key = next(key for key, known in self._ids.items() if known == ident)
        del self._ids[key]
        if not asked.call_id:
            return []
        ended = self._replies.withdrawn(asked, at, reason)
        return [Withdraw(key, asked.release or asked.call_id, reason), *ended]


def _whole(message: Message) -> Message:
    """Return a message with its body, of which only the bytes were kept while it was held."""
    if message.body:
        return message
    read = read_frame(message.raw)
    assert isinstance(read, Message)  # its bytes were read when it arrived
    return read


def _is_about_task(method: str) -> bool:
    """Tell whether a notification may carry the result of a task, as a request for it would."""
    return method.startswith(_TASK_NOTICES)


def _is_number_or_token(name: str, value: Any) -> bool:
    """Tell whether a member of a progress notification contains no text: most are numbers.

    A string token is accepted if it is short, because it is the agent's own and must come back
    unchanged.
    """
    if name == "progressToken" and type(value) is str:
        return len(value) <= MAX_TOKEN and value.isascii()
    return type(value) is int or type(value) is float


class _Waiting(NamedTuple):
    """A message that waits for the verdict on its input requests."""

    message: Message
    """The response, or a notification about a task."""
    inputs: PendingRequest
    """The input requests, as one call of the server."""


class InputRequests(dict[RequestId, _Waiting]):
    """The results of one session whose input requests have no final verdict yet, by key."""

    __slots__ = ("_replies", "inspects_notices")

    def __init__(self, replies: SessionReplies) -> None:
        super().__init__()
        self._replies = replies
        self.inspects_notices = 0
        """Whether and when the server's answers are inspected, and therefore its notifications."""

    def judge(
        self,
        key: RequestId,
        message: Message,
        requests: dict[str, Any],
        named: list[Named],
        at: float,
    ) -> list[Command]:
        """Have the input requests of a message judged."""
        asked = PendingRequest(None, INPUT_REQUIRED, named[0].name, at, modern=True, token=None)
        self[key] = _Waiting(message, asked)
        params: dict[str, Any] = {MEMBER: requests}
        raw = message.raw
        return [JudgeCall(key, INPUT_REQUIRED, tuple(named), params, len(raw), True, at, "", raw)]

    def judge_notice(
        self, key: RequestId, message: Message, requests: dict[str, Any], at: float
    ) -> list[Command]:
        """Have requests to the agent judged that a notification about a task carries."""
        named = named_in_requests(requests)
        if isinstance(named, str) or len(self) >= MAX_REQUESTS:
            text = named if isinstance(named, str) else "too many requests are open"
            fault = Fault("invalid_request", text, "wrong_params", None, answerable=False)
            return self._replies.refused(fault, message.raw, at, SERVER_TO_AGENT, message)
        seen = self._replies.seen(message, at, SERVER_TO_AGENT)
        if not named:
            if self.must_inspect(message):
                return [seen, *self.inspect_notice(key, message, at)]
            return [seen, ToAgent(message.raw, None, NOTICE)]
        return [seen, *self.judge(key, message, requests, named, at)]

    def judged(
        self, event: CallJudged, *, is_awaited: bool
    ) -> tuple[RequestId | None, list[Command]]:
        """Return the agent's request whose result is decided, and the commands before its answer.

        The request is None while a person is asked. ``is_awaited`` says whether the agent still
        waits for the result.
        """
        key, verdict, call_id, at = event
        message, inputs = self[key]
        if verdict.action == APPROVE and not inputs.held_since and is_awaited:
            held = inputs._replace(call_id=call_id, held_since=at)
            # Only its bytes are needed from now on; the session has the message itself.
            self[key] = _Waiting(message._replace(body={}), held)
            return None, [AskPeople(key, call_id, verdict.workflow, at)]
        del self[key]
        inputs = inputs._replace(call_id=call_id)
        if not is_awaited:
            return message.id, self._replies.withdrawn(inputs, at, CALLER_GONE)
        return message.id, self._ended(inputs, verdict, at)

    def must_inspect(self, message: Message) -> bool:
        """Tell whether a notification must be inspected, because it can contain text or a result."""
        if _is_about_task(message.method):
            return True
        if not self.inspects_notices:
            return False
        params = message.body.get("params")
        if not message.body.keys() <= _NOTICE:
            return True
        if message.method != PROGRESS or type(params) is not dict:
            return params is not None
        return not all(_is_number_or_token(name, one) for name, one in params.items())

    def inspect_notice(self, key: RequestId, message: Message, at: float) -> list[Command]:
        """Have a notification inspected; it is dropped where a result would be held."""
        of_task = _is_about_task(message.method)
        if self.inspects_notices == INSPECT_AFTER and not of_task:
            return [inspect_later(message, "", at), ToAgent(message.raw, None, NOTICE)]
        if len(self) >= MAX_REQUESTS:
            fault = Fault("service_unavailable", "too many requests are open", "too_many", None)
            fault = fault._replace(answerable=False)
            return self._replies.refused(fault, message.raw, at, SERVER_TO_AGENT, message)
        asked = PendingRequest(None, message.method, "", at, modern=True, token=None)
        self[key] = _Waiting(message, asked)
        return [InspectAnswer(key, "", message.body, at, of_task, can_wait=False)]

    def notice_judged(self, event: CallJudged) -> list[Command]:
        """Pass a notification on if its requests are allowed; drop it if they are denied."""
        waiting = self[event.key]
        message = waiting.message
        _, commands = self.judged(event, is_awaited=True)
        body = _whole(message).body if event.verdict.inspect else {}
        if event.verdict.action == FORWARD and event.verdict.inspect == INSPECT_BEFORE:
            # It cannot be held: nobody waits for a notification, and later ones would overtake it.
            self[event.key] = waiting
            commands.append(InspectAnswer(event.key, event.call_id, body, event.at, can_wait=False))
        elif event.verdict.action == FORWARD:
            if body:
                commands.append(InspectLater(event.call_id, body, len(message.raw), event.at))
            commands.append(ToAgent(message.raw, None, NOTICE))
        return commands

    def notice_inspected(self, event: AnswerInspected) -> list[Command]:
        """Pass on a notification that was inspected, or drop it."""
        waiting = self.pop(event.key)
        if event.body is None:
            return []
        return [ToAgent(rendered(_whole(waiting.message), event.body), None, NOTICE)]

    def withdraw_all(self, reason: str, at: float) -> list[Command]:
        """Withdraw what is held, because the server or the gate stops."""
        commands: list[Command] = []
        for key, (_, inputs) in self.items():
            if inputs.held_since:
                commands.append(Withdraw(key, inputs.call_id, reason))
                commands += self._replies.withdrawn(inputs, at, reason)
        self.clear()
        return commands

    def _ended(self, inputs: PendingRequest, verdict: Verdict, at: float) -> list[Command]:
        if verdict.action == FORWARD:
            return self._replies.ended(inputs, at, OK, 0)
        kind = verdict.kind if verdict.kind in MESSAGES else "internal_error"
        error = {"class": "policy_block", "kind": kind, "message": MESSAGES[kind]}
        return self._replies.ended(inputs, at, ERROR, 0, error)
