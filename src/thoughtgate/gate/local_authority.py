"""Local authority: judges calls in this process, with a governor and a table of held calls.

Every product uses it except the shim under ``wrap``, which asks the governance service. It
serves stdio and HTTP, one session or thousands.
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
"""Poll interval without held calls: no decision can arrive then."""

HELD_S = 0.2
"""Poll interval while calls are held."""

LOOK_S = 0.02
"""Minimum time between two polls of the store under load: one costs a tenth of a call."""


class LocalAuthority:
    """Judges the calls of all sessions with a governor in this process."""

    stop_reason = ""

    def __init__(self, governor: Governor, *, is_authenticated: bool = False) -> None:
        """Judge with ``governor``; ``is_authenticated`` says that principals are verified."""
        self.governor = governor
        self.held = HeldCalls(governor, _deliver)
        self._is_authenticated = is_authenticated
        # Weak references: a session that has ended must not be kept alive by its tasks.
        self._drivers: WeakValueDictionary[str, SessionDriver] = WeakValueDictionary()
        self._named = 0
        self._looked_at = 0.0

    # Judging.

    def judge(self, driver: SessionDriver, command: JudgeCall) -> CallJudged | None:
        """Judge a request and return the verdict at once."""
        verdict, call_id, _ = self.governor.rule(self.question(driver, command))
        return unchecked(CallJudged, (command.key, verdict, call_id, command.at))

    def question(self, driver: SessionDriver, command: JudgeCall) -> CallRequest:
        """Return the request in the form that the judge takes."""
        setup = driver.session.setup
        # `unchecked` skips the constructor: this runs for every call.
        _, method, named, params, size, _, at, listed, frame = command
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
                listed,
                frame,
                driver.session.prompts.client,
            ),
        )

    def resume(self, driver: SessionDriver, command: JudgeCall) -> None:
        """Continue the call of a task from an earlier run, which still needs a person's decision.

        A person decides even if the current rules would forward the call, because someone may
        already have rejected it. Only the development profile skips the approval.
        """
        governor, key, at = self.governor, command.key, command.at
        ruling = governor.rule(self.question(driver, command))
        call_id, verdict = ruling.call_id, ruling.verdict
        governor.tasks.resumed(driver.resumes, call_id, self.name_of(driver))
        # The session must first hold the call as a task; it accepts the real verdict only then.
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
        """Return which entries of a list are hidden, at once."""
        setup, (key, method, entries, at) = driver.session.setup, command
        hidden = self.governor.screen(setup.server, setup.session, method, entries, at)
        return ListScreened(key, hidden, at)

    def mask(self, driver: SessionDriver, command: MaskAnswer) -> AnswerMasked | None:
        """Return an answer with its secrets masked, at once."""
        del driver
        return AnswerMasked(
            command.key, self.governor.mask(command.body, of_task=command.of_task), command.at
        )

    # Approvals.

    def ask(self, driver: SessionDriver, command: AskPeople) -> list[Event]:
        """Put the call into the approval queue; the decision usually arrives later."""
        if driver.resumes:
            # The caller received its task before the restart, so there is nothing to send it.
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
        """Store the answer as a vote; the next poll finds it."""
        self.governor.person_answered(command._replace(by=driver.person))

    def withdraw(self, driver: SessionDriver, command: Withdraw, at: float) -> None:
        """Withdraw the approval request of a call that its caller no longer waits for."""
        del driver
        self.held.drop(command.call_id)
        if command.reason == CALLER_GONE:
            self.held.prevented += 1
        self.governor.withdraw(command.call_id, command.reason, at)

    def promises(self, server: str, principal: str) -> Promises | None:
        """Return the request states that can be redeemed for a principal's calls."""
        return self.governor.promises(server, principal)

    # Tasks.

    def ask_task(self, driver: SessionDriver, command: AskTask) -> list[Event]:
        """Answer a request about tasks from the task table."""
        name = self.name_of(driver)
        caller = Caller(driver.principal, name, self._is_authenticated)
        told = self.governor.tasks.answer(name, caller, command)
        self.tell(one for one in told if one[0] != name)
        return [event for line, event in told if line == name]

    def end_task(self, driver: SessionDriver, command: EndTask) -> None:
        """Store the result of a task."""
        del driver
        self.tell(self.governor.tasks.ended(command))

    def name_of(self, driver: SessionDriver) -> str:
        """Return the name of a session in the task table; assign one if it has none.

        The counter makes it unique: sessions without an id of their own share one.
        """
        if not driver.name:
            self._named += 1
            driver.name = f"{driver.session.setup.session}:{self._named}"
            self._drivers[driver.name] = driver
        return driver.name

    def tell(self, told: Iterable[Told]) -> None:
        """Deliver task events to the sessions that wait for them."""
        for name, event in told:
            driver = self._drivers.get(name)
            if driver is not None:
                _deliver(driver, event)

    # The record.

    def note(self, record: Record) -> None:
        """Queue an event for the record."""
        self.governor.note(record)

    def flush(self) -> bool:
        """Write the record; return False if it cannot be written and calls must be refused."""
        try:
            self.governor.flush()
        except RecordError:
            return False
        return True

    # For a poll loop.

    def read(self, line: bytes) -> Message | Fault:
        """Parse a frame with the fast reader, which the record has loaded anyway."""
        return read_quickly(line)

    def rest(self) -> None:
        """Do nothing: this authority defers no work."""

    @property
    def interval_s(self) -> float:
        """How long a poll loop may wait: short only while calls are held."""
        return HELD_S if len(self.held) else IDLE_S

    def descriptors(self) -> dict[int, int]:
        """Return none: everything is decided in this process."""
        return {}

    def ready(self, descriptor: int, mask: int, at: float) -> list[Event]:
        """Never called, because there are no descriptors."""
        raise AssertionError((descriptor, mask, at))

    def tick(self, at: float) -> list[Event]:
        """Fetch new decisions; they are fed to their sessions directly, so no event is returned."""
        self.tell(self.governor.tasks.tick(at))
        # A negative difference means that the clock was set back; poll then too.
        if len(self.held) and not 0 <= at - self._looked_at < LOOK_S:
            self._looked_at = at
            self.held.poll(at)
        return []

    def finish(self, status: str, at: float) -> None:
        """Finish the run on the record."""
        self.governor.finish(status, at)


def _deliver(driver: SessionDriver, event: Event) -> None:
    """Feed an event to a session, and have written what it records."""
    driver.feed(event, None)
    driver.outbox.schedule()
