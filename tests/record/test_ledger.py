import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import ROOT
from tests.support.records import (
    RUN,
    T0,
    answered,
    asked,
    call,
    decided,
    ended,
    started,
    write_run,
)
from tests.support.waiting import read_line, wait_for

from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.core.record_events import Record, message_seen
from thoughtgate.errors import StoreError
from thoughtgate.record import reader as record_reader
from thoughtgate.record.file import rotated_files
from thoughtgate.record.ledger import Ledger, ledger_path
from thoughtgate.record.ledger_queries import CallFilter, count_traffic, find_calls
from thoughtgate.record.writer import RecordWriter


def write(path: Path, records: list[Record], run: Run = RUN, **options: int) -> None:
    writer = RecordWriter(path, Envelope(run), **options)  # type: ignore[arg-type]  # numbers only
    writer.write(records)
    writer.close()


def count(ledger: Ledger) -> int:
    return int(ledger.connection.execute("SELECT count(*) FROM calls").fetchone()[0])


@pytest.mark.requirement("LED-001")
def test_ten_thousand_events_are_in_the_ledger_whole_counted_and_indexed(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 3334)
    ledger = Ledger(ledger_path(path))
    got = ledger.ingest(path)
    assert got.events == 3334 * 3 + 2
    assert got.faults == ()
    assert count(ledger) == 3334
    ask = ledger.connection.execute
    assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ask("PRAGMA integrity_check").fetchone() == ("ok",)
    plan = ask(
        "EXPLAIN QUERY PLAN SELECT * FROM calls WHERE run_id = 'x' ORDER BY started_at DESC"
    ).fetchall()
    assert "calls_run" in plan[0][3]
    ledger.close()


def test_a_call_is_one_row_with_its_whole_story(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    records = [
        started("c1"),
        decided("c1", action="HOLD", gate="rules"),
        asked("c1", T0 + 1),
        answered("c1", T0 + 6),
        ended("c1", T0 + 7, latency_ms=7000),
    ]
    write(path, records)
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    (row,) = find_calls(ledger.connection, CallFilter())
    ledger.close()
    assert row["decision"] == "HOLD"
    assert row["approval"] == "approved"
    assert row["approved_by"] == "kim"
    assert row["approval_channel"] == "console"
    assert row["executes"] == 1
    assert row["status"] == "OK"
    assert row["latency_ms"] == 7000
    assert row["preview"] == '{"path":"/tmp/a"}'
    assert row["approval_at"] - row["asked_at"] == 5


def test_events_in_any_order_and_twice_give_the_same_rows(tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    records = call(1) + call(2)
    write(one, records)
    write(other, [*reversed(records), *records])
    rows = []
    for path in (one, other):
        ledger = Ledger(ledger_path(path))
        ledger.ingest(path)
        rows.append(find_calls(ledger.connection, CallFilter()))
        ledger.close()
    for row in rows[0] + rows[1]:  # written in another order, events have other numbers
        del row["start_event"], row["end_event"]
    assert rows[0] == rows[1]


def test_reading_again_reads_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    message = message_seen(T0, "files", "1", "agent_to_server", "request", "ping", 40)
    write(path, [message, *call(1)])
    ledger = Ledger(ledger_path(path))
    assert ledger.ingest(path).events == 4
    assert ledger.ingest(path).events == 0
    write(path, [message, *call(2)], Run("run-1", shim_id="shim"))
    assert ledger.ingest(path).events == 4
    assert count(ledger) == 2
    assert count_traffic(ledger.connection, "message") == [("agent_to_server", "ping", 2, 80)]
    ledger.close()


def test_files_put_aside_are_read_once_whatever_they_are_called(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 40, rotate_bytes=10_000, keep=100)
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    assert count(ledger) == 40
    write_run(path, 40, run=Run("run-2"), rotate_bytes=10_000, keep=100)
    assert len(rotated_files(path)) > 4
    got = ledger.ingest(path)
    assert count(ledger) == 80
    assert got.events < 40 * 3 + 20
    ledger.close()


def test_what_only_a_file_that_is_gone_held_is_forgotten(tmp_path: Path) -> None:
    path, aside = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.000001"
    message = message_seen(T0, "files", "1", "agent_to_server", "request", "ping", 40)
    spanning = started("run-1.9", preview="spanning")
    write(path, [message, *call(1, preview="older"), spanning])
    with path.open("ab") as file:
        file.write(b"garbage\n")
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    path.rename(aside)
    write(path, [*call(2, preview="newer"), message, decided("run-1.9")])
    assert len(ledger.ingest(path).faults) == 1
    assert count(ledger) == 3
    aside.unlink()
    assert ledger.ingest(path) == (0, ())
    found = {row["call_id"] for row in find_calls(ledger.connection, CallFilter())}
    assert found == {"run-1.2", "run-1.9"}
    assert count_traffic(ledger.connection, "message") == [("agent_to_server", "ping", 1, 40)]
    assert find_calls(ledger.connection, CallFilter(text="older")) == []
    assert len(find_calls(ledger.connection, CallFilter(text="newer"))) == 1
    ledger.close()


def test_a_line_still_being_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write(path, call(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    ledger = Ledger(ledger_path(path))
    assert ledger.ingest(path).events == 2
    path.write_bytes(whole)
    assert ledger.ingest(path).events == 1
    ledger.close()


def test_a_torn_first_line_is_nothing_yet(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"v":"1.0"')
    ledger = Ledger(ledger_path(path))
    assert ledger.ingest(path) == (0, ())
    path.write_bytes(b"")
    assert ledger.ingest(path) == (0, ())
    ledger.close()


def test_faulty_lines_are_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write(path, call(1))
    with path.open("ab") as file:
        file.write(b'garbage\n\n{"v":"1.0","type":"tool_call_end","call":7,"seq":"x"}\n')
    ledger = Ledger(ledger_path(path))
    got = ledger.ingest(path)
    assert got.faults == ((str(path), 4, "not a JSON object"),)
    assert got.events == 4
    ledger.close()


def test_a_line_of_which_only_the_beginning_is_read_is_passed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "audit.jsonl"
    write_run(record, 2)
    monkeypatch.setattr(record_reader, "MAX_LINE", 4000)
    record.write_bytes(b"x" * 9000 + b"\n" + record.read_bytes())
    ledger = Ledger(ledger_path(record))
    first = ledger.ingest(record)
    assert (first.events, [line for _, line, _ in first.faults]) == (8, [1])
    write_run(record, 1, run=Run("run-2"))
    second = ledger.ingest(record)
    assert (second.events, [line for _, line, _ in second.faults]) == (5, [1])
    ledger.close()


def test_faults_are_named_every_time_under_the_name_that_the_file_has_now(tmp_path: Path) -> None:
    path, aside = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.000001"
    write(path, call(1))
    with path.open("ab") as file:
        file.write(b"garbage\n")
    ledger = Ledger(ledger_path(path))
    first = ledger.ingest(path).faults
    assert ledger.ingest(path).faults == first == ((str(path), 4, "not a JSON object"),)
    path.rename(aside)
    write(path, call(2))
    assert ledger.ingest(path).faults == ((str(aside), 4, "not a JSON object"),)
    ledger.close()


def test_a_record_changed_behind_the_ledger_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write(path, call(1) + call(2))
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    assert "gone or changed" in ledger.ingest(path).faults[0][2]
    ledger.close()


def test_a_damaged_ledger_is_filled_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 3)
    ledger_path(path).write_bytes(b"this is no database, and long enough to look like one" * 40)
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    assert count(ledger) == 3
    ledger.close()


def test_a_ledger_of_another_version_is_filled_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 3)
    with sqlite3.connect(ledger_path(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    assert count(ledger) == 3
    ledger.close()


def test_a_ledger_that_cannot_be_opened_or_filled_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(StoreError, match="directory"):
        Ledger(tmp_path / "directory")
    path = tmp_path / "audit.jsonl"
    write_run(path, 1)
    ledger = Ledger(ledger_path(path))
    ledger.connection.execute("DROP TABLE traffic")
    with pytest.raises(StoreError, match="cannot be updated"):
        ledger.ingest(path)
    ledger.close()


def test_the_ledger_is_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.jsonl"
    write_run(path, 1)
    Ledger(ledger_path(path)).close()
    assert ledger_path(path).stat().st_mode & 0o777 == 0o600


def test_two_at_once_do_not_double_anything(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    message = message_seen(T0, "files", "1", "agent_to_server", "request", "ping", 40)
    write(path, [message] * 500 + call(1))
    code = (
        "import sys; from pathlib import Path; from thoughtgate.record.ledger import *; "
        "path = Path(sys.argv[1]); ledger = Ledger(ledger_path(path)); ledger.ingest(path)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    readers = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], env=environment) for _ in range(3)
    ]
    assert [reader.wait(timeout=20) for reader in readers] == [0, 0, 0]
    ledger = Ledger(ledger_path(path))
    assert count_traffic(ledger.connection, "message") == [("agent_to_server", "ping", 500, 20000)]
    ledger.close()


def test_a_reader_killed_in_the_middle_neither_loses_nor_doubles(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    message = message_seen(T0, "files", "1", "agent_to_server", "request", "ping", 40)
    for _ in range(20):
        write(path, [message] * 500)
    code = (
        "import sys; from pathlib import Path; from thoughtgate.record import ledger; "
        "ledger.BATCH_LINES = 100; path = Path(sys.argv[1]); "
        "one = ledger.Ledger(ledger.ledger_path(path)); print('up', flush=True); one.ingest(path)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], env=environment, stdout=subprocess.PIPE
    )
    assert reader.stdout is not None
    read_line(reader.stdout)
    ledger = Ledger(ledger_path(path))
    wait_for(lambda: bool(count_traffic(ledger.connection, "message")))
    reader.send_signal(signal.SIGKILL)
    reader.wait(timeout=10)
    reader.stdout.close()
    ledger.ingest(path)
    assert count_traffic(ledger.connection, "message")[0][2] == 10_000
    ledger.close()


def test_a_file_that_comes_back_is_read_before_those_that_follow_it(tmp_path: Path) -> None:
    path, aside = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.000001"
    away = tmp_path / "away"
    write(aside, [*call(1), started("run-1.9")])
    write(path, [*call(2), decided("run-1.9")])
    fresh = Ledger(tmp_path / "fresh")
    fresh.ingest(path)
    aside.rename(away)
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    away.rename(aside)
    ledger.ingest(path)
    assert dumped(ledger) == dumped(fresh)
    aside.unlink()
    ledger.ingest(path)
    found = {row["call_id"] for row in find_calls(ledger.connection, CallFilter())}
    assert found == {"run-1.2", "run-1.9"}
    ledger.close()
    fresh.close()


def dumped(ledger: Ledger) -> list[object]:
    """Return everything that a ledger holds."""
    tables = ("files", "faults", "calls", "traffic")
    return [ledger.connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables]


def test_calls_that_are_too_old_are_forgotten_to_the_day(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    day = T0 // 86_400 * 86_400
    write(path, [started("c.1", day - 10.0), started("c.2", day + 10.0, preview="kept")])
    write(path, [message_seen(day - 60.0, "s", "1", "agent_to_server", "request", "x", 9)])
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    ledger.forget_before(day + 100.0)

    assert [call["call_id"] for call in find_calls(ledger.connection, CallFilter())] == ["c.2"]
    assert len(find_calls(ledger.connection, CallFilter(text="kept"))) == 1
    assert count_traffic(ledger.connection, "message") == []
    assert ledger.ingest(path).events == 0
    ledger.close()
