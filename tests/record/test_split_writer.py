"""A flood of traffic never rotates calls out of the record."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.records import RUN, T0, call

from thoughtgate.core.envelope import TRAFFIC, Envelope
from thoughtgate.core.record_events import SERVER_TO_AGENT, Record, message_seen
from thoughtgate.errors import RecordError
from thoughtgate.record import split_writer
from thoughtgate.record.file import rotated_files, traffic_path
from thoughtgate.record.ledger import Ledger, ledger_path
from thoughtgate.record.reader import read_record, verify_record
from thoughtgate.record.split_writer import SHARE_BYTES, SplitWriter
from thoughtgate.record.writer import RecordWriter

KEY = b"k" * 32


def notice(at: float = T0, size: int = 10) -> Record:
    return message_seen(at, "files", "1", SERVER_TO_AGENT, "notification", "m" * size, size)


def split(path: Path, *, share: int = SHARE_BYTES, **more: Any) -> SplitWriter:
    def other() -> RecordWriter:
        return RecordWriter(traffic_path(path), Envelope(RUN, TRAFFIC), **more)

    return SplitWriter(RecordWriter(path, Envelope(RUN), **more), other, share=share)


def types_in(path: Path) -> list[str]:
    return [json.loads(line)["type"] for line in path.read_bytes().splitlines()]


def test_a_quiet_run_has_one_file_in_the_order_in_which_things_happened(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = split(path)
    writer.write([notice(), *call(1), notice()])
    writer.close()
    assert types_in(path)[0] == types_in(path)[-1] == "message"
    assert not traffic_path(path).exists()


@pytest.mark.promise("traffic-cannot-erase-calls")
def test_a_flood_of_traffic_rotates_only_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = split(path, share=5000, rotate_bytes=20_000, keep=2)
    writer.write(call(1))
    for number in range(2000):
        writer.write([notice(T0 + number, 300)])
    writer.write([*call(2), notice(T0 + 3000)])
    writer.close()
    assert rotated_files(path) == []
    assert [number for number, _ in rotated_files(traffic_path(path))][-1] > 10
    assert types_in(path).count("tool_call_decision") == 2
    assert types_in(path).count("message") < 10
    report = verify_record(path)
    assert report.is_sound
    assert report.traffic_lines > 0
    assert report.runs == 1


def test_both_files_are_read_as_one_by_time(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = split(path, share=0, sign_key=KEY)
    for number in range(5):
        writer.write([notice(T0 + number)])
        writer.write([one._replace(at=T0 + number + 0.5) for one in call(number)])
    writer.close()
    events = [entry.event for entry in read_record(path) if entry.event["type"] != "checkpoint"]
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    assert [event["type"] for event in events[:2]] == ["message", "tool_call_start"]
    assert {event["type"]: event.get("stream") for event in events} == {
        "message": "traffic",
        "tool_call_start": None,
        "tool_call_decision": None,
        "tool_call_end": None,
    }
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    ledger.ingest(path)
    assert ledger.connection.execute("SELECT sum(count) FROM traffic").fetchone() == (5,)
    assert ledger.connection.execute("SELECT count(*) FROM calls").fetchone() == (5,)
    ledger.close()


def test_a_record_that_was_exported_into_one_file_is_still_sound(tmp_path: Path) -> None:
    path, exported = tmp_path / "audit.jsonl", tmp_path / "exported.jsonl"
    writer = split(path, share=0, sign_key=KEY)
    for number in range(5):
        writer.write([notice(T0 + number), *call(number)])
    writer.close()
    exported.write_bytes(b"".join(entry.line.data + b"\n" for entry in read_record(path)))
    assert verify_record(exported, key=KEY).is_sound


@pytest.mark.parametrize("spoiled", [False, True])
def test_an_edited_line_of_the_traffic_is_found(tmp_path: Path, *, spoiled: bool) -> None:
    path = tmp_path / "audit.jsonl"
    writer = split(path, share=0)
    writer.write([notice(), notice(), *call(1)])
    writer.close()
    if spoiled:
        other = traffic_path(path)
        other.write_bytes(other.read_bytes().replace(b'"bytes":10', b'"bytes":11', 1))
    assert verify_record(path).is_sound is not spoiled


def test_traffic_that_cannot_be_written_refuses_the_calls_of_its_batch(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    traffic_path(path).mkdir()
    writer = split(path, share=0)
    writer.write(call(1))
    with pytest.raises(RecordError):
        writer.write([notice(), *call(2)])
    writer.close()
    assert types_in(path).count("tool_call_decision") == 1


def test_the_answer_to_refuses_reaches_both_files(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    opened: list[RecordWriter] = []

    def other() -> RecordWriter:
        opened.append(RecordWriter(traffic_path(path), Envelope(RUN, TRAFFIC)))
        return opened[0]

    calls = RecordWriter(path, Envelope(RUN))
    writer = SplitWriter(calls, other, share=0)
    first, second = partial(bool, 0), partial(bool, 1)
    writer.refuses = first
    writer.write([notice()])
    assert opened[0].refuses is first
    writer.refuses = second
    assert opened[0].refuses is calls.refuses is writer.refuses is second
    writer.close()


def request_of_server(number: int, kind: str = "sampling") -> list[Record]:
    start, *rest = call(number)
    said = {**start.body["call"], "kind": kind, "padding": "x" * 2000}
    return [start._replace(body={**start.body, "call": said}), *rest]


@pytest.mark.promise("traffic-cannot-erase-calls")
@pytest.mark.parametrize("kind", ["sampling", "elicitation", "roots"])
def test_a_flood_of_a_servers_requests_rotates_no_call_away(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "audit.jsonl"
    writer = split(path, share=5000, rotate_bytes=20_000, keep=2)
    writer.write(call(1))
    for number in range(2, 100):
        # As they are written: what allows a request before it is sent, and its end later.
        *allowed, ended = request_of_server(number, kind)
        writer.write(allowed)
        writer.write([ended])
    writer.write(call(100))
    writer.close()
    assert rotated_files(path) == []
    assert [number for number, _ in rotated_files(traffic_path(path))][-1] > 5
    calls = [json.loads(line)["call"]["call_id"] for line in path.read_bytes().splitlines()]
    assert calls[:3] == ["run-1.1"] * 3
    assert calls[-3:] == ["run-1.100"] * 3
    assert len(calls) < 20
    assert verify_record(path).is_sound


def test_a_servers_request_whose_events_are_in_both_files_is_one_call(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = split(path, share=4000)
    for number in range(1, 6):
        for record in request_of_server(number):
            writer.write([record])
    writer.close()
    assert traffic_path(path).exists()
    ledger = Ledger(ledger_path(path))
    ledger.ingest(path)
    rows = ledger.connection.execute("SELECT count(*), count(status) FROM calls").fetchone()
    ledger.close()
    assert rows == (5, 5)


def test_only_so_many_open_requests_of_servers_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_writer, "MAX_ASKED", 2)
    path = tmp_path / "audit.jsonl"
    writer = split(path, share=0)
    requests = [request_of_server(number) for number in range(1, 4)]
    writer.write([start for start, *_ in requests])
    writer.write([ended for *_, ended in requests])
    writer.close()
    assert types_in(traffic_path(path)).count("tool_call_end") == 2
    assert types_in(path) == ["tool_call_end"]
