"""The agent's own prompt: asked only where it can be, answered once, taken back."""

import json
from typing import Any

import pytest
from tests.support.frames import line
from tests.support.session_play import ASK, YES, agent, new_session, server

from thoughtgate.core.commands import (
    AskPeople,
    JudgeCall,
    PersonAnswered,
    ToAgent,
    ToServer,
    WriteRecord,
)
from thoughtgate.core.elicitation import ID_PREFIX, MAX_STATES, METHOD, Elicitations, SessionStates
from thoughtgate.core.events import AgentSent, CallJudged, Event, PersonAsked
from thoughtgate.core.session import Session
from thoughtgate.policy.call import DENY, Verdict
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message

IDENT = f"{ID_PREFIX}0123456789abcdef"
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "drop", "arguments": {}},
}


def message(body: dict[str, Any]) -> Message:
    read = read_frame(line({"jsonrpc": "2.0", **body}))
    assert isinstance(read, Message)
    return read


def asked(capabilities: Any) -> Elicitations:
    prompts = Elicitations()
    prompts.learn("initialize", {"capabilities": capabilities})
    return prompts


@pytest.mark.parametrize("said", [{}, {"form": {}}, {"form": {}, "url": {}}])
def test_a_client_that_can_show_forms_is_asked(said: dict[str, Any]) -> None:
    (command,) = asked({"elicitation": said}).ask(1, IDENT, "run.1", "Run it?")

    assert isinstance(command, ToAgent)
    sent = json.loads(command.data)
    assert (sent["id"], sent["method"], sent["params"]["message"]) == (IDENT, METHOD, "Run it?")
    assert sent["params"]["requestedSchema"]["required"] == ["decision"]


PAGE = "http://127.0.0.1:4000/approvals/k3f9ab"
TOLD = PersonAsked(1, IDENT, "", 1.0, "drop on db waits.", PAGE)


@pytest.mark.parametrize(
    ("said", "params"),
    [
        ({}, {"requestedSchema": {"type": "object", "properties": {}}}),
        ({"url": {}}, {"mode": "url", "elicitationId": IDENT, "url": PAGE}),
    ],
)
def test_a_client_is_told_that_a_call_waits_and_its_answer_decides_nothing(
    said: dict[str, Any], params: dict[str, Any]
) -> None:
    prompts = asked({"elicitation": said})
    (command,) = prompts.show(TOLD, message(CALL), "run.1", modern=False)
    assert json.loads(command.data)["params"] == {**params, "message": "drop on db waits."}
    accept = {"action": "accept", "content": {"decision": "approve"}}
    answer = message({"id": IDENT, "result": accept})
    assert prompts.take(answer, 5.0) == []
    assert prompts.take(answer, 5.0) is None, "it is no longer ours"


def test_a_notice_is_taken_back_like_a_question() -> None:
    prompts = asked({"elicitation": {}})
    prompts.show(TOLD, message(CALL), "run.1", modern=False)
    (command,) = prompts.close("run.1")
    assert isinstance(command, ToAgent)
    assert json.loads(command.data)["params"]["requestId"] == IDENT


@pytest.mark.parametrize(
    ("told", "call", "modern"),
    [
        (TOLD._replace(waits=""), CALL, False),
        (TOLD._replace(ident=""), CALL, False),
        (TOLD, CALL, True),
        (TOLD, None, False),
    ],
)
def test_nothing_is_shown_without_a_text_or_an_id_or_where_it_would_end_the_call(
    told: PersonAsked, call: dict[str, Any] | None, modern: bool
) -> None:
    prompts = asked({"elicitation": {}})
    about = message(call) if call is not None else None
    assert prompts.show(told, about, "run.1", modern=modern) == []
    assert Elicitations().show(TOLD, message(CALL), "run.1", modern=False) == []


@pytest.mark.parametrize(
    "said", [None, {}, {"elicitation": None}, {"elicitation": {"url": {}}}, {"elicitation": 5}, []]
)
def test_a_client_that_cannot_is_not(said: Any) -> None:
    assert asked(said).ask(1, IDENT, "run.1", "Run it?") == []
    assert Elicitations().ask(1, IDENT, "run.1", "Run it?") == []


def test_only_initialize_tells_what_a_client_can() -> None:
    prompts = Elicitations()
    prompts.learn("tools/call", {"capabilities": {"elicitation": {}}})

    assert prompts.ask(1, IDENT, "run.1", "x") == []


def test_initialize_tells_what_the_client_is_called() -> None:
    prompts = Elicitations()
    assert prompts.client == ""
    prompts.learn("tools/call", {"clientInfo": {"name": "other"}})
    assert prompts.client == ""
    prompts.learn("initialize", {"clientInfo": {"name": "editor", "version": "2"}})
    assert prompts.client == "editor 2"


def test_an_id_that_is_not_of_ours_is_not_asked_under() -> None:
    assert asked({"elicitation": {}}).ask(1, "7", "run.1", "x") == []


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"action": "accept", "content": {"decision": "approve"}}, (True, "")),
        ({"action": "accept", "content": {"decision": "deny", "reason": "no"}}, (False, "no")),
        ({"action": "decline"}, (False, "declined")),
    ],
)
def test_an_answer_is_a_decision(result: dict[str, Any], expected: tuple[bool, str]) -> None:
    prompts = asked({"elicitation": {}})
    prompts.ask(1, IDENT, "run.1", "x")
    answer = message({"id": IDENT, "result": result})

    assert prompts.take(answer, 5.0) == [PersonAnswered("run.1", *expected, 5.0)]
    assert prompts.take(answer, 5.0) is None, "an answer counts once"


@pytest.mark.parametrize(
    "body",
    [
        {"result": {"action": "cancel"}},
        {"result": {"action": "accept"}},
        {"result": {"action": "accept", "content": {"decision": "APPROVE"}}},
        {"result": {"action": "accept", "content": {"decision": True}}},
        {"result": {"action": "accept", "content": {"decision": ["approve"]}}},
        {"result": []},
        {"error": {"code": -32601, "message": "no"}},
    ],
)
def test_a_dismissed_or_odd_answer_decides_nothing(body: dict[str, Any]) -> None:
    prompts = asked({"elicitation": {}})
    prompts.ask(1, IDENT, "run.1", "x")

    assert prompts.take(message({"id": IDENT, **body}), 5.0) == []


def test_answers_to_others_are_not_ours() -> None:
    prompts = asked({"elicitation": {}})
    prompts.ask(1, IDENT, "run.1", "x")

    assert prompts.take(message({"id": 9, "result": {}}), 5.0) is None


def test_a_prompt_is_taken_back_once() -> None:
    prompts = asked({"elicitation": {}})
    prompts.ask(1, IDENT, "run.1", "x")
    (command,) = prompts.close("run.1")

    assert isinstance(command, ToAgent)
    assert json.loads(command.data)["params"]["requestId"] == IDENT
    assert prompts.close("run.1") == []


# In a session.


def receive(session: Session, event: Event) -> list[Any]:
    return [each for each in session.receive(event) if not isinstance(each, WriteRecord)]


def held(*, modern: bool = False) -> Session:
    session = new_session()
    capabilities: dict[str, Any] = {"capabilities": {"elicitation": {}}}
    session.receive(
        agent({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": capabilities})
    )
    body = CALL
    if modern:
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        body = {**CALL, "params": {"name": "drop", "arguments": {}, "_meta": meta}}
    session.receive(agent(body))
    (asks,) = receive(session, CallJudged(1, ASK, "run.1", 1.0))
    assert isinstance(asks, AskPeople)
    return session


def test_a_held_call_is_asked_about_in_the_agent_and_runs_once_approved() -> None:
    session = held()
    (prompt,) = receive(session, PersonAsked(1, IDENT, "Run it?", 1.0))
    assert isinstance(prompt, ToAgent)
    accept = {"action": "accept", "content": {"decision": "approve"}}

    assert receive(session, agent({"jsonrpc": "2.0", "id": IDENT, "result": accept}, 2.0)) == [
        PersonAnswered("run.1", approve=True, reason="", at=2.0)
    ]
    (sent,) = receive(session, CallJudged(1, YES, "run.1", 3.0))
    assert isinstance(sent, ToServer)


def test_the_answer_to_a_prompt_never_reaches_the_server() -> None:
    session = held()
    session.receive(PersonAsked(1, IDENT, "Run it?", 1.0))
    commands = session.receive(
        agent({"jsonrpc": "2.0", "id": IDENT, "result": {"action": "cancel"}})
    )

    assert not any(isinstance(each, ToServer) for each in commands)


def test_an_answer_elsewhere_takes_the_prompt_back() -> None:
    session = held()
    session.receive(PersonAsked(1, IDENT, "Run it?", 1.0))
    no = Verdict(DENY, "approval", "approval_rejected")
    cancelled, refused = receive(session, CallJudged(1, no, "run.1", 2.0))

    assert b"notifications/cancelled" in cancelled.data
    assert b"approval_rejected" in refused.data


def test_a_cancelled_call_takes_the_prompt_back() -> None:
    session = held()
    session.receive(PersonAsked(1, IDENT, "Run it?", 1.0))
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    commands = receive(session, agent(cancel))

    assert any(isinstance(each, ToAgent) and IDENT.encode() in each.data for each in commands)


def test_a_modern_caller_that_cannot_ask_waits_for_others() -> None:
    assert receive(held(modern=True), PersonAsked(1, IDENT, "Run it?", 1.0)) == []


# 2026-07-28: the call is answered with the prompt, and made again with the answer.

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
ACCEPT = {"action": "accept", "content": {"decision": "approve", "reason": "go"}}


def modern_call(ident: int, **params: Any) -> AgentSent:
    said = {"name": "drop", "arguments": {"path": "/a"}, "_meta": META, **params}
    return agent({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": said})


def prompted(**params: Any) -> tuple[Session, dict[str, Any]]:
    """A session whose first call was answered with a prompt, and the prompt."""
    session = new_session()
    session.receive(modern_call(1, **params))
    session.receive(CallJudged(1, ASK, "run.1", 1.0))
    commands = receive(session, PersonAsked(1, IDENT, "Run it?", 1.0))
    return session, json.loads(commands[-1].data)["result"] if commands else {}


def test_a_modern_call_is_answered_with_the_prompt_and_its_question_taken_back() -> None:
    session, result = prompted()

    assert result["resultType"] == "input_required"
    question = result["inputRequests"]["thoughtgate"]
    assert (question["method"], question["params"]["message"]) == (METHOD, "Run it?")
    assert session.held_calls == 0
    assert session.is_idle


def test_the_call_made_again_with_a_yes_is_judged_and_approved_by_the_person() -> None:
    session, result = prompted()
    again = modern_call(
        2, requestState=result["requestState"], inputResponses={"thoughtgate": ACCEPT}
    )
    (judge,) = receive(session, again)
    assert isinstance(judge, JudgeCall)
    assert "requestState" not in judge.params
    asks, answered = receive(session, CallJudged(2, ASK, "run.2", 5.0))

    assert isinstance(asks, AskPeople)
    assert answered == PersonAnswered("run.2", approve=True, reason="go", at=5.0)
    assert receive(session, PersonAsked(2, IDENT, "Run it?", 5.0)) == [], "it was asked already"
    (sent,) = receive(session, CallJudged(2, YES, "run.2", 6.0))
    assert isinstance(sent, ToServer)
    assert b"requestState" not in sent.data
    assert b"inputResponses" not in sent.data


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments": {"path": "/b"}},
        {"name": "format"},
        {"requestState": "tg1.made-up"},
        {"inputResponses": {}},
        {"inputResponses": {"thoughtgate": {"action": "cancel"}}},
        {"inputResponses": {"thoughtgate": 5}},
        {"inputResponses": []},
    ],
)
def test_an_answer_to_another_call_or_none_is_no_answer(changes: dict[str, Any]) -> None:
    session, result = prompted()
    params = {"requestState": result["requestState"], "inputResponses": {"thoughtgate": ACCEPT}}
    session.receive(modern_call(2, **{**params, **changes}))

    (asks,) = receive(session, CallJudged(2, ASK, "run.2", 5.0))
    assert isinstance(asks, AskPeople)


@pytest.mark.parametrize("said", [{"thoughtgate": {"action": "cancel"}}, {}, None, []])
def test_a_modern_prompt_that_was_only_dismissed_is_not_shown_again(said: Any) -> None:
    session, result = prompted()
    session.receive(modern_call(2, requestState=result["requestState"], inputResponses=said))
    session.receive(CallJudged(2, ASK, "run.2", 5.0))

    assert receive(session, PersonAsked(2, IDENT, "Run it?", 5.0)) == []
    assert session.held_calls == 1


def test_an_unknown_state_is_asked_about_anew() -> None:
    session, _ = prompted()
    session.receive(
        modern_call(2, requestState="tg1.made-up", inputResponses={"thoughtgate": ACCEPT})
    )
    session.receive(CallJudged(2, ASK, "run.2", 5.0))
    commands = receive(session, PersonAsked(2, IDENT, "Run it?", 5.0))

    assert json.loads(commands[-1].data)["result"]["resultType"] == "input_required"


def test_an_answer_counts_once_and_not_for_ever() -> None:
    session, result = prompted()
    params = {"requestState": result["requestState"], "inputResponses": {"thoughtgate": ACCEPT}}
    session.receive(modern_call(2, **params))
    session.receive(CallJudged(2, YES, "run.2", 5.0))
    session.receive(modern_call(3, **params))
    assert len(receive(session, CallJudged(3, ASK, "run.3", 5.0))) == 1

    late, result = prompted()
    params["requestState"] = result["requestState"]
    event = modern_call(2, **params)
    late.receive(event._replace(at=10_000.0))
    assert len(receive(late, CallJudged(2, ASK, "run.2", 10_000.0))) == 1


def test_a_call_that_is_the_servers_own_round_trip_is_left_alone() -> None:
    session, result = prompted(requestState="the server's", inputResponses={})

    assert result == {}
    assert session.held_calls == 1


def test_not_more_states_are_kept_than_anybody_needs() -> None:
    prompts = Elicitations()
    prompts.states = kept = SessionStates()
    body = {"id": 1, "method": "tools/call", "params": {"name": "x", "_meta": META}}
    for number in range(MAX_STATES + 5):
        assert prompts.prompt_with_state(
            PersonAsked(1, f"{IDENT}{number}", "x", 1.0), message(body)
        )

    assert len(kept) == MAX_STATES


def test_a_call_that_is_not_held_is_not_asked_about() -> None:
    session = new_session()

    assert receive(session, PersonAsked(1, IDENT, "Run it?", 1.0)) == []


def test_a_server_cannot_answer_for_a_person() -> None:
    session = held()
    session.receive(PersonAsked(1, IDENT, "Run it?", 1.0))
    forged = {
        "jsonrpc": "2.0",
        "id": IDENT,
        "result": {"action": "accept", "content": {"decision": "approve"}},
    }

    assert not any(isinstance(each, PersonAnswered) for each in session.receive(server(forged)))


@pytest.mark.promise("params-are-bound")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"name": "x", "arguments": {"force": 1}}, {"name": "x", "arguments": {"force": True}}),
        ({"name": "x", "cwd": "/tmp"}, {"name": "x", "cwd": "/etc"}),
        ({"name": "x"}, {"name": "x", "_meta": {"com.example/root": "/etc"}}),
    ],
)
def test_a_state_does_not_stand_for_a_call_that_differs_anywhere(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    prompts = Elicitations()
    first = {**first, "_meta": META}
    second = {**second, "_meta": {**META, **second.get("_meta", {})}}
    asking = message({"id": 1, "method": "tools/call", "params": first})
    (command,) = prompts.prompt_with_state(PersonAsked(1, IDENT, "Run it?", 1.0), asking)
    assert isinstance(command, ToAgent)
    state = json.loads(command.data)["result"]["requestState"]
    answers = {"thoughtgate": {"action": "accept", "content": {"decision": "approve"}}}
    more = {"requestState": state, "inputResponses": answers}
    repeated = message({"id": 2, "method": "tools/call", "params": {**second, **more}})
    sent, answer = prompts.take_state(repeated, 2.0)
    assert answer is None
    assert sent.body["params"] == second


def test_a_state_stands_for_the_call_with_other_bookkeeping() -> None:
    kept = SessionStates()
    prompts = Elicitations()
    prompts.states = kept
    params = {"name": "x", "_meta": {**META, "progressToken": 1}}
    asking = message({"id": 1, "method": "tools/call", "params": params})
    (command,) = prompts.prompt_with_state(PersonAsked(1, IDENT, "Run it?", 1.0), asking)
    assert isinstance(command, ToAgent)
    state = json.loads(command.data)["result"]["requestState"]
    answers = {"thoughtgate": {"action": "accept", "content": {"decision": "approve"}}}
    params = {**params, "_meta": {**META, "progressToken": 2}}
    more = {"requestState": state, "inputResponses": answers}
    repeated = message({"id": 2, "method": "tools/call", "params": {**params, **more}})
    assert prompts.take_state(repeated, 2.0)[1] == (True, "", "")


def test_a_state_names_the_definition_of_the_tool_and_cannot_be_given_another() -> None:
    prompts = Elicitations()
    params: dict[str, Any] = {"name": "x", "_meta": META}
    asking = message({"id": 1, "method": "tools/call", "params": params})
    answers = {"thoughtgate": {"action": "accept", "content": {"decision": "approve"}}}
    found = []
    for old, new in ((".d1", ".d1"), (".d1", ".d2"), (".d1", "")):
        asked = PersonAsked(1, IDENT, "Run it?", 1.0, definition="d1")
        (command,) = prompts.prompt_with_state(asked, asking)
        assert isinstance(command, ToAgent)
        state = json.loads(command.data)["result"]["requestState"].replace(old, new)
        more = {"requestState": state, "inputResponses": answers}
        repeated = message({"id": 2, "method": "tools/call", "params": {**params, **more}})
        found.append(prompts.take_state(repeated, 2.0)[1])

    assert found == [(True, "", "d1"), None, None]
