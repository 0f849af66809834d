"""Requests that a server makes to the agent: sampling, elicitation and roots.

They are calls in the other direction. Rules can forward, deny or hold them; what is denied is
answered to the server and never reaches the agent.

Since MCP 2026-07-28 a server puts such requests into a result. The result then waits until they
are judged, and the agent gets an error in its place if they are denied. So do errors that carry
elicitations (2025-11-25). Notifications about tasks wait too, and are dropped.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.core.answers import outcome_of
from thoughtgate.core.commands import (
    NOTICE,
    PROMPT,
    AskPeople,
    Command,
    JudgeCall,
    ToAgent,
    Withdraw,
)
from thoughtgate.core.events import CallJudged
from thoughtgate.core.record_events import CANCELLED, ERROR, OK, SERVER_TO_AGENT
from thoughtgate.core.session_replies import (
    CALLER_GONE,
    PendingRequest,
    SessionReplies,
    reply_to_server,
)
from thoughtgate.policy.call import APPROVE, FORWARD, Verdict
from thoughtgate.wire.message import Fault, Message, RequestId
from thoughtgate.wire.methods import INPUT_REQUIRED, Named, named_by_server
from thoughtgate.wire.replies import MESSAGES, render_error

FIRST_KEY: Final = 2**60
"""Keys of server requests begin here: the ids of agents' requests have at most 53 bits."""

MAX_REQUESTS: Final = 256
"""Unanswered requests of one server in one session; further ones are refused."""

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

    def ask(self, message: Message, at: float) -> list[Command]:
        """Have a request judged, or pass it on if no gate judges its method."""
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
        if not named:
            self[ident] = self[ident]._replace(message=None)
            seen = self._replies.seen(message, at, SERVER_TO_AGENT)
            return [seen, ToAgent(message.raw, None, PROMPT)]
        key = self.new_key()
        self._ids[key] = ident
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
        del self._ids[key]
        if verdict.action == FORWARD:
            self[ident] = asked._replace(call_id=call_id, held_since=0.0, message=None)
            return [ToAgent(asked.message.raw, None, PROMPT)]
        del self[ident]
        kind = verdict.kind if verdict.kind in MESSAGES else "internal_error"
        reply = render_error(ident, kind, gate=verdict.gate, correlation_id=call_id)
        error = {"class": "policy_block", "kind": kind, "message": MESSAGES[kind]}
        asked = asked._replace(call_id=call_id)
        return [*self._replies.ended(asked, at, ERROR, len(reply), error), reply_to_server(reply)]

    def answered(self, message: Message, at: float) -> list[Command] | None:
        """Return the events that record the agent's answer; None if the server did not ask."""
        ident = message.id
        asked = self.get(ident) if ident is not None else None
        # A held request is not known to the agent, so this is no answer to it.
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
        return [Withdraw(key, asked.call_id, reason), *ended]


class _Waiting(NamedTuple):
    """A message that waits for the verdict on its input requests."""

    message: Message
    """The response, or a notification about a task."""
    inputs: PendingRequest
    """The input requests, as one call of the server."""


class InputRequests(dict[RequestId, _Waiting]):
    """The results of one session whose input requests have no final verdict yet, by key."""

    __slots__ = ("_replies",)

    def __init__(self, replies: SessionReplies) -> None:
        super().__init__()
        self._replies = replies

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

    def notice_judged(self, event: CallJudged) -> list[Command]:
        """Pass a notification on if its requests are allowed; drop it if they are denied."""
        raw = self[event.key].message.raw
        _, commands = self.judged(event, is_awaited=True)
        if event.verdict.action == FORWARD:
            commands.append(ToAgent(raw, None, NOTICE))
        return commands

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
