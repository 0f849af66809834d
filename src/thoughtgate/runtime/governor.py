"""The governor: judge, record and approvals in one hand, for every driver.

Whatever carries traffic (the shim, the governance service, the gateway, the hub) asks
here and nowhere else. ``rule``, ``screen`` and ``note`` queue what must be on record;
``flush`` writes it. A driver sends nothing on before ``flush`` has returned, and when
``flush`` raises it refuses what it was about to send.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from thoughtgate.core.envelope import Run
from thoughtgate.core.judge import Decision, Judge, OpenCall, Question, Ruling
from thoughtgate.core.record import (
    AGENT_TO_SERVER,
    CALL_DECISION,
    CALL_END,
    CALL_START,
    Record,
    frame_refused,
)
from thoughtgate.core.tally import Tally, run_ended, run_started
from thoughtgate.core.task_book import TaskBook
from thoughtgate.errors import RecordError, StoreError
from thoughtgate.policy.call import DENY, PRODUCTION, Verdict
from thoughtgate.policy.policy import Policy
from thoughtgate.runtime.task_desk import Keeper, NoKeeper, TaskDesk
from thoughtgate.stores.tasks import new_task_id
from thoughtgate.wire.message import Json

_ENVELOPE = ("jsonrpc", "id")
"""Members of an answer that belong to the line, not to what the server said."""


class Writer(Protocol):
    """Where records go."""

    def write(self, records: Sequence[Record]) -> None:
        """Put events on the record, all or none."""

    def close(self) -> None:
        """Nothing more will come."""


class Desk(Protocol):
    """Where people are asked."""

    def ask(self, call_id: str, open_call: OpenCall, workflow: str, at: float) -> Decision | None:
        """Ask; return a decision if there is one already."""

    def facts(self, call_id: str) -> dict[str, Any]:
        """Return what the record says about the question: its id, workflow, expiry."""

    def poll(self, at: float) -> list[tuple[str, Decision]]:
        """Return what was decided since the last look."""

    def use(self, call_id: str) -> bool:
        """Spend an approval, exactly once."""

    def withdraw(self, call_id: str, reason: str, at: float) -> None:
        """Take a question back."""

    def close(self, at: float) -> None:
        """Withdraw everything this desk has asked."""


class NoDesk:
    """There is nobody to ask: whatever needs a person is refused."""

    def ask(self, call_id: str, open_call: OpenCall, workflow: str, at: float) -> Decision | None:
        """Refuse at once."""
        del call_id, open_call, workflow, at
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

    def withdraw(self, call_id: str, reason: str, at: float) -> None:
        """Nothing was asked."""

    def close(self, at: float) -> None:
        """Nothing is open."""


class Governor:
    """Judges and records for one run."""

    def __init__(
        self,
        judge: Judge,
        writer: Writer,
        run: Run,
        *,
        desk: Desk | None = None,
        tasks: Keeper | None = None,
        observe: Callable[[Record], None] | None = None,
        on_failure: str = "refuse",
    ) -> None:
        self.judge = judge
        self.run = run
        self.desk: Desk = desk if desk is not None else NoDesk()
        self.tasks = TaskDesk(
            TaskBook(),
            tasks if tasks is not None else NoKeeper(),
            new_id=new_task_id,
            withdraw=self.withdraw,
        )
        self.tally = Tally()
        self._writer = writer
        self._observe = observe
        self._refuse_unrecorded = on_failure == "refuse"
        self._queue: list[Record] = []
        self._unrecorded: set[str] = set()
        """Open calls of which something could not be written: whoever approves them, they stay."""
        self._started_at = 0.0
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
        self.flush()

    def finish(self, status: str, at: float, reason: str = "") -> None:
        """Close the run on the record; always its last event."""
        with contextlib.suppress(StoreError):
            # Questions that cannot be taken back now expire; the run must still end on record.
            self.desk.close(at)
        self.flush_quietly()
        ended = run_ended(
            at, self._started_at, status, self.tally, server=self._server, reason=reason
        )
        self._put(ended)
        self.flush_quietly()
        self._writer.close()

    def rule(self, question: Question) -> Ruling:
        """Judge a request. Whatever fails, the answer is a denial."""
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
        for record in ruling.records:
            self._put(record)
        return ruling

    def ask(self, call_id: str, workflow: str, at: float) -> Ruling | None:
        """Ask people about a held call; None while they think."""
        held = self.judge.open_call(call_id)
        if held is None:
            return None
        try:
            decision = self.desk.ask(call_id, held, workflow, at)
        except StoreError:
            decision = Decision(
                approved=False, kind="service_unavailable", reason="the approvals cannot be stored"
            )
        facts = self.desk.facts(call_id)
        record = self.judge.asked(call_id, workflow, facts, at) if facts else None
        if record is not None:
            self._put(record)
        return None if decision is None else self._settle(call_id, decision, at)

    def settled(self, at: float) -> list[Ruling]:
        """Return the rulings on held calls that people have decided since the last look."""
        return [self._settle(call_id, decision, at) for call_id, decision in self.desk.poll(at)]

    def withdraw(self, call_id: str, reason: str, at: float) -> None:
        """The caller is gone: take the question back and put that on record."""
        self.desk.withdraw(call_id, reason, at)
        decision = Decision(approved=False, kind="approval_withdrawn", reason=reason)
        for record in self.judge.settle(call_id, decision, at).records:
            self._put(record)

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
        """Put an event on the record that a session reports."""
        if self._unrecorded and record.type == CALL_END:
            self._unrecorded.discard(record.body["call"]["call_id"])
        self._put(self.judge.note(record))

    def flush(self) -> None:
        """Write what is queued.

        Raises:
            RecordError: it could not be written and the config says to refuse then.
        """
        queue, self._queue = self._queue, []
        if not queue:
            return
        try:
            self._writer.write(queue)
        except RecordError:
            if self._refuse_unrecorded and self.policy.profile == PRODUCTION:
                self._unrecorded |= {
                    record.body["call"]["call_id"]
                    for record in queue
                    if record.type in {CALL_START, CALL_DECISION}
                }
                raise

    def flush_quietly(self) -> None:
        """Write what is queued where nothing depends on it any more."""
        try:
            self.flush()
        except RecordError:
            return

    def _settle(self, call_id: str, decision: Decision, at: float) -> Ruling:
        if call_id in self._unrecorded:
            decision = Decision(
                approved=False, kind="service_unavailable", reason="the call is not on the record"
            )
            self.desk.withdraw(call_id, decision.reason, at)
        if decision.approved and not self.desk.use(call_id):
            decision = Decision(
                approved=False, kind="approval_withdrawn", reason="the approval was already used"
            )
        ruling = self.judge.settle(call_id, decision, at)
        for record in ruling.records:
            self._put(record)
        return ruling

    def _put(self, record: Record) -> None:
        self.tally.count(record)
        if self._observe is not None:
            self._observe(record)
        self._queue.append(record)
