"""Requests of a server to the agent: judged like calls, answered to the server if denied."""

import json
from typing import Any

import pytest
from tests.support.frames import line as frame
from tests.support.frames import notification, request, result
from tests.support.session_play import (
    ASK,
    NO,
    YES,
    is_error,
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
    InspectAnswer,
    JudgeCall,
    ToAgent,
    ToServer,
    Withdraw,
)
from thoughtgate.core.events import (
    AgentGone,
    AgentSent,
    AnswerInspected,
    GateStopping,
    ServerGone,
    ServerSent,
)
from thoughtgate.core.server_requests import FIRST_KEY, MAX_REQUESTS, is_server_key
from thoughtgate.testing.playbook import Some

KEY = FIRST_KEY + 1
ASKED = request("q", "sampling/createMessage", {"messages": [], "_meta": {"x": 1}})


def is_judged(kind: str, name: str) -> Some:
    return Some(
        JudgeCall,
        lambda command: [(one.kind, one.name) for one in command.named] == [(kind, name)],
    )


@pytest.mark.promise("server-requests")
@pytest.mark.parametrize(
    ("method", "params", "kind", "name"),
    [
        ("sampling/createMessage", {"messages": []}, "sampling", "createMessage"),
        ("elicitation/create", {"message": "Sure?"}, "elicitation", "form"),
        ("elicitation/create", {"mode": "url", "url": "https://x"}, "elicitation", "url"),
        ("roots/list", {}, "roots", "list"),
    ],
)
def test_a_request_reaches_the_agent_only_after_its_verdict(
    method: str, params: dict[str, Any], kind: str, name: str
) -> None:
    asked, answer = frame(request("q", method, params)), frame(result("q", {}))
    (
        play()
        .when(ServerSent(asked, 0.0)).then(is_judged(kind, name))
        .when(judged(KEY, YES)).then(to_agent(asked))
        .when(AgentSent(answer, 0.0)).then(to_server(answer))
    )  # fmt: skip


def test_conditions_see_the_params_without_the_metadata() -> None:
    (command,) = new_session().receive(server(ASKED))
    assert isinstance(command, JudgeCall)
    assert command.named[0].arguments == {"messages": []}


@pytest.mark.promise("server-requests")
def test_a_denied_request_is_answered_to_the_server_alone() -> None:
    session = new_session()
    (
        play(session)
        .when(server(ASKED)).whatever()
        .when(judged(KEY, NO)).then(Some(ToServer, is_error("q", "governance_denied")))
        .when(AgentSent(frame(result("q", {})), 0.0)).then()
    )  # fmt: skip
    assert session.is_untouched


def test_the_end_of_a_request_is_on_record() -> None:
    session = new_session()
    session.receive(server(ASKED))
    (ended,) = records(session, judged(KEY, NO))
    assert ended.body["error"]["kind"] == "governance_denied"
    session.receive(server(ASKED))
    session.receive(judged(KEY + 1, YES))
    (ended,) = records(session, AgentSent(frame(result("q", {})), 1.0))
    assert (ended.type, ended.body["status"]) == ("tool_call_end", "OK")


def test_a_held_request_goes_on_once_people_agree() -> None:
    asked = frame(ASKED)
    (
        play()
        .when(ServerSent(asked, 0.0)).whatever()
        .when(judged(KEY, ASK)).then(AskPeople(KEY, f"run.{KEY}", "ops", 0.0))
        .when(AgentSent(frame(result("q", {})), 0.0)).then()
        .when(judged(KEY, YES)).then(to_agent(asked))
    )  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        server(notification("notifications/cancelled", {"requestId": "q"})),
        AgentGone(0.0),
        GateStopping(0.0),
        ServerGone("gone", 0.0),
    ],
    ids=["cancelled", "agent", "gate", "server"],
)
def test_a_held_request_is_withdrawn(event: Any) -> None:
    session = new_session()
    session.receive(server(ASKED))
    session.receive(judged(KEY, ASK))
    assert any(isinstance(command, Withdraw) for command in session.receive(event))
    assert session.receive(judged(KEY, YES)) == []


def test_the_cancellation_of_a_forwarded_request_reaches_the_agent() -> None:
    cancel = frame(notification("notifications/cancelled", {"requestId": "q"}))
    answer = frame(result("q", {}))
    (
        play()
        .when(server(ASKED)).whatever()
        .when(judged(KEY, YES)).whatever()
        .when(ServerSent(cancel, 0.0)).then(to_agent(cancel))
        .when(AgentSent(answer, 0.0)).then(to_server(answer))
    )  # fmt: skip


def test_a_verdict_for_a_request_that_is_gone_changes_nothing() -> None:
    assert new_session().receive(judged(KEY, YES)) == []


@pytest.mark.parametrize("requested", [None, True, {"a": 1}, "unknown"])
def test_a_cancellation_of_nothing_is_passed_on(requested: Any) -> None:
    cancel = frame(notification("notifications/cancelled", {"requestId": requested}))
    play().when(ServerSent(cancel, 0.0)).then(to_agent(cancel))


@pytest.mark.promise("server-requests")
def test_a_server_may_not_use_an_id_twice_nor_ask_without_end() -> None:
    session = new_session()
    for number in range(MAX_REQUESTS):
        session.receive(server(request(number, "roots/list")))

    def refusal(number: int) -> Any:
        (frame_to_server,) = [
            one
            for one in session.receive(server(request(number, "roots/list")))
            if isinstance(one, ToServer)
        ]
        return json.loads(frame_to_server.data)["error"]["data"]["kind"]

    assert refusal(0) == "invalid_request"
    assert refusal(MAX_REQUESTS) == "service_unavailable"


@pytest.mark.parametrize(
    "body",
    [
        request("q", "Roots/List"),
        request("q", "elicitation/create", {"mode": 5}),
        request("q", " sampling/createMessage", {}),
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(body: dict[str, Any]) -> None:
    play().when(server(body)).then(Some(ToServer, is_error("q", "invalid_params")))


def test_the_keys_of_server_requests_are_no_ids_of_agents() -> None:
    assert is_server_key(KEY)
    assert not is_server_key(2**53)
    assert not is_server_key(str(KEY))


WORDS = {"why": "words"}
TEXT = "words" * 40


@pytest.mark.promise("contents-everywhere")
@pytest.mark.parametrize(
    "said",
    [
        notification("notifications/progress", {"progressToken": 1, "progress": 1, "x": "words"}),
        notification("notifications/progress", {"progressToken": 1, "progress": "words"}),
        notification("notifications/progress", {"progressToken": TEXT, "progress": 1}),
        {**notification("notifications/progress", {"progressToken": 1, "progress": 1}), **WORDS},
        {"jsonrpc": "2.0", "method": "notifications/message", **WORDS},
        request("q", "ping", WORDS),
        request("q", "x/unknown", WORDS),
    ],
)
def test_whatever_says_something_in_words_is_inspected(said: dict[str, Any]) -> None:
    session = new_session()
    session.inputs.inspects_notices = True
    commands = session.receive(server(said))
    assert [one for one in commands if isinstance(one, ToAgent)] == []
    (asked,) = (one for one in commands if isinstance(one, InspectAnswer))
    assert (asked.body, asked.can_wait) == (said, False)
    passed = session.receive(AnswerInspected(asked.key, said, 1.0))
    assert [one.data for one in passed if isinstance(one, ToAgent)] == [frame(said)]


def test_numbers_and_short_tokens_are_passed_on_without_an_inspection() -> None:
    session = new_session()
    session.inputs.inspects_notices = True
    plain = frame(notification("notifications/progress", {"progressToken": "t-1", "progress": 0.5}))
    play(session).when(ServerSent(plain, 0.0)).then(to_agent(plain))


@pytest.mark.promise("contents-everywhere")
def test_a_request_with_findings_is_answered_to_the_server_alone() -> None:
    session = new_session()
    session.inputs.inspects_notices = True
    session.receive(server(request("q", "ping", WORDS)))
    found = (("hidden-characters", "hard", "/why"),)
    replies = session.receive(AnswerInspected(KEY, None, 1.0, found))
    (reply,) = (one for one in replies if isinstance(one, ToServer))
    assert json.loads(reply.data)["error"]["data"]["kind"] == "content_blocked"
    assert not session.served
