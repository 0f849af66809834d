"""The files of all gates in the ledger that they share."""

from pathlib import Path

import pytest
from tests.support.records import T0
from tests.support.shared_ledgers import Writer

from thoughtgate.core.envelope import GENESIS
from thoughtgate.errors import StoreError
from thoughtgate.record.call_rows import CALL_COLUMNS
from thoughtgate.record.ledger_index import index_ledger
from thoughtgate.record.ledger_queries import CallFilter, find_calls
from thoughtgate.record.shared_ledger import (
    Chunk,
    NewFile,
    SharedLedger,
    open_shared_ledger,
    shared_ledger,
)
from thoughtgate.stores.open_database import StoreLocation

PLACE = NewFile("w", "host", "/state", "/state/audit.jsonl", 1, "head", GENESIS)


def chunk(start: int, data: bytes, at: float = T0) -> Chunk:
    return Chunk(start, start // 4, f"chain{start}", at, at, 0, data)


def test_a_chunk_is_stored_only_at_the_position_that_it_continues(shared: SharedLedger) -> None:
    file = shared.add_file(PLACE)
    moved = shared.append(file, PLACE, chunk(0, b"abc\n"))

    assert moved is not None
    assert (moved.size, moved.lines, moved.chain) == (4, 1, "chain0")
    assert shared.append(file, PLACE, chunk(0, b"xyz\n")) is None
    assert [one.data for one in shared.chunks(file.id)] == [b"abc\n"]
    assert shared.files() == [moved]


def test_chunks_are_read_in_order_in_small_portions(shared: SharedLedger) -> None:
    file = shared.add_file(PLACE)
    big = b"x" * 700_000 + b"\n"
    for _ in range(3):
        moved = shared.append(file, PLACE, chunk(file.size, big))
        assert moved is not None
        file = moved

    starts = [one.start for one in shared.chunks(file.id)]
    assert starts == [0, len(big), 2 * len(big)]
    assert [one.start for one in shared.chunks(file.id, 1, 2 * len(big))] == [len(big)]
    assert [one.start for one in shared.last_chunks(file.id, 2**62, 2)] == starts[:0:-1]


def test_a_branch_begins_after_the_common_chunk(shared: SharedLedger) -> None:
    file = shared.add_file(PLACE)
    shared.append(file, PLACE, chunk(0, b"abc\n"))
    branch = shared.add_file(PLACE, (file.id, chunk(0, b"abc\n")))

    assert (branch.branch_of, branch.branch_at, branch.size) == (file.id, 4, 4)
    assert (branch.lines, branch.chain) == (1, "chain0")
    assert [one.id for one in shared.files_with("head")] == [file.id, branch.id]


def test_what_is_too_old_is_deleted_and_the_file_says_so(
    shared: SharedLedger, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a")
    gate.call(3)
    gate.ship(shared)
    gate.call(2, later=1000.0)
    gate.ship(shared)
    index_ledger(shared)
    shared.retain(T0 + 500, T0 + 2000)

    (file,) = shared.files()
    assert (file.cut_lines, file.cut_at, file.lines) == (9, T0 + 2000, 15)
    assert [one.lines_before for one in shared.chunks(file.id)] == [9]
    found = [call["call_id"] for call in find_calls(shared.connection, CallFilter())]
    assert found == ["run-a.5", "run-a.4"]
    assert shared.database.read("SELECT count(*) FROM call_words") == [(2,)]
    shared.retain(T0 + 9000, T0 + 9000)
    assert not list(shared.chunks(file.id))
    assert shared.files()[0].cut_size == file.size


def test_its_tables_have_the_columns_of_a_call(shared: SharedLedger) -> None:
    rows = shared.database.read(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'calls' "
        "AND table_schema = current_schema() ORDER BY ordinal_position"
    )

    names = [column.name for column in CALL_COLUMNS]
    # Columns that were added later come after the file.
    assert sorted(name for (name,) in rows) == sorted(["id", *names, "file"])


def test_only_a_shared_store_has_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="postgresql://"):
        open_shared_ledger(StoreLocation(tmp_path))
    with pytest.raises(StoreError), shared_ledger(StoreLocation(tmp_path)):
        pass
