"""Task table: decides who may access which task, and which steps a driver must carry out.

Pure: every method takes an event and returns steps, in order. ``SaveTask`` comes before the
``AnswerTask`` that depends on it, so a driver that carries out the steps in order never returns
a task that a restart would lose. The shim, the proxy and the hub share this table;
``stores.tasks`` stores the tasks.
"""

import json
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias

from thoughtgate.core import task_codec as codec
from thoughtgate.core.answers import says_error
from thoughtgate.core.task import (
    CANCELLED,
    COMPLETED,
    FAILED,
    HELD,
    RUNNING,
    Task,
    has_extension,
    move,
)
from thoughtgate.core.task_codec import Body
from thoughtgate.wire.replies import MESSAGES

MAX_WAITERS: Final = 16
"""Callers that may wait for the result of one task."""
PAGE: Final = 50
MAX_CURSOR_DIGITS: Final = 16
"""More digits than any time in milliseconds has; longer numbers are slow to parse."""

HELD_NOTE: Final = "waiting for a person to approve this call"
RUNNING_NOTE: Final = "approved; the call is running"
LOST_NOTE: Final = "the gate stopped while the call ran; whether it took effect is not known"


class Caller(NamedTuple):
    """Who sends a request about tasks."""

    principal: str
    session: str = ""
    authenticated: bool = False
    """False if the principal is not verified: then a list shows only this session's tasks."""


class SaveTask(NamedTuple):
    """Store the task before any further step."""

    task: Task


class ForgetTask(NamedTuple):
    """Delete what is stored about a task."""

    task_id: str


class AnswerTask(NamedTuple):
    """Reply to a request; the body lacks only its envelope."""

    key: Hashable
    body: Body


class StopTask(NamedTuple):
    """Stop an unwanted call: withdraw its approval request, cancel it at the server."""

    task: Task
    reason: str
    at: float


class NotifyTask(NamedTuple):
    """Tell the caller, if it listens, that a task has ended (2025-11-25)."""

    task: Task


class ResumeTask(NamedTuple):
    """After a restart: judge the call again and request approval for the task again."""

    task: Task


TaskStep: TypeAlias = SaveTask | ForgetTask | AnswerTask | StopTask | NotifyTask | ResumeTask


class TaskLimits(NamedTuple):
    """The maximum numbers of tasks."""

    open_per_principal: int = 10
    open_total: int = 1000
    kept_per_principal: int = 100
    """Until they expire; the oldest ended one is dropped for a new one."""
    kept_bytes: int = 64 * 1_048_576
    """Total size of the stored outcomes; a single result may have 10 MiB."""


class _Request(NamedTuple):
    key: Hashable
    caller: Caller
    params: dict[str, Any]
    modern: bool
    at: float


class TaskTable:
    """All tasks of one gate, and the callers that wait for their results."""

    def __init__(self, tasks: Iterable[Task] = (), limits: TaskLimits | None = None) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._waiters: dict[str, list[Hashable]] = {}
        self._limits = limits or TaskLimits()
        self._handlers: dict[str, Callable[[_Request, Task], list[TaskStep]]] = {
            "tasks/get": self._get,
            "tasks/result": self._result,
            "tasks/cancel": self._cancel,
            "tasks/update": self._update,
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is no task, and so no waiting caller."""
        return not self._tasks

    def task(self, task_id: str) -> Task | None:
        """Return a task, whoever owns it."""
        return self._tasks.get(task_id)

    def by_call(self, call_id: str) -> Task | None:
        """Return the unfinished task for a call."""
        return next((task for task in self.unfinished() if task.call_id == call_id), None)

    def unfinished(self) -> list[Task]:
        """Return every task that has not ended."""
        return [task for task in self._tasks.values() if not task.is_over]

    def waits_for(self, task_id: str) -> bool:
        """Tell whether a caller waits for a task's result."""
        return bool(self._waiters.get(task_id))

    def mirror(self, task: Task) -> list[TaskStep]:
        """Update the copy of another process's task; callers that wait for it may get their reply."""
        self._tasks[task.id] = task
        return self._results(task)

    def recover(self, at: float, taken: Iterable[str]) -> list[TaskStep]:
        """Recover tasks of a process that died: held calls are judged again, others never repeated."""
        steps: list[TaskStep] = self.ticked(at)
        for task in [self._tasks[each] for each in taken if each in self._tasks]:
            if task.phase == HELD:
                steps.append(ResumeTask(task))
            elif task.phase == RUNNING:
                steps += self.failed(task.id, "internal_error", at, LOST_NOTE)
        return steps

    # The call's side.

    def create(self, key: Hashable, task: Task, at: float) -> list[TaskStep]:
        """Create a task for a held call and reply to its request with it."""
        refusal = self._over_limit(task)
        if refusal:
            return [AnswerTask(key, codec.refused(refusal, modern=task.modern, task=task))]
        steps: list[TaskStep] = self._make_room(task)
        made = task._replace(created_at=at, updated_at=at, phase=HELD, note=HELD_NOTE)
        self._tasks[task.id] = made
        return [*steps, SaveTask(made), AnswerTask(key, codec.created(made))]

    def rejudged(self, task_id: str, call_id: str) -> list[TaskStep]:
        """Set the call id that the judge assigned after a restart."""
        task = self._tasks[task_id]._replace(call_id=call_id)
        self._tasks[task_id] = task
        return [SaveTask(task)]

    def started(self, task_id: str, at: float) -> list[TaskStep]:
        """Mark a task as running: its approval is used, and the call runs after these steps."""
        return self._moved(task_id, RUNNING, at, RUNNING_NOTE)

    def finished(self, task_id: str, outcome: Body, at: float) -> list[TaskStep]:
        """End a task with the server's response; ``outcome`` has its ``result`` or ``error``."""
        task = self._tasks.get(task_id)
        if task is None or task.phase != RUNNING:
            return []
        kept = {key: outcome[key] for key in ("result", "error") if key in outcome}
        is_error = says_error(outcome)
        self._tasks[task_id] = task._replace(outcome=json.dumps(kept), is_error=is_error)
        return self._moved(task_id, FAILED if "error" in kept else COMPLETED, at)

    def failed(self, task_id: str, kind: str, at: float, note: str = "") -> list[TaskStep]:
        """End a task whose call is not made or not answered: denied, timed out or lost."""
        task = self._tasks.get(task_id)
        if task is None or task.is_over:
            return []
        outcome = json.dumps(codec.refused(kind, modern=task.modern, text=note, task=task))
        self._tasks[task_id] = task._replace(outcome=outcome)
        return self._moved(task_id, FAILED, at, note or MESSAGES[kind])

    def ticked(self, at: float) -> list[TaskStep]:
        """Delete expired tasks; a call that is still held is stopped."""
        steps: list[TaskStep] = []
        for task in [task for task in self._tasks.values() if at >= task.expires_at]:
            if not task.is_over:
                steps.append(StopTask(task, "the task has expired", at))
            body = codec.refused("task_expired", modern=task.modern, task=task)
            steps += [AnswerTask(key, body) for key in self._waiters.pop(task.id, ())]
            steps.append(self.forget(task.id))
        return steps

    def left(self, key: Hashable) -> None:
        """Forget a caller that no longer waits for a result."""
        for waiting in self._waiters.values():
            if key in waiting:
                waiting.remove(key)

    # Requests of callers.

    def request(
        self,
        key: Hashable,
        caller: Caller,
        method: str,
        params: dict[str, Any],
        at: float,
        *,
        modern: bool = False,
    ) -> list[TaskStep]:
        """Reply to a ``tasks/*`` request; an empty list means that the reply comes later.

        Another principal's task is treated like an unknown one, so that its existence is not
        revealed.
        """
        request = _Request(key, caller, params, modern, at)
        if method == "tasks/list" and not modern:
            return self._list(request)
        handler = self._handlers.get(method)
        task = self._owned(request)
        if handler is None or (modern and method == "tasks/result"):
            return _answer(request, codec.refused("method_not_found", modern=modern))
        if modern and not has_extension(params):
            return _answer(request, codec.missing_extension())
        if task is None:
            return _answer(request, codec.refused("task_not_found", modern=modern))
        return handler(request, task)

    def own(self, caller: Caller) -> list[Task]:
        """Return the tasks that a caller's list shows, newest first."""
        mine = [
            task
            for task in self._tasks.values()
            if task.principal == caller.principal
            and (caller.authenticated or task.session == caller.session)
        ]
        return sorted(mine, key=_age)

    def _owned(self, request: _Request) -> Task | None:
        ident = request.params.get("taskId")
        task = self._tasks.get(ident) if type(ident) is str else None
        if task is None or task.principal != request.caller.principal:
            return None
        # An expired task stays in the table until the next tick.
        return task if request.at < task.expires_at else None

    def _get(self, request: _Request, task: Task) -> list[TaskStep]:
        return _answer(request, codec.got(task, modern=request.modern))

    def _result(self, request: _Request, task: Task) -> list[TaskStep]:
        if task.is_over:
            return _answer(request, codec.result_of(task))
        waiting = self._waiters.setdefault(task.id, [])
        if len(waiting) >= MAX_WAITERS:
            return _answer(request, codec.refused("service_unavailable", modern=False, task=task))
        waiting.append(request.key)
        return []  # MCP 2025-11-25: ``tasks/result`` blocks until the task has ended

    def _list(self, request: _Request) -> list[TaskStep]:
        mine = self.own(request.caller)
        cursor = request.params.get("cursor")
        if cursor is not None:
            after = _parse_cursor(cursor)
            if after is None:
                text = "the cursor is not one of ours"
                return _answer(request, codec.refused("invalid_params", modern=False, text=text))
            mine = [task for task in mine if _age(task) > after]
        page = mine[:PAGE]
        following = _cursor(page[-1]) if len(mine) > PAGE else ""
        return _answer(request, codec.listed(page, following))

    def _cancel(self, request: _Request, task: Task) -> list[TaskStep]:
        if task.is_over:
            # MCP 2025-11-25 requires an error for an ended task; the extension acknowledges.
            if request.modern:
                return _answer(request, codec.acknowledged())
            text = "the task is already over"
            return _answer(request, codec.refused("invalid_params", modern=False, text=text))
        moved = self._moved(task.id, CANCELLED, request.at, "cancelled by its caller")
        body = codec.cancelled(self._tasks[task.id], modern=request.modern)
        # Stopped before it is saved: an approval that arrives now must not start the call.
        stop = StopTask(task, "the caller cancelled", request.at)
        return [stop, *moved, AnswerTask(request.key, body)]

    def _update(self, request: _Request, task: Task) -> list[TaskStep]:
        del task  # The gate's tasks never ask for input, and unknown inputs must be ignored.
        if not request.modern:
            return _answer(request, codec.refused("method_not_found", modern=False))
        return _answer(request, codec.acknowledged())

    def _moved(self, task_id: str, phase: str, at: float, note: str = "") -> list[TaskStep]:
        task = self._tasks.get(task_id)
        moved = move(task, phase, at, note) if task is not None else None
        if moved is None:
            return []
        self._tasks[task_id] = moved
        steps: list[TaskStep] = [SaveTask(moved)]
        if moved.is_over:
            if not moved.modern:
                steps.append(NotifyTask(moved))
            steps += [*self._results(moved), *self._shed_bytes(task_id)]
        return steps

    def _results(self, task: Task) -> list[TaskStep]:
        """Answer the callers that wait for a task, once it has ended."""
        waiting = self._waiters.pop(task.id, []) if task.is_over else []
        return [AnswerTask(key, codec.result_of(task)) for key in waiting]

    def _over_limit(self, task: Task) -> str:
        opened = self.unfinished()
        own = sum(each.principal == task.principal for each in opened)
        if own >= self._limits.open_per_principal:
            return "rate_limited"
        return "service_unavailable" if len(opened) >= self._limits.open_total else ""

    def _make_room(self, task: Task) -> list[TaskStep]:
        own = [each for each in self._tasks.values() if each.principal == task.principal]
        if len(own) < self._limits.kept_per_principal:
            return []
        # Unfinished tasks are never dropped: ``_over_limit`` bounds their number.
        over = [each for each in own if each.is_over]
        return [self.forget(min(over, key=lambda each: each.updated_at).id)] if over else []

    def _shed_bytes(self, spared: str) -> list[TaskStep]:
        """Drop the oldest outcomes beyond the maximum size, but not the one just stored."""
        over = sorted(
            (each for each in self._tasks.values() if each.is_over and each.id != spared),
            key=lambda each: each.updated_at,
        )
        total = sum(len(each.outcome) for each in self._tasks.values())
        steps: list[TaskStep] = []
        for each in over:
            if total <= self._limits.kept_bytes:
                break
            total -= len(each.outcome)
            steps.append(self.forget(each.id))
        return steps

    def forget(self, task_id: str) -> ForgetTask:
        """Remove a task that is over, or that could not be stored."""
        self._tasks.pop(task_id, None)
        self._waiters.pop(task_id, None)
        return ForgetTask(task_id)


def _answer(request: _Request, body: Body) -> list[TaskStep]:
    return [AnswerTask(request.key, body)]


def _age(task: Task) -> tuple[int, str]:
    """Sort newest first, with the precision of a cursor."""
    return -int(task.created_at * 1000), task.id


def _cursor(task: Task) -> str:
    return f"{int(task.created_at * 1000)}.{task.id}"


def _parse_cursor(cursor: Any) -> tuple[int, str] | None:
    if type(cursor) is not str:
        return None
    milliseconds, _, ident = cursor.partition(".")
    digits = milliseconds.isascii() and milliseconds.isdecimal()
    if not digits or len(milliseconds) > MAX_CURSOR_DIGITS or not ident:
        return None
    return -int(milliseconds), ident
