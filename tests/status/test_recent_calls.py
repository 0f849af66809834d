"""The last calls on record."""

from pathlib import Path

from tests.support.records import (
    RUN,
    answered,
    asked,
    blocked,
    call,
    decided,
    ended,
    started,
    write_run,
)

from thoughtgate.core.envelope import Envelope
from thoughtgate.record.writer import RecordWriter
from thoughtgate.status.recent_calls import TAIL_BYTES, last_calls


def test_the_newest_calls_come_first(tmp_path: Path) -> None:
    write_run(tmp_path / "a.jsonl", 30)

    calls = last_calls(tmp_path / "a.jsonl", 3)

    assert [one["call_id"] for one in calls] == ["run-1.30", "run-1.29", "run-1.28"]
    assert calls[0] | {"ts": ""} == {
        "call_id": "run-1.30",
        "ts": "",
        "server": "files",
        "tool": "read_file",
        "decision": "ALLOW",
        "status": "OK",
        "latency_ms": 20,
    }


def test_open_held_and_refused_calls_are_told_apart(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "a.jsonl", Envelope(RUN))
    writer.write([started("c.1"), decided("c.1", action="HOLD")])
    writer.write(
        [
            started("c.2"),
            decided("c.2", action="BLOCK"),
            ended("c.2", status="ERROR", error=blocked()),
        ]
    )
    writer.write([started("c.3"), decided("c.3", action="HOLD"), asked("c.3"), answered("c.3")])
    writer.close()

    told = {one["call_id"]: one for one in last_calls(tmp_path / "a.jsonl", 10)}

    assert (told["c.1"]["decision"], told["c.1"]["status"]) == ("HOLD", "OPEN")
    assert (told["c.2"]["decision"], told["c.2"]["error"]) == ("BLOCK", "governance_denied")
    assert told["c.3"]["decision"] == "APPROVED"


def test_only_the_end_of_a_long_record_is_read(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path / "a.jsonl", Envelope(RUN), rotate_bytes=0)
    for number in range(1, 200):
        writer.write(call(number, preview="x" * 8000))
    writer.close()

    assert (tmp_path / "a.jsonl").stat().st_size > TAIL_BYTES
    assert last_calls(tmp_path / "a.jsonl", 1)[0]["call_id"] == "run-1.199"


def test_a_missing_or_broken_record_has_no_calls(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes(b"\x00garbage\n{}\n[1]\n")

    assert last_calls(tmp_path / "a.jsonl", 5) == []
    assert last_calls(tmp_path / "b.jsonl", 5) == []
