"""Authority: the interface through which session drivers get verdicts, with two implementations.

``gate.local_authority`` judges in this process; ``shim.service_authority`` asks the governance
service of a ``wrap`` run. A session driver knows only this interface. A reply that is not
available at once is fed to the driver later, as an event.
"""

import os
from typing import TYPE_CHECKING, Protocol

from thoughtgate.core.commands import (
    AskPeople,
    AskTask,
    EndTask,
    JudgeCall,
    MaskAnswer,
    PersonAnswered,
    ScreenList,
    Withdraw,
)
from thoughtgate.core.elicitation import ID_PREFIX, Promises
from thoughtgate.core.events import AnswerMasked, CallJudged, Event, ListScreened, PersonAsked
from thoughtgate.core.record_events import Record
from thoughtgate.wire.message import Fault, Message

if TYPE_CHECKING:
    from thoughtgate.gate.session_driver import SessionDriver


class Authority(Protocol):
    """Judges the requests of sessions, at once or later, and keeps the record."""

    def judge(self, driver: "SessionDriver", command: JudgeCall) -> CallJudged | None:
        """Judge a request; None means that the verdict arrives later."""

    def resume(self, driver: "SessionDriver", command: JudgeCall) -> None:
        """Judge the call of a task from an earlier run of this gate again."""

    def screen(self, driver: "SessionDriver", command: ScreenList) -> ListScreened | None:
        """Return which entries of a list are hidden; None means that the reply arrives later."""

    def mask(self, driver: "SessionDriver", command: MaskAnswer) -> AnswerMasked | None:
        """Mask the secrets in an answer; None means that the reply arrives later."""

    def ask(self, driver: "SessionDriver", command: AskPeople) -> list[Event]:
        """Request approval for a held call; return the events that its session receives at once."""

    def person_answered(self, driver: "SessionDriver", command: PersonAnswered) -> None:
        """Store the answer that a person gave to the agent's own prompt."""

    def ask_task(self, driver: "SessionDriver", command: AskTask) -> list[Event]:
        """Answer a request about ThoughtGate's own tasks; the answer may arrive later."""

    def end_task(self, driver: "SessionDriver", command: EndTask) -> None:
        """Store the result of a task's call."""

    def withdraw(self, driver: "SessionDriver", command: Withdraw, at: float) -> None:
        """Withdraw the approval request of a call that its caller no longer waits for."""

    def promises(self, server: str, principal: str) -> Promises | None:
        """Return the request states of a principal's calls; None leaves them to the session."""

    def note(self, record: Record) -> None:
        """Queue an event for the record."""

    def flush(self) -> bool:
        """Make sure that queued events are recorded; False means that nothing may be forwarded."""


class PolledAuthority(Authority, Protocol):
    """An authority for a poll loop."""

    stop_reason: str
    """Why the loop must stop; empty while it need not stop."""

    def read(self, line: bytes) -> Message | Fault:
        """Parse a frame with the fastest reader that is loaded anyway."""

    def rest(self) -> None:
        """Do deferred work, after everything that could be sent has been sent."""

    def descriptors(self) -> dict[int, int]:
        """Return the descriptors to poll, with their masks."""

    def ready(self, descriptor: int, mask: int, at: float) -> list[Event]:
        """Handle a ready descriptor."""

    def tick(self, at: float) -> list[Event]:
        """Do periodic work; called at least every ``interval_s`` seconds."""

    @property
    def interval_s(self) -> float:
        """How long the loop may wait before the next tick."""

    def finish(self, status: str, at: float) -> None:
        """Finish at the end of the session."""


def prompts(command: AskPeople, text: str) -> list[Event]:
    """Return the event that shows the agent's own prompt; none without a text.

    A caller that accepts a task gets no prompt: its request has its reply before a person answers.
    """
    if not text or command.params is not None:
        return []
    return [PersonAsked(command.key, f"{ID_PREFIX}{os.urandom(16).hex()}", text, command.at)]
