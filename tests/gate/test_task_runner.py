"""The desk of tasks: a real book, a real store, and the events that sessions are told."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import CALL, NOW

from thoughtgate.core.commands import AskPeople, AskTask, EndTask
from thoughtgate.core.events import AgentSent, CallJudged, TaskAnswered, TaskChanged, TaskMade
from thoughtgate.core.task_table import Caller, TaskLimits, TaskTable
from thoughtgate.gate.task_runner import Keeper, NoKeeper, TaskRunner, Told
from thoughtgate.policy.call import DENY
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.tasks import TaskStore

SESSION = "s1"
CALLER = Caller(CALL.principal, SESSION)
REJECTED = {"error": {"code": -32007, "message": "no", "data": {"kind": "approval_rejected"}}}
DONE = {"jsonrpc": "2.0", "id": "tg-run.1", "result": {"content": []}}


class Bench:
    """A desk whose tasks are called tg_1, tg_2, ... and what it withdrew."""

    def __init__(self, keeper: Keeper, limits: TaskLimits | None = None) -> None:
        self.withdrawn: list[tuple[str, str]] = []
        self.renewed: list[tuple[str, str, float]] = []
        self.can_renew = True
        numbers = count(1)
        self.desk = TaskRunner(
            TaskTable(limits=limits),
            keeper,
            new_id=lambda: f"tg_{next(numbers)}",
            withdraw=lambda call_id, reason, _: self.withdrawn.append((call_id, reason)),
            renew_facts=self._renew,
        )

    def _renew(self, server: str, principal: str, at: float) -> bool:
        self.renewed.append((server, principal, at))
        return self.can_renew

    def make(self, call_id: str = "run.1", **params: Any) -> dict[str, Any]:
        """Let a held call become a task and return what its caller is told."""
        command = AskPeople(1, call_id, "ops", NOW, {"name": "delete_file", "task": {}, **params})
        ((session, event),) = self.desk.make(SESSION, command, CALL)
        assert session == SESSION
        assert isinstance(event, TaskMade)
        return event.body

    def ask(
        self, method: str, task_id: str = "tg_1", key: int = 2, caller: Caller = CALLER
    ) -> list[Told]:
        """Ask about a task."""
        command = AskTask(key, method, {"taskId": task_id}, modern=False, at=NOW + 1)
        return self.desk.answer(caller.session, caller, command)

    def said(self, method: str, task_id: str = "tg_1", caller: Caller = CALLER) -> dict[str, Any]:
        """Ask about a task that is answered at once."""
        ((_, event),) = self.ask(method, task_id, caller=caller)
        assert isinstance(event, TaskAnswered)
        assert event.body is not None
        return event.body


@pytest.fixture
def bench() -> Bench:
    return Bench(NoKeeper())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TaskStore]:
    opened = TaskStore(open_database(tmp_path), "gate", "me", alive=lambda owner: owner == "me")
    yield opened
    opened.close()


def test_a_held_call_is_answered_with_a_task(bench: Bench) -> None:
    task = bench.make()["result"]["task"]

    assert (task["taskId"], task["status"]) == ("tg_1", "working")
    assert bench.desk.is_task("run.1")
    assert bench.desk.has_unfinished
    assert bench.said("tasks/get")["result"]["status"] == "working"


def test_a_ttl_that_makes_no_sense_is_refused(bench: Bench) -> None:
    body = bench.make(task={"ttl": "soon"})

    assert body["error"]["code"] == -32602
    assert not bench.desk.is_task("run.1")


@pytest.mark.promise("facts-outlast-results")
def test_a_result_that_is_fetched_late_renews_what_it_establishes(bench: Bench) -> None:
    bench.make()
    assert bench.desk.started("run.1", NOW)
    bench.said("tasks/get")
    bench.desk.ended(EndTask("run.1", DONE, NOW))
    bench.said("tasks/result", caller=Caller("somebody-else", "9"))
    assert bench.renewed == []
    assert "content" in bench.said("tasks/result")["result"]
    assert bench.renewed == [(CALL.server, CALL.principal, NOW + 1)]
    bench.can_renew = False
    for method in ("tasks/get", "tasks/result"):
        assert bench.said(method)["error"]["data"]["kind"] == "service_unavailable"


def test_too_many_tasks_are_refused() -> None:
    bench = Bench(NoKeeper(), TaskLimits(open_per_principal=1))
    bench.make("run.1")

    assert "error" in bench.make("run.2")
    assert not bench.desk.is_task("run.2")


def test_a_result_is_waited_for_and_told_when_the_call_has_ended(bench: Bench) -> None:
    bench.make()
    assert bench.ask("tasks/result", key=5) == []
    assert bench.desk.started("run.1", NOW + 2)
    (_, changed), (session, event) = bench.desk.ended(EndTask("run.1", DONE, NOW + 3))

    assert isinstance(changed, TaskChanged)
    assert changed.body["status"] == "completed"
    assert "result" not in changed.body
    assert session == SESSION
    assert isinstance(event, TaskAnswered)
    assert event.key == 5
    assert event.body is not None
    assert event.body["result"]["content"] == []
    assert bench.said("tasks/get")["result"]["status"] == "completed"
    assert not bench.desk.is_task("run.1")


def test_a_caller_that_left_is_told_nothing(bench: Bench) -> None:
    bench.make()
    bench.ask("tasks/result", key=5)
    bench.desk.left(SESSION, 5)

    told = bench.desk.ended(EndTask("run.1", DONE, NOW + 3))
    assert [type(event) for _, event in told] == [TaskChanged]


def test_a_refusal_ends_the_task_with_its_kind(bench: Bench) -> None:
    bench.make()
    bench.desk.ended(EndTask("run.1", REJECTED, NOW + 3))

    assert bench.said("tasks/get")["result"]["status"] == "failed"
    assert bench.said("tasks/result")["error"]["data"]["kind"] == "approval_rejected"


def test_cancelling_a_held_task_takes_the_question_back(bench: Bench) -> None:
    bench.make()
    told = bench.ask("tasks/cancel")

    assert [name for name, _ in bench.withdrawn] == ["run.1"]
    judged = next(event for _, event in told if isinstance(event, CallJudged))
    assert (judged.call_id, judged.verdict.action, judged.verdict.kind) == (
        "run.1",
        DENY,
        "task_cancelled",
    )


def test_cancelling_a_running_task_tells_the_server(bench: Bench) -> None:
    bench.make()
    bench.desk.started("run.1", NOW + 1)
    told = bench.ask("tasks/cancel")

    sent = next(event for _, event in told if isinstance(event, AgentSent))
    assert b"notifications/cancelled" in sent.line
    assert b"tg-run.1" in sent.line
    assert bench.withdrawn == []


def test_a_task_of_another_is_unknown(bench: Bench) -> None:
    bench.make()
    foreign = bench.said("tasks/get", caller=Caller("mallory", "s2"))

    assert foreign["error"]["code"] == -32602
    assert foreign["error"]["message"] == bench.said("tasks/get", "tg_unknown")["error"]["message"]


def test_a_call_that_is_no_task_may_run(bench: Bench) -> None:
    assert bench.desk.started("run.9", NOW)
    assert bench.desk.ended(EndTask("run.9", DONE, NOW)) == []


def test_tasks_are_forgotten_when_they_have_lived_their_time(bench: Bench) -> None:
    bench.make(task={"ttl": 60_000})
    bench.desk.tick(NOW + 10_000)

    assert "error" in bench.said("tasks/get")
    assert not bench.desk.has_unfinished


def test_the_servers_list_is_merged_with_ours(bench: Bench) -> None:
    bench.make()
    command = AskTask(
        3,
        "tasks/list",
        {},
        modern=False,
        at=NOW,
        body={"result": {"tasks": [{"taskId": "theirs"}]}},
    )
    ((_, event),) = bench.desk.answer(SESSION, CALLER, command)

    assert isinstance(event, TaskAnswered)
    assert event.body is not None
    assert {task["taskId"] for task in event.body["result"]["tasks"]} == {"theirs", "tg_1"}


def test_only_a_kept_task_outlives_the_process(bench: Bench, store: TaskStore) -> None:
    kept = Bench(store)
    assert not bench.desk.is_durable
    assert bench.desk.owner_of("tg_1") == ""
    assert kept.desk.is_durable
    assert kept.desk.owner_of("tg_1") == "task:tg_1"
    assert kept.desk.reserve(AskPeople(1, "run.1", "ops", NOW, None)) == ""

    bench.make()
    kept.make()
    assert not bench.desk.survives("run.1")
    assert kept.desk.survives("run.1")


def test_a_held_task_of_a_dead_process_is_asked_again(tmp_path: Path) -> None:
    dead = TaskStore(open_database(tmp_path), "gate", "dead")
    Bench(dead).make()
    dead.close()
    store = TaskStore(open_database(tmp_path), "gate", "me", alive=lambda owner: owner == "me")
    bench = Bench(store)

    (task,) = bench.desk.recover(NOW + 1)
    bench.desk.resumed(task.id, "run2.1", "s9")
    assert task.tool == CALL.name
    assert bench.desk.is_task("run2.1")
    assert bench.desk.started("run2.1", NOW + 2)
    bench.desk.ended(EndTask("run2.1", DONE, NOW + 3))
    assert bench.said("tasks/get")["result"]["status"] == "completed"
    bench.desk.close()


def test_what_ran_when_its_process_died_is_never_run_again(tmp_path: Path) -> None:
    dead = TaskStore(open_database(tmp_path), "gate", "dead")
    before = Bench(dead)
    before.make()
    assert before.desk.started("run.1", NOW + 1)
    dead.close()
    store = TaskStore(open_database(tmp_path), "gate", "me", alive=lambda owner: owner == "me")
    bench = Bench(store)

    assert bench.desk.recover(NOW + 2) == []
    found = bench.said("tasks/get")["result"]
    assert found["status"] == "failed"
    bench.desk.close()


def test_a_task_cancelled_by_another_process_does_not_run(tmp_path: Path) -> None:
    mine = Bench(TaskStore(open_database(tmp_path), "gate", "me"))
    mine.make()
    mine.desk.tick(NOW)
    other = Bench(TaskStore(open_database(tmp_path), "gate", "other"))
    other.said("tasks/get", caller=Caller(CALL.principal, "s2", authenticated=True))
    other.ask("tasks/cancel", caller=Caller(CALL.principal, "s2", authenticated=True))

    assert not mine.desk.started("run.1", NOW + 2) or mine.withdrawn
    mine.desk.close()
    other.desk.close()


def test_a_task_taken_over_by_another_process_is_a_copy_here(tmp_path: Path) -> None:
    alive = {"late", "other"}

    def store(owner: str) -> TaskStore:
        return TaskStore(open_database(tmp_path), "gate", owner, alive=lambda name: name in alive)

    late, other = Bench(store("late")), Bench(store("other"))
    late.make()
    assert not other.desk.has_orphans(NOW)
    alive.discard("late")
    assert not other.desk.has_orphans(NOW + 1), "looked a moment ago"
    assert other.desk.has_orphans(NOW + 60)
    (task,) = other.desk.recover(NOW + 60)
    assert not other.desk.has_orphans(NOW + 120)
    other.desk.resumed(task.id, "run2.1", "s9")

    assert not late.desk.started("run.1", NOW + 61), "it may not run here"
    late.desk.ended(EndTask("run.1", DONE, NOW + 62))
    assert late.said("tasks/get")["result"]["status"] != "completed"
    assert other.desk.started("run2.1", NOW + 63)
    other.desk.ended(EndTask("run2.1", DONE, NOW + 64))
    assert late.said("tasks/get")["result"]["status"] == "completed"
    late.desk.close()
    other.desk.close()


def test_tasks_that_are_not_stored_have_no_orphans() -> None:
    assert not Bench(NoKeeper()).desk.has_orphans(NOW)
