from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.audit_cli import sample_record

from thoughtgate.record.ledger import Ledger
from thoughtgate.record.ledger_queries import CallFilter
from thoughtgate.status.call_statistics import add_statistics, collect_statistics, percentile


def test_calls_are_counted_by_each_of_their_properties(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger")) as ledger:
        ledger.ingest(sample_record(tmp_path))
        stats = collect_statistics(ledger.connection, CallFilter(), 60)

    assert stats["calls"] == 3
    assert stats["decisions"] == {"ALLOW": 1, "BLOCK": 1, "HOLD": 1}
    assert stats["approvals"] == {"approved": 1}
    assert stats["latency_ms"] == {"p50": 6000, "p90": 6000, "p99": 6000}
    assert sum(count for _, _, count in stats["over_time"]) == 3


def test_percentiles_of_nothing_are_nothing() -> None:
    assert percentile([], 50) is None
    assert percentile([1, 2, 3, 4], 50) == 3
    assert percentile([7], 99) == 7


def test_statistics_of_several_records_are_added_without_percentiles() -> None:
    unused = ("servers", "statuses", "refusals", "approvals", "approvers", "frames_refused")
    one: dict[str, Any] = {
        **{name: {} for name in unused},
        "calls": 3,
        "failed": 1,
        "messages": 2,
        "decisions": {"ALLOW": 2, "BLOCK": 1},
        "tools": {"a": 3},
        "principals": {"local": 3},
        "denials": {"r": 1},
        "latency_ms": {"p50": 1, "p90": 2, "p99": None},
        "approval_s": {"p50": None},
        "over_time": [(5.0, "ALLOW", 2), (5.0, "BLOCK", 1)],
    }
    two = {**one, "decisions": {"ALLOW": 3}, "tools": {"b": 9}, "over_time": [(2.0, "ALLOW", 3)]}

    added = add_statistics([one, {}, two])

    assert (added["calls"], added["failed"], added["messages"]) == (6, 2, 4)
    assert added["decisions"] == {"ALLOW": 5, "BLOCK": 1}
    assert list(added["tools"].items()) == [("b", 9), ("a", 3)]
    assert added["over_time"][0] == (2.0, "ALLOW", 3)
    assert set(added["latency_ms"].values()) == {None}
    assert add_statistics([{}, one]) is one
    assert add_statistics([{}]) == {}
