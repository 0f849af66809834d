"""A gate killed with SIGKILL at every step of a task's life, and started again.

Nothing runs twice, nothing runs that nobody approved, and every task that its caller was
told of has an end that the caller can learn.
"""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_agent import HttpAgent
from tests.support.stages import (
    HttpStage,
    HttpToHttpStage,
    ServeHttpStage,
    envelope,
    kind_of,
    port_of,
)
from tests.support.waiting import wait_for

from thoughtgate.core.task_table import LOST_NOTE

GATES: dict[str, Callable[[Path], HttpStage]] = {
    "proxy-http-stdio": HttpStage,
    "proxy-http-http": HttpToHttpStage,
    "serve-http": ServeHttpStage,
}


PROXY, BEHIND, SERVE = GATES
"""The proxy passes every step; where another gate has code of its own, it passes them too."""


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HttpStage]:
    made = GATES[getattr(request, "param", PROXY)](tmp_path)
    yield made
    made.close()


def on(*gates: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stage", gates, indirect=True)


def make_task(stage: HttpStage, *, modern: bool = False) -> tuple[int, str]:
    ident = stage.call(modern=True) if modern else stage.call(task={})
    result = stage.answer(ident)["result"]
    return ident, result["taskId"] if modern else result["task"]["taskId"]


def died(stage: HttpStage) -> None:
    assert stage.gate.wait() == -signal.SIGKILL


def over(stage: HttpStage, task_id: str) -> dict[str, Any]:
    """Return the task once it is over."""

    def looked() -> dict[str, Any] | None:
        task: dict[str, Any] = stage.about("tasks/get", task_id)["result"]
        return None if task["status"] == "working" else task

    return wait_for(looked, what="the end of the task")


@pytest.mark.parametrize(
    ("stage", "decided", "modern"),
    [
        (PROXY, "after", False),
        (PROXY, "while_dead", True),
        (BEHIND, "while_dead", False),
        (BEHIND, "after", True),
        (SERVE, "after", False),
        (SERVE, "while_dead", True),
    ],
    indirect=["stage"],
)
def test_a_task_that_waited_is_asked_about_again_and_runs_once(
    stage: HttpStage, decided: str, modern: bool
) -> None:
    stage.start()
    ident, task_id = make_task(stage, modern=modern)
    question = stage.question(ident)
    stage.stop(signal.SIGKILL)
    if decided == "while_dead":
        stage.vote(question)
    stage.start()
    if decided == "after":
        assert stage.about("tasks/get", task_id)["result"]["status"] == "working"
        assert stage.question(ident).id == question.id
        assert stage.ran(ident) == 0
        stage.vote(question)
    task = over(stage, task_id)
    assert task["status"] == "completed"
    assert stage.ran(ident) == 1
    stage.stop(signal.SIGKILL)
    stage.start()
    if modern:
        again = stage.about("tasks/get", task_id, modern=True)["result"]["result"]
    else:
        again = stage.about("tasks/result", task_id)["result"]
    assert "content" in again
    assert stage.ran(ident) == 1


def test_a_refusal_given_while_the_gate_was_dead_stands(stage: HttpStage) -> None:
    stage.start()
    ident, task_id = make_task(stage)
    question = stage.question(ident)
    stage.stop(signal.SIGKILL)
    stage.vote(question, approve=False)
    stage.start()
    assert over(stage, task_id)["status"] == "failed"
    assert kind_of(stage.about("tasks/result", task_id)) == "approval_rejected"
    assert stage.ran(ident) == 0


@on(PROXY, SERVE)
def test_a_gate_that_stops_gently_leaves_its_tasks_to_the_next(stage: HttpStage) -> None:
    stage.start()
    ident, task_id = make_task(stage)
    question = stage.question(ident)
    waiting = stage.call()
    stage.question(waiting)
    stage.stop()
    assert stage.is_asked(ident)
    assert not stage.is_asked(waiting)
    stage.start()
    stage.vote(question)
    assert over(stage, task_id)["status"] == "completed"
    assert (stage.ran(ident), stage.ran(waiting)) == (1, 0)
    began = {each["call"]["call_id"] for each in stage.records("tool_call_start")}
    ended = {each["call"]["call_id"] for each in stage.records("tool_call_end")}
    assert began == ended


def test_a_gate_killed_before_it_kept_a_task_runs_nothing(stage: HttpStage) -> None:
    stage.start(dies_at="asked")
    ident = stage.call(task={})
    died(stage)
    stage.start()
    stage.decide(ident)
    assert stage.ask("tasks/list")["result"]["tasks"] == []
    other = stage.call("echo")
    stage.answer(other)
    assert stage.ran(ident) == 0


@on(PROXY, SERVE)
def test_a_task_whose_caller_never_heard_of_it_is_in_its_list(stage: HttpStage) -> None:
    stage.start(dies_at="kept")
    ident = stage.call(task={})
    died(stage)
    stage.start()
    (task,) = stage.ask("tasks/list")["result"]["tasks"]
    assert task["status"] == "working"
    stage.decide(ident)
    assert over(stage, task["taskId"])["status"] == "completed"
    assert stage.ran(ident) == 1


@pytest.mark.parametrize(
    ("stage", "step", "status", "ran"),
    [
        (PROXY, "decided", "completed", 1),
        (PROXY, "used", "failed", 0),
        (PROXY, "started", "failed", 0),
        (PROXY, "ran", "failed", 1),
        (PROXY, "ended", "completed", 1),
        (SERVE, "decided", "completed", 1),
        (SERVE, "started", "failed", 0),
        (SERVE, "ran", "failed", 1),
    ],
    indirect=["stage"],
)
def test_a_gate_killed_on_the_way_from_decision_to_end(
    stage: HttpStage, step: str, status: str, ran: int
) -> None:
    stage.start(dies_at=step)
    ident, task_id = make_task(stage)
    stage.decide(ident)
    died(stage)
    stage.start()
    task = over(stage, task_id)
    assert task["status"] == status
    assert stage.ran(ident) == ran
    if step in {"started", "ran"}:
        assert task["statusMessage"] == LOST_NOTE
    if step == "used":
        assert kind_of(stage.about("tasks/result", task_id)) == "approval_withdrawn"


def test_rules_that_deny_it_by_now_end_a_task(stage: HttpStage) -> None:
    stage.start()
    ident, task_id = make_task(stage)
    question = stage.question(ident)
    stage.stop(signal.SIGKILL)
    stage.vote(question)
    text = stage.config.read_text("utf-8")
    stage.config.write_text(text.replace("{tool: add, action: approve", "{tool: add, action: deny"))
    stage.start()
    assert over(stage, task_id)["status"] == "failed"
    assert stage.ran(ident) == 0


@on(PROXY, SERVE)
def test_rules_that_forward_it_by_now_still_ask_as_was_promised(stage: HttpStage) -> None:
    stage.start()
    ident, task_id = make_task(stage)
    stage.question(ident)
    stage.stop(signal.SIGKILL)
    text = stage.config.read_text("utf-8")
    changed = text.replace("{tool: add, action: approve", "{tool: add, action: forward")
    stage.config.write_text(changed, "utf-8")
    stage.start()
    stage.decide(ident, approve=False)
    assert over(stage, task_id)["status"] == "failed"
    assert stage.ran(ident) == 0


def test_another_gate_on_the_same_state_leaves_living_tasks_alone(tmp_path: Path) -> None:
    stage = HttpStage(tmp_path)
    try:
        stage.start()
        ident, task_id = make_task(stage)
        question = stage.question(ident)
        first = stage.agent
        stage.run(stage.command())
        second = HttpAgent(port_of(stage.gate), stage.token)
        second.greet()
        params = {"taskId": task_id, "_meta": envelope()}
        seen = second.ask({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": params})
        assert seen["result"]["status"] == "working"
        waiter = {"jsonrpc": "2.0", "id": 2, "method": "tasks/result", "params": params}
        del waiter["params"]
        second.send({**waiter, "params": {"taskId": task_id}})
        stage.vote(question)
        assert "content" in second.answer(2)["result"]
        assert stage.ran(ident) == 1
        other = stage.call(task={})
        other_id = first.answer(other)["result"]["task"]["taskId"]
        cancel = {"taskId": other_id}
        said = second.ask({"jsonrpc": "2.0", "id": 3, "method": "tasks/cancel", "params": cancel})
        assert said["result"]["status"] == "cancelled"
        wait_for(lambda: not stage.is_asked(other), what="the withdrawal by the other process")
        assert stage.about("tasks/get", other_id)["result"]["status"] == "cancelled"
        assert stage.ran(other) == 0
    finally:
        stage.close()
