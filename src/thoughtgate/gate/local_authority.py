"""Judging in this process: a governor, the table of held calls, and tasks by session.

Every product but the shim under ``wrap`` judges here, over stdio or HTTP, for one session
or for thousands.
"""

from collections.abc import Iterable
from weakref import WeakValueDictionary

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
from thoughtgate.core.elicitation import Promises
from thoughtgate.core.events import AnswerMasked, CallJudged, Event, ListScreened, TaskMade
from thoughtgate.core.judge import CallRequest
from thoughtgate.core.record_events import Record
from thoughtgate.core.session_replies import CALLER_GONE
from thoughtgate.core.task_table import Caller
from thoughtgate.errors import RecordError
from thoughtgate.gate.authority import prompts
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.held_calls import HeldCalls
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.task_runner import Told
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, Verdict
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.message import Fault, Message
from thoughtgate.wire.unchecked import unchecked

IDLE_S = 3600.0
"""Without a held call there is nothing to look for."""

HELD_S = 0.2
"""How often a poll loop looks for decisions while calls are held."""

LOOK_S = 0.02
"""Not more often, however busy the line is: a look at the store costs a tenth of a call."""


class LocalAuthority:
    """Judges with a governor of its own."""

    stop_reason = ""

    def __init__(self, governor: Governor, *, is_authenticated: bool = False) -> None:
        """``is_authenticated`` says that principals are proven, not only assumed."""
        self.governor = governor
        self.held = HeldCalls(governor)
        self._is_authenticated = is_authenticated
        self._drivers: WeakValueDictionary[str, SessionDriver] = WeakValueDictionary()
        self._named = 0
        self._looked_at = 0.0

    # Judging.

    def judge(self, driver: SessionDriver, command: JudgeCall) -> CallJudged | None:
        """Judge now."""
        verdict, call_id, _ = self.governor.rule(self.question(driver, command))
        return unchecked(CallJudged, (command.key, verdict, call_id, command.at))

    def question(self, driver: SessionDriver, command: JudgeCall) -> CallRequest:
        """Return what the judge is asked about a request of a session."""
        setup = driver.session.setup
        _, method, named, params, size, _, at = command
        return unchecked(
            CallRequest,
            (
                setup.server,
                setup.session,
                driver.principal,
                method,
                named,
                size,
                driver.transport,
                at,
                params,
                driver.trace,
                driver.claims,
                bool(driver.resumes),
            ),
        )

    def resume(self, driver: SessionDriver, command: JudgeCall) -> None:
        """Go on where an earlier run stopped: the call is a task, and a person still decides.

        It makes no difference that the rules would forward the call today, for a person may
        have refused it. Only the development profile asks nobody.
        """
        governor, key, at = self.governor, command.key, command.at
        ruling = governor.rule(self.question(driver, command))
        call_id, verdict = ruling.call_id, ruling.verdict
        governor.tasks.resumed(driver.resumes, call_id, self.name_of(driver))
        driver.feed(CallJudged(key, verdict._replace(action=APPROVE), call_id, at), None)
        if verdict.action == FORWARD and not governor.tasks.started(call_id, at):
            verdict = Verdict(DENY, "approval", "approval_withdrawn")
        if verdict.action == APPROVE:
            owner = governor.tasks.owner_of(driver.resumes)
            decided = governor.ask(call_id, verdict.workflow, at, owner=owner)
            if decided is None:
                self.held.hold(call_id, driver, key)
                return
            verdict = decided.verdict
        driver.feed(CallJudged(key, verdict, call_id, at), None)

    def screen(self, driver: SessionDriver, command: ScreenList) -> ListScreened | None:
        """Screen now."""
        setup, (key, method, entries, at) = driver.session.setup, command
        hidden = self.governor.screen(setup.server, setup.session, method, entries, at)
        return ListScreened(key, hidden, at)

    def mask(self, driver: SessionDriver, command: MaskAnswer) -> AnswerMasked | None:
        """Mask now."""
        del driver
        return AnswerMasked(command.key, self.governor.mask(command.body), command.at)

    # Approvals.

    def ask(self, driver: SessionDriver, command: AskPeople) -> list[Event]:
        """Put the call into the approval queue; the decision is often for later."""
        if driver.resumes:
            # The caller has its task since before the restart.
            return [TaskMade(command.key, {}, command.at)]
        name = self.name_of(driver) if command.params is not None else ""
        ruling, told = self.governor.hold(name, command)
        if ruling is not None:
            return [CallJudged(command.key, ruling.verdict, command.call_id, command.at)]
        self.held.hold(command.call_id, driver, command.key)
        events = [event for _, event in told]
        if driver.can_be_asked(command):
            events += prompts(command, self.governor.prompt(command.call_id))
        return events

    def person_answered(self, driver: SessionDriver, command: PersonAnswered) -> None:
        """Count it like any other decision; the next look finds it."""
        self.governor.person_answered(command._replace(by=driver.person))

    def withdraw(self, driver: SessionDriver, command: Withdraw, at: float) -> None:
        """Nobody waits any more."""
        del driver
        self.held.drop(command.call_id)
        if command.reason == CALLER_GONE:
            self.held.prevented += 1
        self.governor.withdraw(command.call_id, command.reason, at)

    def promises(self, server: str, principal: str) -> Promises | None:
        """Return the states that stand for a principal's calls."""
        return self.governor.promises(server, principal)

    # Tasks.

    def ask_task(self, driver: SessionDriver, command: AskTask) -> list[Event]:
        """Answer from the table of tasks."""
        name = self.name_of(driver)
        caller = Caller(driver.principal, name, self._is_authenticated)
        told = self.governor.tasks.answer(name, caller, command)
        self.tell(one for one in told if one[0] != name)
        return [event for line, event in told if line == name]

    def end_task(self, driver: SessionDriver, command: EndTask) -> None:
        """Keep what became of it."""
        del driver
        self.tell(self.governor.tasks.ended(command))

    def name_of(self, driver: SessionDriver) -> str:
        """Return the name by which tasks know a session."""
        if not driver.name:
            self._named += 1
            driver.name = f"{driver.session.setup.session}:{self._named}"
            self._drivers[driver.name] = driver
        return driver.name

    def tell(self, told: Iterable[Told]) -> None:
        """Pass what the tasks say on to the sessions that wait for it."""
        for name, event in told:
            driver = self._drivers.get(name)
            if driver is not None:
                driver.feed(event, None)
                driver.outbox.schedule()

    # The record.

    def note(self, record: Record) -> None:
        """Queue an event for the record."""
        self.governor.note(record)

    def flush(self) -> bool:
        """Write the record; False when it cannot be written and must be."""
        try:
            self.governor.flush()
        except RecordError:
            return False
        return True

    # For a poll loop.

    def read(self, line: bytes) -> Message | Fault:
        """Read a frame; the fast reader is loaded for the record anyway."""
        return read_quickly(line)

    def rest(self) -> None:
        """Nothing is put off."""

    @property
    def interval_s(self) -> float:
        """Look often only while somebody waits."""
        return HELD_S if len(self.held) else IDLE_S

    def descriptors(self) -> dict[int, int]:
        """There are none: everything is decided in this process."""
        return {}

    def ready(self, descriptor: int, mask: int, at: float) -> list[Event]:
        """Never called."""
        raise AssertionError((descriptor, mask, at))

    def tick(self, at: float) -> list[Event]:
        """Look whether people have decided; sessions are told directly."""
        self.tell(self.governor.tasks.tick(at))
        if len(self.held) and not 0 <= at - self._looked_at < LOOK_S:
            self._looked_at = at
            self.held.poll(at)
        return []

    def finish(self, status: str, at: float) -> None:
        """Close the run."""
        self.governor.finish(status, at)
