"""Requests to the agent that a server puts into a result, as it does since MCP 2026-07-28.

The result waits until its input requests are judged. If they are denied, the agent gets an error
in place of the result and never sees them.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.core.commands import AskPeople, Command, JudgeCall, Withdraw
from thoughtgate.core.events import CallJudged
from thoughtgate.core.record_events import ERROR, OK
from thoughtgate.core.session_replies import CALLER_GONE, PendingRequest, SessionReplies
from thoughtgate.policy.call import APPROVE, FORWARD, Verdict
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.methods import INPUT_REQUIRED, Named
from thoughtgate.wire.replies import MESSAGES

MEMBER: Final = "inputRequests"


class _Waiting(NamedTuple):
    """A result that waits for the verdict on its input requests."""

    ident: RequestId
    """The id of the agent's request that the result answers."""
    inputs: PendingRequest
    """The input requests, as one call of the server."""


class InputRequests(dict[RequestId, _Waiting]):
    """The results of one session whose input requests have no final verdict yet, by key."""

    __slots__ = ("_replies",)

    def __init__(self, replies: SessionReplies) -> None:
        super().__init__()
        self._replies = replies

    def judge(
        self, key: RequestId, message: Message, named: list[Named], at: float
    ) -> list[Command]:
        """Have the input requests of a result judged."""
        assert message.id is not None
        asked = PendingRequest(None, INPUT_REQUIRED, named[0].name, at, modern=True, token=None)
        self[key] = _Waiting(message.id, asked)
        result: Any = message.body["result"]
        params = {MEMBER: result[MEMBER]}
        return [JudgeCall(key, INPUT_REQUIRED, tuple(named), params, len(message.raw), True, at)]

    def judged(
        self, event: CallJudged, *, is_awaited: bool
    ) -> tuple[RequestId | None, list[Command]]:
        """Return the agent's request whose result is decided, and the commands before its answer.

        The request is None while a person is asked. ``is_awaited`` says whether the agent still
        waits for the result.
        """
        key, verdict, call_id, at = event
        ident, inputs = self[key]
        if verdict.action == APPROVE and not inputs.held_since and is_awaited:
            self[key] = _Waiting(ident, inputs._replace(call_id=call_id, held_since=at))
            return None, [AskPeople(key, call_id, verdict.workflow, at)]
        del self[key]
        inputs = inputs._replace(call_id=call_id)
        if not is_awaited:
            return ident, self._replies.withdrawn(inputs, at, CALLER_GONE)
        return ident, self._ended(inputs, verdict, at)

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
