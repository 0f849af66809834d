from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.records import RUN, started

from thoughtgate.core.envelope import Envelope
from thoughtgate.stores.record import RecordWriter


def test_the_whole_story_of_a_held_call_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    out = command(capsys, "audit", "show", "run-1.2", "--record", str(path)).out
    for part in (
        "tool delete_file of files",
        '{"path":"/tmp/é"}',
        "HOLD/approved by gate rules, rules[0]",
        "workflow ops, question a-run-1.2",
        "approved by kim through console after 5.0 s",
        "the call was made: fine",
        "OK after 6000 ms",
    ):
        assert part in out


def test_a_refused_call_says_by_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample_record(tmp_path)
    out = command(capsys, "audit", "show", ".3", "--record", str(path)).out
    assert "GOVERNANCE_DENIED: because" in out
    assert "governance_denied: no" in out


def test_a_call_without_an_end_is_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write([started("run-1.1", truncated=True)])
    writer.close()
    out = command(capsys, "audit", "show", "run-1.1", "--record", str(path)).out
    assert "ended      not on record" in out
    assert "(cut)" in out


def test_a_story_is_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample_record(tmp_path)
    done = command(capsys, "audit", "show", "run-1.2", "--record", str(path), "--json")
    assert done.json[0]["approved_by"] == "kim"


def test_an_unknown_call_is_said_to_be_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = command(capsys, "audit", "show", "nope", "--record", str(sample_record(tmp_path)))
    assert done.code == 2
    assert "audit query" in done.err
