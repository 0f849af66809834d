"""Who judges for a shim: a seam with two implementations.

``gate.local_authority`` judges in the shim's own process; ``shim.service_authority`` asks the
governance service of a wrap. The shim's loop knows only this.
"""

import os
from typing import Protocol

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
from thoughtgate.core.elicitation import ID_PREFIX
from thoughtgate.core.events import Event, PersonAsked
from thoughtgate.core.record_events import Record
from thoughtgate.wire.message import Fault, Message


class Authority(Protocol):
    """Answers a session's questions, at once or later, and keeps the record."""

    stop_reason: str
    """Why the shim must stop; empty while it need not."""

    def read(self, line: bytes) -> Message | Fault:
        """Read a frame, by the fastest means that are loaded anyway."""

    def judge(self, command: JudgeCall) -> list[Event]:
        """Judge a request; an empty list means the answer comes later."""

    def screen(self, command: ScreenList) -> list[Event]:
        """Say what a list must hide; an empty list means the answer comes later."""

    def mask(self, command: MaskAnswer) -> list[Event]:
        """Take the secrets out of an answer; an empty list means the answer comes later."""

    def ask(self, command: AskPeople) -> list[Event]:
        """Have people asked about a held call."""

    def answered(self, command: PersonAnswered) -> None:
        """The person in front of the agent has decided on a held call."""

    def about_task(self, command: AskTask) -> list[Event]:
        """Answer a request about tasks of the gate's own; an empty list: the answer comes later."""

    def end_task(self, command: EndTask) -> list[Event]:
        """A call that is a task has ended."""

    def withdraw(self, command: Withdraw, at: float) -> None:
        """Take a question back."""

    def record(self, record: Record) -> None:
        """Put an event on the record."""

    def flush(self) -> bool:
        """Make sure of the record before bytes go on; False means nothing may be sent."""

    def rest(self) -> None:
        """Everything that could be sent has been: do what could wait for that."""

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
    """Return the event that has the agent's own prompt ask; none without a text.

    A modern caller that takes a task is not asked: its request is answered by the task.
    """
    if not text or (command.modern and command.params is not None):
        return []
    return [PersonAsked(command.key, f"{ID_PREFIX}{os.urandom(16).hex()}", text, command.at)]
