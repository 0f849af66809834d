from contextlib import closing
from pathlib import Path

from tests.support.audit_cli import sample_record

from thoughtgate.record.ledger import Ledger
from thoughtgate.record.ledger_queries import CallFilter
from thoughtgate.status.call_statistics import collect_statistics, percentile


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
