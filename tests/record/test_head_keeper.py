"""What was cut off the end of a record is found, and a kill is not taken for a cut."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.records import RUN, T0, call, ended

from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.errors import StoreError
from thoughtgate.record.file import is_written, rotated_files
from thoughtgate.record.head_keeper import HeadKeeper
from thoughtgate.record.reader import verify_record
from thoughtgate.record.verification import MISSING, REMOVED, Verification
from thoughtgate.record.writer import RecordWriter
from thoughtgate.stores.engines.sqlite import FILE_NAME
from thoughtgate.stores.record_heads import find_head


def write(state: Path, calls: int, *, run: Run = RUN, **more: Any) -> Path:
    path = state / "audit.jsonl"
    heads = HeadKeeper(state)
    writer = RecordWriter(path, Envelope(run), heads=heads, **more)
    for number in range(1, calls + 1):
        writer.write(call(number))
    writer.close()
    heads.close()
    return path


def verified(path: Path) -> Verification:
    return verify_record(path, heads=partial(find_head, path.parent))


def missing(path: Path) -> str:
    (found,) = [one for one in verified(path).findings if one.kind == MISSING]
    return found.message


def test_a_whole_record_is_sound(tmp_path: Path) -> None:
    path = write(tmp_path, 5)
    write(tmp_path, 5, run=Run("run-2"))
    assert verified(path).findings == ()


@pytest.mark.promise("cut-tail-is-found")
@pytest.mark.parametrize("kept", [0, 1, 7, 14])
def test_lines_that_were_cut_off_within_the_last_run_are_counted(tmp_path: Path, kept: int) -> None:
    path = write(tmp_path, 5)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:kept]))
    assert verify_record(path).is_sound  # the chain alone does not show it
    told = missing(path)
    gone = len(lines) - kept
    assert told.startswith(f"{gone} line{'' if gone == 1 else 's'} or more")
    assert not kept or f"after line {kept}:" in told
    assert not verified(path).is_sound


@pytest.mark.promise("cut-tail-is-found")
def test_a_record_that_was_removed_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, 5)
    path.unlink()
    assert missing(path).startswith("15 lines or more are missing: a gate wrote this file")
    with pytest.raises(StoreError):
        verify_record(path)


@pytest.mark.promise("cut-tail-is-found")
def test_a_record_that_was_rewritten_as_a_whole_is_found(tmp_path: Path) -> None:
    path = write(tmp_path, 5)
    path.unlink()
    writer = RecordWriter(path, Envelope(RUN))
    for number in range(11, 16):
        writer.write(call(number))
    writer.close()
    assert "the record was rewritten" in missing(path)


def cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-4]))


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.promise("cut-tail-is-found")
@pytest.mark.parametrize("spoil", [cut, empty, Path.unlink])
def test_the_next_gate_says_on_the_record_what_was_missing(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = write(tmp_path, 5)
    spoil(path)
    # Longer than before, so that the size alone would not show it.
    write(tmp_path, 10, run=Run("run-2"))
    report = verified(path)
    assert [one.kind for one in report.findings if one.is_fault] == [REMOVED]
    write(tmp_path, 1, run=Run("run-3"))
    assert [one.kind for one in verified(path).findings if one.is_fault] == [REMOVED]


def test_a_file_that_is_ahead_of_its_head_is_sound(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    # As after a kill between the write and the next transaction.
    writer = RecordWriter(path, Envelope(Run("run-2")))
    writer.write(call(1))
    writer.close()
    assert verified(path).findings == ()
    write(tmp_path, 1, run=Run("run-3"))
    assert verified(path).findings == ()


def test_rotation_and_retention_explain_missing_files(tmp_path: Path) -> None:
    path = write(tmp_path, 60, rotate_bytes=4000, keep=2)
    assert verified(path).is_sound
    head = find_head(tmp_path, path)
    assert head is not None
    assert head.number > 3
    # A head that is far behind, in a file that the retention limits removed: no gate with this
    # state directory wrote the record, so nothing tells it from one that was replaced.
    writer = RecordWriter(path, Envelope(Run("run-2")), rotate_bytes=4000, keep=2)
    for number in range(1, 60):
        writer.write(call(number))
    writer.close()
    assert [one.kind for one in verified(path).findings if one.is_fault] == [MISSING]
    write(tmp_path, 1, run=Run("run-3"), rotate_bytes=4000, keep=2)
    assert [one.kind for one in verified(path).findings if one.is_fault] == [REMOVED]


@pytest.mark.promise("cut-tail-is-found")
def test_a_later_rotated_file_does_not_explain_that_the_record_is_gone(tmp_path: Path) -> None:
    path = write(tmp_path, 5)
    path.unlink()
    # As if the retention limits had removed everything before it.
    path.with_name("audit.jsonl.000099").write_bytes(b"")
    write(tmp_path, 5, run=Run("run-2"))
    assert REMOVED in [one.kind for one in verified(path).findings if one.is_fault]


def test_retention_never_removes_the_file_that_the_stored_head_names(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    heads = HeadKeeper(tmp_path)
    writer = RecordWriter(path, Envelope(RUN), heads=heads, rotate_bytes=1000, keep=1)
    for number in range(1, 30):
        writer.write(call(number))
        head = find_head(tmp_path, path)
        assert head is None or is_written(path, head.number, head.size, head.chain)
    heads.save()
    for number in range(30, 33):
        writer.write(call(number))
    assert len(rotated_files(path)) < 15
    writer.close()
    heads.close()
    assert verified(path).is_sound


@pytest.mark.promise("cut-tail-is-found")
@pytest.mark.parametrize("number", ["9" * 20, "٩" * 6])
def test_a_number_in_a_file_name_that_is_not_ours_does_not_stop_the_heads(
    tmp_path: Path, number: str
) -> None:
    (tmp_path / f"audit.jsonl.{number}").write_bytes(b"")
    path = write(tmp_path, 5)
    cut(path)
    assert missing(path)


def test_two_gates_that_write_one_record_keep_one_head(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    keepers = [HeadKeeper(tmp_path) for _ in range(2)]
    writers = [
        RecordWriter(path, Envelope(Run(f"run-{number}")), heads=keeper)
        for number, keeper in enumerate(keepers)
    ]
    for number in range(1, 10):
        for writer in writers:
            writer.write(call(number))
    for writer, keeper in zip(writers, keepers, strict=True):
        writer.close()
        keeper.close()
    assert verified(path).findings == ()
    head = find_head(tmp_path, path)
    assert head is not None
    assert head.size == path.stat().st_size


def test_a_store_that_cannot_be_written_is_reported_once_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    told: list[str] = []
    heads = HeadKeeper(tmp_path, told.append)
    writer = RecordWriter(tmp_path / "audit.jsonl", Envelope(RUN), heads=heads)
    writer.write([ended("run-1.1", T0)])
    heads.save()
    writer.close()
    heads.close()
    assert len(told) == 1
    assert verify_record(tmp_path / "audit.jsonl").lines == 1


def put_a_link_in_its_place(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.with_name("other.jsonl").write_bytes(b"")
    path.symlink_to("other.jsonl")


@pytest.mark.promise("cut-tail-is-found")
@pytest.mark.parametrize("more", [0, 1, 30])
@pytest.mark.parametrize("spoil", [cut, empty, Path.unlink, put_a_link_in_its_place])
def test_what_is_removed_while_its_gate_runs_is_found(
    tmp_path: Path, spoil: Callable[[Path], None], more: int
) -> None:
    path = tmp_path / "audit.jsonl"
    heads = HeadKeeper(tmp_path)
    writer = RecordWriter(path, Envelope(RUN), heads=heads)
    for number in range(1, 6):
        writer.write(call(number))
    heads.save()
    spoil(path)
    for number in range(6, 6 + more):
        writer.write(call(number))
    writer.close()
    heads.close()
    assert not verified(path).is_sound


@pytest.mark.promise("cut-tail-is-found")
@pytest.mark.parametrize("more", [0, 1, 30])
def test_a_gate_that_runs_longer_does_not_cover_up_that_the_run_of_another_was_cut_off(
    tmp_path: Path, more: int
) -> None:
    path = tmp_path / "audit.jsonl"
    heads = HeadKeeper(tmp_path)
    writer = RecordWriter(path, Envelope(Run("long")), heads=heads)
    writer.write(call(1))
    heads.save()
    size = path.stat().st_size
    write(tmp_path, 5, run=Run("short"))
    os.truncate(path, size)
    for number in range(2, 2 + more):
        writer.write(call(number))
    writer.close()
    heads.close()
    assert not verified(path).is_sound


def test_a_rotation_that_was_killed_halfway_is_not_taken_for_a_cut(tmp_path: Path) -> None:
    path = write(tmp_path, 5)
    path.with_name("audit.jsonl.000001").hardlink_to(path)
    write(tmp_path, 5, run=Run("run-2"))
    write(tmp_path, 5, run=Run("run-3"), rotate_bytes=1000)
    write(tmp_path, 5, run=Run("run-4"))
    assert verified(path).is_sound
