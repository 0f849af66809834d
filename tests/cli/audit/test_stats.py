from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.records import RUN, T0

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import Record
from thoughtgate.record.writer import RecordWriter


def test_sums_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = command(capsys, "audit", "stats", "--record", str(sample_record(tmp_path))).out
    assert out.startswith("3 calls, 1 other message\n")
    assert "read_file" in out
    assert "frames refused" in out
    assert "latency of answered calls: p50 6000 ms" in out
    assert "█" in out


def test_sums_are_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(sample_record(tmp_path))
    stats = command(capsys, "audit", "stats", "--record", path, "--json").json
    assert stats["decisions"] == {"ALLOW": 1, "BLOCK": 1, "HOLD": 1}
    assert stats["approvals"] == {"approved": 1}
    assert stats["refusals"] == {"governance_denied": 1}
    assert stats["latency_ms"] == {"p50": 6000, "p90": 6000, "p99": 6000}
    assert stats["messages"] == 1
    assert stats["frames_refused"] == {"batch": 1}


def test_an_empty_time_has_no_charts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(sample_record(tmp_path))
    done = command(capsys, "audit", "stats", "--record", path, "--since", "2030-01-01")
    assert done.out == "0 calls, 0 other messages\n"


def without(path: Path, kind: str) -> str:
    """Lose the lines of a type."""
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if f'"type":"{kind}"' not in line))
    return str(path)


def test_calls_whose_start_is_lost_stand_where_more_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = without(sample_record(tmp_path), "tool_call_start")
    out = command(capsys, "audit", "stats", "--record", path).out
    assert "1970" not in out
    assert out.splitlines()[1].startswith("2025-10-09T08:53:00Z")
    stats = command(capsys, "audit", "stats", "--record", path, "--json").json
    assert stats["step_s"] == 60
    assert {row["at"] for row in stats["over_time"]} == {"2025-10-09T08:53:00.000Z"}


def test_calls_without_any_time_have_no_axis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    path.write_text(path.read_text().replace('"ts":"2025', '"ts":"yesterday'))
    done = command(capsys, "audit", "stats", "--record", str(path))
    assert done.code == 0
    assert done.out.startswith("3 calls")
    assert "1970" not in done.out


def test_run_server_and_times_apply_to_messages_and_frames_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(sample_record(tmp_path))
    for flags in (("--run", "other"), ("--server", "other"), ("--until", "2025-10-09T08:00Z")):
        stats = command(capsys, "audit", "stats", "--record", path, "--json", *flags).json
        assert (stats["calls"], stats["messages"], stats["frames_refused"]) == (0, 0, {})


def test_frames_of_both_directions_are_summed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    for direction in ("agent_to_server", "server_to_agent"):
        frame = {"direction": direction, "check": "batch", "kind": "k", "bytes": 9}
        writer.write([Record("frame_refused", T0, "files", "1", {"frame": frame})])
    writer.close()
    out = command(capsys, "audit", "stats", "--record", str(path)).out
    assert out.startswith("0 calls")
    assert out.splitlines()[-1].split() == ["batch", "█" * 30, "2"]
