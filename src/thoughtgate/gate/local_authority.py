"""The shim as its own judge: a governor in the same process."""

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
from thoughtgate.core.events import AnswerMasked, CallJudged, Event, ListScreened
from thoughtgate.core.judge import Question
from thoughtgate.core.record_events import Record
from thoughtgate.core.task_table import Caller
from thoughtgate.errors import RecordError
from thoughtgate.gate.authority import prompts
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.task_runner import Told
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.message import Fault, Message, RequestId

IDLE_S = 3600.0
"""With nobody asked there is nothing to look for."""

HELD_S = 0.2
"""How often a person's answer is looked for while calls are held."""

LOOK_S = 0.02
"""Not more often, however busy the line is: a look at the store costs a tenth of a call."""


class LocalAuthority:
    """Judges with a governor of its own."""

    stop_reason = ""

    def __init__(self, governor: Governor, server: str, session: str, principal: str) -> None:
        self._governor = governor
        self._server = server
        self._session = session
        self._principal = principal
        self._held: dict[str, RequestId] = {}
        self._looked_at = 0.0

    @property
    def interval_s(self) -> float:
        """Look often only while somebody waits."""
        return HELD_S if self._held else IDLE_S

    def read(self, line: bytes) -> Message | Fault:
        """Read a frame; the fast reader is loaded for the record anyway."""
        return read_quickly(line)

    def judge(self, command: JudgeCall) -> list[Event]:
        """Judge now."""
        question = Question(
            self._server,
            self._session,
            self._principal,
            command.method,
            command.named,
            command.bytes_in,
            "mcp_stdio",
            command.at,
            command.params,
        )
        ruling = self._governor.rule(question)
        return [CallJudged(command.key, ruling.verdict, ruling.call_id, command.at)]

    def screen(self, command: ScreenList) -> list[Event]:
        """Screen now."""
        hidden = self._governor.screen(
            self._server, self._session, command.method, command.entries, command.at
        )
        return [ListScreened(command.key, hidden, command.at)]

    def mask(self, command: MaskAnswer) -> list[Event]:
        """Mask now."""
        return [AnswerMasked(command.key, self._governor.mask(command.body), command.at)]

    def ask(self, command: AskPeople) -> list[Event]:
        """Have the desk ask; the answer is often for later."""
        ruling, told = self._governor.hold(self._session, command)
        if ruling is not None:
            return [CallJudged(command.key, ruling.verdict, command.call_id, command.at)]
        self._held[command.call_id] = command.key
        return [*prompts(command, self._governor.prompt(command.call_id)), *self._of_ours(told)]

    def answered(self, command: PersonAnswered) -> None:
        """Count it like everybody's; the next look finds it."""
        self._governor.person_answered(command)

    def about_task(self, command: AskTask) -> list[Event]:
        """Answer from the book."""
        caller = Caller(self._principal, self._session)
        return self._of_ours(self._governor.tasks.answer(self._session, caller, command))

    def end_task(self, command: EndTask) -> list[Event]:
        """Keep what became of it."""
        return self._of_ours(self._governor.tasks.ended(command))

    def withdraw(self, command: Withdraw, at: float) -> None:
        """Nobody waits any more."""
        self._held.pop(command.call_id, None)
        self._governor.withdraw(command.call_id, command.reason, at)

    def record(self, record: Record) -> None:
        """Queue an event for the record."""
        self._governor.note(record)

    def flush(self) -> bool:
        """Write the record; False when it cannot be written and must be."""
        try:
            self._governor.flush()
        except RecordError:
            return False
        return True

    def rest(self) -> None:
        """Nothing is put off."""

    def descriptors(self) -> dict[int, int]:
        """There are none: everything is decided in this process."""
        return {}

    def ready(self, descriptor: int, mask: int, at: float) -> list[Event]:
        """Never called."""
        raise AssertionError((descriptor, mask, at))

    def tick(self, at: float) -> list[Event]:
        """Look whether people have decided."""
        events = self._of_ours(self._governor.tasks.tick(at))
        if not self._held or 0 <= at - self._looked_at < LOOK_S:
            return events
        self._looked_at = at
        for ruling in self._governor.settled(at):
            key = self._held.pop(ruling.call_id, None)
            if key is not None:
                events.append(CallJudged(key, ruling.verdict, ruling.call_id, at))
        return events

    def _of_ours(self, told: list[Told]) -> list[Event]:
        """Every session of this gate is the one this authority serves."""
        return [event for _, event in told]

    def finish(self, status: str, at: float) -> None:
        """Close the run."""
        self._governor.finish(status, at)
