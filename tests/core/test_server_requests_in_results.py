"""Requests to the agent inside a result: the result waits until they are judged."""

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
)

from thoughtgate.core.commands import (
    AskPeople,
    InspectAnswer,
    JudgeCall,
    ToAgent,
    Withdraw,
    WriteRecord,
)
from thoughtgate.core.events import AnswerInspected, GateStopping, ServerGone
from thoughtgate.core.server_requests import FIRST_KEY, MAX_REQUESTS
from thoughtgate.policy.call import INSPECT_AFTER, INSPECT_BEFORE
from thoughtgate.testing.playbook import Playbook, Some

KEY = FIRST_KEY + 1
INPUTS = {
    "a": {"method": "elicitation/create", "params": {"message": "Password?"}},
    "b": {"method": "roots/list"},
}
RESULT = result(1, {"resultType": "input_required", "inputRequests": INPUTS})


def called() -> Playbook:
    return play().when(agent(call(1, "t"))).whatever().when(judged(1, YES)).whatever()


@pytest.mark.promise("server-requests")
def test_the_result_waits_for_the_verdict_on_all_its_requests() -> None:
    def names(command: JudgeCall) -> bool:
        return [one.kind for one in command.named] == ["elicitation", "roots"]

    (
        called()
        .when(server(RESULT)).then(Some(JudgeCall, names))
        .when(judged(KEY, YES)).then(to_agent(frame(RESULT), 1))
    )  # fmt: skip


@pytest.mark.promise("server-requests")
def test_if_they_are_denied_the_agent_gets_an_error_instead() -> None:
    (
        called()
        .when(server(RESULT)).whatever()
        .when(judged(KEY, NO)).then(fails(1, "governance_denied"))
    )  # fmt: skip


def test_a_person_may_decide() -> None:
    (
        called()
        .when(server(RESULT)).whatever()
        .when(judged(KEY, ASK)).then(AskPeople(KEY, f"run.{KEY}", "ops", 0.0))
        .when(judged(KEY, YES)).then(to_agent(frame(RESULT), 1))
    )  # fmt: skip


def test_both_calls_end_on_record() -> None:
    session = new_session()
    for event in (agent(call(1, "t")), judged(1, YES), server(RESULT)):
        session.receive(event)
    ended = records(session, judged(KEY, NO))
    assert [one.body["call"]["call_id"] for one in ended] == [f"run.{KEY}", "run.1"]


def test_a_result_that_nobody_waits_for_is_dropped() -> None:
    session = new_session()
    for event in (agent(call(1, "t")), judged(1, YES), server(RESULT)):
        session.receive(event)
    session.receive(agent(notification("notifications/cancelled", {"requestId": 1})))
    (ended,) = records(session, judged(KEY, YES))
    assert ended.body["error"]["kind"] == "approval_withdrawn"


@pytest.mark.parametrize("event", [GateStopping(0.0), ServerGone("gone", 0.0)], ids=str)
def test_what_is_held_is_withdrawn(event: Any) -> None:
    session = new_session()
    for one in (agent(call(1, "t")), judged(1, YES), server(RESULT), judged(KEY, ASK, 1.0)):
        session.receive(one)
    assert any(isinstance(command, Withdraw) for command in session.receive(event))


def test_a_result_is_still_masked() -> None:
    (
        play()
        .when(agent(call(1, "t"))).whatever()
        .when(judged(1, YES._replace(redact=True))).whatever()
        .when(server(RESULT)).whatever()
        .when(judged(KEY, YES)).then(Some(InspectAnswer))
    )  # fmt: skip


@pytest.mark.parametrize(
    "inputs", [5, {"a": 5}, {"a": {}}, {"a": {"method": "ROOTS/LIST"}}], ids=str
)
def test_input_requests_that_cannot_be_read_do_not_reach_the_agent(inputs: Any) -> None:
    body = result(1, {"inputRequests": inputs})
    called().when(server(body)).then(fails(1, "internal_error"))


def test_other_input_requests_pass() -> None:
    body = result(1, {"inputRequests": {"a": {"method": "new/thing"}}})
    called().when(server(body)).then(to_agent(frame(body), 1))


def test_a_result_of_a_request_that_no_gate_judges_waits_too() -> None:
    (
        play()
        .when(agent(request(1, "new/thing"))).whatever()
        .when(server(RESULT)).then(Some(JudgeCall))
        .when(judged(KEY, YES)).then(to_agent(frame(RESULT), 1))
    )  # fmt: skip


ELICITED = {"mode": "url", "elicitationId": "e", "url": "https://evil.example", "message": "Go"}


def judges(kind: str, name: str) -> Some:
    return Some(JudgeCall, lambda command: (kind, name) in [one[:2] for one in command.named])


@pytest.mark.promise("server-requests")
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": -32042, "message": "m", "data": {"elicitations": [ELICITED]}}},
        {"error": {"code": -32042, "message": "m", "Data": {"Elicitations": [ELICITED]}}},
        {"error": {"code": -32042.0, "data": {"elicitations": [{"url": "https://x.example"}]}}},
        {"result": {"taskId": "t", "error": {"data": {"elicitations": [ELICITED]}}}},
    ],
    ids=str,
)
def test_an_error_that_carries_elicitations_waits_too(body: Any) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, **body}
    called().when(server(answer)).then(judges("elicitation", "url")).when(judged(KEY, NO)).then(
        fails(1, "governance_denied")
    )
    called().when(server(answer)).whatever().when(judged(KEY, YES)).then(to_agent(frame(answer), 1))


@pytest.mark.promise("server-requests")
@pytest.mark.parametrize(
    "said",
    [
        {"InputRequests": INPUTS},
        {"inputRequests": {}, "INPUTREQUESTS": INPUTS},
        {"task": {"taskId": "t", "inputRequests": INPUTS}},
        {"taskId": "t", "result": {"inputRequests": INPUTS}},
    ],
    ids=str,
)
def test_requests_are_found_wherever_an_agent_may_find_them(said: Any) -> None:
    body = result(1, said)
    called().when(server(body)).then(judges("elicitation", "form"))


@pytest.mark.promise("server-requests")
@pytest.mark.parametrize(
    "inputs",
    [
        {"a": {"method": "ping", "Method": "roots/list"}},
        {"a": {"method": "elicitation/create", "Params": {"mode": "url"}}},
        {"a": {"method": "elicitation/create", "params": {"Mode": "url"}}},
        {str(number): {"method": "ping"} for number in range(101)},
    ],
    ids=["method", "params", "mode", "many"],
)
def test_input_requests_with_two_readings_do_not_reach_the_agent(inputs: Any) -> None:
    body = result(1, {"inputRequests": inputs})
    called().when(server(body)).then(fails(1, "internal_error"))


@pytest.mark.promise("server-requests")
def test_two_spellings_cannot_hide_a_request_behind_another() -> None:
    harmless = {"a": {"method": "ping"}}
    body = result(1, {"InputRequests": INPUTS, "inputRequests": harmless})
    called().when(server(body)).then(fails(1, "internal_error"))


TASK_NOTICE = notification("notifications/tasks", {"taskId": "t", "inputRequests": INPUTS})


@pytest.mark.promise("server-requests")
def test_a_notification_waits_for_the_verdict_on_its_requests() -> None:
    session = new_session()
    assert not sent_to_agent(session.receive(server(TASK_NOTICE)))
    assert not sent_to_agent(session.receive(judged(KEY, ASK)))
    assert sent_to_agent(session.receive(judged(KEY, YES))) == [frame(TASK_NOTICE)]


@pytest.mark.promise("server-requests")
def test_a_notification_whose_requests_are_denied_is_dropped_on_record() -> None:
    session = new_session()
    session.receive(server(TASK_NOTICE))
    commands = session.receive(judged(KEY, NO))
    assert not sent_to_agent(commands)
    (ended,) = [one.record for one in commands if isinstance(one, WriteRecord)]
    assert ended.body["error"]["kind"] == "governance_denied"


@pytest.mark.promise("server-requests")
def test_a_server_cannot_make_notifications_wait_without_end() -> None:
    session = new_session()
    for _ in range(MAX_REQUESTS):
        session.receive(server(TASK_NOTICE))
    commands = session.receive(server(TASK_NOTICE))
    assert not any(isinstance(one, JudgeCall | ToAgent) for one in commands)


def test_a_notification_with_unreadable_requests_is_refused() -> None:
    session = new_session()
    body = notification("notifications/tasks", {"inputRequests": 5})
    (command,) = session.receive(server(body))
    assert isinstance(command, WriteRecord)


OTHER_REQUESTS = {"inputRequests": {"a": {"method": "new/thing"}}}


@pytest.mark.parametrize("method", ["notifications/progress", "notifications/new"])
def test_a_notification_with_other_requests_passes(method: str) -> None:
    session = new_session()
    body = notification(method, OTHER_REQUESTS)
    assert sent_to_agent(session.receive(server(body))) == [frame(body)]


@pytest.mark.promise("contents-everywhere")
def test_a_notification_with_other_requests_is_inspected_like_any_other() -> None:
    session = new_session()
    session.inputs.inspects_notices = INSPECT_BEFORE
    (command,) = inspections(session.receive(server(notification("n", OTHER_REQUESTS))))
    assert not command.of_task


@pytest.mark.promise("facts-outlast-results")
@pytest.mark.parametrize("inspect", [0, INSPECT_AFTER, INSPECT_BEFORE])
@pytest.mark.parametrize("params", [{"taskId": "t", "result": {}}, OTHER_REQUESTS])
def test_a_notification_about_a_task_counts_as_its_result(params: Any, inspect: int) -> None:
    session = new_session()
    session.inputs.inspects_notices = inspect
    body = notification("notifications/tasks", params)
    commands = session.receive(server(body))
    assert not sent_to_agent(commands)
    (command,) = inspections(commands)
    assert command.of_task
    # The facts of the server's results cannot be renewed, so the agent does not get it.
    assert not sent_to_agent(session.receive(AnswerInspected(command.key, None, 1.0)))
    (command,) = inspections(session.receive(server(body)))
    passed = session.receive(AnswerInspected(command.key, body, 1.0))
    assert sent_to_agent(passed) == [frame(body)]


def inspections(commands: list[Any]) -> list[InspectAnswer]:
    return [one for one in commands if isinstance(one, InspectAnswer)]


def sent_to_agent(commands: list[Any]) -> list[bytes]:
    return [one.data for one in commands if isinstance(one, ToAgent)]
