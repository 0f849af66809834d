"""Governor: combines the judge, the record and the approvals of one run, for every driver.

Everything that carries traffic (the shim, the governance service, the proxy, the hub) gets
its verdicts here. ``rule``, ``screen`` and ``note`` queue the events that must be recorded;
``flush`` writes them, then counts them and passes them to the observer. A driver forwards
nothing before ``flush`` has returned. If ``flush`` raises, the driver refuses what it was
about to send.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from thoughtgate.channels.answer_places import AnswerPlaces
from thoughtgate.core.answers import INSTRUCTIONS
from thoughtgate.core.approval import Decision, refusal
from thoughtgate.core.commands import AskPeople
from thoughtgate.core.elicitation import RequestStates
from thoughtgate.core.envelope import Run, SessionPeers
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest, Ruling
from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    APPROVAL_DECIDED,
    CALL_DECISION,
    CALL_END,
    CALL_START,
    CANCELLED,
    FRAME_REFUSED,
    SERVER_EVENTS,
    Record,
    call_ended,
    frame_refused,
    request_failed,
    with_masked_method,
    with_masked_start,
)
from thoughtgate.core.repeated_events import RepeatedEvents, is_repeatable
from thoughtgate.core.run_summary import POLICY_BLOCK, RunSummary, run_ended, run_started
from thoughtgate.core.session_replies import CorrelationIds
from thoughtgate.core.task import DEFAULT_TTL_S, MAX_TTL_S
from thoughtgate.core.task_table import TaskLimits, TaskTable
from thoughtgate.errors import RecordError, StoreError
from thoughtgate.gate.approvals.interface import Approvals
from thoughtgate.gate.approvals.policy_questions import PolicyQuestions
from thoughtgate.gate.approvals.prompt_seals import PromptSeals
from thoughtgate.gate.clock import monotonic
from thoughtgate.gate.contents.later import LaterInspection
from thoughtgate.gate.definitions.watch import DefinitionWatch
from thoughtgate.gate.orders.stop_watch import StopWatch
from thoughtgate.gate.running_gates import GateAnnouncer
from thoughtgate.gate.task_runner import Keeper, NoKeeper, TaskRunner, Told
from thoughtgate.policy.call import DENY, FORWARD, PRODUCTION, Verdict
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.stops import Stops
from thoughtgate.stores.server_tasks import ServerTaskStore
from thoughtgate.stores.tasks import new_task_id
from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import INTRODUCTIONS

_ALLOWING = frozenset({CALL_START, CALL_DECISION, APPROVAL_DECIDED})
"""Event types that must be on the record before a call is forwarded."""

SUSPENDED = "the gate stopped; the task waits for the next one"


LOOK_S: Final = 0.25
"""How often a gate looks for orders of an operator while calls arrive; they apply within a second."""

LOOK_EVERY_S = 1.0
"""How often the policy's files are checked: it costs a few system calls, and whoever edits a
file expects it to apply soon."""

RECORD_PAUSE_S: Final = 10.0
"""How long a gate that could not write its record asks for no more calls."""


class Writer(Protocol):
    """Writes events to the record."""

    def write(self, records: Sequence[Record]) -> None:
        """Write events to the record, all or none."""

    def close(self) -> None:
        """Close the record."""


class Governor:
    """Judges and records the calls of one run."""

    stop_watch: StopWatch | None = None
    """Follows the stop orders in the store; without it, nothing can be stopped."""
    policy_questions: PolicyQuestions | None = None
    """Asks people about changed policies; without it, nobody can accept one."""
    on_server: Callable[[Record], None] | None = None
    """Receives the changes of servers' states, for the operator."""
    definitions: DefinitionWatch | None = None
    """Compares what servers say about their tools with what was accepted."""
    server_tasks: ServerTaskStore | None = None
    """The owners of the tasks that servers made."""

    def __init__(
        self,
        judge: Judge,
        writer: Writer,
        run: Run,
        *,
        approvals: Approvals,
        tasks: Keeper | None = None,
        task_limits: TaskLimits | None = None,
        task_ttl_s: tuple[float, float] = (DEFAULT_TTL_S, MAX_TTL_S),
        observe: Callable[[Record], None] | None = None,
        reports: Callable[[], Sequence[Record]] = tuple,
        on_failure: str = "refuse",
        announcer: GateAnnouncer | None = None,
    ) -> None:
        """Judge with ``judge``, record with ``writer``; ``task_ttl_s`` is default and maximum."""
        self.judge = judge
        self.run = run
        self.approvals = approvals
        self.tasks = TaskRunner(
            TaskTable(limits=task_limits),
            tasks if tasks is not None else NoKeeper(),
            new_id=new_task_id,
            withdraw=self.withdraw,
            renew_facts=judge.renew_facts,
            ttl_s=task_ttl_s,
        )
        self.errors = CorrelationIds(run.calls_prefix or run.run_id)
        self.tally = RunSummary()
        self._writer = writer
        self._observe = observe
        self._reports = reports
        self._announcer = announcer
        self._refuse_unrecorded = on_failure == "refuse"
        self.later = LaterInspection(self)
        self._queue: list[Record] = []
        self._repeated = RepeatedEvents()
        self._record_failed_at = -RECORD_PAUSE_S
        self._lost_quietly = False
        """Whether ``flush_quietly`` lost the record of calls that a driver is about to forward."""
        self._unrecorded: set[str] = set()
        """Open calls with an event that could not be written: never made, even if approved."""
        self._executing: set[str] = set()
        """Calls whose approval was used and whose end is not on the record."""
        self._started_at = 0.0
        self.watch: Callable[[float], None] | None = None
        """Called before a call is judged, at most once per second, to check for changed rules."""
        self.seals: PromptSeals | None = None
        """Seals the state of prompts that another process, or the next one, may get answers to."""
        self.answer_places = AnswerPlaces()
        """Where people answer the approval requests of this gate."""
        self.draw: Callable[[Record], None] | None = None
        """Receives every event as it happens, written or not: a forwarded call carries its trace
        context, so its span must begin before the event is on the record."""
        self.trace: Callable[[str], str] | None = None
        """Returns the trace context for a forwarded call; None if calls are not traced."""
        self.health: dict[str, Callable[[], bool]] = {}
        """Whether each part works without which some calls are refused; other threads call it."""
        self.policies: list[dict[str, str]] = []
        """The policies in force at the start, as the record names them."""
        self._looked_at = -LOOK_S
        self._watched_at = -LOOK_EVERY_S
        self._server = ""
        self.peers = SessionPeers()
        """What the record says about the agent of each session."""

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.judge.policy

    @property
    def offers_tasks(self) -> bool:
        """Whether calls may be held, so that agents are offered tasks for them."""
        return self.policy.offers_tasks()

    def makes_task(self, server: str, tool: str) -> bool:
        """Tell whether the gate makes the task that a caller wants, and not the server."""
        return self.offers_tasks and not self.judge.tools.makes_tasks(server, tool)

    def start(self, at: float, *, server: str = "", **facts: Any) -> None:
        """Record the start of the run; ``facts`` describe what runs.

        Raises:
            RecordError: the record cannot be written, so the run must not start.
        """
        self._started_at = at
        self._server = server
        if self.policies:
            facts["policies"] = self.policies
        self._put(run_started(at, self.policy, server=server, **facts))
        # Announced before the first write, so that whoever verifies the record can tell a run
        # that goes on from one that was killed.
        if self._announcer is not None:
            self._announcer.begin(str(facts.get("command", "")), server)
        try:
            self.flush()
        except RecordError:
            self._withdraw_announcement()
            raise
        # A policy that waits for a person is asked about now, not with the first call.
        if self.watch is not None:
            self.watch(at)

    def introduce(
        self, session: str, *, client: str = "", address: str = "", principal: str = ""
    ) -> None:
        """Have all further events of a session say who its agent is.

        ``client`` is what the agent's client says about itself, ``address`` where it is.
        """
        shown = self.judge.recorded_name(client) if client else ""
        facts = {"client": shown, "address": address, "principal": principal}
        self.peers.introduce(session, facts)

    def identify(self, server: str, identity: Sequence[str]) -> None:
        """Say which server an id stands for: its command line or its URL."""
        if self.definitions is not None:
            self.definitions.identify(server, tuple(identity))

    def degraded(self) -> list[str]:
        """Return the parts that do not work now, although the gate goes on."""
        return [name for name, works in self.health.items() if not works()]

    def announce(self, **facts: Any) -> None:
        """Add facts to the announcement of this gate, for ``status`` and other commands."""
        if self._announcer is not None:
            self._announcer.add(**facts)

    def finish(self, status: str, at: float, reason: str = "") -> None:
        """Record the end of the run, which is always its last event, and close the record."""
        with contextlib.suppress(StoreError):
            # Approval requests that cannot be withdrawn now expire; the end is still recorded.
            self.approvals.close(at)
        self.tasks.close()
        self.take_reports()
        self.later.finish()
        with contextlib.suppress(StoreError):
            # What is left of leased portions of budgets is then lost.
            self.judge.close()
        # Folded events must be written before the last event of the run.
        for record in self._repeated.rest():
            self._put(record)
        self.flush_quietly()
        ended = run_ended(
            at, self._started_at, status, self.tally, server=self._server, reason=reason
        )
        self._put(ended)
        self.flush_quietly()
        self._writer.close()
        self._withdraw_announcement()

    def _withdraw_announcement(self) -> None:
        if self._announcer is not None:
            self._announcer.end()

    def rule(self, request: CallRequest) -> Ruling:
        """Judge a request. Every failure results in a denial."""
        # Also if the clock was set back.
        if not -LOOK_S < request.at - self._looked_at < LOOK_S:
            self._look(request.at)
        if self.later.waiting and self.policy.looks_at_facts():
            # Facts from results that the agent has already read must count for this call.
            self.later.run()
        try:
            ruling = self.judge.judge(request)
        except Exception:  # noqa: BLE001 - a judge that fails must deny, not forward
            self.note(
                frame_refused(
                    request.at,
                    request.server,
                    request.session,
                    direction=AGENT_TO_SERVER,
                    check="judge_failed",
                    kind="internal_error",
                    size=request.size,
                    method=request.method,
                )
            )
            verdict = Verdict(DENY, "internal", "internal_error", "the judge failed")
            return Ruling(verdict, "", ())
        contents = self.policy.contents
        if contents is not None and contents.records_arguments(request.server):
            self.later.put_call(request, ruling)
        if self.draw is None and self.trace is None:
            # The common case without tracing: no function call per event.
            self._queue += ruling.records
            return ruling
        return self._queue_ruling(ruling)

    def _queue_ruling(self, ruling: Ruling) -> Ruling:
        """Queue the events of a ruling, and add the trace context to a forwarded call."""
        for record in ruling.records:
            self._put(record)
        if self.trace is None or ruling.verdict.action != FORWARD:
            return ruling
        return ruling._replace(verdict=ruling.verdict._replace(trace=self.trace(ruling.call_id)))

    def _look(self, at: float) -> None:
        """Apply changed stop orders and policy files, at most a few times per second."""
        if -LOOK_S < at - self._looked_at < LOOK_S:
            return
        self._looked_at = at
        if self.stop_watch is not None:
            self.stop_watch.look(at, self._stop, self.note)
        if self.watch is not None and not 0 <= at - self._watched_at < LOOK_EVERY_S:
            self._watched_at = at
            self.watch(at)
        if self.definitions is not None:
            self.definitions.look(at)

    def _stop(self, stops: Stops) -> None:
        self.judge.stops = stops or None

    def establish(
        self, principal: str, facts: Iterable[str], at: float, *, cause: str = ""
    ) -> None:
        """Let facts hold for a principal, because of what was found in a result.

        Call this before the result is passed on. ``cause`` names the server or the check.

        Raises:
            StoreError: other gates cannot be told, so the result must not be passed on.
        """
        window_s = self.policy.fact_window_s()
        self.judge.facts.establish(principal, facts, at, window_s=window_s, cause=cause)

    def hold(self, session: str, command: AskPeople) -> tuple[Ruling | None, list[Told]]:
        """Request approval for a held call, and turn it into a task if its caller accepts tasks.

        Returns a ruling if the call is decided at once; otherwise the events for the session
        that created the task.
        """
        # Reserved first: the task owns the approval request, so that it survives a restart.
        task_id = self.tasks.reserve(command)
        owner = self.tasks.owner_of(task_id)
        ruling = self.ask(command.call_id, command.workflow, command.at, owner=owner)
        held = self.judge.open_call(command.call_id)
        if ruling is not None or not task_id or held is None:
            return ruling, []
        return None, self.tasks.make(session, command, held.call, task_id)

    def ask(self, call_id: str, workflow: str, at: float, *, owner: str = "") -> Ruling | None:
        """Request approval for a held call; ``owner`` owns the request, or this process does.

        Returns None while the decision is pending.
        """
        held = self.judge.open_call(call_id)
        if held is None:
            return None
        try:
            decision = self.approvals.ask(call_id, held, workflow, at, owner=owner)
        except StoreError:
            decision = refusal("service_unavailable", "the approvals cannot be stored")
        facts = self.approvals.facts(call_id)
        record = self.judge.asked(call_id, workflow, facts, at) if facts else None
        if record is not None:
            self._put(record)
        if decision is None:
            self.judge.pack(call_id)
            return None
        return self._settle(call_id, decision, at)

    def request_states(self, server: str, principal: str) -> RequestStates | None:
        """Return the sealed request states of a principal; None leaves them to the session."""
        return self.seals.of(server, principal) if self.seals is not None else None

    def settled(self, at: float) -> list[Ruling]:
        """Return the rulings on held calls that were decided since the last poll."""
        self._look(at)
        self.take_reports()
        return [
            self._settle(call_id, decision, at) for call_id, decision in self.approvals.poll(at)
        ]

    def take_reports(self) -> bool:
        """Queue the events that other threads report; return whether there were any."""
        reported = self._reports()
        for record in reported:
            if record.type == CALL_END:
                # The end of a call whose gate died: once written, it no longer counts as running.
                self._executing.add(record.body["call"]["call_id"])
            self.note(record)
        return bool(reported)

    def withdraw(self, call_id: str, reason: str, at: float) -> None:
        """Withdraw the approval request of a held call and record the withdrawal."""
        votes = self.approvals.withdraw(call_id, reason, at)
        decision = refusal("approval_withdrawn", reason, votes)
        for record in self.judge.settle(call_id, decision, at).records:
            self._put(record)

    def suspend(self, call_id: str, at: float) -> None:
        """Record the end of a task's call in this run: the gate stops, the task stays held.

        Every call that a run starts must also end in that run's record.
        """
        held = self.judge.open_call(call_id)
        if held is None:
            return
        error = {"class": POLICY_BLOCK, "kind": "service_unavailable", "message": SUSPENDED}
        self.note(
            call_ended(
                at,
                held.call.server,
                held.call.session,
                call_id=call_id,
                tool=held.call.name,
                status=CANCELLED,
                latency_ms=round((at - held.at) * 1000),
                size=0,
                error=error,
            )
        )

    def screen(
        self,
        server: str,
        session: str,
        method: str,
        entries: tuple[dict[str, Json], ...],
        at: float,
        *,
        is_last: bool = True,
        is_shown: bool = True,
    ) -> frozenset[str]:
        """Return what is hidden from the agent: names in a list, or a server's instructions.

        ``is_last`` says that no further page follows. A list that is not shown to an agent, only
        learned from, is not recorded.
        """
        if self.definitions is not None:
            self.definitions.listed(server, method, entries, at, is_last=is_last)
        if method in INTRODUCTIONS:
            hides = self.definitions is not None and self.definitions.hides_instructions(server)
            return frozenset({INSTRUCTIONS}) if hides else frozenset()
        hidden, record = self.judge.screen(server, session, method, entries, at)
        if is_shown:
            self.note(record)
        return hidden

    def note(self, record: Record) -> None:
        """Queue an event that a session or a listener reports."""
        # First, because the judge acts on some messages: folding must not keep them from it.
        record = self.judge.note(record)
        if record.type == CALL_END:
            if self.draw is not None:
                self.draw(record)
            self._queue.append(record)
            return
        if record.type in SERVER_EVENTS:
            self._server_changed(record)
        # Traffic is folded into counts: a server that sends notifications in a loop, or a port
        # scan, would flood the record.
        if is_repeatable(record):
            record = with_masked_method(record, self.judge.recorded_name)
            if record.type == FRAME_REFUSED:
                record = with_masked_start(record, self.policy.redactor.mask_text)
            for one in self._repeated.take(record):
                self._put(one)
        else:
            self._put(record)

    def _server_changed(self, record: Record) -> None:
        """Tell the operator and the readers of the announcement about a server's state."""
        if self._announcer is not None and self._started_at:
            self._announcer.server_changed(record)
        if self.on_server is not None:
            self.on_server(record)

    def server_states(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the servers as ``status`` shows them, by name."""
        return self._announcer.servers if self._announcer is not None else {}

    def note_error(self, server: str, session: str, method: str, kind: str, at: float) -> str:
        """Record that a request is answered with an error; return the id to tell the agent."""
        ident = self.errors.next()
        failed = request_failed(at, server, session, method=method, kind=kind, correlation_id=ident)
        self.note(failed)
        return ident

    def flush(self) -> None:
        """Write the queued events.

        Raises:
            RecordError: they could not be written, and the config says to refuse calls then.
        """
        if self._repeated.is_behind and self._queue:
            for record in self._repeated.due(self._queue[-1].at):
                self._put(record)
        queue, self._queue = self._queue, []
        lost, self._lost_quietly = self._lost_quietly, False
        try:
            if queue:
                self._writer.write(queue)
        except RecordError:
            if self.refuses_unrecorded():
                self._record_failed_at = monotonic()
                self._lose(queue)
                raise
        self._tell(queue)
        # Raised only now: what this flush has written is on the record and must be counted.
        if lost:
            raise RecordError("calls that were to go on are not on the record")
        if self._unrecorded:
            self._unrecorded -= _calls_in(queue, CALL_END)
        if self._executing:
            ended = self._executing & _calls_in(queue, CALL_END)
            self._executing -= ended
            self.approvals.ended(ended)

    @property
    def can_record(self) -> bool:
        """Whether calls are accepted: False for a while after they were refused unrecorded.

        Not for longer, because only another call shows whether the record can be written again.
        """
        return monotonic() - self._record_failed_at > RECORD_PAUSE_S

    def refuses_unrecorded(self) -> bool:
        """Tell whether a call that cannot be recorded is refused under the policy in force."""
        return self._refuse_unrecorded and self.policy.profile == PRODUCTION

    def flush_quietly(self) -> None:
        """Write the queued events when the caller itself is not about to forward a call.

        If the write loses events of calls that another driver has queued, the next ``flush``
        raises, so that those calls are refused.
        """
        queue, lost = self._queue, self._lost_quietly
        try:
            self.flush()
        except RecordError:
            self._lost_quietly = lost or any(record.type in _ALLOWING for record in queue)

    def _settle(self, call_id: str, decision: Decision, at: float) -> Ruling:
        votes = decision.votes
        # Three checks before an approved call runs: it is on the record, its approval was not
        # used before, and its task, if it has one, was not cancelled in the meantime.
        if call_id in self._unrecorded:
            decision = refusal("service_unavailable", "the call is not on the record")
            self.approvals.withdraw(call_id, decision.reason, at)
        # ``use`` is atomic in the store, so an approval cannot run a call in two processes.
        if decision.approved:
            decision = self.approvals.use(call_id) or decision
            held = self.judge.open_call(call_id)
            # The call of a held result has run already.
            if held is None or not held.answers:
                self._executing.add(call_id)
        if decision.approved and not self.tasks.started(call_id, at):
            decision = refusal("approval_withdrawn", "the task waits no more")
        return self._queue_ruling(self.judge.settle(call_id, decision._replace(votes=votes), at))

    def _put(self, record: Record) -> None:
        if self.draw is not None:
            self.draw(record)
        self._queue.append(record)

    def _tell(self, records: Sequence[Record]) -> None:
        """Count events and pass them to the observer."""
        self.tally.count(*records)
        observe = self._observe
        if observe is not None:
            for record in records:
                observe(record)

    def _lose(self, records: Sequence[Record]) -> None:
        """Handle events that could not be written: the calls that they allow are refused.

        A call that the observer saw begin must also be seen to end, so those events are still
        passed on.
        """
        self._unrecorded |= _calls_in(records, CALL_START, CALL_DECISION)
        self._tell(
            [
                _not_executed(record)
                for record in records
                if record.type in {APPROVAL_DECIDED, CALL_END}
                and record.body["call"]["call_id"] not in self._unrecorded
            ]
        )
        self._unrecorded -= _calls_in(records, CALL_END)


def _calls_in(records: Sequence[Record], *types: str) -> set[str]:
    """Return the call ids in events of these types."""
    return {record.body["call"]["call_id"] for record in records if record.type in types}


def _not_executed(record: Record) -> Record:
    """Return an event corrected for a failed write: an approved call was not executed."""
    if record.type != APPROVAL_DECIDED:
        return record
    approval = {**record.body["approval"], "executes": False}
    return record._replace(body={**record.body, "approval": approval})
