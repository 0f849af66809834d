"""One session as a playbook: calls that become tasks, and answers that are masked first."""

import json
from typing import Any

import pytest
from tests.support.frames import call, notification, request, result
from tests.support.frames import line as frame
from tests.support.session_play import (
    ASK,
    NO,
    YES,
    agent,
    fails,
    judged,
    new_session,
    play,
    records,
    server,
    to_agent,
    to_server,
)

from thoughtgate.core.commands import (
    AskPeople,
    AskTask,
    EndTask,
    InspectAnswer,
    ToAgent,
    ToServer,
    Withdraw,
)
from thoughtgate.core.events import (
    AgentGone,
    AnswerInspected,
    KeptAlive,
    ServerGone,
    TaskAnswered,
    TaskMade,
    Ticked,
)
from thoughtgate.testing.playbook import Playbook, Some

MASKED = YES._replace(redact=True)
TASK = {"taskId": "tg_1", "status": "working"}


def _tasked(ident: int = 1) -> dict[str, Any]:
    return request(ident, "tools/call", {"name": "x", "arguments": {}, "task": {"ttl": 1000}})


def _held_task(book: Playbook, ident: int = 1) -> Playbook:
    """Let a call be held and become a task."""
    book.when(agent(_tasked(ident))).whatever()
    return book.when(judged(ident, ASK, at=1.0)).whatever()


# Tasks.


def test_a_caller_that_wants_a_task_gets_it_and_its_id_is_free_again() -> None:
    session = new_session()
    book = play(session).when(agent(_tasked())).whatever().when(judged(1, ASK, at=1.0))
    (asked,) = book.commands
    assert isinstance(asked, AskPeople)
    assert asked.params == _tasked()["params"]
    book.whatever().when(TaskMade(1, {"result": {"task": TASK}}, 2.0))
    (reply,) = book.commands
    assert json.loads(reply.data)["result"]["task"] == TASK
    book.whatever()
    assert session.is_idle
    assert session.held_calls == 0
    book.when(agent(request(1, "ping"))).then(Some(ToServer))


def test_a_caller_that_wants_none_waits() -> None:
    book = play().when(agent(call(1, "x"))).whatever()

    book.when(judged(1, ASK, at=1.0)).then(AskPeople(1, "run.1", "ops", 1.0))


def test_an_approved_task_runs_under_the_gates_own_id_and_its_answer_ends_the_task() -> None:
    book = _held_task(play()).when(TaskMade(1, {"result": {"task": TASK}}, 2.0)).whatever()
    book.when(judged(1, YES))
    (sent,) = book.commands
    body = json.loads(sent.data)
    assert sent.key == body["id"] == "tg-run.1"
    assert body["params"] == {"name": "x", "arguments": {}}
    book.whatever().when(agent(request("tg-run.1", "ping"))).then(
        fails("tg-run.1", "invalid_request")
    )
    answer = result("tg-run.1", {"content": []})
    book.when(server(answer, at=9.0)).then(EndTask("run.1", answer, 9.0))
    book.when(server(answer)).then()


def test_a_traced_call_tells_the_server_its_trace_as_a_task_too() -> None:
    traced = YES._replace(trace="00-t-s-01")
    book = play().when(agent(request(1, "tools/call", {"name": "x"}))).whatever()
    book.when(judged(1, traced))
    (sent,) = book.commands
    assert json.loads(sent.data)["params"] == {"name": "x", "_meta": {"traceparent": "00-t-s-01"}}

    book = _held_task(play()).when(TaskMade(1, {"result": {"task": TASK}}, 2.0)).whatever()
    book.when(judged(1, traced))
    (sent,) = book.commands
    assert json.loads(sent.data)["params"]["_meta"] == {"traceparent": "00-t-s-01"}


def test_a_refused_task_ends_and_never_runs() -> None:
    book = _held_task(play()).when(TaskMade(1, {"result": {"task": TASK}}, 2.0)).whatever()
    book.when(judged(1, NO))
    (ended,) = book.commands

    assert isinstance(ended, EndTask)
    assert ended.body["error"]["data"]["kind"] == "governance_denied"


def test_a_task_whose_server_is_gone_ends_with_an_error() -> None:
    book = _held_task(play()).when(TaskMade(1, {"result": {"task": TASK}}, 2.0)).whatever()
    book.when(ServerGone("gone", 3.0)).then().when(judged(1, YES))
    (ended,) = book.commands

    assert isinstance(ended, EndTask)
    assert ended.body["error"]["data"]["kind"] == "upstream_connection_failed"


def test_a_task_that_could_not_be_made_is_withdrawn_and_answered() -> None:
    session = new_session()
    book = _held_task(play(session)).when(TaskMade(1, {"error": {"code": -1}}, 2.0))
    withdrawn, reply = book.commands

    assert isinstance(withdrawn, Withdraw)
    assert json.loads(reply.data)["error"] == {"code": -1, "data": {"correlation_id": "run.1"}}
    assert session.is_idle
    book.whatever().when(TaskMade(1, {}, 3.0)).then()


def test_an_agent_that_leaves_takes_its_held_tasks_along() -> None:
    book = _held_task(play()).when(TaskMade(1, {"result": {"task": TASK}}, 2.0)).whatever()

    book.when(AgentGone(3.0)).then(Withdraw("run.1", "run.1", "the caller is gone"))
    book.when(judged(1, YES)).then()


def test_a_question_about_a_task_of_ours_is_answered_here() -> None:
    asked = request(5, "tasks/get", {"taskId": "tg_1"})
    book = play().when(agent(asked)).then(AskTask(5, "tasks/get", {"taskId": "tg_1"}, False, 0.0))
    book.when(TaskAnswered(5, {"result": TASK}, 1.0))
    (reply,) = book.commands

    assert json.loads(reply.data) == {"jsonrpc": "2.0", "id": 5, "result": TASK}


def test_a_question_about_a_task_of_the_servers_goes_there() -> None:
    other = frame(request(5, "tasks/get", {"taskId": "abc"}))
    ours = frame(request(6, "tasks/get", {"taskId": "tg_zzz"}))
    book = play().when(agent(json.loads(other))).then(to_server(other, 5))
    book.when(agent(json.loads(ours))).whatever()

    book.when(TaskAnswered(6, None, 1.0)).then(to_server(ours, 6))


def test_a_cancelled_question_about_a_task_is_forgotten() -> None:
    book = play().when(agent(request(5, "tasks/get", {"taskId": "tg_1"}))).whatever()
    book.when(agent(notification("notifications/cancelled", {"requestId": 5}))).whatever()

    book.when(TaskAnswered(5, {"result": TASK}, 1.0)).then()
    book.when(agent(request(5, "ping"))).then(Some(ToServer))


def test_the_servers_list_of_tasks_is_merged_with_ours() -> None:
    book = play().when(agent(request(5, "tasks/list"))).whatever()
    theirs = result(5, {"tasks": []})
    book.when(server(theirs)).then(AskTask(5, "tasks/list", {}, False, 0.0, theirs))
    book.when(TaskAnswered(5, {"result": {"tasks": [TASK]}}, 1.0)).then(Some(ToAgent))


# Answers that are masked first.


def test_an_answer_that_a_rule_wants_masked_goes_on_masked() -> None:
    session = new_session()
    book = play(session).when(agent(call(1, "x"))).whatever().when(judged(1, MASKED)).whatever()
    book.when(server(result(1, {"a": "secret"}))).then(
        InspectAnswer(1, "run.1", result(1, {"a": "secret"}), 0.0)
    )
    assert session.is_open(1)
    book.when(AnswerInspected(1, result(1, {"a": "*"}), 1.0)).then(
        to_agent(frame(result(1, {"a": "*"})), 1)
    )
    assert session.is_idle
    book.when(AnswerInspected(1, None, 1.0)).then()


@pytest.mark.promise("names-are-masked")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/result"])
def test_what_a_server_says_about_its_tasks_may_have_to_be_masked(method: str) -> None:
    said = result(1, {"content": "secret"})
    book = play().when(agent(request(1, method, {"taskId": "the server's"}))).whatever()
    asks = Some(InspectAnswer, lambda command: command.of_task)
    book.when(server(said)).then(asks)
    book.when(AnswerInspected(1, said, 1.0)).then(to_agent(frame(said), 1))


def test_an_answer_that_cannot_be_masked_is_not_given() -> None:
    book = play().when(agent(call(1, "x"))).whatever().when(judged(1, MASKED)).whatever()
    book.when(server(result(1, {"a": "secret"}))).whatever()

    book.when(AnswerInspected(1, None, 1.0)).then(fails(1, "internal_error"))


def test_a_second_verdict_never_sends_an_answer_back_to_the_server() -> None:
    session = new_session()
    book = play(session).when(agent(call(1, "x"))).whatever()
    book.when(judged(1, ASK, at=1.0)).whatever().when(judged(1, MASKED)).whatever()
    book.when(server(result(1, {"a": "secret"}))).whatever()

    book.when(judged(1, YES)).then()
    cancel = agent(notification("notifications/cancelled", {"requestId": 1}))
    seen, ended = records(session, cancel)
    assert seen.type == "message"
    assert ended.body["status"] == "CANCELLED"
    assert "error" not in ended.body
    assert session.held_calls == 0
    book.when(AnswerInspected(1, result(1), 5.0)).then()


def test_a_driver_may_keep_a_call_alive() -> None:
    book = play().when(agent(call(1, "x"))).whatever().when(judged(1, YES, at=0.0)).whatever()
    book.when(KeptAlive(1, 50.0)).then().when(KeptAlive(9, 50.0)).then()

    book.when(Ticked(100.0)).then().when(Ticked(111.0)).then(
        fails(1, "tool_call_timeout"), Some(ToServer)
    )
