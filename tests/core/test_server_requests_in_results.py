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

from thoughtgate.core.commands import AskPeople, JudgeCall, MaskAnswer, Withdraw
from thoughtgate.core.events import GateStopping, ServerGone
from thoughtgate.core.server_requests import FIRST_KEY
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
        .when(judged(KEY, YES)).then(Some(MaskAnswer))
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
