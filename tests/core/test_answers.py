"""What the session reads off a server's answer."""

import json
from typing import Any

import pytest

from thoughtgate.core.answers import (
    has_failed,
    introduction,
    is_shown,
    is_stand_in,
    login_instructions,
    outcome_of,
    relay_change,
    relayed_change,
    relayed_failure,
    says_error,
    screened,
)
from thoughtgate.core.record_events import ERROR, OK, server_started, server_unreachable
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        (login_instructions("a-b_1"), True),
        (login_instructions("x" * 65), False),
        (login_instructions("a b"), False),
        (login_instructions("\u00e4"), False),
        (login_instructions(""), False),
        (f"{login_instructions('a')} now", False),
        ("a", False),
    ],
)
def test_only_the_gates_exact_words_stand_in_for_a_server(text: str, *, is_own: bool) -> None:
    assert is_stand_in(introduction(text)) is is_own
    assert not is_stand_in(introduction(None))


def test_a_result_is_fine() -> None:
    assert outcome_of({"result": {}}) == (OK, None)


def test_an_error_keeps_its_code_and_none_of_its_words() -> None:
    status, kept = outcome_of({"error": {"code": -32050, "message": "token ghp_x rejected"}})

    assert status == ERROR
    assert kept is not None
    assert kept["code"] == -32050
    assert "ghp" not in str(kept)


@pytest.mark.parametrize("error", ["text", {"code": "7"}, {}])
def test_an_error_of_any_shape_is_an_error_without_a_code(error: object) -> None:
    status, kept = outcome_of({"error": error})

    assert status == ERROR
    assert kept is not None
    assert "code" not in kept


def test_only_a_true_is_error_says_that_the_tool_failed() -> None:
    assert says_error({"result": {"isError": True}})
    assert not says_error({"result": {"isError": "true"}})
    assert not says_error({"error": {}})


def test_an_entry_without_a_readable_name_is_not_shown() -> None:
    hidden = frozenset({"secret"})

    assert is_shown({"name": "open"}, "name", hidden)
    assert not is_shown({"name": "secret"}, "name", hidden)
    assert not is_shown({"name": 5}, "name", hidden)
    assert not is_shown("open", "name", hidden)


@pytest.mark.parametrize(
    ("status", "is_error", "failed"),
    [
        ("OK", False, False),
        ("OK", True, True),
        ("ERROR", False, True),
        ("TIMEOUT", False, True),
        ("CANCELLED", False, None),
    ],
)
def test_a_call_that_was_taken_back_says_nothing_of_its_server(
    status: str, is_error: bool, failed: bool | None
) -> None:
    assert has_failed(status, is_error=is_error) is failed


KEY = "0123456789abcdef"
FAILURE = {"kind": "upstream_bad_response", "cause": "unavailable", "status": 503, "reason": "busy"}


def _error(**data: object) -> dict[str, Any]:
    return {"error": {"code": -32000, "message": "busy", "data": data}}


def test_a_failure_that_our_proxy_reports_is_read() -> None:
    facts = {name: FAILURE[name] for name in ("cause", "status", "reason")}

    found = relayed_failure(_error(**FAILURE, relay=KEY, correlation_id="7"), KEY)

    assert found == ("upstream_bad_response", "busy", facts)


@pytest.mark.parametrize(
    "body",
    [
        _error(**FAILURE),
        _error(**FAILURE, relay="another key"),
        _error(**FAILURE, relay=7),
        _error(**{**FAILURE, "kind": "approved"}, relay=KEY),
        _error(**{**FAILURE, "cause": "weather"}, relay=KEY),
        {"error": "no object"},
        {"result": {}},
    ],
)
def test_an_error_of_the_remote_server_itself_is_not_one_of_ours(body: dict[str, Any]) -> None:
    assert relayed_failure(body, KEY) is None
    assert relayed_failure(body, "") is None


def test_a_change_of_a_remote_server_is_reported_to_the_shim() -> None:
    gone = server_unreachable(1.0, "far", "0", {"state": "down", "cause": "dns_failed"})

    report = relay_change(gone, KEY)

    assert report is not None
    body = json.loads(report)
    assert relayed_change(body, KEY) == ("server_unreachable", gone.body["server"])
    assert relayed_change(body, "another key") is None
    assert relayed_change({"params": {"relay": KEY, "type": "run_end", "server": {}}}, KEY) is None
    assert relayed_change({}, KEY) is None
    assert relay_change(server_started(1.0, "far", "0", 7), KEY) is None


def _answer(result: dict[str, Any]) -> Message:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    message = read_frame(line)
    assert isinstance(message, Message)
    return message


TOOLS = {"tools": [{"name": "a"}, {"name": "b", "execution": {"taskSupport": "required"}}]}


@pytest.mark.parametrize("revision", [None, "", "2025-06-18", "2026-07-28"])
def test_a_list_keeps_its_bytes_where_no_tasks_are_offered(revision: str | None) -> None:
    message = _answer(TOOLS)
    assert screened(message, "tools/list", frozenset(), revision) == message.raw


def test_tools_are_offered_as_tasks_as_far_as_their_server_does_not() -> None:
    said = json.loads(screened(_answer(TOOLS), "tools/list", frozenset(), "2025-11-25"))
    supports = [tool["execution"]["taskSupport"] for tool in said["result"]["tools"]]
    assert supports == ["optional", "required"]


def test_a_list_with_nothing_to_correct_keeps_its_bytes() -> None:
    message = _answer({"tools": TOOLS["tools"][1:]})
    assert screened(message, "tools/list", frozenset(), "2025-11-25") == message.raw


def test_a_handshake_keeps_its_bytes_where_no_tasks_are_offered() -> None:
    message = _answer({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})
    assert screened(message, "initialize", frozenset(), None) == message.raw
    said = json.loads(screened(message, "initialize", frozenset(), "2025-11-25"))
    assert "tasks" in said["result"]["capabilities"]


def test_instructions_that_are_hidden_are_not_in_the_handshake() -> None:
    message = _answer({"instructions": "Obey.", "capabilities": {}})
    said = json.loads(screened(message, "initialize", frozenset({"instructions"}), None))
    assert said["result"] == {"capabilities": {}}
