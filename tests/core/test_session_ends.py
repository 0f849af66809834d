"""One session as a playbook: how requests end, lists, what the server asks, refused frames."""

import json
from typing import Any

import pytest
from tests.support.frames import call, envelope, error, notification, request, result
from tests.support.frames import line as frame
from tests.support.session_play import (
    ASK,
    YES,
    agent,
    fails,
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
    JudgeCall,
    ScreenList,
    ToAgent,
    ToServer,
    Withdraw,
    WriteRecord,
)
from thoughtgate.core.events import (
    AgentSent,
    CallerGone,
    ListScreened,
    NotSent,
    ServerGone,
    ServerSent,
    ServerStarted,
    Ticked,
)
from thoughtgate.core.session_replies import LATE_FOR_S
from thoughtgate.testing.playbook import Playbook, Some
from thoughtgate.wire.lines import MAX_LINE

# Cancelling and losing what the server has.


@pytest.mark.parametrize("requested", [None, 1.5, [1], {"a": 1}, True, "other"])
def test_a_cancellation_of_nothing_is_passed_on(requested: Any) -> None:
    line = frame(notification("notifications/cancelled", {"requestId": requested}))

    play().when(AgentSent(line, 0.0)).then(to_server(line))


def test_a_late_answer_to_a_cancelled_request_is_dropped_and_frees_the_id() -> None:
    cancel = notification("notifications/cancelled", {"requestId": 1})
    hidden = result(1, {"tools": [{"name": "hidden"}]})
    (
        play()
        .when(agent(request(1, "tools/list"))).whatever()
        .when(agent(cancel)).whatever()
        .when(agent(request(1, "ping"))).then(fails(1, "invalid_request"))
        .when(server(hidden)).then()
        .when(agent(request(1, "ping"))).then(Some(ToServer))
    )  # fmt: skip


def test_a_late_answer_is_no_fault_of_the_server() -> None:
    session = new_session()
    session.receive(agent(request(1, "server/discover")))
    session.receive(agent(notification("notifications/cancelled", {"requestId": 1})))
    late, twice = error(1, -32601), error(1, -32601)

    assert [one.type for one in records(session, server(late))] == ["message"]
    assert [one.type for one in records(session, server(twice))] == ["frame_refused"]


def test_a_cancelled_call_ends_on_the_record() -> None:
    session = new_session()
    session.receive(agent(call(1, "x")))
    session.receive(judged(1, YES))
    written = records(session, agent(notification("notifications/cancelled", {"requestId": 1})))

    assert [record.type for record in written] == ["message", "tool_call_end"]
    assert written[1].body["status"] == "CANCELLED"


def test_the_id_of_an_unanswered_request_is_free_again_after_an_hour() -> None:
    book = play().when(agent(request(1, "ping"))).whatever()
    book.when(agent(notification("notifications/cancelled", {"requestId": 1}))).whatever()
    book.when(Ticked(LATE_FOR_S)).then()
    book.when(agent(request(1, "ping"))).then(fails(1, "invalid_request"))
    book.when(Ticked(LATE_FOR_S + 1)).then()
    book.when(agent(request(1, "ping"))).then(Some(ToServer))


def test_a_caller_that_leaves_alone_gives_up_what_waits_and_cancels_what_is_modern() -> None:
    modern = request("m", "tools/call", {"name": "x", "_meta": envelope()})
    book = play().when(agent(call(1, "x"))).whatever().when(judged(1, ASK, at=1.0)).whatever()
    book.when(CallerGone(1, 2.0)).then(Withdraw(1, "run.1", "the caller is gone"))
    book.when(agent(call(2, "x"))).whatever().when(judged(2, YES)).whatever()
    book.when(CallerGone(2, 2.0)).then()
    book.when(server(result(2))).then(to_agent(frame(result(2)), 2))
    book.when(agent(modern)).whatever().when(judged("m", YES)).whatever()
    book.when(CallerGone("m", 3.0))
    (cancelled,) = book.commands
    assert json.loads(cancelled.data)["params"]["requestId"] == "m"
    book.whatever().when(server(result("m"))).then().when(CallerGone(77, 3.0)).then()


def test_a_call_that_the_gate_gives_up_is_cancelled_in_every_revision() -> None:
    book = play().when(agent(call(2, "x"))).whatever().when(judged(2, YES)).whatever()
    book.when(CallerGone(2, 2.0, is_given_up=True))
    (cancelled,) = book.commands
    assert json.loads(cancelled.data)["params"]["requestId"] == 2
    book.whatever().when(server(result(2))).then()


@pytest.mark.requirement("S000-F-015")
def test_a_request_without_an_answer_times_out_and_is_cancelled_at_the_server() -> None:
    book = play().when(agent(call(1, "x"))).whatever().when(judged(1, YES, at=10.0)).whatever()
    book.when(Ticked(69.0)).then().when(Ticked(71.0))
    told, cancelled = book.commands
    assert is_error(1, "tool_call_timeout")(told)
    assert json.loads(cancelled.data)["params"]["requestId"] == 1
    book.whatever().when(server(result(1))).then()


def test_progress_keeps_a_slow_call_alive() -> None:
    body = request(1, "tools/call", {"name": "x", "_meta": {"progressToken": "p"}})
    progress = notification("notifications/progress", {"progressToken": "p", "progress": 1})
    stranger = notification("notifications/progress", {"progressToken": "q", "progress": 1})
    book = play().when(agent(body)).whatever().when(judged(1, YES, at=0.0)).whatever()
    book.when(server(progress, at=50.0)).then(Some(ToAgent))
    book.when(Ticked(100.0)).then()
    book.when(server(stranger, at=105.0)).then(Some(ToAgent))
    book.when(server(notification("notifications/progress", {"progressToken": [1]}))).whatever()
    book.when(server(notification("notifications/progress"))).whatever()
    book.when(Ticked(111.0)).then(fails(1, "tool_call_timeout"), Some(ToServer))


def test_an_open_listen_never_times_out() -> None:
    book = play().when(agent(request("l", "subscriptions/listen", {}))).whatever()

    book.when(Ticked(10_000.0)).then()


def test_a_request_that_could_not_be_sent_is_answered() -> None:
    (
        play()
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, YES)).whatever()
        .when(NotSent(1, "service_unavailable", 0.0)).then(fails(1, "service_unavailable"))
        .when(NotSent(1, "service_unavailable", 0.0)).then()
        .when(agent(call(1, "x"))).then(Some(JudgeCall))
    )  # fmt: skip


@pytest.mark.requirement("EC-STDIO-010", "EC-STDIO-009")
def test_a_server_that_is_gone_is_told_to_all_who_wait_and_to_all_who_come() -> None:
    session = new_session(max_open=9)
    book = play(session)
    book.when(agent(request(1, "ping"))).whatever()
    book.when(agent(call(2, "x"))).whatever().when(judged(2, YES)).whatever()
    book.when(agent(call(3, "x"))).whatever().when(judged(3, ASK, at=1.0)).whatever()
    book.when(agent(call(4, "x"))).whatever()
    book.when(agent(request(5, "tools/list"))).whatever()
    book.when(server(result(5, {"tools": []}))).whatever()
    book.when(server(request(0, "roots/list"))).whatever()
    book.when(ServerGone("the server exited", 5.0))
    withdrawn, *told = book.commands
    assert withdrawn == Withdraw(3, "run.3", "the server exited")
    assert {json.loads(command.data)["id"] for command in told} == {1, 2, 3, 4, 5}
    assert all(
        json.loads(command.data)["error"]["data"]["kind"] == "upstream_connection_failed"
        for command in told
    )
    book.whatever()
    assert session.is_idle
    assert session.held_calls == 0
    book.when(judged(4, YES)).then().when(judged(3, YES)).then()
    book.when(ListScreened(5, frozenset(), 0.0)).then()
    book.when(agent(request(6, "ping"))).then(fails(6, "upstream_connection_failed"))
    book.when(agent(call(7, "x"))).then(fails(7, "upstream_connection_failed"))


# Requests of the server.


@pytest.mark.requirement("EC-STDIO-019", "S000-F-015")
def test_a_request_of_the_server_reaches_the_agent_and_its_answer_goes_back() -> None:
    asked, answer = frame(request(0, "ping")), frame(result(0))
    (
        play()
        .when(agent(request(0, "ping"))).whatever()
        .when(ServerSent(asked, 0.0)).then(to_agent(asked))
        .when(AgentSent(answer, 0.0)).then(to_server(answer))
        .when(AgentSent(answer, 0.0)).then()
        .when(server(result(0))).then(to_agent(frame(result(0)), 0))
    )  # fmt: skip


def test_a_faulty_request_of_the_server_is_answered_and_harms_no_call_of_that_id() -> None:
    faulty = {"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": []}
    (
        play()
        .when(agent(request(1, "ping"))).whatever()
        .when(server(faulty)).then(Some(ToServer, is_error(1, "invalid_params")))
        .when(server(result(1))).then(to_agent(frame(result(1)), 1))
    )  # fmt: skip


@pytest.mark.parametrize("stray", [b"Welcome!", b'{"level":"info","id":1}', b"[1]", b"5"])
def test_what_a_server_prints_besides_is_dropped_and_harms_no_call(stray: bytes) -> None:
    (
        play()
        .when(agent(request(1, "ping"))).whatever()
        .when(ServerSent(stray, 0.0)).then()
        .when(server(result(1))).then(to_agent(frame(result(1)), 1))
    )  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":1,"result":NaN}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}',
        b'{"jsonrpc":"2.0","id":1,"result":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"result":"cut off',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":\r1}}',
        b'{"id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"Error":1}',
    ],
)
def test_an_answer_that_cannot_be_read_safely_does_not_leave_its_caller_waiting(
    answer: bytes,
) -> None:
    session = new_session()
    (
        play(session)
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, YES)).whatever()
        .when(ServerSent(answer, 0.0)).then(fails(1, "internal_error"))
    )  # fmt: skip
    assert session.is_idle


# Lists.


def _listed(play: Playbook, answer: dict[str, Any], hidden: set[str]) -> Any:
    play.when(agent(request(1, "tools/list"))).whatever()
    play.when(server(result(1, answer))).whatever()
    play.when(ListScreened(1, frozenset(hidden), 0.0))
    (sent,) = play.commands
    return sent.data


def test_a_list_from_which_nothing_is_hidden_passes_byte_for_byte() -> None:
    answer = {"tools": [{"name": "a", "x": 1}], "nextCursor": "2", "cacheScope": "public"}

    assert _listed(play(), answer, set()) == frame(result(1, answer))


def test_a_filtered_list_keeps_order_and_unknown_members_and_is_private() -> None:
    answer = {
        "tools": [{"name": "a", "x": 1}, {"name": "b"}, {"name": "c"}],
        "nextCursor": "2",
        "cacheScope": "public",
        "other": [1],
    }
    body = json.loads(_listed(play(), answer, {"b"}))

    assert body["result"] == {
        **answer,
        "tools": [{"name": "a", "x": 1}, {"name": "c"}],
        "cacheScope": "private",
    }


def test_a_filtered_legacy_list_gets_no_new_member() -> None:
    body = json.loads(_listed(play(), {"tools": [{"name": "a"}]}, {"a"}))

    assert body["result"] == {"tools": []}


def test_an_entry_without_a_readable_name_is_not_shown() -> None:
    answer = {"tools": [{"name": 5}, "text", {}, {"name": "a"}]}

    assert json.loads(_listed(play(), answer, set()))["result"] == {"tools": [{"name": "a"}]}


def test_the_judge_sees_the_entries_and_the_agent_nothing_before() -> None:
    book = play().when(agent(request(1, "resources/list"))).whatever()
    book.when(server(result(1, {"resources": [{"uri": "u"}, 5]})))
    (screen,) = book.commands

    assert screen == ScreenList(1, "resources/list", ({"uri": "u"},), 0.0)
    book.whatever().when(ListScreened(9, frozenset(), 0.0)).then()


@pytest.mark.parametrize("body", [result(1, {"tools": 5}), error(1, -32601)])
def test_an_answer_to_a_list_that_is_no_list_passes(body: dict[str, Any]) -> None:
    book = play().when(agent(request(1, "tools/list"))).whatever()

    book.when(server(body)).then(to_agent(frame(body), 1))


# Refused frames, and the development profile.


@pytest.mark.requirement("EC-STDIO-015", "EC-STDIO-016", "EC-STDIO-035", "S000-F-007b")
@pytest.mark.parametrize(
    ("line", "ident", "kind"),
    [
        (b"{bad", None, "parse_error"),
        (b'{"id":1,"method":"ping"}', 1, "invalid_request"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, "invalid_request"),
        (b'{"jsonrpc":"2.0","id":1,\r"method":"ping"}', 1, "invalid_request"),
    ],
)
def test_a_refused_frame_is_answered_recorded_and_not_sent(
    line: bytes, ident: Any, kind: str
) -> None:
    session = new_session()
    record, reply = session.receive(AgentSent(line, 0.0))

    assert isinstance(record, WriteRecord)
    assert record.record.type == "frame_refused"
    assert record.record.body["frame"]["enforced"] is True
    assert isinstance(reply, ToAgent)
    assert is_error(ident, kind)(reply)
    assert json.loads(reply.data)["error"]["data"]["correlation_id"] == "1.e1"


def test_the_record_tells_the_whole_size_of_an_oversized_frame() -> None:
    from thoughtgate.wire.lines import LineSplitter

    (line,) = LineSplitter().feed(b"x" * (MAX_LINE + 5) + b"\n")
    record = records(new_session(), AgentSent(line, 0.0))[0]

    assert record.body["frame"]["bytes"] == MAX_LINE + 5


@pytest.mark.requirement("S000-F-023", "EC-STDIO-017", "EC-STDIO-018")
@pytest.mark.parametrize(
    ("line", "outcome"),
    [
        (b'{"jsonrpc":"2.0"}', "WOULD_DROP"),
        (b'{"jsonrpc":"2.0","id":9,"result":1}', "WOULD_DROP"),
        (b'{"jsonrpc":"2.0","id":1,\r"method":"ping"}', "WOULD_REJECT"),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}', "WOULD_REJECT"),
        (b"[]", "WOULD_REJECT"),
    ],
)
def test_development_passes_what_production_refuses_and_says_so(line: bytes, outcome: str) -> None:
    record, sent = new_session(enforce=False).receive(AgentSent(line, 0.0))

    assert isinstance(record, WriteRecord)
    assert record.record.body["frame"]["enforced"] is False
    assert record.record.body["frame"]["outcome"] == outcome
    assert sent == to_server(line)


def test_development_passes_a_faulty_answer_once() -> None:
    answer = b'{"jsonrpc":"2.0","id":1,"result":NaN}'
    session = new_session(enforce=False)
    (
        play(session)
        .when(agent(call(1, "x"))).whatever()
        .when(judged(1, YES)).whatever()
        .when(ServerSent(answer, 0.0)).then(to_agent(answer))
        .when(Ticked(1000.0)).then()
    )  # fmt: skip
    assert session.is_idle


def test_development_cannot_pass_bytes_that_are_gone_or_ids_that_would_mix() -> None:
    session = new_session(enforce=False)
    (
        play(session)
        .when(AgentSent(b"x" * (MAX_LINE + 1), 0.0)).then(fails(None, "invalid_request"))
        .when(agent(request(1, "ping"))).whatever()
        .when(agent(request(1, "ping"))).then(fails(1, "invalid_request"))
    )  # fmt: skip


def test_a_server_that_is_started_late_gets_what_is_asked_from_then_on() -> None:
    (
        play()
        .when(ServerGone("the server could not be started", 0.0, "server_start_failed")).then()
        .when(agent(request(1, "ping"))).then(fails(1, "server_start_failed"))
        .when(ServerStarted(1.0)).then()
        .when(agent(request(1, "ping"))).then(Some(ToServer))
    )  # fmt: skip
