"""The tasks of a gate, carried out: the steps of the task table become saves, answers and endings.

Drivers speak to it in the session's own commands and get the session's own events back,
each with the line it belongs to, because one gate may hold the tasks of many sessions.
Where callers are known by name, tasks are kept in a store: another process of the same
gate answers for them too, and carries them on when this one has died.
"""

import json
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from thoughtgate.core import task_codec as codec
from thoughtgate.core.approval import DURABLE
from thoughtgate.core.commands import AskPeople, AskTask, EndTask
from thoughtgate.core.events import AgentSent, CallJudged, Event, TaskAnswered, TaskMade
from thoughtgate.core.task import (
    CANCELLED,
    DEFAULT_TTL_S,
    HELD,
    MAX_TTL_S,
    Task,
    clamp_ttl,
    requested_ttl,
    without_task,
)
from thoughtgate.core.task_table import (
    AnswerTask,
    Caller,
    ForgetTask,
    ResumeTask,
    SaveTask,
    StopTask,
    TaskStep,
    TaskTable,
)
from thoughtgate.errors import StoreError
from thoughtgate.policy.call import DENY, Call, Verdict
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render_cancelled


class Keeper(Protocol):
    """Where tasks are kept."""

    @property
    def is_durable(self) -> bool:
        """Whether what is saved outlives the process."""

    def save(self, task: Task) -> bool:
        """Keep a task as it is now; False when another process has taken it elsewhere."""

    def forget(self, task_id: str) -> None:
        """Drop a task."""

    def take_over(self, now: float) -> list[Task]:
        """Return the tasks that nobody carries any more; from now on this process does."""

    def changed(self) -> bool:
        """Tell whether anything changed since the last time this was asked."""

    def find(self, task_id: str) -> Task | None:
        """Return a task, whichever process carries it."""

    def of_principal(self, principal: str) -> list[Task]:
        """Return the tasks of one principal, whichever process carries them."""

    def close(self) -> None:
        """Let go of it."""


class NoKeeper:
    """Tasks that live no longer than the gate."""

    is_durable = False

    def save(self, task: Task) -> bool:
        """Keep nothing."""
        del task
        return True

    def forget(self, task_id: str) -> None:
        """There is nothing to forget."""

    def take_over(self, now: float) -> list[Task]:
        """There is nothing to carry on."""
        del now
        return []

    def changed(self) -> bool:
        """Nothing changes."""
        return False

    def find(self, task_id: str) -> Task | None:
        """There is none but those in the table."""
        del task_id
        return None

    def of_principal(self, principal: str) -> list[Task]:
        """As above."""
        del principal
        return []

    def close(self) -> None:
        """There is nothing to let go of."""


class Line(NamedTuple):
    """A request on one of the lines that the gate serves."""

    session: str
    key: RequestId


Told = tuple[str, Event]
"""A session's id, and what its session is to be told."""


class TaskRunner:
    """Keeps the tasks of every session of one gate."""

    def __init__(
        self,
        book: TaskTable,
        keeper: Keeper,
        *,
        new_id: Callable[[], str],
        withdraw: Callable[[str, str, float], None],
        default_ttl_s: float = DEFAULT_TTL_S,
        max_ttl_s: float = MAX_TTL_S,
    ) -> None:
        self._book = book
        self._keeper = keeper
        self._new_id = new_id
        self._withdraw = withdraw
        self._default_ttl_s = default_ttl_s
        self._max_ttl_s = max_ttl_s
        self._sessions: dict[str, str] = {}
        """The session in which a call that is a task was made."""
        self._carried: set[str] = set()
        """Tasks that this process carries; all others in the table are shown only."""
        self._late: list[Told] = []

    # A call becomes a task.

    def reserve(self, command: AskPeople) -> str:
        """Return an id for the task that a held call may become; empty when it becomes none."""
        return self._new_id() if command.params is not None else ""

    def owner_of(self, task_id: str) -> str:
        """Return in whose name people are asked; empty when the question dies with the process."""
        return DURABLE + task_id if task_id and self._keeper.is_durable else ""

    def make(self, session: str, command: AskPeople, call: Call, task_id: str = "") -> list[Told]:
        """Answer a held call's request with a task."""
        params = command.params or {}
        at = command.at
        try:
            ttl_s = clamp_ttl(requested_ttl(params), self._default_ttl_s, self._max_ttl_s)
        except ValueError as error:
            body = codec.refused("invalid_params", modern=command.modern, text=str(error))
            return [(session, TaskMade(command.key, body, at))]
        task = Task(
            task_id or self._new_id(),
            call.principal,
            session,
            call.server,
            call.name,
            command.call_id,
            json.dumps(without_task(params)),
            at,
            at,
            ttl_s,
            command.modern,
        )
        steps = self._book.create(Line(session, command.key), task, at)
        if any(isinstance(step, SaveTask) and not self._save(step.task) for step in steps):
            self._book.drop(task.id)
            body = codec.refused("service_unavailable", modern=task.modern, task=task)
            return [(session, TaskMade(command.key, body, at))]
        if self._book.by_call(command.call_id) is not None:
            self._sessions[command.call_id] = session
            self._carried.add(task.id)
        rest = [step for step in steps if not isinstance(step, SaveTask)]
        return [
            (line.session, TaskMade(line.key, body, at)) for line, body in self._answers(rest, [])
        ]

    # After a restart.

    def recover(self, at: float) -> list[Task]:
        """Take over what a dead process left; return the calls that must be judged and asked again.

        What ran when that process died is never run again: whether it took effect is not known.

        Raises:
            StoreError: what was left cannot be read.
        """
        for task in self._keeper.take_over(at):
            self._book.mirror(task)
            self._carried.add(task.id)
        steps = self._book.recover(at)
        self._answers(steps, [])
        return [step.task for step in steps if isinstance(step, ResumeTask)]

    def resumed(self, task_id: str, call_id: str, session: str) -> None:
        """The call of a recovered task was judged again; it waits in this session now."""
        self._sessions[call_id] = session
        self._answers(self._book.rejudged(task_id, call_id), [])

    # What becomes of it.

    def started(self, call_id: str, at: float) -> bool:
        """The approval landed: only True lets a call that is a task run."""
        task = self._book.by_call(call_id)
        if task is None:
            return True
        steps = self._book.started(task.id, at)
        if steps and all(self._save(step.task) for step in steps if isinstance(step, SaveTask)):
            return True
        self._late += self._tell(self._refresh(task.id), at)
        return False

    def ended(self, command: EndTask) -> list[Told]:
        """The server has answered a call that is a task, or the gate has in its place."""
        call_id, body, at = command
        task = self._book.by_call(call_id)
        self._sessions.pop(call_id, None)
        if task is None:
            return []
        steps: list[TaskStep] = []
        if task.phase == HELD and "error" in body:
            kind = ((body.get("error") or {}).get("data") or {}).get("kind", "approval_rejected")
            steps = self._book.failed(task.id, kind, at)
        else:
            # A shim may hear of the approval before its task is made: then it ran all the same.
            steps = [
                *self._book.started(task.id, at),
                *self._book.finished(task.id, _outcome(body), at),
            ]
        return self._tell(steps, at)

    @property
    def is_durable(self) -> bool:
        """Whether tasks outlive the process."""
        return self._keeper.is_durable

    @property
    def has_unfinished(self) -> bool:
        """Whether any task is not over."""
        return bool(self._book.unfinished())

    def is_task(self, call_id: str) -> bool:
        """Tell whether a held call is a task."""
        return call_id in self._sessions

    def survives(self, call_id: str) -> bool:
        """Tell whether a held call goes on after this process."""
        return self._keeper.is_durable and self.is_task(call_id)

    # Callers ask about tasks.

    def answer(self, session: str, caller: Caller, command: AskTask) -> list[Told]:
        """Answer a request about tasks; nothing yet when it blocks on a result."""
        if command.body is not None:
            self._show_all(caller)
            merged = codec.merged_list(_outcome(command.body), self._book.own(caller))
            return [(session, TaskAnswered(command.key, merged, command.at))]
        if command.method == "tasks/list":
            self._show_all(caller)
        task_id = command.params.get("taskId")
        if isinstance(task_id, str) and task_id not in self._carried:
            self._refresh(task_id)
        line = Line(session, command.key)
        steps = self._book.request(
            line, caller, command.method, command.params, command.at, modern=command.modern
        )
        return self._tell(steps or [], command.at)

    def left(self, session: str, key: RequestId) -> None:
        """A caller no longer blocks on a result."""
        self._book.left(Line(session, key))

    def tick(self, at: float) -> list[Told]:
        """Forget what has lived its time, and see what other processes did."""
        if self._book.is_empty and not self._late and not self._keeper.is_durable:
            return []
        told, self._late = self._late, []
        if self._has_changed():
            told += self._tell(self._news(at), at)
        return told + self._tell(self._book.ticked(at), at)

    def close(self) -> None:
        """Nothing more will come."""
        self._keeper.close()

    # Other processes of the same gate.

    def _show_all(self, caller: Caller) -> None:
        if caller.authenticated:
            try:
                found = self._keeper.of_principal(caller.principal)
            except StoreError:
                return
            for task in found:
                if task.id not in self._carried:
                    self._book.mirror(task)

    def _refresh(self, task_id: str) -> list[TaskStep]:
        """Show a task as it is kept; nothing when it is not kept or cannot be read."""
        try:
            found = self._keeper.find(task_id)
        except StoreError:
            return []
        return self._book.mirror(found) if found is not None else []

    def _news(self, at: float) -> list[TaskStep]:
        steps: list[TaskStep] = []
        for task in self._book.unfinished():
            if task.id in self._carried:
                steps += self._cancelled_elsewhere(task, at)
            elif self._book.waits_for(task.id):
                steps += self._refresh(task.id)
        return steps

    def _cancelled_elsewhere(self, task: Task, at: float) -> list[TaskStep]:
        try:
            kept = self._keeper.find(task.id)
        except StoreError:
            return []
        if kept is None or kept.phase != CANCELLED:
            return []
        return [StopTask(task, "the caller cancelled", at), *self._book.mirror(kept)]

    def _has_changed(self) -> bool:
        try:
            return self._keeper.changed()
        except StoreError:
            return False

    # Steps.

    def _save(self, task: Task) -> bool:
        try:
            return self._keeper.save(task)
        except StoreError:
            return False

    def _forget(self, task_id: str) -> None:
        self._carried.discard(task_id)
        try:
            self._keeper.forget(task_id)
        except StoreError:
            # It is past its time: whoever reads the store next drops it.
            return

    def _tell(self, steps: list[TaskStep], at: float) -> list[Told]:
        told: list[Told] = []
        for line, body in self._answers(steps, told):
            told.append((line.session, TaskAnswered(line.key, body, at)))
        return told

    def _answers(
        self, steps: Sequence[TaskStep], told: list[Told]
    ) -> list[tuple[Line, dict[str, Any]]]:
        """Carry out what concerns the store and the running calls; return what is to be answered."""
        answers: list[tuple[Line, dict[str, Any]]] = []
        for step in steps:
            if isinstance(step, SaveTask):
                self._save(step.task)
            elif isinstance(step, ForgetTask):
                self._forget(step.task_id)
            elif isinstance(step, StopTask):
                told += self._stop(step)
            elif isinstance(step, AnswerTask):
                answers.append((_line(step.key), step.body))
        return answers

    def _stop(self, step: StopTask) -> list[Told]:
        """Nobody wants the call: it is not made, or the server is told to drop it."""
        call_id, at = step.task.call_id, step.at
        session = self._sessions.pop(call_id, None)
        if session is None:
            return []
        if step.task.phase == HELD:
            self._withdraw(call_id, step.reason, at)
            verdict = Verdict(DENY, "approval", "task_cancelled", step.reason)
            return [(session, CallJudged(call_id, verdict, call_id, at))]
        return [(session, AgentSent(render_cancelled(f"tg-{call_id}", step.reason), at))]


def _line(key: Hashable) -> Line:
    """Return a key of the table as what this runner always gives it."""
    if not isinstance(key, Line):
        raise TypeError(key)
    return key


def _outcome(body: dict[str, Any]) -> dict[str, Any]:
    """Return what a response says, without its envelope."""
    return {name: body[name] for name in ("result", "error") if name in body}
