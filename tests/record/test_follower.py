"""Following a record: what comes, through rotation, from the end of a long file."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.records import write_run

from thoughtgate.record import follower as record_follower
from thoughtgate.record import reader as record_reader
from thoughtgate.record.follower import Follower


def line(number: int, size: int = 0) -> str:
    event = {"v": "1.0", "type": "message", "number": number, "text": "x" * size}
    return json.dumps(event) + "\n"


def numbers(events: Any) -> list[int]:
    return [event["number"] for event in events]


def test_it_reads_on_where_it_stopped(tmp_path: Path) -> None:
    record = tmp_path / "audit.jsonl"
    record.write_text(line(1))
    follower = Follower(record)
    assert numbers(follower.read()) == [1]

    with record.open("a") as stream:
        stream.write(line(2) + line(3)[:-1])
    assert numbers(follower.read()) == [2]

    with record.open("a") as stream:
        stream.write("\n")
    assert numbers(follower.read()) == [3]
    assert numbers(follower.read()) == []


def test_it_follows_through_files_that_are_put_aside(tmp_path: Path) -> None:
    record = tmp_path / "audit.jsonl"
    record.write_text(line(1))
    follower = Follower(record)
    assert numbers(follower.read()) == [1]

    with record.open("a") as stream:
        stream.write(line(2))
    record.rename(tmp_path / "audit.jsonl.000001")
    record.write_text(line(3))

    assert numbers(follower.read()) == [2, 3]


def test_a_record_that_is_not_there_yet_is_read_from_its_start(tmp_path: Path) -> None:
    record = tmp_path / "audit.jsonl"
    follower = Follower(record)
    assert numbers(follower.read()) == []

    record.write_text(line(1))

    assert numbers(follower.read()) == [1]


def test_only_the_end_of_a_long_file_is_read_and_no_half_line(tmp_path: Path) -> None:
    record = tmp_path / "audit.jsonl"
    record.write_text("".join(line(number, 100) for number in range(50)))
    size = len(line(40, 100))
    follower = Follower(record, tail_bytes=3 * size + 10)

    assert numbers(follower.read()) == [47, 48, 49]

    with record.open("a") as stream:
        stream.write(line(50))
    assert numbers(follower.read()) == [50]


def test_it_reads_on_behind_a_line_of_which_only_the_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_reader, "MAX_LINE", 300)
    record = tmp_path / "audit.jsonl"
    record.write_text(line(1, 1000) + line(2))
    follower = Follower(record)
    assert list(follower.read())[1]["number"] == 2

    with record.open("a") as stream:
        stream.write(line(3))
    assert numbers(follower.read()) == [3]


def test_older_files_are_read_first_when_asked_for(tmp_path: Path) -> None:
    record = tmp_path / "audit.jsonl"
    (tmp_path / "audit.jsonl.000001").write_text(line(1))
    record.write_text(line(2))

    assert numbers(Follower(record, rotated=True).read()) == [1, 2]
    assert numbers(Follower(record).read()) == [2]


def test_it_names_the_files_before_the_first_that_it_read(tmp_path: Path) -> None:
    record, aside = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.000001"
    aside.write_text(line(1))
    record.write_text(line(2))
    follower = Follower(record)
    assert follower.older() == []
    assert numbers(follower.read()) == [2]
    assert follower.older() == [aside]

    record.rename(tmp_path / "audit.jsonl.000002")
    record.write_text(line(3))
    assert numbers(follower.read()) == [3]
    assert follower.older() == [aside]

    everything = Follower(record, rotated=True)
    assert numbers(everything.read()) == [1, 2, 3]
    assert everything.older() == []


def test_what_was_put_aside_is_no_news_when_the_current_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 20, rotate_bytes=4_000, keep=100)
    follower = Follower(path)
    assert list(follower.read())
    path.unlink()
    assert list(follower.read()) == []


@pytest.mark.parametrize("step", ["record_files", "read_lines"])
def test_a_file_put_aside_while_it_is_being_found_is_neither_lost_nor_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    record = tmp_path / "audit.jsonl"
    follower = Follower(record)
    record.write_text(line(1))
    assert numbers(follower.read()) == [1]
    with record.open("a") as stream:
        stream.write(line(2))
    real = getattr(record_follower, step)

    def rotate_meanwhile(*args: Any, **options: Any) -> Any:
        """Put the file aside after it was listed, or before it is opened."""
        monkeypatch.undo()
        found = real(*args) if step == "record_files" else None
        record.rename(tmp_path / "audit.jsonl.000001")
        record.write_text(line(3, size=500))
        return found or real(*args, **options)

    monkeypatch.setattr(record_follower, step, rotate_meanwhile)
    assert numbers([*follower.read(), *follower.read()]) == [2, 3]
