"""The book of tasks: playbooks of what callers ask and what a driver is told to do."""

import json
from typing import Any

import pytest
from tests.support.approvals import NOW
from tests.support.tasks import a_task

from thoughtgate.core import task_table as task_book
from thoughtgate.core.task import CANCELLED, COMPLETED, EXTENSION, FAILED, HELD, RUNNING, Task
from thoughtgate.core.task_table import (
    AnswerTask,
    Caller,
    ForgetTask,
    ResumeTask,
    SaveTask,
    StopTask,
    TaskLimits,
    TaskStep,
    TaskTable,
)

ANN = Caller("ann", "s1", authenticated=True)
BOB = Caller("bob", "s2", authenticated=True)
DECLARED: dict[str, Any] = {
    "_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}}}
}
RESULT = {"content": [{"type": "text", "text": "gone"}]}


def a_book(*tasks: Task, limits: TaskLimits | None = None) -> TaskTable:
    return TaskTable(tasks or (a_task(),), limits)


def ask(
    book: TaskTable,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    caller: Caller = ANN,
    at: float = NOW + 1,
    modern: bool = False,
) -> dict[str, Any]:
    """Return the one answer to a request."""
    known = {"taskId": "tg_1"} if params is None else params
    steps = book.request("key", caller, method, known, at, modern=modern)
    assert steps is not None
    (answer,) = [step for step in steps if isinstance(step, AnswerTask)]
    assert answer.key == "key"
    return answer.body


def kinds(steps: list[TaskStep]) -> list[str]:
    return [type(step).__name__ for step in steps]


def kind_of(body: dict[str, Any]) -> str:
    return str(body["error"]["data"]["kind"])


def test_a_task_is_kept_before_its_caller_hears_of_it() -> None:
    book = TaskTable()
    steps = book.create("key", a_task(), NOW + 5)
    assert kinds(steps) == ["SaveTask", "AnswerTask"]
    made = book.task("tg_1")
    assert made is not None
    assert made.created_at == NOW + 5
    assert steps[0] == SaveTask(made)
    assert book.by_call("run.1") == made
    assert ask(book, "tasks/get", at=NOW + 5)["result"]["status"] == "working"


def test_the_call_runs_when_the_approval_lands_and_the_result_waits() -> None:
    book = a_book()
    assert kinds(book.started("tg_1", NOW + 1)) == ["SaveTask"]
    assert ask(book, "tasks/get")["result"]["statusMessage"] == task_book.RUNNING_NOTE
    steps = book.finished("tg_1", {"jsonrpc": "2.0", "id": 7, "result": RESULT}, NOW + 2)
    assert kinds(steps) == ["SaveTask", "NotifyTask"]
    task = book.task("tg_1")
    assert task is not None
    assert (task.phase, json.loads(task.outcome)) == (COMPLETED, {"result": RESULT})
    assert book.by_call("run.1") is None
    for _ in range(2):
        assert ask(book, "tasks/result")["result"]["content"] == RESULT["content"]


def test_a_result_is_waited_for_by_all_who_ask() -> None:
    book = a_book()
    assert book.request("one", ANN, "tasks/result", {"taskId": "tg_1"}, NOW + 1) == []
    assert book.request("two", ANN, "tasks/result", {"taskId": "tg_1"}, NOW + 1) == []
    assert book.request("three", ANN, "tasks/result", {"taskId": "tg_1"}, NOW + 1) == []
    book.left("two")
    book.left("nobody")
    book.started("tg_1", NOW + 2)
    steps = book.finished("tg_1", {"result": RESULT}, NOW + 3)
    assert [step.key for step in steps if isinstance(step, AnswerTask)] == ["one", "three"]


def test_too_many_waiters_are_sent_away() -> None:
    book = a_book()
    for number in range(task_book.MAX_WAITERS):
        assert book.request(number, ANN, "tasks/result", {"taskId": "tg_1"}, NOW + 1) == []
    assert kind_of(ask(book, "tasks/result")) == "service_unavailable"


@pytest.mark.parametrize("kind", ["approval_rejected", "approval_timeout", "policy_drift"])
def test_a_call_that_is_not_made_fails_its_task_with_its_own_kind(kind: str) -> None:
    book = a_book()
    assert book.request("w", ANN, "tasks/result", {"taskId": "tg_1"}, NOW + 1) == []
    steps = book.failed("tg_1", kind, NOW + 2)
    (answer,) = [step for step in steps if isinstance(step, AnswerTask)]
    assert kind_of(answer.body) == kind
    assert ask(book, "tasks/get")["result"]["status"] == "failed"
    assert book.failed("tg_1", kind, NOW + 3) == []
    assert book.failed("tg_9", kind, NOW + 3) == []


def test_a_servers_error_is_the_tasks_result_untouched() -> None:
    book = a_book(a_task(phase=RUNNING))
    error = {"code": -32000, "message": "disk full", "data": {"x": 1}}
    book.finished("tg_1", {"error": error}, NOW + 1)
    assert ask(book, "tasks/result") == {"error": error}
    assert ask(book, "tasks/get")["result"]["status"] == "failed"


def test_an_error_inside_a_result_is_remembered() -> None:
    book = a_book(a_task(phase=RUNNING))
    book.finished("tg_1", {"result": {"isError": True}}, NOW + 1)
    assert ask(book, "tasks/get")["result"]["status"] == "failed"


def test_an_answer_to_a_call_that_does_not_run_is_ignored() -> None:
    book = a_book()
    assert book.finished("tg_1", {"result": RESULT}, NOW + 1) == []
    assert book.finished("tg_9", {"result": RESULT}, NOW + 1) == []
    assert book.started("tg_9", NOW + 1) == []


def test_cancelling_stops_the_call_and_is_final() -> None:
    book = a_book()
    steps = book.request("key", ANN, "tasks/cancel", {"taskId": "tg_1"}, NOW + 1)
    assert steps is not None
    assert kinds(steps) == ["StopTask", "SaveTask", "NotifyTask", "AnswerTask"]
    answer = steps[-1]
    assert isinstance(answer, AnswerTask)
    assert answer.body["result"]["status"] == "cancelled"
    assert book.started("tg_1", NOW + 2) == []
    assert kind_of(ask(book, "tasks/result")) == "task_cancelled"
    assert ask(book, "tasks/cancel")["error"]["code"] == -32602


def test_a_modern_cancel_is_acknowledged_even_when_it_is_too_late() -> None:
    book = a_book(a_task(phase=CANCELLED, modern=True))
    params = {"taskId": "tg_1", **DECLARED}
    acknowledged = {"result": {"resultType": "complete"}}
    assert ask(book, "tasks/cancel", params, modern=True) == acknowledged
    fresh = a_book(a_task(modern=True))
    assert ask(fresh, "tasks/cancel", params, modern=True) == acknowledged


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@pytest.mark.parametrize("params", [{"taskId": "tg_9"}, {}, {"taskId": 1}])
def test_an_unknown_task_is_invalid_params(method: str, params: dict[str, Any]) -> None:
    body = ask(a_book(), method, params)
    assert body["error"]["code"] == -32602
    assert kind_of(body) == "task_not_found"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
def test_a_task_of_somebody_else_looks_unknown(method: str) -> None:
    book = a_book()
    foreign = ask(book, method, caller=BOB)
    unknown = ask(book, method, {"taskId": "tg_9"}, caller=BOB)
    assert foreign == unknown
    assert book.task("tg_1") == a_task()


def test_a_modern_request_must_declare_the_extension() -> None:
    book = a_book(a_task(modern=True))
    assert ask(book, "tasks/get", modern=True)["error"]["code"] == -32021
    got = ask(book, "tasks/get", {"taskId": "tg_1", **DECLARED}, modern=True)["result"]
    assert (got["resultType"], got["taskId"]) == ("complete", "tg_1")


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
def test_what_the_extension_removed_is_not_found(method: str) -> None:
    params = {"taskId": "tg_1", **DECLARED}
    assert ask(a_book(), method, params, modern=True)["error"]["code"] == -32601


def test_an_update_is_acknowledged_because_nothing_was_asked() -> None:
    params = {"taskId": "tg_1", "inputResponses": {"x": {}}, **DECLARED}
    assert ask(a_book(), "tasks/update", params, modern=True) == {
        "result": {"resultType": "complete"}
    }
    assert ask(a_book(), "tasks/update")["error"]["code"] == -32601


def test_a_list_shows_own_tasks_newest_first_in_pages() -> None:
    many = [a_task(id=f"tg_{n:03d}", created_at=NOW + n) for n in range(task_book.PAGE + 10)]
    book = a_book(*many, a_task(id="tg_bob", principal="bob"))
    first = ask(book, "tasks/list", {}, at=NOW + 100)["result"]
    second = ask(book, "tasks/list", {"cursor": first["nextCursor"]}, at=NOW + 100)["result"]
    shown = [task["taskId"] for task in first["tasks"] + second["tasks"]]
    assert shown == [task.id for task in reversed(many)]
    assert "nextCursor" not in second


def test_without_authentication_a_list_shows_this_session_alone() -> None:
    book = a_book(a_task(), a_task(id="tg_2", session="other"))
    shown = ask(book, "tasks/list", {}, caller=Caller("ann", "s1"))["result"]["tasks"]
    assert [task["taskId"] for task in shown] == ["tg_1"]


@pytest.mark.parametrize("cursor", ["", "x", "1", "1.", ".tg_1", 5, None, "²3.x", "9" * 17 + ".x"])
def test_a_strange_cursor_is_refused(cursor: Any) -> None:
    if cursor is None:
        assert "result" in ask(a_book(), "tasks/list", {"cursor": None})
        return
    assert ask(a_book(), "tasks/list", {"cursor": cursor})["error"]["code"] == -32602


def test_a_task_that_has_lived_its_time_is_stopped_and_forgotten() -> None:
    book = a_book()
    assert book.request("w", ANN, "tasks/result", {"taskId": "tg_1"}, NOW + 1) == []
    assert book.ticked(NOW + 599) == []
    steps = book.ticked(NOW + 600)
    assert kinds(steps) == ["StopTask", "AnswerTask", "ForgetTask"]
    assert isinstance(steps[1], AnswerTask)
    assert kind_of(steps[1].body) == "task_expired"
    assert kind_of(ask(book, "tasks/get", at=NOW + 601)) == "task_not_found"


def test_a_task_past_its_time_is_unknown_before_anybody_ticks() -> None:
    assert kind_of(ask(a_book(), "tasks/get", at=NOW + 600)) == "task_not_found"


def test_a_finished_task_is_forgotten_quietly() -> None:
    assert a_book(a_task(phase=FAILED, outcome="{}")).ticked(NOW + 600) == [ForgetTask("tg_1")]


def test_one_principal_can_have_only_so_many_open_tasks() -> None:
    limits = TaskLimits(open_per_principal=2, open_total=3)
    book = a_book(a_task(), a_task(id="tg_2"), limits=limits)
    (refused,) = book.create("k", a_task(id="tg_3"), NOW)
    assert isinstance(refused, AnswerTask)
    assert kind_of(refused.body) == "rate_limited"
    book.create("k", a_task(id="tg_4", principal="bob"), NOW)
    (full,) = book.create("k", a_task(id="tg_5", principal="bob"), NOW)
    assert isinstance(full, AnswerTask)
    assert kind_of(full.body) == "service_unavailable"


def test_the_oldest_finished_task_makes_room() -> None:
    done = [a_task(id=f"tg_{n}", phase=COMPLETED, updated_at=NOW + n) for n in range(3)]
    book = a_book(*done, limits=TaskLimits(kept_per_principal=3))
    steps = book.create("k", a_task(id="tg_new"), NOW + 9)
    assert steps[0] == ForgetTask("tg_0")
    crowded = a_book(a_task(), limits=TaskLimits(kept_per_principal=1))
    assert kinds(crowded.create("k", a_task(id="tg_new"), NOW)) == ["SaveTask", "AnswerTask"]


def test_old_results_make_room_for_new_ones() -> None:
    old = [
        a_task(id=f"tg_{n}", phase=COMPLETED, outcome=" " * 100, updated_at=NOW + n) for n in (1, 2)
    ]
    book = a_book(*old, a_task(id="tg_3", phase=RUNNING), limits=TaskLimits(kept_bytes=250))
    steps = book.finished("tg_3", {"result": {"x": "y" * 100}}, NOW + 5)
    assert [step for step in steps if isinstance(step, ForgetTask)] == [ForgetTask("tg_1")]
    assert book.task("tg_3") is not None


def test_after_a_restart_what_was_held_is_asked_again_and_what_ran_is_not_run_again() -> None:
    held = a_task(id="tg_held")
    ran = a_task(id="tg_ran", phase=RUNNING)
    done = a_task(id="tg_done", phase=COMPLETED)
    old = a_task(id="tg_old", created_at=NOW - 1000)
    book = TaskTable([held, ran, done, old])
    steps = book.recover(NOW + 1, [task.id for task in book.unfinished()])
    assert ResumeTask(held) in steps
    assert StopTask(old, "the task has expired", NOW + 1) in steps
    lost = book.task("tg_ran")
    assert lost is not None
    assert (lost.phase, lost.note) == (FAILED, task_book.LOST_NOTE)
    assert SaveTask(lost) in steps
    assert book.task("tg_done") == done


def test_a_resumed_task_follows_its_new_call() -> None:
    book = a_book()
    (saved,) = book.rejudged("tg_1", "later.1")
    assert isinstance(saved, SaveTask)
    assert saved.task.call_id == "later.1"
    found = book.by_call("later.1")
    assert found is not None
    assert found.phase == HELD


def test_own_tasks_can_be_merged_into_a_servers_list() -> None:
    book = a_book(a_task(), a_task(id="tg_2", created_at=NOW + 1), a_task(id="x", principal="bob"))
    assert [task.id for task in book.own(ANN)] == ["tg_2", "tg_1"]


# Tasks that another process of the same gate carries.


def test_a_task_that_another_carries_is_shown_and_answers_who_waits_for_its_end() -> None:
    book = TaskTable()
    assert book.mirror(a_task()) == []
    assert [task.id for task in book.unfinished()] == ["tg_1"]
    assert book.request("key", ANN, "tasks/result", {"taskId": "tg_1"}, NOW + 1) == []
    assert book.waits_for("tg_1")
    ended = a_task(phase=COMPLETED, outcome=json.dumps({"result": RESULT}))
    (answer,) = book.mirror(ended)
    assert isinstance(answer, AnswerTask)
    assert answer.body["result"]["content"] == RESULT["content"]
    assert not book.waits_for("tg_1")
    assert book.unfinished() == []


def test_a_task_that_could_not_be_kept_is_none() -> None:
    book = TaskTable()
    book.create("key", a_task(), NOW)
    book.forget("tg_1")
    assert book.task("tg_1") is None
    assert kind_of(ask(book, "tasks/get")) == "task_not_found"
