"""The life of a task, and who may have one."""

from typing import Any

import pytest
from tests.support.approvals import NOW
from tests.support.tasks import a_task

from thoughtgate.core.task import (
    CANCELLED,
    COMPLETED,
    EXTENSION,
    FAILED,
    MAX_TTL_S,
    MIN_TTL_S,
    TRANSITIONS,
    advertise,
    advertise_in_handshake,
    advertise_tool,
    clamp_ttl,
    has_extension,
    move,
    poll_interval,
    refusal_kind,
    requested_ttl,
    wants_task,
    without_task,
)

DECLARED: dict[str, Any] = {
    "_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}}}
}


def test_only_the_moves_in_the_table_are_made() -> None:
    for phase, allowed in TRANSITIONS.items():
        for wanted in TRANSITIONS:
            moved = move(a_task(phase=phase), wanted, NOW + 1, "note")
            assert (moved is not None) is (wanted in allowed)
            if moved is not None:
                assert (moved.phase, moved.updated_at, moved.note) == (wanted, NOW + 1, "note")


def test_a_task_is_over_when_nothing_can_follow() -> None:
    over = {phase for phase in TRANSITIONS if a_task(phase=phase).is_over}
    assert over == {COMPLETED, FAILED, CANCELLED}


@pytest.mark.parametrize(
    ("asked", "given"),
    [(None, 600.0), (0.0, MIN_TTL_S), (59.0, MIN_TTL_S), (90.0, 90.0), (1e9, MAX_TTL_S)],
)
def test_the_life_of_a_task_is_honoured_within_bounds(asked: float | None, given: float) -> None:
    assert clamp_ttl(asked) == given


def test_a_task_without_a_wish_gets_the_life_its_workflow_needs() -> None:
    assert clamp_ttl(None, 1200) == 1200
    assert clamp_ttl(None, 5) == MIN_TTL_S


def test_the_wished_life_is_in_milliseconds() -> None:
    assert requested_ttl({"task": {"ttl": 90_000}}) == 90.0
    assert requested_ttl({"task": {}}) is None
    assert requested_ttl({}) is None


@pytest.mark.parametrize("ttl", ["60000", 1.5, True, -1, [], {}])
def test_a_wished_life_that_is_no_number_is_refused(ttl: Any) -> None:
    with pytest.raises(ValueError, match="milliseconds"):
        requested_ttl({"task": {"ttl": ttl}})


def test_an_older_caller_asks_for_a_task_with_the_request() -> None:
    assert wants_task("tools/call", {"task": {}}, modern=False)
    assert not wants_task("tools/call", {}, modern=False)
    assert not wants_task("tools/call", {"task": True}, modern=False)
    assert not wants_task("prompts/get", {"task": {}}, modern=False)


def test_a_modern_caller_gets_a_task_when_it_declares_the_extension() -> None:
    assert wants_task("tools/call", DECLARED, modern=True)
    assert not wants_task("tools/call", {"task": {}}, modern=True)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"_meta": 1},
        {"_meta": {}},
        {"_meta": {"io.modelcontextprotocol/clientCapabilities": []}},
        {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": []}}},
        {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: 1}}}},
    ],
)
def test_a_malformed_declaration_declares_nothing(params: dict[str, Any]) -> None:
    assert not has_extension(params)


def test_long_tasks_are_asked_about_less_often() -> None:
    intervals = [poll_interval(ttl) for ttl in (60, 300, 900, 86_400)]
    assert intervals == sorted(intervals)
    assert len(set(intervals)) == 4


def test_the_server_does_not_see_the_wish_for_a_task() -> None:
    assert without_task({"name": "x", "task": {"ttl": 1}}) == {"name": "x"}


def test_a_config_may_bound_a_tasks_life() -> None:
    assert clamp_ttl(None, 7200.0, 3600.0) == 3600.0
    assert clamp_ttl(90.0, 7200.0, 3600.0) == 90.0


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (None, ""),
        ({"result": {}}, ""),
        ({"error": "odd"}, ""),
        ({"error": {"code": -32601}}, "method_not_found"),
        ({"error": {"code": -32602}}, "invalid_params"),
        ({"error": {"code": -32021}}, "invalid_request"),
        ({"error": {"code": -31013}}, ""),
    ],
)
def test_refusals_about_tasks_are_of_the_kinds_that_statuses_go_by(body: Any, kind: str) -> None:
    assert refusal_kind(body) == kind


@pytest.mark.parametrize(
    "theirs",
    [
        {},
        {"tasks": 1},
        {"tasks": {"requests": 1}},
        {"tasks": {"requests": {"tools": 1}}},
    ],
)
def test_tasks_are_advertised_in_the_shape_of_2025_11_25(theirs: dict[str, Any]) -> None:
    shown = advertise({"tools": {}, **theirs}, modern=False, lists=True)
    assert shown["tools"] == {}
    assert shown["tasks"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


def test_advertising_keeps_what_the_server_offers() -> None:
    theirs = {"tasks": {"list": {"x": 1}, "requests": {"sampling": {}, "tools": {"other": {}}}}}
    tasks = advertise(theirs, modern=False)["tasks"]
    assert tasks["list"] == {"x": 1}
    assert tasks["requests"] == {"sampling": {}, "tools": {"call": {}, "other": {}}}


def test_the_extension_is_advertised_to_modern_callers() -> None:
    assert advertise({}, modern=True) == {"extensions": {EXTENSION: {}}}
    both = advertise({"extensions": {"x": {}}}, modern=True)
    assert set(both["extensions"]) == {EXTENSION, "x"}


@pytest.mark.parametrize("execution", [None, {}, {"taskSupport": "forbidden"}, 7])
def test_a_tool_may_be_called_as_a_task(execution: Any) -> None:
    entry = {"name": "x"} if execution is None else {"name": "x", "execution": execution}
    assert advertise_tool(entry)["execution"]["taskSupport"] == "optional"


@pytest.mark.parametrize("support", ["optional", "required"])
def test_a_tool_that_is_a_task_already_stays_as_it_is(support: str) -> None:
    entry = {"name": "x", "execution": {"taskSupport": support}}
    assert advertise_tool(entry) is entry


def test_tasks_are_listed_only_where_callers_are_told_apart() -> None:
    assert "list" not in advertise({}, modern=False)["tasks"]


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}),
        ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {"prompts": {}}}),
        ("initialize", {"protocolVersion": "2025-11-25"}),
        ("server/discover", {"capabilities": 1}),
    ],
)
def test_a_handshake_without_use_for_tasks_stays_as_it_is(
    method: str, result: dict[str, Any]
) -> None:
    assert advertise_in_handshake(result, method) is result


def test_a_handshake_offers_tasks() -> None:
    said: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    shown = advertise_in_handshake(said, "initialize")
    assert shown["capabilities"]["tasks"] == {"cancel": {}, "requests": {"tools": {"call": {}}}}
    shown = advertise_in_handshake({"capabilities": {"tools": {}}}, "server/discover")
    assert shown["capabilities"]["extensions"] == {EXTENSION: {}}
