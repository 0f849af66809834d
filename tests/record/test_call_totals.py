"""Totals of calls, which must always agree with the calls."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.audit_cli import sample_record
from tests.support.records import RUN, T0, decided, ended, started
from tests.support.shared_ledgers import Writer

from thoughtgate.core.envelope import Envelope
from thoughtgate.record import call_totals
from thoughtgate.record.call_totals import (
    COUNTED,
    STEPS_S,
    CallTotal,
    count_rules,
    read_latencies,
    read_totals,
)
from thoughtgate.record.ledger import Ledger
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.ledger_queries import CallFilter
from thoughtgate.record.shared_ledger import SharedLedger
from thoughtgate.record.writer import RecordWriter


def agree(ledger: Ledger) -> bool:
    """Tell whether the totals count what the calls are, at every step."""
    for step_s in STEPS_S:
        start = f"cast(started_at / {step_s} AS INTEGER) * {step_s}.0"
        names = ", ".join(f"coalesce({one}, '')" for one in COUNTED)
        each = ledger.connection.execute(f"SELECT {start}, {names} FROM calls WHERE started_at > 0")
        kept = ledger.connection.execute(
            f"SELECT started_at, {names}, calls FROM call_totals "
            f"JOIN call_kinds ON call_kinds.id = kind WHERE step_s = {step_s}"
        )
        if Counter(each.fetchall()) != Counter({row[:-1]: row[-1] for row in kept.fetchall()}):
            return False
        answered = "started_at > 0 AND status = 'OK' AND latency_ms IS NOT NULL"
        times = ledger.connection.execute(
            f"SELECT {start}, coalesce(server, ''), latency_ms FROM calls WHERE {answered}"
        )
        kept = ledger.connection.execute(
            f"SELECT started_at, server, latency_ms, calls FROM call_latencies WHERE step_s = {step_s}"
        )
        if Counter(times.fetchall()) != Counter({row[:-1]: row[-1] for row in kept.fetchall()}):
            return False
    return True


def test_totals_follow_every_change_of_a_call(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger")) as ledger:
        ledger.ingest(sample_record(tmp_path))
        assert agree(ledger)
        run = ledger.connection.execute
        assert run("SELECT sum(calls) FROM call_totals").fetchone()[0] > 0
        for change in (
            "UPDATE calls SET status = 'TIMEOUT', rule = NULL, started_at = started_at + 9000",
            "UPDATE calls SET started_at = NULL WHERE id = (SELECT min(id) FROM calls)",
            "UPDATE calls SET started_at = 7.5",
            "UPDATE calls SET status = 'OK', latency_ms = 10 * id",
            "UPDATE calls SET latency_ms = NULL WHERE id = (SELECT min(id) FROM calls)",
            "DELETE FROM calls WHERE id = (SELECT max(id) FROM calls)",
        ):
            run(change)
            assert agree(ledger), change
        run("DELETE FROM calls")
        assert run("SELECT count(*) FROM call_totals").fetchone() == (0,)


def test_totals_follow_calls_whose_events_are_read_one_by_one(tmp_path: Path) -> None:
    record = tmp_path / "audit.jsonl"
    writer = RecordWriter(record, Envelope(RUN))
    with closing(Ledger(tmp_path / "ledger")) as ledger:
        for ident in ("c.1", "c.2", "c.3"):
            for part in (started(ident, T0), decided(ident, T0), ended(ident, T0 + 1)):
                writer.write([part])
                ledger.ingest(record)
                assert agree(ledger), part
        (total,) = read_totals(ledger.connection, CallFilter(since=T0 // 3600 * 3600), 3600) or []
        assert (total.calls, total.decision, total.status) == (3, "ALLOW", "OK")
    writer.close()


def test_kept_totals_are_those_of_the_calls_themselves(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger")) as ledger:
        ledger.ingest(sample_record(tmp_path))
        (first,) = ledger.connection.execute("SELECT min(started_at) FROM calls").fetchone()
        kept = list[CallTotal]()
        for step_s in STEPS_S:
            wanted = CallFilter(since=first // step_s * step_s)
            kept = read_totals(ledger.connection, wanted, step_s) or []
            assert sum(one.calls for one in kept) == 3
        minutes = read_totals(ledger.connection, CallFilter(since=first // 60 * 60), 60)
        assert minutes is not None
        assert Counter(one.tool for one in minutes) == Counter(one.tool for one in kept)
        server = kept[0].server
        assert read_totals(ledger.connection, CallFilter(since=1.0, server=server), 3600)
        assert read_totals(ledger.connection, CallFilter(since=1.0, server="absent"), 60) == []


def test_too_many_totals_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_totals, "MAX_TOTALS", 1)
    with closing(Ledger(tmp_path / "ledger")) as ledger:
        ledger.ingest(sample_record(tmp_path))
        assert read_totals(ledger.connection, CallFilter(since=1.0), 3600) is None


def test_latencies_are_kept_to_two_digits(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger")) as ledger:
        ledger.ingest(sample_record(tmp_path))
        found = dict[int, int]()
        for latency in (99, 128, 1999, 12_345, 678_901):
            update = "UPDATE calls SET status = 'OK', started_at = 7200.0, latency_ms = ?"
            ledger.connection.execute(update, (latency,))
            kept = read_latencies(ledger.connection, CallFilter(since=3600.0), 3600)
            grouped = read_latencies(ledger.connection, CallFilter(since=3600.0), 60)
            assert kept == grouped
            ((value, calls),) = kept[7200.0]
            found[latency] = value
            assert calls == 3
    assert found == {99: 99, 128: 120, 1999: 1900, 12_345: 12_000, 678_901: 670_000}


def test_totals_of_a_shared_ledger_are_those_of_its_calls(
    shared: SharedLedger, tmp_path: Path
) -> None:
    gates = [Writer(tmp_path, name) for name in "ab"]
    parts = (
        started("c.1", T0),
        decided("c.1", T0, action="ALLOW", rule="reads"),
        ended("c.1", T0 + 1, latency_ms=128),
    )
    for gate in gates:
        for part in parts:
            gate.write(part)
            gate.ship(shared)
            index_ledger(shared)
    since = CallFilter(since=T0 // 86_400 * 86_400)
    for step_s in (*STEPS_S, 60):
        (total,) = read_totals(shared.connection, since, step_s) or []
        assert (total.calls, total.decision, total.status, total.rule) == (
            2,
            "ALLOW",
            "OK",
            "reads",
        )
        ((latency, calls),) = read_latencies(shared.connection, since, step_s)[total.at]
        assert (latency, calls) == (120, 2)
    assert count_rules(shared.connection, total.policy) == {("reads", "ALLOW"): 2}

    shared.retain(T0 + 100, T0 + 100)
    assert read_totals(shared.connection, since, 3600) == []
    assert read_latencies(shared.connection, since, 3600) == {}
    assert count_rules(shared.connection, total.policy) == {}
