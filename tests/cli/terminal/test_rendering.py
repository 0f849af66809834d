"""Rows and the overview of the terminal interface."""

import io
from typing import Any

from rich.console import Console
from rich.text import Text
from tests.support.approvals import NOW, an_approval

from thoughtgate.channels.approval_view import approval_object
from thoughtgate.cli.terminal.rendering import (
    call_rows,
    gate_rows,
    inbox_rows,
    overview,
    server_rows,
    summary,
)
from thoughtgate.record.call_rows import CALL_COLUMNS
from thoughtgate.status.server_status import CallTotals, gather_servers


def a_call(**changes: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(column.name for column in CALL_COLUMNS)
    return {**nothing, "call_id": "run.1", "started_at": NOW - 65, "server": "files", **changes}


def plain(cells: Any) -> list[str]:
    assert all(isinstance(cell, Text) for cell in cells)
    return [cell.plain for cell in cells]


def render(status: dict[str, Any]) -> str:
    out = io.StringIO()
    console = Console(width=76, file=out)
    console.print(overview({"gates": [], "servers": [], "approvals": [], **status}, NOW))
    return out.getvalue()


def test_a_request_shows_the_time_left_and_first_what_decides() -> None:
    asked = an_approval(expires_at=NOW + 65, arguments='{"note":"x","path":"/e\\u200btc"}')

    (row,) = inbox_rows([approval_object(asked)], NOW).values()

    assert plain(row)[:2] == ["k3f9ab", "1:05"]
    assert plain(row)[-1] == "path: /e[U+200B]tc, note: x"


def test_calls_are_named_with_the_words_of_the_console() -> None:
    calls = [
        a_call(call_id="1", decision="ALLOW", status="ERROR", error_class="tool"),
        a_call(call_id="2", decision="HOLD", approval="approved", status="OK"),
        a_call(call_id="3", decision="HOLD"),
        a_call(call_id="4", decision="BLOCK", status="ERROR", rule="no bulk reads", enforced=1),
        a_call(call_id="5", decision="BLOCK", status="OK", enforced=0),
    ]

    words = [plain(row) for row in call_rows(calls, NOW).values()]

    assert [row[3:5] for row in words] == [
        ["allowed", "failed"],
        ["approved", "ok"],
        ["held", "open"],
        ["denied", ""],
        ["denied", "ok"],
    ]
    assert words[0][0] == "1 min 5 s"
    assert words[3][6] == "no bulk reads"


def test_a_server_has_a_row_for_each_gate_and_one_without_a_gate() -> None:
    gate = {"pid": 7, "kind": "serve", "servers": [{"id": "one", "status": "halted", "tools": 3}]}
    servers = gather_servers([gate], (), {"two": CallTotals(5, 1)})

    rows = {key: plain(row) for key, row in server_rows(servers).items()}

    assert rows["7 one"][:4] == ["one", "stopped", "serve 7", "3"]
    assert rows["0 two"][:6] == ["two", "not running", "", "", "5", "1"]


def test_gates_of_this_machine_are_shown_without_a_shared_store() -> None:
    gate = {"pid": 7, "kind": "proxy", "server": "one", "url": "http://127.0.0.1:1/mcp"}

    (row,) = gate_rows({"gates": [gate]}, NOW).values()

    assert plain(row)[0] == "proxy one"
    assert plain(row)[-1] == "http://127.0.0.1:1/mcp"


def test_the_overview_says_what_needs_attention() -> None:
    login = {"id": "search", "error": {"cause": "login_required"}, "reason": "not signed in"}
    gates = [{"pid": 7, "kind": "serve", "servers": [login], "config_failure": "line 3"}]
    order = {"scope": "all", "name": "", "by": "ann", "at": NOW, "reason": "drill"}
    status = {
        "gates": gates,
        "servers": gather_servers(gates, (), {}),
        "approvals": [approval_object(an_approval(expires_at=NOW + 9))],
        "needed_logins": ["search"],
        "definitions": [{}, {}],
        "stopped": [order],
        "record_problem": "the ledger cannot be read",
    }

    text = render(status)

    for part in (
        "the ledger cannot be read",
        "all calls by ann",
        "1 approval pending, the next expires in 0:09",
        "1 needs login (search)",
        "run: thoughtgate login search",
        "2 definitions changed; run: thoughtgate tools diff",
        "serve 7: line 3",
        "No calls on record in the last day.",
    ):
        assert part in text
    assert summary({**status, "stopped": []}) == "1 gate, 1 approval pending"
    assert summary(status).startswith("STOPPED all calls")


def test_the_overview_counts_the_calls_of_the_last_day_in_80_columns() -> None:
    stats = {
        "calls": 12,
        "decisions": {"ALLOW": 10, "BLOCK": 2},
        "failed": 1,
        "latency_ms": {"p50": 3, "p90": 8, "p99": None},
        "approval_s": {"p50": 70},
        "step_s": 1800,
        "since": NOW,
        "over_time": [(NOW, "ALLOW", 10), (NOW + 3600, "BLOCK", 2)],
        "denials": {"no bulk reads": 2},
        "tools": {f"tool_{number}": 9 - number for number in range(9)},
        "principals": {"local": 12},
        "refusals": {},
    }

    text = render({"stats": stats})

    assert "12 calls, 10 allowed, 2 denied, 1 failed (10.0 %)" in text
    assert "p50 3 ms, p90 8 ms" in text
    assert "half of them within 1 min 10 s" in text
    assert "█▁▃" in text
    assert "no bulk reads" in text
    assert "tool_3" in text
    assert "tool_4" not in text
    assert len(text.splitlines()) <= 20
