"""Who judges the calls of a session: a seam with two implementations.

``gate.local_authority`` judges in this process; ``shim.service_authority`` asks the
governance service of a wrap. A session driver knows only this. An answer that is not
there yet comes later, as an event fed to the driver.
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
    """Answers what sessions ask, at once or later, and keeps the record."""

    def judge(self, driver: "SessionDriver", command: JudgeCall) -> CallJudged | None:
        """Judge a request; None means that the answer comes later."""

    def resume(self, driver: "SessionDriver", command: JudgeCall) -> None:
        """Judge again the call of a task that an earlier run of this gate left behind."""

    def screen(self, driver: "SessionDriver", command: ScreenList) -> ListScreened | None:
        """Say which entries of a list stay hidden; None means that the answer comes later."""

    def mask(self, driver: "SessionDriver", command: MaskAnswer) -> AnswerMasked | None:
        """Take the secrets out of an answer; None means that the answer comes later."""

    def ask(self, driver: "SessionDriver", command: AskPeople) -> list[Event]:
        """Have people asked about a held call; return what its session is told at once."""

    def person_answered(self, driver: "SessionDriver", command: PersonAnswered) -> None:
        """Count the decision of the person in front of the agent."""

    def ask_task(self, driver: "SessionDriver", command: AskTask) -> list[Event]:
        """Answer a request about tasks of the gate's own; the answer may come later."""

    def end_task(self, driver: "SessionDriver", command: EndTask) -> None:
        """Note the end of a call that is a task."""

    def withdraw(self, driver: "SessionDriver", command: Withdraw, at: float) -> None:
        """Take an approval request back: nobody waits for the call any more."""

    def promises(self, server: str, principal: str) -> Promises | None:
        """Return the states that stand for a principal's calls; None leaves them to the session."""

    def note(self, record: Record) -> None:
        """Put an event on the record."""

    def flush(self) -> bool:
        """Make sure of the record before bytes go on; False means that nothing may be sent."""


class PolledAuthority(Authority, Protocol):
    """An authority that a poll loop can wait for."""

    stop_reason: str
    """Why the loop must stop; empty while it need not."""

    def read(self, line: bytes) -> Message | Fault:
        """Read a frame, by the fastest means that are loaded anyway."""

    def rest(self) -> None:
        """Do what could wait until everything that could be sent has been sent."""

    def descriptors(self) -> dict[int, int]:
        """Return the descriptors to poll, with their masks."""

    def ready(self, descriptor: int, mask: int, at: float) -> list[Event]:
        """One of the descriptors is ready."""

    def tick(self, at: float) -> list[Event]:
        """Time passed; called at least every ``interval_s`` seconds."""

    @property
    def interval_s(self) -> float:
        """How soon this authority wants to be ticked again."""

    def finish(self, status: str, at: float) -> None:
        """The session is over."""


def prompts(command: AskPeople, text: str) -> list[Event]:
    """Return the event that shows the agent's own prompt; none without a text.

    A caller that takes a task is not asked: it has left its line when the person answers.
    """
    if not text or command.params is not None:
        return []
    return [PersonAsked(command.key, f"{ID_PREFIX}{os.urandom(16).hex()}", text, command.at)]
