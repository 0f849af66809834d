import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.records import write_run

from thoughtgate.core.envelope import Run
from thoughtgate.errors import StoreError
from thoughtgate.record import reader as record_reader
from thoughtgate.record.reader import (
    read_lines,
    read_record,
    record_files,
    verify_record,
)
from thoughtgate.record.verification import FOREIGN, TOO_LONG


def test_faulty_lines_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 1)
    lines = path.read_bytes().splitlines()
    lines.insert(1, b"not json \xff")
    lines.insert(3, b'["an array"]')
    lines.insert(4, b'{"no":"type"}')
    lines.insert(5, b'{"v":"2.0","type":"from_the_future"}')
    path.write_bytes(b"\n".join(lines) + b'\n\n{"v":"1.0","ty')
    entries = list(read_record(path))
    assert [(entry.line.number, entry.fault) for entry in entries if entry.fault] == [
        (2, "not UTF-8"),
        (4, "not a JSON object"),
        (5, "not an event"),
        (6, "an event of contract 2.0, not 1.x"),
        (11, "cut short"),
    ]
    assert sum(not entry.fault for entry in entries) == 5


def test_a_record_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nothing\.jsonl"):
        record_files(tmp_path / "nothing.jsonl")
    with pytest.raises(StoreError, match="cannot be read"):
        list(read_lines(tmp_path))


def test_a_line_of_any_length_is_one_line_of_which_the_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_reader, "MAX_LINE", 1000)
    monkeypatch.setattr(record_reader, "_CHUNK", 400)
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"a" * 2500 + b"\nb\n" + b"c" * 1700)
    lines = list(read_lines(path))
    assert [(len(line.data), line.left_out) for line in lines] == [
        (1000, 1500),
        (1, 0),
        (1000, 700),
    ]
    assert [line.number for line in lines] == [1, 2, 3]
    assert [line.ended for line in lines] == [True, True, False]
    assert sum(line.size for line in lines) == path.stat().st_size
    assert [entry.fault for entry in read_record(path)] == [TOO_LONG, "not a JSON object", TOO_LONG]


def test_what_stands_behind_a_line_of_the_greatest_length_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 1)
    lines = path.read_bytes().splitlines()
    longest = max(lines, key=len)
    monkeypatch.setattr(record_reader, "MAX_LINE", len(longest))
    assert verify_record(path).is_sound
    at = lines.index(longest)
    lines[at] += b" and more"
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = [(finding.kind, finding.line) for finding in verify_record(path).findings]
    assert found[0] == (FOREIGN, at + 1)


def test_a_torn_line_that_became_longer_than_any_is_not_taken_for_the_one_closed_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 1)
    torn = b'{"v":' + b"x" * 5000
    path.write_bytes(path.read_bytes() + torn)
    write_run(path, 1, run=Run("run-2"))
    monkeypatch.setattr(record_reader, "MAX_LINE", len(torn))
    assert verify_record(path).is_sound
    path.write_bytes(path.read_bytes().replace(torn, torn + b"!"))
    assert not verify_record(path).is_sound


def test_reading_may_begin_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"one\ntwo\nthree\n")
    assert [(line.number, line.data) for line in read_lines(path, 4, 1)] == [
        (2, b"two"),
        (3, b"three"),
    ]


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_no_file_makes_reading_or_verifying_fail(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("record") / "audit.jsonl"
    path.write_bytes(data)
    entries = list(read_record(path))
    assert all(entry.fault or entry.event for entry in entries)
    report = verify_record(path)
    assert report.is_sound == (data.strip(b"\n") == b"" and data == b"")


@pytest.mark.promise("edited-record-is-found")
@pytest.mark.parametrize("read", [verify_record, lambda path: list(read_record(path))])
def test_a_pipe_among_the_files_is_named_and_not_waited_for(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 1)
    os.mkfifo(tmp_path / "audit.jsonl.000001")

    with pytest.raises(StoreError, match=r"audit\.jsonl\.000001.*not a regular file"):
        read(path)
