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
    InspectAnswer,
    InspectLater,
    JudgeCall,
    PersonAnswered,
    ScreenList,
    Withdraw,
)
from thoughtgate.core.elicitation import RequestStates
from thoughtgate.core.events import AnswerInspected, CallJudged, Event, ListScreened, TaskMade
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.core.record_events import Record
from thoughtgate.core.session_replies import CALLER_GONE
from thoughtgate.core.task import wants_task
from thoughtgate.core.task_table import Caller
from thoughtgate.errors import RecordError
from thoughtgate.gate.authority import prompts
from thoughtgate.gate.contents.inspection import inspect_answer
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.held_calls import HeldCalls
from thoughtgate.gate.outbox import Outbox
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


LATER_SLICE_S = 0.002
"""How long messages are inspected in one go after the agent has got them; then other traffic."""


class LocalAuthority:
    """Judges the calls of all sessions with a governor in this process."""

    stop_reason = ""

    is_behind = False
    """Events are recorded before the next read."""

    def __init__(self, governor: Governor, *, is_authenticated: bool = False) -> None:
        """Judge with ``governor``; ``is_authenticated`` says that principals are verified."""
        self.governor = governor
        self.errors = governor.errors
        self.held = HeldCalls(governor, _deliver)
        self._is_authenticated = is_authenticated
        # Weak references: a session that has ended must not be kept alive by its tasks.
        self._drivers: WeakValueDictionary[str, SessionDriver] = WeakValueDictionary()
        self._named = 0
        self._looked_at = 0.0
        self._inspects_soon = False
        self._granted: tuple[str, Verdict] | None = None
        """The call that is held for a moment only, to become a task, and its verdict."""

    # Judging.

    def judge(self, driver: SessionDriver, command: JudgeCall) -> CallJudged | None:
        """Judge a request and return the verdict at once.

        Until 2025-11-25 a caller asks for a task. If only the gate can make it, the call is held for
        a moment, although nobody has to approve it.
        """
        verdict, call_id, _ = self.governor.rule(self.call_request(driver, command))
        if self.governor.later.waiting:
            self._inspect_soon(driver.outbox)
        if "task" in command.params and verdict.action == FORWARD and not command.modern:
            wanted = wants_task(command.method, command.params, modern=False)
            if wanted and driver.can_take_task(command.key) and self.makes_task(driver, command):
                self._granted = (call_id, verdict)
                verdict = verdict._replace(action=APPROVE)
        return unchecked(CallJudged, (command.key, verdict, call_id, command.at))

    def makes_task(self, driver: SessionDriver, command: JudgeCall) -> bool:
        """Tell whether a call for which its caller wants a task becomes one of the gate."""
        return self.governor.makes_task(driver.session.setup.server, command.named[0].name)

    def is_granted(self, call_id: str) -> bool:
        """Tell whether a call is held only to become a task."""
        return self._granted is not None and self._granted[0] == call_id

    def call_request(self, driver: SessionDriver, command: JudgeCall) -> CallRequest:
        """Return the request in the form that the judge takes."""
        setup = driver.session.setup
        # `unchecked` skips the constructor: this runs for every call.
        key, method, named, params, size, _, at, listed, frame = command
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
                driver.address,
                driver.session_name,
                key,
            ),
        )

    def resume(self, driver: SessionDriver, command: JudgeCall) -> None:
        """Continue the call of a task from an earlier run, which still needs a person's decision.

        A person decides even if the current rules would forward the call, because someone may
        already have rejected it. Only the development profile skips the approval.
        """
        governor, key, at = self.governor, command.key, command.at
        ruling = governor.rule(self.call_request(driver, command))
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
        """Return which entries of a list are hidden and whether tasks are offered, at once."""
        setup, (key, method, entries, at, is_last) = driver.session.setup, command
        about = (setup.server, setup.session, method, entries, at)
        hidden = self.governor.screen(*about, is_last=is_last)
        return ListScreened(key, hidden, at, self.governor.offers_tasks)

    def inspect(self, driver: SessionDriver, command: InspectAnswer) -> AnswerInspected | None:
        """Return what the agent may get of a message of the server, at once."""
        setup = driver.session.setup
        return inspect_answer(self.governor, setup.server, setup.session, driver.principal, command)

    def inspect_later(self, driver: SessionDriver, command: InspectLater) -> None:
        """Inspect a message when the agent has got it."""
        setup = driver.session.setup
        self.governor.later.put_message(command, setup.server, setup.session, driver.principal)
        self._inspect_soon(driver.outbox)

    def _inspect_soon(self, outbox: Outbox) -> None:
        """Inspect waiting messages after the flush that follows the next one.

        The next flush sends the frames of this turn, which inspection must not delay.
        """
        if not self._inspects_soon:
            self._inspects_soon = True
            outbox.later(outbox.later, self._inspect_waiting, outbox)

    def _inspect_waiting(self, outbox: Outbox) -> None:
        self._inspects_soon = False
        if self.governor.later.run(LATER_SLICE_S):
            self._inspect_soon(outbox)
        # Written now, because a poll loop may wait for a long time before its next turn.
        self.governor.flush_quietly()

    # Approvals.

    def ask(self, driver: SessionDriver, command: AskPeople) -> list[Event]:
        """Put the call into the approval queue; the decision usually arrives later."""
        if driver.resumes:
            # The caller received its task before the restart, so there is nothing to send it.
            return [TaskMade(command.key, {}, command.at)]
        if self._granted is not None and self._granted[0] == command.call_id:
            (_, verdict), self._granted = self._granted, None
            return self._make_task(driver, command, verdict)
        name = self.name_of(driver) if command.params is not None else ""
        ruling, told = self.governor.hold(name, command)
        if ruling is not None:
            return [CallJudged(command.key, ruling.verdict, command.call_id, command.at)]
        self.held.hold(command.call_id, driver, command.key)
        events = [event for _, event in told]
        notice = self.governor.approvals.notice(command.call_id)
        return events + prompts(command, notice, can_show=driver.can_be_asked(command))

    def person_answered(self, driver: SessionDriver, command: PersonAnswered) -> None:
        """Store the answer as a vote; the next poll finds it."""
        self.governor.approvals.answer(command._replace(by=driver.person))

    def withdraw(self, driver: SessionDriver, command: Withdraw, at: float) -> None:
        """Withdraw the approval request of a call that its caller no longer waits for."""
        del driver
        self.held.drop(command.call_id)
        if command.reason == CALLER_GONE:
            self.held.prevented += 1
        self.governor.withdraw(command.call_id, command.reason, at)

    def inspection(self, server: str) -> int:
        """Return whether, and when, a server's messages are inspected before a call was judged."""
        return self.governor.policy.inspection(server)

    def request_states(self, server: str, principal: str) -> RequestStates | None:
        """Return the request states that can be redeemed for a principal's calls."""
        return self.governor.request_states(server, principal)

    # Tasks.

    def _make_task(
        self, driver: SessionDriver, command: AskPeople, verdict: Verdict
    ) -> list[Event]:
        """Answer a call that nobody has to approve with a task, and let it run."""
        told = self.governor.tasks.make_granted(
            self.name_of(driver), command, self.governor.judge.open_call(command.call_id), verdict
        )
        return [event for _, event in told]

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

    def introduce(self, driver: SessionDriver) -> None:
        """Have further events of a session say who its agent is."""
        self.governor.introduce(
            driver.label,
            client=driver.session.prompts.client,
            address=driver.address,
            principal=driver.principal,
        )

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
        if self._inspects_soon:
            return 0.0
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
    """Feed an event to a session, and schedule a flush for what it records or sends."""
    driver.feed(event, None)
    driver.outbox.schedule()
