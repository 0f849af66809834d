from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.records import write_run

from thoughtgate.errors import StoreError
from thoughtgate.stores import record_reader
from thoughtgate.stores.record_reader import (
    read_lines,
    read_record,
    record_files,
    verify_record,
)


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


def test_a_line_without_end_is_read_in_bounded_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_reader, "MAX_LINE", 1000)
    monkeypatch.setattr(record_reader, "_CHUNK", 400)
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"a" * 2500 + b"\nb\n")
    lines = list(read_lines(path))
    assert [len(line.data) for line in lines] == [1000, 1000, 100, 1]
    assert not lines[0].ended


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
