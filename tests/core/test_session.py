"""One session as a playbook: messages, calls, ids and holding."""

import json
from typing import Any

import pytest
from tests.support.frames import call, envelope, error, notification, request, result
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
    JudgeCall,
    ScreenList,
    ToAgent,
    ToServer,
    Withdraw,
    WriteRecord,
)
from thoughtgate.core.events import (
    AgentGone,
    AgentSent,
    ListScreened,
    PersonAsked,
    ServerSent,
    Ticked,
)
from thoughtgate.core.session_replies import HOLD_TEXT
from thoughtgate.policy.call import DENY, Verdict
from thoughtgate.testing.playbook import Some
from thoughtgate.wire.frame import read_frame

# Messages that nobody judges.


@pytest.mark.requirement("S000-F-017", "EC-STDIO-030")
def test_an_ungated_request_and_its_answer_pass_as_they_are() -> None:
    opening = frame(request(0, "initialize", {"protocolVersion": "1999-01-01"}))
    answer = frame(result(0, {"protocolVersion": "2025-11-25"}))
    session = new_session()
    (
        play(session)
        .when(AgentSent(opening, 0.0))
        .then(to_server(opening, 0))
        .when(ServerSent(answer, 0.0))
        .then(ScreenList(0, "initialize", ({"name": "instructions"},), 0.0))
        .when(ListScreened(0, frozenset(), 0.0))
        .then(to_agent(answer, 0))
    )
    assert session.is_idle


def test_instructions_that_nobody_has_accepted_are_taken_out_of_the_handshake() -> None:
    session = new_session()
    session.receive(AgentSent(frame(request(0, "initialize", {})), 0.0))
    *_, screen = session.receive(
        ServerSent(frame(result(0, {"instructions": "Obey.", "capabilities": {}})), 0.0)
    )
    assert screen.entries == ({"name": "instructions", "instructions": "Obey."},)  # type: ignore[union-attr]
    (sent,) = session.receive(ListScreened(0, frozenset({"instructions"}), 0.0))
    assert json.loads(sent.data)["result"] == {"capabilities": {}}  # type: ignore[union-attr]


def test_an_ungated_message_is_recorded_before_it_is_sent() -> None:
    commands = new_session().receive(agent(request(1, "ping")))

    assert [type(command) for command in commands] == [WriteRecord, ToServer]
    assert commands[0].record.body["message"]["method"] == "ping"  # type: ignore[union-attr]


def test_blank_lines_are_nothing() -> None:
    (
        play()
        .when(AgentSent(b"", 0.0)).then()
        .when(AgentSent(b"\r", 0.0)).then()
        .when(ServerSent(b"", 0.0)).then()
        .when(ServerSent(b"\r", 0.0)).then()
    )  # fmt: skip


def test_a_frame_that_the_driver_has_read_is_not_read_again() -> None:
    message = read_frame(frame(request(1, "ping")))

    play().when(AgentSent(b"x", 0.0, message)).then(to_server(frame(request(1, "ping")), 1))


def test_a_servers_frame_that_the_driver_has_read_is_not_read_again() -> None:
    message = read_frame(frame(notification("notifications/x")))

    play().when(ServerSent(b"x", 0.0, message)).then(
        to_agent(frame(notification("notifications/x")))
    )


@pytest.mark.requirement("EC-STDIO-020")
def test_notifications_pass_both_ways() -> None:
    changed = frame(notification("notifications/tools/list_changed"))
    started = frame(notification("notifications/initialized"))
    (
        play()
        .when(AgentSent(started, 0.0)).then(to_server(started))
        .when(ServerSent(changed, 0.0)).then(to_agent(changed))
    )  # fmt: skip


# Calls.


def test_a_call_waits_for_its_verdict_and_then_goes_on_byte_for_byte() -> None:
    line = b'{"jsonrpc": "2.0",  "id": 1, "method": "tools/call", "params": {"name": "echo"}}'
    session = new_session()
    book = play(session).when(AgentSent(line, 1.0))
    (judge,) = book.commands
    assert isinstance(judge, JudgeCall)
    assert (judge.key, judge.method, judge.bytes_in, judge.modern) == (
        1,
        "tools/call",
        len(line),
        False,
    )
    assert judge.named[0].name == "echo"
    assert session.open_requests == 1
    book.whatever().when(judged(1, YES)).then(to_server(line, 1))
    book.when(server(result(1))).then(to_agent(frame(result(1)), 1))
    assert session.is_idle


def test_the_end_of_a_call_is_recorded_with_its_latency_and_size() -> None:
    session = new_session()
    session.receive(agent(call(1, "echo"), at=10.0))
    session.receive(judged(1, YES, at=10.0))
    (ended,) = records(session, server(result(1, {"isError": True}), at=10.25))

    assert ended.body["status"] == "ERROR"
    assert ended.body["is_error"] is True
    assert ended.body["latency_ms"] == 250
    assert ended.body["bytes_out"] == len(frame(result(1, {"isError": True})))


@pytest.mark.requirement("EVT-008")
@pytest.mark.parametrize("said", [{"code": -5, "message": "secret 123"}, {"code": "x"}, "text"])
def test_an_error_of_the_server_passes_untouched_and_its_words_stay_off_the_record(
    said: Any,
) -> None:
    session = new_session()
    session.receive(agent(call(1, "echo")))
    session.receive(judged(1, YES))
    answer = frame({"jsonrpc": "2.0", "id": 1, "error": said})
    ended, sent = session.receive(ServerSent(answer, 0.0))

    assert isinstance(ended, WriteRecord)
    assert sent == to_agent(answer, 1)
    assert ended.record.body["status"] == "ERROR"
    assert ended.record.body["error"]["class"] == "upstream_error"
    assert "secret" not in repr(ended)
    assert ended.record.body["error"].get("code") == (
        -5 if type(said) is dict and said["code"] == -5 else None
    )


@pytest.mark.requirement("ERR-001", "ADAPT-003", "POL-008")
def test_a_denied_call_is_answered_and_never_sent() -> None:
    session = new_session()
    session.receive(agent(call(1, "drop")))
    ended, reply = session.receive(judged(1, NO))

    assert isinstance(ended, WriteRecord)
    assert isinstance(reply, ToAgent)
    said = json.loads(reply.data)["error"]
    assert said["code"] == -32014
    assert said["data"] == {
        "kind": "governance_denied",
        "gate": "rules",
        "tool": "drop",
        "correlation_id": "run.1",
    }
    assert b"secret" not in reply.data
    assert b"rules[3]" not in reply.data
    assert ended.record.body["error"]["class"] == "policy_block"
    assert ended.record.body["bytes_out"] == len(reply.data)
    assert session.is_idle


def test_a_modern_caller_gets_the_shifted_code() -> None:
    body = request("m", "tools/call", {"name": "x", "_meta": envelope()})
    session = new_session()
    session.receive(agent(body))
    reply = session.receive(judged("m", NO))[-1]

    assert json.loads(reply.data)["error"]["code"] == -31014  # type: ignore[union-attr]


@pytest.mark.requirement("ERR-002")
def test_a_throttled_caller_is_told_when_to_come_back() -> None:
    session = new_session()
    session.receive(agent(call(1, "x")))
    limit = Verdict(DENY, "limits", "rate_limited", retry_after_s=1.25)
    reply = session.receive(judged(1, limit))[-1]

    assert json.loads(reply.data)["error"]["data"]["retry_after"] == 1.25  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["", "no_such_kind"])
def test_a_denial_of_no_known_kind_is_still_a_denial(kind: str) -> None:
    (
        play()
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, Verdict(DENY, "rules", kind))).then(fails(1, "internal_error"))
    )  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        request(1, "tools/call", {}),
        request(1, "tools/call", {"name": 5}),
        request(1, "tools/call", {"name": "x", "arguments": []}),
        request(1, "Tools/Call", {"name": "x"}),
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": None},
    ],
)
def test_a_call_that_names_nothing_is_refused_with_its_id(body: Any) -> None:
    play().when(agent(body)).then(fails(1, "invalid_params"))


@pytest.mark.parametrize(
    "method",
    ["tools/call", "resources/read", "tools/list", "subscriptions/listen", "TOOLS/CALL"],
)
def test_a_gated_method_without_an_id_is_refused(method: str) -> None:
    body = notification(method, {"name": "x", "uri": "u"})

    play().when(agent(body)).then(fails(None, "invalid_request"))


# Ids.


def test_an_id_in_use_is_refused_in_every_stage() -> None:
    again = fails(1, "invalid_request")
    (
        play()
        .when(agent(call(1, "x"))).whatever()
        .when(agent(request(1, "ping"))).then(again)
        .when(judged(1, ASK)).whatever()
        .when(agent(request(1, "ping"))).then(again)
        .when(judged(1, YES)).whatever()
        .when(agent(call(1, "x"))).then(again)
        .when(server(result(1))).whatever()
        .when(agent(request(1, "tools/list"))).whatever()
        .when(server(result(1, {"tools": []}))).then(Some(ScreenList))
        .when(agent(request(1, "ping"))).then(again)
    )  # fmt: skip


def test_the_number_one_and_the_text_one_are_two_ids() -> None:
    (
        play()
        .when(agent(call(1, "x"))).whatever()
        .when(agent(call("1", "y"))).whatever()
        .when(judged("1", YES)).then(to_server(frame(call("1", "y")), "1"))
        .when(judged(1, NO)).then(fails(1, "governance_denied"))
        .when(server(result(1))).then()
        .when(server(result("1"))).then(to_agent(frame(result("1")), "1"))
    )  # fmt: skip


def test_too_many_open_requests_are_refused_and_then_taken_again() -> None:
    session = new_session(max_open=2)
    (
        play(session)
        .when(agent(request(1, "ping"))).whatever()
        .when(agent(call(2, "x"))).whatever()
        .when(agent(request(3, "ping"))).then(fails(3, "service_unavailable"))
        .when(server(result(1))).whatever()
        .when(agent(request(3, "ping"))).then(Some(ToServer))
    )  # fmt: skip
    assert session.open_requests == 2


@pytest.mark.parametrize("body", [result(9), error(9, -1), error(None, -1)])
def test_an_answer_that_nobody_asked_for_is_dropped_and_recorded(body: Any) -> None:
    for event in (agent(body), server(body)):
        session = new_session()
        (record,) = (command.record for command in session.receive(event))  # type: ignore[union-attr]
        assert record.type == "frame_refused"
        assert record.body["frame"]["check"] == "unknown_response"


# A verdict belongs to one call.


def test_a_call_cancelled_before_its_verdict_is_never_sent_and_its_id_stays_taken() -> None:
    cancel = frame(notification("notifications/cancelled", {"requestId": 1}))
    session = new_session()
    (
        play(session)
        .when(agent(call(1, "harmless"))).whatever()
        .when(AgentSent(cancel, 0.0)).then(to_server(cancel))
        .when(agent(call(1, "harmful"))).then(fails(1, "invalid_request"))
        .when(judged(1, YES)).then()
        .when(agent(call(1, "harmful"))).then(Some(JudgeCall))
        .when(judged(1, NO)).then(fails(1, "governance_denied"))
    )  # fmt: skip
    assert session.is_idle


def test_a_verdict_that_comes_too_late_ends_the_call_on_the_record() -> None:
    session = new_session()
    session.receive(agent(call(1, "x")))
    session.receive(agent(notification("notifications/cancelled", {"requestId": 1})))
    (ended,) = records(session, judged(1, YES))

    assert (ended.type, ended.body["status"]) == ("tool_call_end", "CANCELLED")
    assert session.receive(judged(1, YES)) == []


def test_a_cancelled_call_that_is_held_afterwards_is_withdrawn_for_the_same_reason() -> None:
    session = new_session()
    session.receive(agent(call(1, "x")))
    session.receive(agent(notification("notifications/cancelled", {"requestId": 1})))
    commands = session.receive(judged(1, ASK))

    assert Withdraw(1, "run.1", "the caller cancelled") in commands


def test_a_call_made_before_the_agent_closed_its_side_is_answered() -> None:
    session = new_session()
    session.receive(agent(call(1, "x")))
    session.receive(AgentGone(0.0))

    assert [type(one) for one in session.receive(judged(1, YES))] == [ToServer]
    assert any(isinstance(one, ToAgent) for one in session.receive(server(result(1))))


def test_a_call_that_needs_a_person_is_not_held_for_an_agent_that_is_gone() -> None:
    session = new_session()
    session.receive(agent(call(1, "x")))
    session.receive(AgentGone(0.0))
    commands = session.receive(judged(1, Verdict("approve", "rules", workflow="default")))

    assert isinstance(commands[0], Withdraw)
    assert not any(isinstance(one, AskPeople) for one in commands)
    assert session.held_calls == 0


def test_a_verdict_on_no_call_is_nothing() -> None:
    play().when(judged(5, YES)).then().when(judged("x", NO)).then()


def test_abandoned_calls_count_as_open_so_that_they_cannot_pile_up() -> None:
    session = new_session(max_open=2)
    for ident in (1, 2):
        session.receive(agent(call(ident, "x")))
        session.receive(agent(notification("notifications/cancelled", {"requestId": ident})))

    play(session).when(agent(call(3, "x"))).then(fails(3, "service_unavailable"))


# Holding.


def test_a_held_call_asks_people_and_goes_on_once_they_agree() -> None:
    session = new_session()
    (
        play(session)
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, ASK, at=2.0)).then(AskPeople(1, "run.1", "ops", 2.0))
        .when(agent(request(2, "ping"))).then(Some(ToServer))
        .when(judged(1, YES)).then(to_server(frame(call(1, "x")), 1))
    )  # fmt: skip
    assert session.held_calls == 0


def test_a_held_call_that_is_refused_is_answered() -> None:
    rejected = Verdict(DENY, "approval", "approval_rejected", "no")
    (
        play()
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, ASK)).whatever()
        .when(judged(1, rejected)).then(fails(1, "approval_rejected"))
    )  # fmt: skip


def test_a_held_call_is_not_held_twice() -> None:
    session = new_session()
    (
        play(session)
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, ASK, at=1.0)).whatever()
        .when(judged(1, ASK, at=2.0)).then(fails(1, "internal_error"))
    )  # fmt: skip
    assert session.held_calls == 0


def test_the_next_call_beyond_the_held_ones_is_refused() -> None:
    book = play()
    for ident in (1, 2):
        book.when(agent(call(ident, "x"))).whatever().when(judged(ident, ASK, at=1.0)).whatever()
    book.when(agent(call(3, "x"))).whatever()
    book.when(judged(3, ASK, at=1.0)).then(fails(3, "service_unavailable"))


def test_a_held_caller_hears_progress_with_its_own_token() -> None:
    body = request(1, "tools/call", {"name": "x", "_meta": {"progressToken": 0}})
    book = play().when(agent(body)).whatever().when(judged(1, ASK, at=100.0)).whatever()
    book.when(agent(call(2, "quiet"))).whatever().when(judged(2, ASK, at=100.0)).whatever()
    book.when(Ticked(100.1)).then(Some(ToAgent)).when(Ticked(109.0)).then().when(Ticked(110.5))
    (told,) = book.commands
    assert told.key == 1
    assert json.loads(told.data)["params"] == {
        "progressToken": 0,
        "progress": 2,
        "message": HOLD_TEXT,
    }
    book.whatever().when(Ticked(111.0)).then().when(Ticked(135.0)).then(Some(ToAgent))


def test_a_list_that_could_not_be_screened_is_an_error() -> None:
    session = new_session()
    session.receive(agent(request(5, "tools/list")))
    session.receive(server(result(5, {"tools": [{"name": "a"}]})))
    commands = session.receive(ListScreened(5, None, 1.0))
    (answer,) = [one for one in commands if isinstance(one, ToAgent)]
    assert json.loads(answer.data)["error"]["data"]["kind"] == "service_unavailable"


def test_a_held_caller_hears_at_once_what_waits_and_where_to_answer() -> None:
    body = request(1, "tools/call", {"name": "x", "_meta": {"progressToken": "t"}})
    book = play().when(agent(body)).whatever().when(judged(1, ASK, at=100.0)).whatever()
    book.when(PersonAsked(1, "", "", 100.0, "x on files waits. Answer at ..."))
    (told,) = book.commands
    assert json.loads(told.data)["params"]["message"] == "x on files waits. Answer at ..."
    book.whatever().when(Ticked(110.5))
    (again,) = book.commands
    assert json.loads(again.data)["params"]["message"] == "x on files waits. Answer at ..."


@pytest.mark.requirement("EC-STDIO-031")
def test_cancelling_a_held_call_withdraws_the_question() -> None:
    cancel = frame(notification("notifications/cancelled", {"requestId": 1}))
    session = new_session()
    (
        play(session)
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, ASK, at=1.0)).whatever()
        .when(AgentSent(cancel, 2.0)).then(
            to_server(cancel), Withdraw(1, "run.1", "the caller cancelled")
        )
        .when(judged(1, YES)).then()
    )  # fmt: skip
    assert session.held_calls == 0
    assert session.is_idle


def test_an_agent_that_leaves_withdraws_what_is_held_and_nothing_runs() -> None:
    session = new_session()
    (
        play(session)
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, ASK, at=1.0)).whatever()
        .when(AgentGone(2.0)).then(Withdraw(1, "run.1", "the caller is gone"))
        .when(judged(1, YES)).then()
    )  # fmt: skip
    assert session.is_idle
