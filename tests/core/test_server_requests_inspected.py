"""Requests of a server that are inspected before the agent gets them."""

import json

from tests.support.frames import line, request
from tests.support.session_play import YES, new_session, server

from thoughtgate.core.commands import AskPeople, InspectAnswer, JudgeCall, ToAgent, ToServer
from thoughtgate.core.events import AnswerInspected, CallJudged
from thoughtgate.core.session import Session
from thoughtgate.policy.call import DENY, Verdict

ASKED = request(7, "sampling/createMessage", {"messages": [], "maxTokens": 1, "systemPrompt": "a"})
CLEANED = {**ASKED, "params": {**ASKED["params"], "systemPrompt": "[removed: secret-key]"}}
FOUND = (("secret-key", "hard", "/systemPrompt:0-9"),)


def inspected() -> tuple[Session, int]:
    session = new_session()
    (command,) = session.receive(server(ASKED))
    assert isinstance(command, JudgeCall)
    key = command.key
    assert isinstance(key, int)
    verdict = YES._replace(inspect=True)
    (command,) = session.receive(CallJudged(key, verdict, "run.1", 1.0))
    assert command == InspectAnswer(key, "run.1", ASKED, 1.0)
    return session, key


def test_a_clean_request_reaches_the_agent_unchanged() -> None:
    session, key = inspected()
    (sent,) = session.receive(AnswerInspected(key, ASKED, 2.0))
    assert isinstance(sent, ToAgent)
    assert sent.data == line(ASKED)
    assert session.served.is_asked(7)


def test_a_redacted_request_reaches_the_agent_changed() -> None:
    session, key = inspected()
    (sent,) = session.receive(AnswerInspected(key, CLEANED, 2.0))
    assert isinstance(sent, ToAgent)
    assert json.loads(sent.data) == CLEANED


def test_a_blocked_request_is_answered_to_the_server() -> None:
    session, key = inspected()
    (*_, reply) = session.receive(AnswerInspected(key, None, 2.0, FOUND))
    assert isinstance(reply, ToServer)
    assert json.loads(reply.data)["error"]["data"]["kind"] == "content_blocked"
    assert not session.served


def test_a_held_request_waits_for_a_person_under_an_id_of_its_own() -> None:
    for verdict, kind in ((YES, ToAgent), (Verdict(DENY, "approval", "content_blocked"), ToServer)):
        session, key = inspected()
        event = AnswerInspected(key, CLEANED, 2.0, FOUND, "run.1r", "default")
        assert session.receive(event) == [AskPeople(key, "run.1r", "default", 2.0)]
        (*_, sent) = session.receive(CallJudged(key, verdict, "run.1r", 3.0))
        assert isinstance(sent, kind)
        if kind is ToAgent:
            assert json.loads(sent.data) == CLEANED
