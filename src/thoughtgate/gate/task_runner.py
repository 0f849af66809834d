"""Task runner: carries out the steps of the task table by saving, answering and stopping tasks.

Drivers pass it the commands of a session and get events for sessions back, each with the name
of its session, because one gate may hold the tasks of many. If callers are authenticated,
tasks are stored: another process of the same gate can answer for them, and takes them over if
this process dies.
"""

import contextlib
import json
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from thoughtgate.core import task_codec as codec
from thoughtgate.core.approval import DURABLE
from thoughtgate.core.commands import AskPeople, AskTask, EndTask
from thoughtgate.core.events import (
    AgentSent,
    CallJudged,
    Event,
    TaskAnswered,
    TaskChanged,
    TaskMade,
)
from thoughtgate.core.open_calls import OpenCall
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
    NotifyTask,
    ResumeTask,
    SaveTask,
    StopTask,
    TaskStep,
    TaskTable,
)
from thoughtgate.errors import StoreError
from thoughtgate.policy.call import DENY, Call, Verdict
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.methods import TASK_RESULTS
from thoughtgate.wire.replies import render_cancelled

LOOK_EVERY_S: Final = 5.0
"""How often a gate looks for tasks of processes that have died."""


class Keeper(Protocol):
    """Stores tasks. The bodies here are those of a keeper that stores nothing."""

    @property
    def is_durable(self) -> bool:
        """Whether stored tasks outlive the process."""

    def save(self, task: Task) -> bool:
        """Store a task's current state; return False if another process has changed it."""
        del task
        return True

    def forget(self, task_id: str) -> None:
        """Delete a task."""

    def has_orphans(self) -> bool:
        """Tell whether there are tasks whose process has died."""
        return False

    def take_over(self, now: float) -> list[Task]:
        """Return tasks whose process has died, and make this process their owner."""
        del now
        return []

    def changed(self) -> bool:
        """Tell whether anything changed since the last call."""
        return False

    def find(self, task_id: str) -> Task | None:
        """Return a task, whichever process owns it."""
        del task_id
        return None

    def of_principal(self, principal: str) -> list[Task]:
        """Return a principal's tasks, whichever process owns them."""
        del principal
        return []

    def close(self) -> None:
        """Close the store."""


class NoKeeper(Keeper):
    """Stores nothing: tasks exist in the table only, and end with the process."""

    is_durable = False

    def forget(self, task_id: str) -> None:
        """Do nothing: nothing is stored."""

    def close(self) -> None:
        """Do nothing."""


class RequestKey(NamedTuple):
    """Identifies a request by its session and its id."""

    session: str
    key: RequestId


Told = tuple[str, Event]
"""A session's name, and an event for it."""


class TaskRunner:
    """Manages the tasks of all sessions of one gate."""

    def __init__(
        self,
        table: TaskTable,
        keeper: Keeper,
        *,
        new_id: Callable[[], str],
        withdraw: Callable[[str, str, float], None],
        renew_facts: Callable[[str, str, float], bool] = lambda *_: True,
        ttl_s: tuple[float, float] = (DEFAULT_TTL_S, MAX_TTL_S),
    ) -> None:
        self._table = table
        self._keeper = keeper
        self._new_id = new_id
        self._withdraw = withdraw
        self._renew_facts = renew_facts
        """Called with server, principal and time before a result is passed on; False to keep it."""
        self._ttl_s = ttl_s
        self._sessions: dict[str, str] = {}
        """The session of each call that is a task."""
        self._carried: set[str] = set()
        """Tasks that this process owns; all others in the table are read-only copies."""
        self._late: list[Told] = []
        self._next_look = 0.0

    # A call becomes a task.

    def reserve(self, command: AskPeople) -> str:
        """Return an id for the task that a held call may become; empty if it becomes none."""
        return self._new_id() if command.params is not None else ""

    def owner_of(self, task_id: str) -> str:
        """Return the owner of the approval request; empty if it must end with the process."""
        return DURABLE + task_id if task_id and self._keeper.is_durable else ""

    def make(self, session: str, command: AskPeople, call: Call, task_id: str = "") -> list[Told]:
        """Reply to a held call's request with a task."""
        params = command.params or {}
        at = command.at
        try:
            ttl_s = clamp_ttl(requested_ttl(params), *self._ttl_s)
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
        steps = self._table.create(RequestKey(session, command.key), task, at)
        if any(isinstance(step, SaveTask) and not self._save(step.task) for step in steps):
            self._table.forget(task.id)
            body = codec.refused("service_unavailable", modern=task.modern, task=task)
            return [(session, TaskMade(command.key, body, at))]
        if self._table.by_call(command.call_id) is not None:
            self._sessions[command.call_id] = session
            self._carried.add(task.id)
        rest = [step for step in steps if not isinstance(step, SaveTask)]
        return [(key.session, TaskMade(key.key, body, at)) for key, body in self._answers(rest, [])]

    def make_granted(
        self, session: str, command: AskPeople, opened: OpenCall | None, verdict: Verdict
    ) -> list[Told]:
        """Reply with a task to a call that nobody has to approve; the verdict follows the reply."""
        key, call_id, at = command.key, command.call_id, command.at
        if opened is None:
            return [(session, CallJudged(key, verdict, call_id, at))]
        told = self.make(session, command, opened.call)
        if any("error" in event.body for _, event in told if isinstance(event, TaskMade)):
            return told
        if not self.started(call_id, at):
            verdict = Verdict(DENY, "approval", "service_unavailable")
        return [*told, (session, CallJudged(key, verdict, call_id, at))]

    # After a restart.

    def recover(self, at: float) -> list[Task]:
        """Take over the tasks of a dead process; return those whose calls must be judged again.

        A call that was running when its process died is never run again, because it is unknown
        whether it took effect.

        Raises:
            StoreError: the stored tasks cannot be read.
        """
        self._next_look = at + LOOK_EVERY_S
        taken = self._keeper.take_over(at)
        for task in taken:
            self._late += self._tell(self._table.mirror(task), at)
            self._carried.add(task.id)
        steps = self._table.recover(at, [task.id for task in taken])
        self._late += self._tell(steps, at)
        return [step.task for step in steps if isinstance(step, ResumeTask)]

    def has_orphans(self, at: float) -> bool:
        """Tell whether ``recover`` would find something; looks every few seconds."""
        if not self._keeper.is_durable or at < self._next_look:
            return False
        self._next_look = at + LOOK_EVERY_S
        with contextlib.suppress(StoreError):
            return self._keeper.has_orphans()
        return False

    def resumed(self, task_id: str, call_id: str, session: str) -> None:
        """Update a recovered task after its call was judged again in this session."""
        self._sessions[call_id] = session
        self._answers(self._table.rejudged(task_id, call_id), [])

    # Progress and end of a task.

    def started(self, call_id: str, at: float) -> bool:
        """Mark a task as running after its approval; the call may run only if this returns True."""
        task = self._table.by_call(call_id)
        if task is None:
            return True
        steps = self._table.started(task.id, at)
        if steps and all(self._save(step.task) for step in steps if isinstance(step, SaveTask)):
            return True
        self._late += self._tell(self._lose(task.id), at)
        return False

    def ended(self, command: EndTask) -> list[Told]:
        """Store the response to a task's call, from the server or from the gate."""
        call_id, body, at = command
        task = self._table.by_call(call_id)
        self._sessions.pop(call_id, None)
        if task is None:
            return []
        if task.phase == HELD and "error" in body:
            kind = ((body.get("error") or {}).get("data") or {}).get("kind", "approval_rejected")
            steps = self._table.failed(task.id, kind, at)
        else:
            # A shim may learn of the approval before its task is created; the call did run.
            steps = [
                *self._table.started(task.id, at),
                *self._table.finished(task.id, _outcome(body), at),
            ]
        return self._tell(steps, at)

    @property
    def is_durable(self) -> bool:
        """Whether tasks outlive the process."""
        return self._keeper.is_durable

    @property
    def has_unfinished(self) -> bool:
        """Whether any task has not ended."""
        return bool(self._table.unfinished())

    def is_task(self, call_id: str) -> bool:
        """Tell whether a held call is a task."""
        return call_id in self._sessions

    def survives(self, call_id: str) -> bool:
        """Tell whether a held call continues after this process has ended."""
        return self._keeper.is_durable and self.is_task(call_id)

    # Requests about tasks.

    def answer(self, session: str, caller: Caller, command: AskTask) -> list[Told]:
        """Answer a request about tasks; return nothing yet if it waits for a result."""
        if command.body is not None:
            self._show_all(caller)
            merged = codec.merged_list(_outcome(command.body), self._table.own(caller))
            return [(session, TaskAnswered(command.key, merged, command.at))]
        if command.method == "tasks/list":
            self._show_all(caller)
        task_id = command.params.get("taskId")
        if isinstance(task_id, str) and task_id not in self._carried:
            self._refresh(task_id)
        key = RequestKey(session, command.key)
        task = self._table.task(task_id) if isinstance(task_id, str) else None
        if task is not None and not self._may_show(task, caller, command):
            body = codec.refused("service_unavailable", modern=command.modern, task=task)
            return [(session, TaskAnswered(command.key, body, command.at))]
        steps = self._table.request(
            key, caller, command.method, command.params, command.at, modern=command.modern
        )
        return self._tell(steps, command.at)

    def _may_show(self, task: Task, caller: Caller, command: AskTask) -> bool:
        """Renew what the result of an ended task establishes; False if that is not possible."""
        is_shown = task.is_over and command.method in TASK_RESULTS
        if not is_shown or task.phase == CANCELLED or task.principal != caller.principal:
            return True
        return self._renew_facts(task.server, task.principal, command.at)

    def left(self, session: str, key: RequestId) -> None:
        """Forget a caller that no longer waits for a result."""
        self._table.left(RequestKey(session, key))

    def tick(self, at: float) -> list[Told]:
        """Remove expired tasks, and load the changes of other processes."""
        if self._table.is_empty and not self._late and not self._keeper.is_durable:
            return []
        told, self._late = self._late, []
        if self._has_changed():
            told += self._tell(self._news(at), at)
        return told + self._tell(self._table.ticked(at), at)

    def close(self) -> None:
        """Close the store."""
        self._keeper.close()

    # Other processes of the same gate.

    def _show_all(self, caller: Caller) -> None:
        if caller.authenticated:
            with contextlib.suppress(StoreError):
                for task in self._keeper.of_principal(caller.principal):
                    if task.id not in self._carried:
                        self._table.mirror(task)

    def _refresh(self, task_id: str) -> list[TaskStep]:
        """Update the copy of a stored task."""
        found = self._find(task_id)
        return self._table.mirror(found) if found is not None else []

    def _find(self, task_id: str) -> Task | None:
        """Return a stored task; None if it is not stored or cannot be read."""
        with contextlib.suppress(StoreError):
            return self._keeper.find(task_id)
        return None

    def _news(self, at: float) -> list[TaskStep]:
        steps: list[TaskStep] = []
        for task in self._table.unfinished():
            if task.id in self._carried:
                steps += self._cancelled_elsewhere(task, at)
            elif self._table.waits_for(task.id):
                steps += self._refresh(task.id)
        return steps

    def _cancelled_elsewhere(self, task: Task, at: float) -> list[TaskStep]:
        kept = self._find(task.id)
        if kept is None or kept.phase != CANCELLED:
            return []
        return [StopTask(task, "the caller cancelled", at), *self._table.mirror(kept)]

    def _has_changed(self) -> bool:
        with contextlib.suppress(StoreError):
            return self._keeper.changed()
        return False

    # Steps.

    def _save(self, task: Task) -> bool:
        with contextlib.suppress(StoreError):
            return self._keeper.save(task)
        return False

    def _lose(self, task_id: str) -> list[TaskStep]:
        """Keep only a copy of a task that another process has taken over, or ended."""
        found = self._find(task_id)
        if found is None:
            return []
        self._carried.discard(task_id)
        return self._table.mirror(found)

    def _forget(self, task_id: str) -> None:
        self._carried.discard(task_id)
        # If this fails, the task expires in the store, and its next reader deletes it.
        with contextlib.suppress(StoreError):
            self._keeper.forget(task_id)

    def _tell(self, steps: list[TaskStep], at: float) -> list[Told]:
        told: list[Told] = []
        answers = self._answers(steps, told)
        return told + [(key.session, TaskAnswered(key.key, body, at)) for key, body in answers]

    def _answers(
        self, steps: Sequence[TaskStep], told: list[Told]
    ) -> list[tuple[RequestKey, dict[str, Any]]]:
        """Carry out the steps for the store and the running calls; return the replies to send."""
        answers: list[tuple[RequestKey, dict[str, Any]]] = []
        for step in steps:
            if isinstance(step, SaveTask):
                if not self._save(step.task):
                    self._lose(step.task.id)
            elif isinstance(step, ForgetTask):
                self._forget(step.task_id)
            elif isinstance(step, StopTask):
                told += self._stop(step)
            elif isinstance(step, NotifyTask):
                told.append((step.task.session, _changed(step.task)))
            elif isinstance(step, AnswerTask):
                answers.append((_request_key(step.key), step.body))
        return answers

    def _stop(self, step: StopTask) -> list[Told]:
        """Stop a task: withdraw its call, or cancel it at the server."""
        call_id, at = step.task.call_id, step.at
        session = self._sessions.pop(call_id, None)
        if session is None:
            return []
        if step.task.phase == HELD:
            self._withdraw(call_id, step.reason, at)
            verdict = Verdict(DENY, "approval", "task_cancelled", step.reason)
            return [(session, CallJudged(call_id, verdict, call_id, at))]
        return [(session, AgentSent(render_cancelled(f"tg-{call_id}", step.reason), at))]


def _request_key(key: Hashable) -> RequestKey:
    """Return a key of the task table with the type that this runner gives it."""
    if not isinstance(key, RequestKey):
        raise TypeError(key)
    return key


def _changed(task: Task) -> TaskChanged:
    return TaskChanged(codec.changed(task), task.updated_at)


def _outcome(body: dict[str, Any]) -> dict[str, Any]:
    """Return a response without its JSON-RPC envelope."""
    return {name: body[name] for name in ("result", "error") if name in body}
