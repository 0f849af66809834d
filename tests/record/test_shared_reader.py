"""Reading the records of all gates from the ledger that they share."""

from pathlib import Path

from tests.support.shared_ledgers import Writer

from thoughtgate.record.call_rows import event_time
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.ledger_queries import find_call
from thoughtgate.record.shared_ledger import SharedLedger
from thoughtgate.record.shared_reader import (
    SharedFollower,
    call_events,
    newest_events,
    read_shared,
)


def two(shared: SharedLedger, tmp_path: Path) -> tuple[Writer, Writer]:
    one, other = Writer(tmp_path, "a"), Writer(tmp_path, "b", rotate_bytes=4000)
    for _ in range(4):
        for gate in (one, other):
            gate.call(2)
            gate.ship(shared)
    return one, other


def test_all_events_are_read_by_time(shared: SharedLedger, tmp_path: Path) -> None:
    two(shared, tmp_path)
    entries = list(read_shared(shared))
    times = [event_time(entry.event) for entry in entries]
    # A file that continues another begins with a line of its own.
    calls = [entry for entry in entries if "call" in entry.event]

    assert times == sorted(times)
    assert len(calls) == 2 * 8 * 3
    assert not any(entry.fault for entry in entries)


def test_the_newest_events_are_those_of_all_gates(shared: SharedLedger, tmp_path: Path) -> None:
    two(shared, tmp_path)
    ends = newest_events(shared, lambda event: event["type"] == "tool_call_end", 3)
    every = newest_events(shared, lambda _: True, 1000)

    first, *last = [event["call"]["call_id"] for event in ends]
    assert sorted(last) == ["run-a.8", "run-b.8"]
    assert first in {"run-a.7", "run-b.7"}
    assert len(every) >= 48
    assert newest_events(shared, lambda _: True, 0) == []


def test_a_follower_sees_what_is_new(shared: SharedLedger, tmp_path: Path) -> None:
    one, other = two(shared, tmp_path)
    follower = SharedFollower(shared)
    assert follower.read() == []
    for gate in (one, other):
        gate.call()
        gate.ship(shared)

    found = [event["call"]["call_id"] for event in follower.read() if "call" in event]
    assert sorted(set(found)) == ["run-a.9", "run-b.9"]
    assert follower.read() == []


def test_the_events_of_one_call_are_found(shared: SharedLedger, tmp_path: Path) -> None:
    two(shared, tmp_path)
    index_ledger(shared)
    (call,) = find_call(shared.connection, "run-b.5")
    ((file,),) = shared.database.read("SELECT file FROM calls WHERE call_id = ?", ("run-b.5",))

    events = call_events(shared, call, file, 200)
    assert [event["type"] for event in events] == [
        "tool_call_start",
        "tool_call_decision",
        "tool_call_end",
    ]
