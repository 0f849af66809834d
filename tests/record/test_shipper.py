"""Copying a record to the ledger that gates share."""

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.postgres import PostgresServer
from tests.support.records import T0
from tests.support.shared_ledgers import Writer, stored_bytes
from tests.support.waiting import wait_for

from thoughtgate.record.file import traffic_path
from thoughtgate.record.shared_ledger import SharedLedger, shared_ledger
from thoughtgate.record.shipper import (
    Pace,
    RecordShipper,
    Stopped,
    is_shipped,
    shipping_path,
)
from thoughtgate.stores.open_database import StoreLocation


def test_the_ledger_gets_every_byte_once(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a")
    for _ in range(3):
        gate.call(2)
        gate.ship(shared)

    assert stored_bytes(shared, gate.path) == gate.path.read_bytes()
    (file,) = shared.files()
    assert (file.writer, file.lines) == ("a", len(gate.lines()))


def test_a_gate_that_starts_again_copies_the_rest(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a")
    gate.call(2)
    gate.ship(shared)
    gate.call(2)
    gate.ship(shared, gate.new_shipper())

    assert stored_bytes(shared, gate.path) == gate.path.read_bytes()
    assert len(shared.files()) == 1


def test_two_processes_of_one_state_directory_copy_nothing_twice(
    shared: SharedLedger, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a")
    other = gate.new_shipper()
    for shipper in (gate.shipper, other, gate.shipper, other):
        gate.call()
        gate.ship(shared, shipper)

    assert stored_bytes(shared, gate.path) == gate.path.read_bytes()
    assert len(shared.files()) == 1


def test_rotated_files_are_copied_in_order(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a", rotate_bytes=4000)
    gate.call(3)
    gate.ship(shared)
    gate.call(9)
    gate.ship(shared)
    gate.shipper.save_progress()

    files = shared.files()
    assert [file.number for file in files] == list(range(1, len(files) + 1))
    assert len(files) > 2
    assert _is_copied(shared, gate)
    assert is_shipped(gate.path, len(files) - 1)
    assert not is_shipped(gate.path, len(files))
    assert shipping_path(gate.path).exists()


def _started(gate: Writer, location: StoreLocation, **options: Any) -> RecordShipper:
    shipper = RecordShipper(gate.path, location, gate.name, **options)
    shipper.start()
    return shipper


def _is_copied(shared: SharedLedger, gate: Writer) -> bool:
    return bool(gate.whole()) and stored_bytes(shared, gate.path) == gate.whole()


def test_a_thread_copies_what_is_written(
    shared: SharedLedger, location: StoreLocation, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a")
    shipper = _started(gate, location)
    try:
        gate.call(3)
        wait_for(lambda: _is_copied(shared, gate))
        wait_for(lambda: shared.files()[0].indexed == gate.path.stat().st_size)
        gate.call()
    finally:
        shipper.close()

    assert _is_copied(shared, gate)


def test_traffic_is_copied_too(
    shared: SharedLedger, location: StoreLocation, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a")
    gate.call()
    other = Writer(tmp_path, "other")
    other.call()
    other.path.rename(traffic_path(gate.path))
    _started(gate, location).close()

    assert {Path(file.path).name for file in shared.files()} == {
        "audit.jsonl",
        "audit.traffic.jsonl",
    }


def test_one_process_copies_and_another_takes_over(
    shared: SharedLedger, location: StoreLocation, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a")
    gate.call()
    first = _started(gate, location)
    wait_for(lambda: _is_copied(shared, gate))
    second = _started(gate, location)
    gate.call()
    first.close()
    gate.call()
    wait_for(lambda: _is_copied(shared, gate))
    second.close()

    assert len(shared.files()) == 1


def test_a_database_that_is_away_loses_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    server = PostgresServer()
    try:
        server.start()
        url = server.url("ledger")
        gate = Writer(tmp_path, "a", rotate_bytes=3000)
        location = StoreLocation(tmp_path, url)
        shipper = _started(gate, location, say=said.append)
        gate.call(2)
        with shared_ledger(location) as shared:
            wait_for(lambda: _is_copied(shared, gate))
        server.stop(signal.SIGQUIT)
        gate.call(9)
        wait_for(lambda: said, what="a message that the ledger is away")
        assert not is_shipped(gate.path, 2)
        server.start()
        gate.call()
        wait_for(lambda: len(said) == 2, what="a message that the ledger is back")
        shipper.close()
        with shared_ledger(location) as shared:
            assert _is_copied(shared, gate)
    finally:
        server.remove()
    assert "wait to be copied" in said[0]
    assert "again" in said[1]
    assert url not in "".join(said)


def test_what_is_too_old_is_deleted_from_the_ledger(
    shared: SharedLedger, location: StoreLocation, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a")
    gate.call(2)
    gate.ship(shared)
    gate.call(2, later=time.time() - T0)
    shipper = _started(gate, location, retain_s=86_400.0)
    try:
        wait_for(lambda: shared.files()[0].cut_lines == 6)
    finally:
        shipper.close()

    (file,) = shared.files()
    assert [chunk.lines_before for chunk in shared.chunks(file.id)] == [6]


def test_the_end_of_a_complete_file_is_copied_even_if_it_is_no_line(
    shared: SharedLedger, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a", rotate_bytes=4000)
    gate.call(9)
    rotated = Path(f"{gate.path}.000001")
    with rotated.open("ab") as file:
        file.write(b"half a li")
    gate.ship(shared)

    assert _is_copied(shared, gate)


def test_a_line_that_is_not_finished_waits(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a")
    gate.call()
    whole = gate.path.read_bytes()
    gate.path.write_bytes(whole + b'{"v":')
    gate.ship(shared)
    assert stored_bytes(shared, gate.path) == whole

    gate.call()
    gate.ship(shared)
    assert _is_copied(shared, gate)


def test_a_line_that_is_longer_than_any_is_stored_in_parts(
    shared: SharedLedger, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a")
    gate.call()
    with gate.path.open("ab") as file:
        file.write(b"x" * (20 * 1024 * 1024))
        file.write(b"\n")
    gate.ship(shared)

    assert _is_copied(shared, gate)


def test_a_pace_waits_in_proportion_to_the_work() -> None:
    waits: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return False

    pace = Pace(0.5, Stop())
    sum(range(200_000))
    pace.wait()

    assert waits[0] > 0


def test_a_gate_that_stops_does_not_wait_for_the_index() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        Pace(0.5, stop).wait()
