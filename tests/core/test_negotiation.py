"""What the hub says of itself, and what it makes of both eras."""

from typing import Any

import pytest

from thoughtgate.core.negotiation import (
    INFO,
    carried_capabilities,
    changed_lists,
    completed,
    discover_result,
    initialize_params,
    initialize_result,
    initialized_by,
    input_requests,
    is_at_least,
    merge_capabilities,
    params_for_legacy,
    params_for_modern,
    plain,
)

SPEC = "io.modelcontextprotocol/"


@pytest.mark.requirement("S002-21")
@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        (None, "2025-11-25"),
    ],
)
def test_the_asked_revision_is_answered_if_it_is_a_legacy_one(asked: Any, given: str) -> None:
    assert initialize_result(asked, {}, "")["protocolVersion"] == given


@pytest.mark.requirement("S002-13", "S002-20")
def test_initialize_tells_version_capabilities_and_name() -> None:
    result = initialize_result("2025-06-18", {"tools": {}}, "hello")

    assert result == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": INFO,
        "instructions": "hello",
    }
    assert "instructions" not in initialize_result("2025-06-18", {}, "")


def test_the_gate_opens_a_connection_in_the_latest_legacy_revision() -> None:
    params = initialize_params({"roots": {}})

    assert params == {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": INFO,
    }
    assert initialize_params({}, "2025-06-18")["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize(
    ("answer", "opens"),
    [
        ({"result": {"protocolVersion": "2025-06-18"}}, True),
        ({"result": {"protocolVersion": "2026-07-28"}}, False),
        ({"result": {}}, False),
        ({"result": "2025-06-18"}, False),
        ({"error": {"code": -32602, "message": "no"}}, False),
    ],
)
def test_only_a_result_in_a_legacy_revision_opens_a_connection(
    answer: dict[str, Any], *, opens: bool
) -> None:
    assert initialized_by(answer) == (answer["result"] if opens else None)


def test_discover_tells_modern_revisions_and_no_logging() -> None:
    result = discover_result({"tools": {}, "logging": {}}, "hi")

    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"tools": {}}
    assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == (
        "complete",
        0,
        "private",
    )


def test_a_server_not_asked_yet_may_have_everything() -> None:
    merged = merge_capabilities([None], manager_tools=False)

    assert set(merged) == {"tools", "resources", "prompts", "completions", "logging"}


@pytest.mark.requirement("S002-19")
def test_capabilities_go_only_as_far_as_the_servers() -> None:
    merged = merge_capabilities(
        [{"tools": {}, "resources": {}}, {"resources": {"subscribe": True}, "odd": {}}],
        manager_tools=True,
    )

    assert merged == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
    }
    assert merge_capabilities([{"resources": None}], manager_tools=False) == {
        "resources": {"listChanged": True}
    }
    assert merge_capabilities([], manager_tools=False) == {}


def test_only_what_can_be_carried_is_declared() -> None:
    declared = {"sampling": {}, "roots": {"listChanged": True}, "tasks": {}, "elicitation": 1}

    assert carried_capabilities(declared) == {"sampling": {}, "roots": {"listChanged": True}}
    assert carried_capabilities(None) == {}


def test_a_modern_server_gets_an_envelope_and_vendor_keys_stay() -> None:
    params: dict[str, Any] = {
        "name": "x",
        "_meta": {"vendor/x": 1, "progressToken": "p", f"{SPEC}foo": 2},
    }

    made = params_for_modern(params, capabilities={}, log_level="info", token=7)

    assert made["_meta"] == {
        "vendor/x": 1,
        f"{SPEC}protocolVersion": "2026-07-28",
        f"{SPEC}clientCapabilities": {},
        f"{SPEC}clientInfo": INFO,
        f"{SPEC}logLevel": "info",
        "progressToken": 7,
    }
    assert params["_meta"]["progressToken"] == "p"


def test_a_legacy_server_gets_no_envelope() -> None:
    params = {"name": "x", "requestState": "s", "_meta": {f"{SPEC}protocolVersion": "2026-07-28"}}

    assert params_for_legacy(params) == {"name": "x"}
    assert params_for_legacy(params, token=3) == {"name": "x", "_meta": {"progressToken": 3}}
    assert params_for_legacy({"_meta": 5}) == {}


def test_a_modern_client_gets_what_a_legacy_server_leaves_out() -> None:
    made = completed("resources/read", {"contents": [], "_meta": {"a": 1}})

    assert made["resultType"] == "complete"
    assert (made["ttlMs"], made["cacheScope"]) == (0, "private")
    assert made["_meta"] == {"a": 1, f"{SPEC}serverInfo": INFO}
    assert "ttlMs" not in completed("tools/call", {"content": []})
    assert (
        completed("tools/call", {"resultType": "input_required"})["resultType"] == "input_required"
    )


def test_a_legacy_client_gets_what_it_knows() -> None:
    modern = {"content": [], "resultType": "complete", "_meta": {f"{SPEC}serverInfo": {}, "a": 1}}

    assert plain(modern) == {"content": [], "_meta": {"a": 1}}
    assert plain({"_meta": {f"{SPEC}serverInfo": {}}, "ttlMs": 0}) == {}


@pytest.mark.parametrize(
    ("level", "threshold", "passes"),
    [
        ("error", "info", True),
        ("debug", "info", False),
        ("info", "info", True),
        ("odd", "info", True),
    ],
)
def test_log_levels_are_ordered(level: str, threshold: str, *, passes: bool) -> None:
    assert is_at_least(level, threshold) is passes


def test_what_a_server_wants_to_know_is_read() -> None:
    ask = {"method": "roots/list"}

    assert input_requests(
        {"resultType": "input_required", "inputRequests": {"a": ask, "b": 1}}
    ) == {"a": ask}
    assert input_requests({"resultType": "input_required"}) == {}
    assert input_requests({"resultType": "complete"}) is None
    assert input_requests(None) is None


def test_only_lists_whose_changes_a_server_declared_are_announced() -> None:
    said = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"listChanged": "yes"}}
    method = "notifications/tools/list_changed"
    assert changed_lists({"capabilities": said}) == [{"jsonrpc": "2.0", "method": method}]
    assert changed_lists({"capabilities": []}) == changed_lists({}) == []
