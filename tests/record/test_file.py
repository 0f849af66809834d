import fcntl
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.records import RUN, call, write_run

from thoughtgate.core.envelope import GENESIS, Envelope, Run
from thoughtgate.errors import RecordError
from thoughtgate.record import file as record_file
from thoughtgate.record.file import read_tail, rotated_files
from thoughtgate.record.reader import read_record, record_files, verify_record
from thoughtgate.record.verification import BEGINS
from thoughtgate.record.writer import RecordWriter


def tail_of(path: Path) -> record_file.Tail:
    fd = os.open(path, os.O_RDONLY)
    try:
        return read_tail(fd, path.stat().st_size, str(path))
    finally:
        os.close(fd)


def test_a_full_file_is_put_aside_and_the_chain_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 60, rotate_bytes=10_000, keep=100)
    assert len(rotated_files(path)) > 3
    report = verify_record(path)
    assert report.findings == ()
    calls = [entry.event for entry in read_record(path) if entry.event["type"] == "tool_call_end"]
    assert len(calls) == 60
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in record_files(path))


def test_a_later_file_verified_alone_says_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 60, rotate_bytes=10_000, keep=100)
    report = verify_record(path, rotated=False)
    assert report.is_sound
    assert report.findings[0].kind == BEGINS


def test_the_oldest_files_go_and_verify_says_where_the_record_begins(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 60, rotate_bytes=10_000, keep=2)
    numbers = [number for number, _ in rotated_files(path)]
    assert len(numbers) == 2
    assert numbers[0] > 1
    report = verify_record(path)
    assert report.is_sound
    assert report.findings[0].kind == BEGINS
    assert f"audit.jsonl.{numbers[0] - 1:06d}" in report.findings[0].message


def test_files_are_kept_up_to_a_size_in_all(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 60, rotate_bytes=10_000, keep=0, keep_bytes=25_000)
    assert 1 <= len(rotated_files(path)) <= 2


def test_a_file_missing_in_the_middle_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 60, rotate_bytes=10_000, keep=100)
    rotated_files(path)[2][1].unlink()
    report = verify_record(path)
    assert [finding.kind for finding in report.findings if finding.is_fault] == ["removed"]


def test_a_rotation_cut_short_is_taken_up_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 5)
    aside = tmp_path / "audit.jsonl.000001"
    aside.hardlink_to(path)
    (tmp_path / "audit.jsonl.next").write_bytes(b"left behind")
    assert record_files(path) == [path]
    write_run(path, 5, run=Run("run-2"), rotate_bytes=1000, keep=100)
    report = verify_record(path)
    assert report.findings == ()
    assert [entry.event["type"] for entry in read_record(path)].count("tool_call_end") == 10


def test_a_rotation_that_fails_leaves_the_record_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    (tmp_path / "audit.jsonl.next").mkdir()
    write_run(path, 20, rotate_bytes=2_000)
    assert [entry.event["type"] for entry in read_record(path)].count("tool_call_end") == 20
    assert verify_record(path).is_sound


def test_a_rotation_empties_no_file_that_a_link_leads_to(tmp_path: Path) -> None:
    path, other = tmp_path / "audit.jsonl", tmp_path / "letters"
    other.write_text("dear")
    (tmp_path / "audit.jsonl.next").symlink_to(other)

    write_run(path, 60, rotate_bytes=10_000, keep=100)

    assert other.read_text() == "dear"
    assert not path.is_symlink()
    assert verify_record(path).is_sound


def test_a_lock_that_is_never_given_back_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_file, "LOCK_WAIT_S", 0.05)
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RecordError, match="lock"):
            writer.write(call(1))
    writer.write(call(2))
    writer.close()
    assert verify_record(path).is_sound


def test_a_file_that_is_no_record_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Kim,\nall is well.\n")
    writer = RecordWriter(path, Envelope(RUN))
    with pytest.raises(RecordError, match="not a record"):
        writer.write(call(1))
    writer.close()
    assert path.read_text() == "Dear Kim,\nall is well.\n"


def test_a_record_whose_very_first_line_was_torn_can_go_on(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b'{"v":"1.0","type":"run_st')
    write_run(path, 1)
    report = verify_record(path)
    assert report.is_sound
    assert [finding.kind for finding in report.findings] == ["repaired"]


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 1)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    write_run(path, 1, run=Run("run-2"))
    assert verify_record(path).findings == ()


def test_lines_longer_than_the_first_look_are_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN), rotate_bytes=0)
    writer.write(call(1, preview="z" * 300_000)[:1])
    writer.close()
    assert tail_of(path).torn is None
    write_run(path, 1, run=Run("run-2"))
    assert verify_record(path).findings == ()


def test_an_empty_file_has_the_first_chain(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch()
    assert tail_of(path) == record_file.Tail(GENESIS)


def test_a_closed_file_is_opened_again_by_the_next_append(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN), fsync=True)
    writer.write(call(1))
    writer.close()
    writer.close()
    writer.write(call(2))
    writer.close()
    assert verify_record(path).lines == 6


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_whatever_is_appended_to_a_record_the_next_writer_accounts_for(
    tmp_path_factory: pytest.TempPathFactory, rubbish: bytes, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("record") / "audit.jsonl"
    write_run(path, 1)
    data = path.read_bytes()
    path.write_bytes(data[:-40] if cut else data)
    with path.open("ab") as file:
        file.write(rubbish)
    write_run(path, 1, run=Run("run-2"))
    report = verify_record(path)
    assert report.is_sound, report.findings


def test_files_that_are_too_old_go_but_never_the_current_one(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 60, rotate_bytes=10_000, keep=100)
    old = [file for _, file in rotated_files(path)[:2]]
    for file in [*old, path]:
        os.utime(file, (1_000_000_000, 1_000_000_000))
    write_run(path, 1, run=Run("run-2"), rotate_bytes=10_000, keep=100, retain_s=86_400.0)

    assert not any(file.exists() for file in old)
    assert path.exists()
    assert len(rotated_files(path)) > 1
    report = verify_record(path)
    assert report.is_sound
    assert report.findings[0].kind == BEGINS


def test_files_that_must_be_kept_stay_beyond_every_limit(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    asked: list[int] = []

    def may_remove(record: Path, number: int) -> bool:
        assert record == path
        asked.append(number)
        return number < 3

    write_run(path, 60, rotate_bytes=10_000, keep=1, may_remove=may_remove)

    assert next(number for number, _ in rotated_files(path)) == 3
    assert len(rotated_files(path)) > 1
    assert 3 in asked
