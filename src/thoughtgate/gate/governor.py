"""The governor: judge, record and approvals in one hand, for every driver.

Whatever carries traffic (the shim, the governance service, the gateway, the hub) asks
here and nowhere else. ``rule``, ``screen`` and ``note`` queue what must be on record;
``flush`` writes it, and what is written is counted and told to who observes. A driver sends
nothing on before ``flush`` has returned, and when ``flush`` raises it refuses what it was
about to send.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from thoughtgate.core.approval import Vote
from thoughtgate.core.commands import AskPeople, PersonAnswered
from thoughtgate.core.elicitation import Promises
from thoughtgate.core.envelope import Run
from thoughtgate.core.judge import CallRequest, Decision, Judge, OpenCall, Ruling
from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    APPROVAL_DECIDED,
    CALL_DECISION,
    CALL_END,
    CALL_START,
    CANCELLED,
    Record,
    call_ended,
    frame_refused,
)
from thoughtgate.core.rejected_clients import RejectedClients, is_rejected_client
from thoughtgate.core.run_summary import POLICY_BLOCK, RunSummary, run_ended, run_started
from thoughtgate.core.task import DEFAULT_TTL_S, MAX_TTL_S
from thoughtgate.core.task_table import TaskLimits, TaskTable
from thoughtgate.errors import RecordError, StoreError
from thoughtgate.gate.approvals.prompt_seals import PromptSeals
from thoughtgate.gate.task_runner import Keeper, NoKeeper, TaskRunner, Told
from thoughtgate.policy.call import DENY, FORWARD, PRODUCTION, Verdict
from thoughtgate.policy.policy import Policy
from thoughtgate.stores.tasks import new_task_id
from thoughtgate.wire.message import Json

_ALLOWING = frozenset({CALL_START, CALL_DECISION, APPROVAL_DECIDED})
"""Types of events that must be on the record before a call goes on."""

_ENVELOPE = ("jsonrpc", "id")
"""Members of an answer that belong to the line, not to what the server said."""

SUSPENDED = "the gate stopped; the task waits for the next one"


LOOK_EVERY_S = 1.0
"""How often the policy's files are looked at: a few system calls, and a person waits for the effect."""


class Writer(Protocol):
    """Where records go."""

    def write(self, records: Sequence[Record]) -> None:
        """Put events on the record, all or none."""

    def close(self) -> None:
        """Nothing more will come."""


class Approvals(Protocol):
    """Where people are asked."""

    def ask(
        self, call_id: str, open_call: OpenCall, workflow: str, at: float, *, owner: str = ""
    ) -> Decision | None:
        """Ask in the name of ``owner``; return a decision if there is one already."""

    def facts(self, call_id: str) -> dict[str, Any]:
        """Return what the record says about the question: its id, workflow, expiry."""

    def poll(self, at: float) -> list[tuple[str, Decision]]:
        """Return what was decided since the last look."""

    def use(self, call_id: str) -> bool:
        """Spend an approval, exactly once."""

    def withdraw(self, call_id: str, reason: str, at: float) -> tuple[Vote, ...]:
        """Take a question back; return the answers that it had by then."""

    def close(self, at: float) -> None:
        """Withdraw every approval request of this process."""


@runtime_checkable
class Prompter(Protocol):
    """An approval queue that can have the agent's own prompt ask."""

    def prompt(self, call_id: str) -> str:
        """Return the question, where the workflow allows it; else empty."""

    def answer(self, command: PersonAnswered) -> None:
        """Count an answer."""


class NoApprovals:
    """There is nobody to ask: whatever needs a person is refused."""

    def ask(
        self, call_id: str, open_call: OpenCall, workflow: str, at: float, *, owner: str = ""
    ) -> Decision | None:
        """Refuse at once."""
        del call_id, open_call, workflow, at, owner
        return Decision(approved=False, kind="approval_timeout", reason="nobody can be asked here")

    def facts(self, call_id: str) -> dict[str, Any]:
        """Nobody was asked."""
        del call_id
        return {}

    def poll(self, at: float) -> list[tuple[str, Decision]]:
        """Nothing is ever decided later."""
        del at
        return []

    def use(self, call_id: str) -> bool:
        """There is no approval to spend."""
        del call_id
        return False

    def withdraw(self, call_id: str, reason: str, at: float) -> tuple[Vote, ...]:
        """Nothing was asked."""
        del call_id, reason, at
        return ()

    def close(self, at: float) -> None:
        """Nothing is open."""


class Announcer(Protocol):
    """Lets people see that this gate runs."""

    def begin(self, kind: str, server: str) -> None:
        """The run begins; ``kind`` is the command."""

    def end(self) -> None:
        """The run is over."""


class Governor:
    """Judges and records for one run."""

    def __init__(
        self,
        judge: Judge,
        writer: Writer,
        run: Run,
        *,
        approvals: Approvals | None = None,
        tasks: Keeper | None = None,
        task_limits: TaskLimits | None = None,
        task_ttl_s: tuple[float, float] = (DEFAULT_TTL_S, MAX_TTL_S),
        observe: Callable[[Record], None] | None = None,
        reports: Callable[[], Sequence[Record]] = tuple,
        on_failure: str = "refuse",
        announcer: Announcer | None = None,
    ) -> None:
        """Judge by ``judge``, record with ``writer``; ``task_ttl_s`` is the default and the maximum."""
        self.judge = judge
        self.run = run
        self.approvals: Approvals = approvals if approvals is not None else NoApprovals()
        self.tasks = TaskRunner(
            TaskTable(limits=task_limits),
            tasks if tasks is not None else NoKeeper(),
            new_id=new_task_id,
            withdraw=self.withdraw,
            default_ttl_s=task_ttl_s[0],
            max_ttl_s=task_ttl_s[1],
        )
        self.tally = RunSummary()
        self._writer = writer
        self._observe = observe
        self._reports = reports
        self._announcer = announcer
        self._refuse_unrecorded = on_failure == "refuse"
        self._queue: list[Record] = []
        self._rejected = RejectedClients()
        self._lost_quietly = False
        """Whether calls were lost that somebody is about to send on."""
        self._unrecorded: set[str] = set()
        """Open calls of which something could not be written: whoever approves them, they stay."""
        self._started_at = 0.0
        self.watch: Callable[[float], None] | None = None
        """Called before a call is judged, at most once a second: the rules may have changed."""
        self.seals: PromptSeals | None = None
        """For prompts whose answers may come to another process, or to none that remembers them."""
        self.draw: Callable[[Record], None] | None = None
        """Told of every event as it happens, written or not: a call carries its trace, so its spans
        begin before it is on the record."""
        self.trace: Callable[[str], str] | None = None
        """Returns the trace context of a call that goes to the server, where calls are traced."""
        self._look_at = 0.0
        self._server = ""

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.judge.policy

    def start(self, at: float, *, server: str = "", **facts: Any) -> None:
        """Open the run on the record; ``facts`` say what runs.

        Raises:
            RecordError: it cannot be written, so nothing may start.
        """
        self._started_at = at
        self._server = server
        self._put(run_started(at, self.policy, server=server, **facts))
        # Whoever verifies the record must know of the gate for as long as it is open.
        if self._announcer is not None:
            self._announcer.begin(str(facts.get("command", "")), server)
        try:
            self.flush()
        except RecordError:
            self._withdraw_presence()
            raise

    def finish(self, status: str, at: float, reason: str = "") -> None:
        """Close the run on the record; always its last event."""
        with contextlib.suppress(StoreError):
            # Questions that cannot be taken back now expire; the run must still end on record.
            self.approvals.close(at)
        self.tasks.close()
        for record in self._rejected.rest():
            self._put(record)
        self.flush_quietly()
        ended = run_ended(
            at, self._started_at, status, self.tally, server=self._server, reason=reason
        )
        self._put(ended)
        self.flush_quietly()
        self._writer.close()
        self._withdraw_presence()

    def _withdraw_presence(self) -> None:
        if self._announcer is not None:
            self._announcer.end()

    def rule(self, question: CallRequest) -> Ruling:
        """Judge a request. Whatever fails, the answer is a denial."""
        if question.at >= self._look_at:
            self._look(question.at)
        try:
            ruling = self.judge.judge(question)
        except Exception:  # noqa: BLE001 - a judge that fails must deny, not let through
            self._put(
                frame_refused(
                    question.at,
                    question.server,
                    question.session,
                    direction=AGENT_TO_SERVER,
                    check="judge_failed",
                    kind="internal_error",
                    size=question.size,
                    method=question.method,
                )
            )
            verdict = Verdict(DENY, "internal", "internal_error", "the judge failed")
            return Ruling(verdict, "", ())
        return self._made(ruling)

    def _made(self, ruling: Ruling) -> Ruling:
        """Queue what must be on record of a ruling, and have its call carry its trace."""
        if self.draw is None:
            self._queue += ruling.records
        else:
            for record in ruling.records:
                self._put(record)
        if self.trace is None or ruling.verdict.action != FORWARD:
            return ruling
        return ruling._replace(verdict=ruling.verdict._replace(trace=self.trace(ruling.call_id)))

    def _look(self, at: float) -> None:
        """Let whoever watches the policy's files look at them, now and then."""
        if self.watch is not None and at >= self._look_at:
            self._look_at = at + LOOK_EVERY_S
            self.watch(at)

    def hold(self, session: str, command: AskPeople) -> tuple[Ruling | None, list[Told]]:
        """Ask people about a held call, and make it a task when its caller takes one.

        Returns a ruling if there is one at once; otherwise what the task's maker is told.
        """
        task_id = self.tasks.reserve(command)
        owner = self.tasks.owner_of(task_id)
        ruling = self.ask(command.call_id, command.workflow, command.at, owner=owner)
        held = self.judge.open_call(command.call_id)
        if ruling is not None or not task_id or held is None:
            return ruling, []
        return None, self.tasks.make(session, command, held.call, task_id)

    def ask(self, call_id: str, workflow: str, at: float, *, owner: str = "") -> Ruling | None:
        """Ask people about a held call, in the name of ``owner`` or of this process.

        Returns None while they think.
        """
        held = self.judge.open_call(call_id)
        if held is None:
            return None
        try:
            decision = self.approvals.ask(call_id, held, workflow, at, owner=owner)
        except StoreError:
            decision = Decision(
                approved=False, kind="service_unavailable", reason="the approvals cannot be stored"
            )
        facts = self.approvals.facts(call_id)
        record = self.judge.asked(call_id, workflow, facts, at) if facts else None
        if record is not None:
            self._put(record)
        return None if decision is None else self._settle(call_id, decision, at)

    def prompt(self, call_id: str) -> str:
        """Return what the agent's own prompt may ask about a held call; empty for nothing."""
        return self.approvals.prompt(call_id) if isinstance(self.approvals, Prompter) else ""

    def promises(self, server: str, principal: str) -> Promises | None:
        """Return the states that stand for a principal's calls; None leaves them to the session."""
        return self.seals.of(server, principal) if self.seals is not None else None

    def person_answered(self, command: PersonAnswered) -> None:
        """Count the answer of the person in front of the agent."""
        if isinstance(self.approvals, Prompter):
            self.approvals.answer(command)

    def settled(self, at: float) -> list[Ruling]:
        """Return the rulings on held calls that people have decided since the last look."""
        self._look(at)
        for record in self._reports():
            self.note(record)
        return [
            self._settle(call_id, decision, at) for call_id, decision in self.approvals.poll(at)
        ]

    def withdraw(self, call_id: str, reason: str, at: float) -> None:
        """The caller is gone: take the question back and put that on record."""
        votes = self.approvals.withdraw(call_id, reason, at)
        decision = Decision(approved=False, kind="approval_withdrawn", reason=reason, votes=votes)
        for record in self.judge.settle(call_id, decision, at).records:
            self._put(record)

    def suspend(self, call_id: str, at: float) -> None:
        """The gate stops while a task waits: this run's part of the call has an end on the record."""
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
    ) -> frozenset[str]:
        """Return the names in a list that stay hidden."""
        hidden, record = self.judge.screen(server, session, method, entries, at)
        self._put(record)
        return hidden

    def mask(self, body: dict[str, Json]) -> dict[str, Json]:
        """Return a server's answer without its secrets."""
        said = {name: value for name, value in body.items() if name not in _ENVELOPE}
        masked: dict[str, Json] = self.policy.redactor.mask_value(said)
        return {**{name: body[name] for name in _ENVELOPE if name in body}, **masked}

    def note(self, record: Record) -> None:
        """Put an event on the record that a session or a listener reports."""
        if record.type != CALL_END and is_rejected_client(record):
            for one in self._rejected.take(record):
                self._put(one)
        else:
            self._put(self.judge.note(record))

    def flush(self) -> None:
        """Write what is queued.

        Raises:
            RecordError: it could not be written and the config says to refuse then.
        """
        if self._rejected.is_behind and self._queue:
            for record in self._rejected.due(self._queue[-1].at):
                self._put(record)
        queue, self._queue = self._queue, []
        lost, self._lost_quietly = self._lost_quietly, False
        try:
            if queue:
                self._writer.write(queue)
        except RecordError:
            if self.refuses_unrecorded():
                self._lose(queue)
                raise
        self._tell(queue)
        if lost:
            raise RecordError("calls that were to go on are not on the record")
        if self._unrecorded:
            self._unrecorded -= _calls_in(queue, CALL_END)

    def refuses_unrecorded(self) -> bool:
        """Tell whether a call that cannot be put on record is refused, as things stand."""
        return self._refuse_unrecorded and self.policy.profile == PRODUCTION

    def flush_quietly(self) -> None:
        """Write what is queued where nothing that is written now goes on because of it.

        If calls that others have queued are lost with it, whoever flushes next to send them on
        hears of it.
        """
        queue, lost = self._queue, self._lost_quietly
        try:
            self.flush()
        except RecordError:
            self._lost_quietly = lost or any(record.type in _ALLOWING for record in queue)

    def _settle(self, call_id: str, decision: Decision, at: float) -> Ruling:
        votes = decision.votes
        if call_id in self._unrecorded:
            decision = Decision(
                approved=False, kind="service_unavailable", reason="the call is not on the record"
            )
            self.approvals.withdraw(call_id, decision.reason, at)
        if decision.approved and not self.approvals.use(call_id):
            decision = Decision(
                approved=False, kind="approval_withdrawn", reason="the approval was already used"
            )
        if decision.approved and not self.tasks.started(call_id, at):
            decision = Decision(
                approved=False, kind="approval_withdrawn", reason="the task waits no more"
            )
        return self._made(self.judge.settle(call_id, decision._replace(votes=votes), at))

    def _put(self, record: Record) -> None:
        if self.draw is not None:
            self.draw(record)
        self._queue.append(record)

    def _tell(self, records: Sequence[Record]) -> None:
        """Count what happened, and tell who observes."""
        self.tally.count(*records)
        observe = self._observe
        if observe is not None:
            for record in records:
                observe(record)

    def _lose(self, records: Sequence[Record]) -> None:
        """Events are lost, and what they allow is refused; what was seen to begin still ends."""
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
    """Return the ids of the calls that events of these types are about."""
    return {record.body["call"]["call_id"] for record in records if record.type in types}


def _not_executed(record: Record) -> Record:
    """Return an event as it went after it was lost: nothing that was approved is run."""
    if record.type != APPROVAL_DECIDED:
        return record
    approval = {**record.body["approval"], "executes": False}
    return record._replace(body={**record.body, "approval": approval})
