"""Answers that are inspected: sent, withheld, or held until a person releases them."""

import json
from typing import Any

import pytest
from tests.support.frames import call, line, notification, request, result
from tests.support.session_play import (
    YES,
    agent,
    judged,
    new_session,
    play,
    records,
    server,
    to_agent,
)

from thoughtgate.core.commands import AskPeople, InspectAnswer, ToAgent, Withdraw
from thoughtgate.core.events import (
    AgentGone,
    AnswerInspected,
    CallerGone,
    CallJudged,
    GateStopping,
    PersonAsked,
    ServerGone,
    Ticked,
)
from thoughtgate.core.session import Session
from thoughtgate.policy.call import DENY, Verdict
from thoughtgate.testing.playbook import Some

WATCHED = YES._replace(inspect=True)
FOUND = (("link-data", "hard", "/content/0/text:1-5"),)
SAID = {"content": [{"type": "text", "text": "x"}]}
HELD = AnswerInspected(1, result(1, SAID), 2.0, FOUND, "run.1r", "default")
REFUSED = Verdict(DENY, "approval", "content_blocked", findings=FOUND)


def answered(params: dict[str, Any] | None = None) -> Session:
    """Return a session whose one call was answered, and whose answer is being inspected."""
    session = new_session()
    body = call(1, "x")
    if params is not None:
        body["params"] |= params
    for event in (agent(body), judged(1, WATCHED)):
        session.receive(event)
    (command,) = session.receive(server(result(1, SAID)))
    assert command == InspectAnswer(1, "run.1", result(1, SAID), 0.0)
    return session


def held(params: dict[str, Any] | None = None) -> Session:
    session = answered(params)
    assert session.receive(HELD) == [AskPeople(1, "run.1r", "default", 2.0)]
    assert session.held_calls == 1
    return session


def error_in(commands: list[Any]) -> dict[str, Any]:
    (reply,) = [one for one in commands if isinstance(one, ToAgent)]
    error: dict[str, Any] = json.loads(reply.data)["error"]
    return error


def test_a_blocked_answer_names_the_checks_and_says_that_the_call_was_made() -> None:
    session = answered()
    error = error_in(session.receive(AnswerInspected(1, None, 2.0, FOUND)))
    assert error["data"]["kind"] == "content_blocked"
    assert error["data"]["checks"] == ["link-data"]
    assert "the call was made" in error["message"]
    assert session.is_idle


def test_a_released_answer_is_what_the_inspection_returned() -> None:
    session = held()
    commands = session.receive(CallJudged(1, YES, "run.1r", 3.0))
    assert commands[-1] == to_agent(line(result(1, SAID)), 1)
    assert (session.held_calls, session.is_idle) == (0, True)


def test_a_large_answer_is_released_whole() -> None:
    session = answered()
    said = {"content": [{"type": "text", "text": "é" * 100_000}]}
    session.receive(HELD._replace(body=result(1, said)))
    (*_, sent) = session.receive(CallJudged(1, YES, "run.1r", 3.0))
    assert isinstance(sent, ToAgent)
    assert json.loads(sent.data)["result"] == said


def test_a_refused_answer_is_withheld() -> None:
    session = held()
    error = error_in(session.receive(CallJudged(1, REFUSED, "run.1r", 3.0)))
    assert error["data"]["checks"] == ["link-data"]
    assert session.held_calls == 0


def test_a_decision_about_another_call_is_ignored() -> None:
    session = held()
    assert session.receive(CallJudged(1, YES, "run.1", 3.0)) == []
    assert session.held_calls == 1


@pytest.mark.parametrize(
    "event",
    [
        agent(notification("notifications/cancelled", {"requestId": 1})),
        CallerGone(1, 3.0),
        AgentGone(3.0),
        GateStopping(3.0),
        ServerGone("it exited", 3.0),
    ],
    ids=["cancelled", "caller", "agent", "stopping", "server"],
)
def test_whoever_leaves_withdraws_the_question_about_a_held_answer(event: Any) -> None:
    session = held()
    commands = session.receive(event)
    assert [one.call_id for one in commands if isinstance(one, Withdraw)] == ["run.1r"]
    for told in (one for one in commands if isinstance(one, ToAgent)):
        assert json.loads(told.data)["error"]["data"]["kind"] == "content_blocked"
    assert session.held_calls == 0
    assert session.receive(CallJudged(1, YES, "run.1r", 4.0)) == []


def test_a_caller_that_leaves_during_the_inspection_leaves_no_question() -> None:
    session = answered()
    session.receive(CallerGone(1, 1.0))
    # The id stays reserved, so that the reply cannot reach another request.
    assert any(isinstance(one, ToAgent) for one in session.receive(agent(request(1, "ping"))))
    assert session.receive(HELD) == [Withdraw(1, "run.1r", "the caller is gone")]
    assert session.is_untouched


def test_the_caller_of_a_held_answer_gets_progress_and_no_prompt() -> None:
    session = held({"_meta": {"progressToken": "p"}})
    (told,) = session.receive(Ticked(13.0))
    assert isinstance(told, ToAgent)
    assert "the call was made" in json.loads(told.data)["params"]["message"]
    assert session.receive(PersonAsked(1, "ident", "release?", 14.0)) == []


def test_too_many_held_answers_are_withheld() -> None:
    session = Session(new_session().setup._replace(max_held=0))
    for event in (agent(call(1, "x")), judged(1, WATCHED), server(result(1, SAID))):
        session.receive(event)
    withdrawn, *rest = session.receive(HELD)
    assert isinstance(withdrawn, Withdraw)
    assert error_in(rest)["data"]["kind"] == "content_blocked"


def test_a_withheld_answer_is_on_record_as_refused() -> None:
    (ended,) = records(answered(), AnswerInspected(1, None, 2.0, FOUND))
    assert ended.body["error"]["kind"] == "content_blocked"
    assert ended.body["error"]["class"] == "policy_block"


def test_an_answer_about_a_servers_task_can_be_held() -> None:
    book = play().when(agent(request(1, "tasks/result", {"taskId": "the server's"}))).whatever()
    book.when(server(result(1, SAID))).then(Some(InspectAnswer))
    book.when(HELD._replace(held="run.e1r")).then(AskPeople(1, "run.e1r", "default", 2.0))
    book.when(CallJudged(1, YES, "run.e1r", 3.0)).then(to_agent(line(result(1, SAID)), 1))
