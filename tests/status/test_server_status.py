"""Servers as gates describe them."""

from typing import Any

import pytest

from thoughtgate.record.call_totals import CallTotal
from thoughtgate.status.server_status import (
    CallTotals,
    add_totals,
    describe_at_gate,
    gather_servers,
    total_calls,
)

GATE = {"pid": 7, "kind": "serve"}


@pytest.mark.parametrize(
    ("told", "state", "cause"),
    [
        ({"status": "running", "enabled": True}, "running", ""),
        ({"status": "up"}, "running", ""),
        ({"status": "stopped"}, "idle", ""),
        (
            {"status": "stopped", "error": {"cause": "login_required"}},
            "needs login",
            "login_required",
        ),
        ({"status": "waiting", "error": {"kind": "start_failed"}}, "failed", "start_failed"),
        ({"status": "failed", "error": {"cause": "dns", "kind": "down"}}, "failed", "dns"),
        ({"status": "exited", "exit_code": 3}, "failed", "exit code 3"),
        ({"status": "exited"}, "idle", ""),
        ({"status": "halted"}, "stopped", ""),
        ({"status": "degraded", "error": {"cause": "http_503"}}, "degraded", "http_503"),
        ({}, "running", ""),
        ({"status": "running", "error": "text", "warnings": 5}, "running", ""),
    ],
)
def test_states_are_named_as_people_know_them(told: dict[str, Any], state: str, cause: str) -> None:
    found = describe_at_gate(GATE, {"id": "a", **told})

    assert (found.state, found.cause) == (state, cause)
    assert found.can_control == ("enabled" in told)


def test_the_worst_state_of_all_gates_is_shown() -> None:
    gates: list[dict[str, Any]] = [
        {
            "pid": 1,
            "kind": "serve",
            "servers": [{"id": "a", "status": "running"}, "odd", {"id": 5}],
        },
        {"pid": 2, "kind": "serve", "servers": [{"id": "a", "status": "failed"}]},
        {"pid": 3, "kind": "shim", "server": "b"},
    ]
    found = {one.name: one for one in gather_servers(gates, ["c", ""], {"d": CallTotals(3)})}

    assert {name: one.state for name, one in found.items()} == {
        "a": "failed",
        "b": "running",
        "c": "not running",
        "d": "not running",
    }
    assert found["d"].totals.calls == 3
    assert found["c"].worst is None


def test_calls_are_counted_by_outcome() -> None:
    def total(decision: str, status: str, calls: int, approval: str = "") -> CallTotal:
        return CallTotal(0.0, "s", "t", decision, status, "", "", "", approval, "", "", calls)

    found = total_calls(
        [
            total("ALLOW", "OK", 5),
            total("ALLOW", "ERROR", 2),
            total("BLOCK", "ERROR", 3),
            total("HOLD", "ERROR", 1, "rejected"),
        ],
        "tool",
        {"t": [1, 2, 3, 100]},
    )

    assert found == {"t": CallTotals(calls=11, failed=2, denied=3, held=1, p50=3, p95=100)}


def test_calls_of_several_records_are_added() -> None:
    added = add_totals([{"a": CallTotals(1, 1, 0, 0, 3, 4)}, {"a": CallTotals(5, 0, 2, 1, 7, 8)}])

    assert added == {"a": CallTotals(6, 1, 2, 1, 7, 8)}
