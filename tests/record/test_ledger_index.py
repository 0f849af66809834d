"""Rows for queries from the lines of the shared ledger."""

from pathlib import Path
from typing import Any

from tests.support.records import T0, decided, ended, started
from tests.support.shared_ledgers import Writer

from thoughtgate.core.record_events import message_seen
from thoughtgate.record.ledger_index import clean, index_ledger
from thoughtgate.record.ledger_queries import CallFilter, count_messages, find_calls
from thoughtgate.record.shared_ledger import SharedLedger


def calls(ledger: SharedLedger, **wanted: Any) -> list[str]:
    return [call["call_id"] for call in find_calls(ledger.connection, CallFilter(**wanted))]


def test_calls_of_all_gates_are_found(shared: SharedLedger, tmp_path: Path) -> None:
    gates = [Writer(tmp_path, name) for name in "abc"]
    for gate in gates:
        gate.call(2)
        gate.ship(shared)

    assert index_ledger(shared) == 18
    assert sorted(calls(shared)) == [f"run-{name}.{n}" for name in "abc" for n in (1, 2)]
    assert index_ledger(shared) == 0


def test_lines_are_indexed_once_whoever_does_it(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a")
    gate.write(*(message_seen(T0, "s", "1", "agent_to_server", "request", "x", 9),) * 3)
    gate.ship(shared)
    before = shared.files()
    assert index_ledger(shared) == 3
    assert index_ledger(shared, before) == 0  # as another process that was slower

    assert count_messages(shared.connection, CallFilter()) == 3


def test_events_of_a_call_meet_in_one_row(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a")
    parts = (
        started("c.1", T0, preview='{"q":"first"}'),
        decided("c.1", T0, action="ALLOW"),
        ended("c.1", T0 + 1, status="ERROR", error={"class": "x", "message": "Disk is full"}),
    )
    for part in parts:
        gate.write(part)
        gate.ship(shared)
        index_ledger(shared)

    (call,) = find_calls(shared.connection, CallFilter())
    assert (call["decision"], call["status"], call["preview"]) == (
        "ALLOW",
        "ERROR",
        '{"q":"first"}',
    )
    assert calls(shared, text="first") == ["c.1"]
    assert calls(shared, text="disk is fu") == ["c.1"]


def test_a_zero_byte_or_a_foreign_line_stops_nothing(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a")
    gate.write(started("c.1", T0, preview="nul \0 here", tool="t\0"))
    with gate.path.open("ab") as file:
        file.write(b"\xff\xfe garbage\n" + b'{"type": 7}\n')
    gate.write(started("c.2", T0 + 1))
    gate.ship(shared)
    index_ledger(shared)

    assert calls(shared) == ["c.2", "c.1"]
    assert calls(shared, text="nul")[0] == "c.1"


def test_other_threads_get_their_turn(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a")
    gate.call(40)
    gate.ship(shared)
    turns: list[int] = []
    seen: list[tuple[int, int]] = []
    index_ledger(
        shared, pace=lambda: turns.append(1), watch=lambda done, left: seen.append((done, left))
    )

    assert len(turns) >= 3
    assert seen[-1][0] == seen[-1][1] == gate.path.stat().st_size


def test_only_texts_are_cleaned() -> None:
    assert [clean(value) for value in ("a\0b", 7, None)] == ["a\\x00b", 7, None]
