"""How the replies of a session words what happened."""

import json
from typing import Any

import mcp.types
import pytest
from tests.support.frames import envelope, request
from tests.support.frames import line as frame

from thoughtgate.core.commands import ANSWER, NOTICE, ToAgent, ToServer, WriteRecord
from thoughtgate.core.record_events import AGENT_TO_SERVER, SERVER_TO_AGENT
from thoughtgate.core.session_replies import (
    LATE_FOR_S,
    NEVER_PASSED,
    CorrelationIds,
    OpenRequests,
    PendingRequest,
    SessionReplies,
    SessionSettings,
    task_reply,
)
from thoughtgate.errors import code_of
from thoughtgate.policy.call import DENY, Verdict
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Fault, Message

REPLIES = SessionReplies(SessionSettings("srv", "s1"))
ASKED = PendingRequest(None, "tools/call", "t", 1.0, modern=False, token=None, call_id="run.1")


def _read(body: Any) -> Message:
    message = read_frame(frame(body))
    assert isinstance(message, Message)
    return message


def test_an_ungated_message_goes_on_the_record_by_the_method_it_answers() -> None:
    command = REPLIES.seen(_read(request(1, "ping")), 1.0, AGENT_TO_SERVER)
    answer = REPLIES.seen(
        _read({"jsonrpc": "2.0", "id": 1, "result": 1}), 1.0, SERVER_TO_AGENT, "ping"
    )

    assert command.record.body["message"]["method"] == "ping"
    assert answer.record.body["message"]["method"] == "ping"
    assert answer.record.body["message"]["shape"] == "response"


def test_refusals_have_their_own_correlation_ids() -> None:
    replies = SessionReplies(SessionSettings("srv", "s1"))
    fault = Fault("parse_error", "not JSON", "malformed_json")
    told = [replies.refused(fault, b"x", 0.0, AGENT_TO_SERVER)[1] for _ in range(2)]
    said = [json.loads(one.data) for one in told if isinstance(one, ToAgent)]

    assert [one["error"]["data"]["correlation_id"] for one in said] == ["s1.e1", "s1.e2"]
    assert said[0]["error"]["data"]["check"] == "malformed_json"


def test_a_modern_request_is_refused_with_the_shifted_code() -> None:
    message = _read(request(1, "x", {"_meta": envelope()}))
    fault = Fault("service_unavailable", "full", "too_many", 1)
    _, reply = REPLIES.refused(fault, message.raw, 0.0, AGENT_TO_SERVER, message)

    assert isinstance(reply, ToAgent)
    assert json.loads(reply.data)["error"]["code"] == -31013


def test_a_fault_of_the_server_is_answered_to_the_server_and_only_with_an_id() -> None:
    fault = Fault("invalid_params", "no", "wrong_params", 4)

    assert isinstance(REPLIES.refused(fault, b"x", 0.0, SERVER_TO_AGENT)[1], ToServer)
    assert len(REPLIES.refused(fault._replace(id=None), b"x", 0.0, SERVER_TO_AGENT)) == 1
    assert len(REPLIES.refused(fault._replace(answerable=False), b"x", 0.0, SERVER_TO_AGENT)) == 1


def test_development_passes_all_but_what_cannot_be_passed() -> None:
    replies = SessionReplies(SessionSettings("srv", "s1", enforce=False))
    fault = Fault("invalid_request", "no", "raw_cr", 1)

    assert replies.refused(fault, b"a\rb\r", 0.0, AGENT_TO_SERVER)[1] == ToServer(b"a\rb")
    assert replies.refused(fault, b"a", 0.0, SERVER_TO_AGENT)[1] == ToAgent(b"a", None, NOTICE)
    for check in NEVER_PASSED:
        assert not replies.passes(fault._replace(check=check))
    assert not REPLIES.passes(fault)


def test_a_denial_tells_kind_and_gate_and_no_rule() -> None:
    verdict = Verdict(DENY, "cedar", "policy_denied", "forbid by policy7", "policy7")
    record, reply = REPLIES.denied(1, ASKED, verdict, 2.0)

    assert isinstance(record, WriteRecord)
    assert isinstance(reply, ToAgent)
    assert reply.key == 1
    assert json.loads(reply.data)["error"]["data"] == {
        "kind": "policy_denied",
        "gate": "cedar",
        "tool": "t",
        "correlation_id": "run.1",
    }
    assert b"policy7" not in reply.data
    assert record.record.body["latency_ms"] == 1000


def test_an_error_about_a_request_that_no_gate_judged_is_on_record() -> None:
    replies = SessionReplies(SessionSettings("srv", "s1"), CorrelationIds("run"))
    asked = ASKED._replace(call_id="", method="tools/list")
    record, reply = replies.failed(1, asked, "upstream_connection_failed", 2.0)

    assert isinstance(reply, ToAgent)
    assert isinstance(record, WriteRecord)
    assert record.record.type == "request_failed"
    assert record.record.body["request"] == {
        "method": "tools/list",
        "kind": "upstream_connection_failed",
        "correlation_id": "run.e1",
    }
    assert json.loads(reply.data)["error"]["data"]["correlation_id"] == "run.e1"


def test_an_error_about_a_task_gets_an_id_unless_it_has_one() -> None:
    replies = SessionReplies(SessionSettings("srv", "s1"), CorrelationIds("run"))
    asked = ASKED._replace(call_id="", method="tasks/get")
    (same,) = replies.about_task(1, asked, {"error": {"data": {"correlation_id": "x"}}}, 1.0)
    (result,) = replies.about_task(1, asked, {"result": {}}, 1.0)
    record, reply = replies.about_task(1, asked, {"error": {"code": -32021}}, 1.0)
    (of_call,) = replies.about_task(1, ASKED, {"error": {"code": -32021}}, 1.0)

    assert isinstance(same, ToAgent)
    assert isinstance(result, ToAgent)
    assert isinstance(record, WriteRecord)
    assert isinstance(reply, ToAgent)
    assert isinstance(of_call, ToAgent)
    assert json.loads(reply.data)["error"]["data"] == {"correlation_id": "run.e1"}
    assert json.loads(of_call.data)["error"]["data"] == {"correlation_id": "run.1"}


def test_a_clock_that_was_set_back_gives_no_negative_latency() -> None:
    (ended,) = REPLIES.ended(ASKED, 0.5, "OK", 1)

    assert isinstance(ended, WriteRecord)
    assert ended.record.body["latency_ms"] == 0


@pytest.mark.parametrize(
    ("kind", "blame"),
    [
        ("service_unavailable", "policy_block"),
        ("approval_withdrawn", "policy_block"),
        ("not_exposed", "policy_block"),
        ("upstream_connection_failed", "transport"),
    ],
)
def test_what_the_gate_did_not_send_on_is_no_failure_of_the_way(kind: str, blame: str) -> None:
    record, _ = REPLIES.failed(1, ASKED, kind, 2.0)

    assert isinstance(record, WriteRecord)
    assert (record.record.body["error"]["class"], record.record.body["error"]["kind"]) == (
        blame,
        kind,
    )


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"result": {}}, ""),
        ({"error": {"code": -32602, "data": {"kind": "task_not_found"}}}, "invalid_params"),
        ({"error": {"code": -32602, "data": {"kind": 5}}}, "invalid_params"),
        ({"error": {"code": -32021}}, "invalid_request"),
        ({"error": {"code": -31005}}, ""),
        ({"error": "odd"}, ""),
    ],
)
def test_an_answer_about_a_task_names_the_kind_of_its_refusal(
    body: dict[str, Any], kind: str
) -> None:
    reply = task_reply("a", body)

    assert (reply.key, reply.carries, reply.error) == ("a", ANSWER, kind)
    assert json.loads(reply.data) == {"jsonrpc": "2.0", "id": "a", **body}


def test_a_token_leads_to_its_request_only_while_that_is_open() -> None:
    table = OpenRequests()
    table.add(1, ASKED._replace(token=7))
    told = {"method": "notifications/progress", "params": {"progressToken": 7}}
    progress = _read({"jsonrpc": "2.0", **told})
    table.note_progress(progress, 5.0)

    assert table[1].alive_at == 5.0
    assert table.close_early(1, 6.0) is not None
    assert table.tokens == {}
    assert table.late == {1: 6.0}
    table.note_progress(progress, 7.0)
    table.forget_late(6.0 + LATE_FOR_S)
    assert table.late == {1: 6.0}
    table.forget_late(6.1 + LATE_FOR_S)
    assert table.late == {}


LOGIN = {"cause": "login_required", "reason": "run: thoughtgate login srv"}
PAGE = "https://console.example/servers"
URLS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}


def _login_error(page: str, capabilities: Any, asked: PendingRequest = ASKED, **facts: Any) -> Any:
    replies = SessionReplies(SessionSettings("srv", "s1", login_page=page))
    replies.prompts.declare(capabilities)
    said = {**LOGIN, **facts}
    told = replies.failed(1, asked, "upstream_unauthorized", 1.0, text="sign in", facts=said)[-1]
    assert isinstance(told, ToAgent)
    return json.loads(told.data)["error"]


def test_a_client_that_opens_urls_is_given_the_page_for_the_login() -> None:
    error = _login_error(PAGE, URLS)
    data = error["data"]
    assert mcp.types.ElicitationRequiredErrorData.model_validate(data).elicitations
    assert error["code"] == -32042
    assert (data["kind"], data["cause"]) == ("upstream_unauthorized", "login_required")
    (asked,) = data["elicitations"]
    assert (asked["mode"], asked["url"]) == ("url", PAGE)
    assert asked["elicitationId"] == data["correlation_id"] == "run.1"
    assert "'srv'" in asked["message"]


@pytest.mark.parametrize(
    ("page", "capabilities", "modern", "cause"),
    [
        ("", URLS, False, "login_required"),
        (PAGE, {"elicitation": {}}, False, "login_required"),
        (PAGE, {}, False, "login_required"),
        (PAGE, URLS, True, "login_required"),
        (PAGE, URLS, False, "dns_failed"),
    ],
)
def test_otherwise_the_error_says_what_to_do(
    page: str, capabilities: Any, cause: str, *, modern: bool
) -> None:
    asked = ASKED._replace(modern=modern)
    error = _login_error(page, capabilities, asked, cause=cause)
    assert error["code"] == code_of("upstream_unauthorized", modern=modern)
    assert "elicitations" not in error["data"]
