"""Answers that are inspected before the agent gets them, or wait for a person to release them."""

from typing import Any

from thoughtgate.core.answers import outcome_of, says_error
from thoughtgate.core.commands import (
    ANSWER,
    AskPeople,
    Command,
    InspectAnswer,
    InspectLater,
    ToAgent,
    Withdraw,
)
from thoughtgate.core.events import AnswerInspected, CallJudged
from thoughtgate.core.record_events import CANCELLED, ERROR
from thoughtgate.core.session_replies import UNREADABLE, PendingRequest, SessionReplies
from thoughtgate.policy.call import FORWARD, INSPECT_AFTER, INSPECT_BEFORE, Verdict
from thoughtgate.wire.message import REQUEST, RESPONSE, Message, RequestId
from thoughtgate.wire.packed_message import pack, unpack
from thoughtgate.wire.replies import render
from thoughtgate.wire.unchecked import unchecked


def is_answered(asked: PendingRequest) -> bool:
    """Tell whether the server has answered a request that waits: its answer is inspected or held."""
    return asked.message is not None and asked.message.shape != REQUEST


def answer_call(
    replies: SessionReplies, asked: PendingRequest, message: Message, at: float
) -> list[Command]:
    """Record the end of a call, and give the agent the answer."""
    _, ident, _, body, raw = message
    status, error = outcome_of(body)
    is_error = status == ERROR if error is None else says_error(body)
    ended = replies.ended(asked, at, status, len(raw), error, is_error=is_error)
    if asked.inspect == INSPECT_AFTER:
        # Before the end of the call: whoever inspects the answer still knows the call then.
        ended.insert(0, inspect_later(message, asked.call_id, at))
    return [*ended, unchecked(ToAgent, (raw, ident, ANSWER, "", "", ""))]


def rendered(message: Message | None, body: dict[str, Any]) -> bytes:
    """Return a body as a frame: the server's own bytes, if nothing in it was changed."""
    return message.raw if message is not None and body == message.body else render(body)


def inspection_of(verdict: Verdict) -> int:
    """Return when the answer to an allowed call is inspected."""
    # Secrets can only be masked before the agent gets the answer.
    return INSPECT_BEFORE if verdict.redact else verdict.inspect


def inspect_later(message: Message, call_id: str, at: float) -> InspectLater:
    """Have a message inspected that the agent gets at once."""
    return InspectLater(call_id, message.body, len(message.raw), at)


class InspectedAnswers:
    """The answers of one session that are inspected, or wait for a person to release them.

    They are among the waiting requests of the session, with the answer in place of the request.
    """

    def __init__(self, waiting: dict[RequestId, PendingRequest], replies: SessionReplies) -> None:
        self._waiting = waiting
        self._replies = replies
        self.held = 0
        """How many wait for a person."""

    def begin(
        self,
        ident: RequestId,
        asked: PendingRequest,
        message: Message,
        at: float,
        *,
        of_task: bool = False,
    ) -> InspectAnswer:
        """Have an answer inspected."""
        self._waiting[ident] = asked._replace(message=message)
        return InspectAnswer(ident, asked.call_id, message.body, at, of_task)

    def inspected(self, event: AnswerInspected, *, has_room: bool) -> list[Command]:
        """Send an inspected answer, or hold it; if inspection failed, never the original."""
        key, body, at, findings, held, workflow, _ = event
        asked = self._waiting[key]
        if not is_answered(asked):
            return []
        message = Message(RESPONSE, key, "", body or {}, rendered(asked.message, body or {}))
        if body is not None and held and has_room:
            self._waiting[key] = asked._replace(
                message=pack(message), held_since=at, told=0, release=held
            )
            self.held += 1
            return [AskPeople(key, held, workflow, at)]
        del self._waiting[key]
        if held:
            withdrawn = Withdraw(key, held, "too many calls are held")
            return [withdrawn, *self._replies.withheld(key, asked, findings, at)]
        if body is not None:
            return answer_call(self._replies, asked, message, at)
        if findings:
            return self._replies.withheld(key, asked, findings, at)
        return self._replies.failed(key, asked, "internal_error", at, text=UNREADABLE)

    def decided(self, asked: PendingRequest, event: CallJudged) -> list[Command]:
        """Release or refuse a held answer, after a person has decided."""
        key, verdict, _, at = event
        del self._waiting[key]
        self.held -= 1
        if verdict.action != FORWARD or asked.message is None:
            return self._replies.withheld(key, asked, verdict.findings, at)
        return answer_call(self._replies, asked, unpack(asked.message), at)

    def give_up(
        self, key: RequestId, asked: PendingRequest, reason: str, at: float
    ) -> list[Command]:
        """Drop an answer whose caller has left; the call has already run."""
        del self._waiting[key]
        ended = self._replies.ended(asked, at, CANCELLED, 0)
        return [*self._withdraw(key, asked, reason), *ended]

    def refuse(
        self, key: RequestId, asked: PendingRequest, reason: str, at: float
    ) -> list[Command]:
        """Withhold an answer from its caller, because no decision can reach it any more."""
        withdrawn = self._withdraw(key, asked, reason)
        return [*withdrawn, *self._replies.withheld(key, asked, (), at)]

    def _withdraw(self, key: RequestId, asked: PendingRequest, reason: str) -> list[Command]:
        if not asked.release:
            return []
        self.held -= 1
        return [Withdraw(key, asked.release, reason)]
