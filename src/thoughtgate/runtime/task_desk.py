"""The tasks of a gate, carried out: the book's steps become saves, answers and endings.

Drivers speak to it in the session's own commands and get the session's own events back,
each with the line it belongs to, because one gate may hold the tasks of many sessions.
"""

import json
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

from thoughtgate.core import task_codec as codec
from thoughtgate.core.commands import AskPeople, AskTask, EndTask
from thoughtgate.core.events import AgentSent, CallJudged, Event, TaskAnswered, TaskMade
from thoughtgate.core.task import (
    DEFAULT_TTL_S,
    HELD,
    Task,
    clamp_ttl,
    requested_ttl,
    without_task,
)
from thoughtgate.core.task_book import (
    AnswerTask,
    Caller,
    ForgetTask,
    SaveTask,
    StopTask,
    TaskBook,
    TaskStep,
)
from thoughtgate.policy.call import DENY, Call, Verdict
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render_cancelled


class Keeper(Protocol):
    """Where tasks are kept."""

    def save(self, task: Task) -> bool:
        """Keep a task as it is now."""

    def forget(self, task_id: str) -> None:
        """Drop a task."""


class NoKeeper:
    """Tasks that live no longer than the gate."""

    def save(self, task: Task) -> bool:
        """Keep nothing."""
        del task
        return True

    def forget(self, task_id: str) -> None:
        """There is nothing to forget."""


class Line(NamedTuple):
    """A request on one of the lines that the gate serves."""

    session: str
    key: RequestId


Told = tuple[str, Event]
"""A session's id, and what its session is to be told."""


class TaskDesk:
    """Keeps the tasks of every session of one gate."""

    def __init__(
        self,
        book: TaskBook,
        keeper: Keeper,
        *,
        new_id: Callable[[], str],
        withdraw: Callable[[str, str, float], None],
        default_ttl_s: float = DEFAULT_TTL_S,
    ) -> None:
        self._book = book
        self._keeper = keeper
        self._new_id = new_id
        self._withdraw = withdraw
        self._default_ttl_s = default_ttl_s
        self._sessions: dict[str, str] = {}
        """The session in which a call that is a task was made."""

    def make(self, session: str, command: AskPeople, call: Call) -> list[Told]:
        """Answer a held call's request with a task."""
        params = command.params or {}
        at = command.at
        try:
            ttl_s = clamp_ttl(requested_ttl(params), self._default_ttl_s)
        except ValueError as error:
            body = codec.refused("invalid_params", modern=command.modern, text=str(error))
            return [(session, TaskMade(command.key, body, at))]
        task = Task(
            self._new_id(),
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
        if self._book.by_call(command.call_id) is not None:
            self._sessions[command.call_id] = session
        return [
            (line.session, TaskMade(line.key, body, at)) for line, body in self._answers(steps, [])
        ]

    def answer(self, session: str, caller: Caller, command: AskTask) -> list[Told]:
        """Answer a request about tasks; nothing yet when it blocks on a result."""
        if command.body is not None:
            merged = codec.merged_list(_outcome(command.body), self._book.own(caller))
            return [(session, TaskAnswered(command.key, merged, command.at))]
        line = Line(session, command.key)
        steps = self._book.request(
            line, caller, command.method, command.params, command.at, modern=command.modern
        )
        return self._tell(steps or [], command.at)

    def started(self, call_id: str, at: float) -> list[Told]:
        """The approval landed: the call runs once this returns."""
        task = self._book.by_call(call_id)
        return self._tell(self._book.started(task.id, at), at) if task is not None else []

    def ended(self, command: EndTask) -> list[Told]:
        """The server has answered a call that is a task, or the gate has in its place."""
        call_id, body, at = command
        task = self._book.by_call(call_id)
        self._sessions.pop(call_id, None)
        if task is None:
            return []
        steps: list[TaskStep] = []
        if task.phase == HELD:
            kind = ((body.get("error") or {}).get("data") or {}).get("kind", "approval_rejected")
            steps = self._book.failed(task.id, kind, at)
        else:
            steps = self._book.finished(task.id, _outcome(body), at)
        return self._tell(steps, at)

    def left(self, session: str, key: RequestId) -> None:
        """A caller no longer blocks on a result."""
        self._book.left(Line(session, key))

    def tick(self, at: float) -> list[Told]:
        """Forget what has lived its time."""
        return self._tell(self._book.ticked(at), at)

    def is_task(self, call_id: str) -> bool:
        """Tell whether a held call is a task."""
        return call_id in self._sessions

    def _tell(self, steps: list[TaskStep], at: float) -> list[Told]:
        told: list[Told] = []
        for line, body in self._answers(steps, told):
            told.append((line.session, TaskAnswered(line.key, body, at)))
        return told

    def _answers(
        self, steps: list[TaskStep], told: list[Told]
    ) -> list[tuple[Line, dict[str, Any]]]:
        """Carry out what concerns the store and the running calls; return what is to be answered."""
        answers: list[tuple[Line, dict[str, Any]]] = []
        for step in steps:
            if isinstance(step, SaveTask):
                self._keeper.save(step.task)
            elif isinstance(step, ForgetTask):
                self._keeper.forget(step.task_id)
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
    """Return a key of the book as what this desk always gives it."""
    if not isinstance(key, Line):
        raise TypeError(key)
    return key


def _outcome(body: dict[str, Any]) -> dict[str, Any]:
    """Return what a response says, without its envelope."""
    return {name: body[name] for name in ("result", "error") if name in body}
