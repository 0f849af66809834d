"""Verifying the records of all gates from the ledger that they share."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.postgres import PostgresServer
from tests.support.shared_ledgers import Writer

from thoughtgate.record.shared_ledger import SharedLedger
from thoughtgate.record.shared_verification import OwnRecord, verify_shared
from thoughtgate.record.verification import (
    BEGINS,
    EDITED,
    FORKED,
    MISSING,
    NOT_COMPARED,
    NOT_STORED,
    REMOVED,
    REPLACED,
    RecordFinding,
)

Three = tuple[Writer, Writer, Writer]


@pytest.fixture
def gates(shared: SharedLedger, tmp_path: Path) -> Three:
    """Return three gates whose records are in the shared."""
    made = Writer(tmp_path, "a"), Writer(tmp_path, "b"), Writer(tmp_path, "c")
    for gate in made:
        for _ in range(3):
            gate.call(2)
            gate.ship(shared)
    return made


def faults(shared: SharedLedger) -> list[tuple[str, RecordFinding]]:
    """Return the faults with the writers in whose records they are."""
    return [
        (one.writer, finding)
        for one in verify_shared(shared)
        for finding in one.report.findings
        if finding.is_fault
    ]


def named(shared: SharedLedger) -> set[tuple[str, str]]:
    """Return the writers with faults, and the kinds."""
    return {(writer, finding.kind) for writer, finding in faults(shared)}


def notes(shared: SharedLedger) -> set[tuple[str, str]]:
    return {
        (one.writer, finding.kind)
        for one in verify_shared(shared)
        for finding in one.report.findings
        if not finding.is_fault
    }


def test_records_that_nobody_touched_are_sound(shared: SharedLedger, gates: Three) -> None:
    reports = verify_shared(shared)

    assert not faults(shared)
    assert [(one.writer, one.report.lines) for one in reports] == [
        (gate.name, len(gate.lines())) for gate in gates
    ]


def test_an_edited_line_is_named(shared: SharedLedger, gates: Three) -> None:
    lines = gates[1].lines()
    lines[4] = lines[4].replace(b"read_file", b"wipe_file")
    gates[1].put(lines)

    ((writer, found),) = faults(shared)
    assert (writer, found.kind, found.line) == ("b", EDITED, 5)
    assert found.file == str(gates[1].path)


def test_lines_that_were_cut_off_are_named(shared: SharedLedger, gates: Three) -> None:
    gates[2].put(gates[2].lines()[:-4])

    ((writer, found),) = faults(shared)
    assert (writer, found.kind, found.line) == ("c", MISSING, len(gates[2].lines()) + 1)
    assert "4 lines" in found.message


def test_a_removed_file_is_named(shared: SharedLedger, gates: Three) -> None:
    gates[0].path.unlink()

    assert named(shared) == {("a", REMOVED)}


def test_a_running_gate_tells_everybody_that_its_file_is_gone(
    shared: SharedLedger, gates: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates[0].path.unlink()
    assert gates[0].shipper.has_news()
    gates[0].ship(shared)
    assert not gates[0].shipper.has_news()
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")

    assert named(shared) == {("a", REMOVED)}


def test_a_file_that_begins_anew_is_named(shared: SharedLedger, gates: Three) -> None:
    gates[0].path.unlink()
    gates[0].call(2)
    gates[0].ship(shared, gates[0].new_shipper())

    assert ("a", REPLACED) in named(shared)
    assert {writer for writer, _ in named(shared)} == {"a"}


def test_swapped_files_are_named(shared: SharedLedger, gates: Three, tmp_path: Path) -> None:
    gates[0].path.rename(tmp_path / "swap")
    gates[1].path.rename(gates[0].path)
    (tmp_path / "swap").rename(gates[1].path)

    assert named(shared) == {("a", REPLACED), ("b", REPLACED)}
    first, second = (found.message for _, found in faults(shared))
    assert str(gates[1].path) in first
    assert str(gates[0].path) in second


def test_swapped_files_are_named_when_the_gates_went_on(
    shared: SharedLedger, gates: Three, tmp_path: Path
) -> None:
    gates[0].path.rename(tmp_path / "swap")
    gates[1].path.rename(gates[0].path)
    (tmp_path / "swap").rename(gates[1].path)
    for gate in gates:
        gate.call()
        gate.ship(shared, gate.new_shipper())

    assert {("a", REPLACED), ("b", REPLACED)} <= named(shared)
    assert "c" not in {writer for writer, _ in named(shared)}


def test_a_forked_record_is_named(shared: SharedLedger, gates: Three, tmp_path: Path) -> None:
    copy = Writer(tmp_path, "copy")
    shutil.copy(gates[0].path, copy.path)
    copy.name = gates[0].name
    copy.shipper = copy.new_shipper()
    gates[0].call(2)
    copy.call(3)
    gates[0].ship(shared)
    copy.ship(shared)
    gates[0].call(2)
    copy.call(2)
    gates[0].ship(shared)
    copy.ship(shared)

    assert {("a", FORKED)} <= named(shared)
    assert {writer for writer, _ in named(shared)} == {"a"}
    assert len(shared.files()) == 4


@pytest.mark.parametrize(("change", "kind"), [("cut", FORKED), ("edit", EDITED)])
def test_a_file_that_was_changed_while_its_gate_was_stopped_stays_named(
    shared: SharedLedger, gates: Three, change: str, kind: str
) -> None:
    lines = gates[0].lines()
    gates[0].put(lines[:-3] if change == "cut" else [*lines[:-1], lines[-1].replace(b"OK", b"KO")])
    again = gates[0].new_shipper()
    gates[0].ship(shared, again)
    gates[0].call()
    gates[0].ship(shared, again)

    assert ("a", kind) in named(shared)
    assert {writer for writer, _ in named(shared)} == {"a"}


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("DELETE FROM {}.record_chunks WHERE file = 2 AND start = 0", REMOVED),
        ("DELETE FROM {}.record_chunks WHERE file = 2 AND start > 0", MISSING),
        (
            (
                "UPDATE {}.record_chunks SET data = convert_to(replace(convert_from(data, 'UTF8'), "
                "'read_file', 'wipe_file'), 'UTF8') WHERE file = 2 AND start = 0"
            ),
            EDITED,
        ),
    ],
)
def test_a_change_of_the_ledger_itself_is_named(
    postgres: PostgresServer, shared: SharedLedger, gates: Three, statement: str, kind: str
) -> None:
    (schema,) = shared.database.read("SELECT current_schema()")[0]
    postgres.execute(statement.format(schema))

    assert ("b", kind) in named(shared)
    assert {writer for writer, _ in named(shared)} == {"b"}


def test_what_is_not_stored_yet_is_a_note(shared: SharedLedger, gates: Three) -> None:
    gates[0].call()

    assert not faults(shared)
    assert ("a", NOT_STORED) in notes(shared)


def test_a_state_directory_that_is_gone_is_a_note(shared: SharedLedger, gates: Three) -> None:
    shutil.rmtree(gates[0].state)

    assert not faults(shared)
    assert ("a", NOT_COMPARED) in notes(shared)


def test_deleting_what_is_too_old_is_no_fault(shared: SharedLedger, gates: Three) -> None:
    gates[0].call(2, later=5000.0)
    gates[0].ship(shared)
    shared.retain(before=1_760_003_000.0, now=1_760_009_000.0)

    assert not faults(shared)
    assert ("a", BEGINS) in notes(shared)
    assert [one.report.lines for one in verify_shared(shared)] == [6, 0, 0]


def test_a_rotated_file_that_is_no_longer_kept_is_a_note(
    shared: SharedLedger, tmp_path: Path
) -> None:
    gate = Writer(tmp_path, "a", rotate_bytes=4000)
    gate.call(12)
    gate.ship(shared)
    Path(f"{gate.path}.000001").unlink()

    assert not faults(shared)
    assert ("a", BEGINS) in notes(shared)


def test_a_rotated_file_between_others_is_named(shared: SharedLedger, tmp_path: Path) -> None:
    gate = Writer(tmp_path, "a", rotate_bytes=4000)
    gate.call(12)
    gate.ship(shared)
    Path(f"{gate.path}.000002").unlink()

    assert named(shared) == {("a", REMOVED)}


def test_the_lines_are_counted_while_they_are_read(shared: SharedLedger, gates: Three) -> None:
    counts: list[int] = []
    report: Callable[[int], None] = counts.append
    verify_shared(shared, watch=report)

    assert max(counts) == len(gates[0].lines())


@pytest.mark.promise("edited-record-is-found")
@pytest.mark.parametrize("column", ["host", "directory", "host = 'elsewhere', directory"])
def test_no_row_of_the_ledger_keeps_a_record_here_from_being_compared(
    shared: SharedLedger, gates: Three, column: str
) -> None:
    lines = gates[1].lines()
    lines[4] = lines[4].replace(b"read_file", b"wipe_file")
    gates[1].put(lines)
    with shared.database.write() as transaction:
        statement = f"UPDATE record_files SET {column} = '/elsewhere' WHERE writer = 'b'"
        transaction.execute(statement)

    reports = verify_shared(shared, here=OwnRecord(gates[1].state, gates[1].path))
    found = {(one.writer, each.kind) for one in reports for each in one.report.findings}

    assert ("b", EDITED) in found


def test_a_record_here_that_the_ledger_lacks_is_named(shared: SharedLedger, gates: Three) -> None:
    with shared.database.write() as transaction:
        transaction.execute("DELETE FROM record_files WHERE writer = 'b'")

    reports = verify_shared(shared, here=OwnRecord(gates[1].state, gates[1].path))
    (report,) = [one.report for one in reports if one.writer == "b"]

    assert [(each.kind, each.file) for each in report.findings] == [
        (NOT_STORED, str(gates[1].path))
    ]
    assert "deleted" in report.findings[0].message
