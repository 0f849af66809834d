from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.records import RUN, T0, answered, asked, ended, started

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import Record, request_failed
from thoughtgate.record.writer import RecordWriter


def test_the_whole_story_of_a_held_call_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    out = command(capsys, "audit", "show", "run-1.2", "--record", str(path)).out
    for part in (
        "tool delete_file of files",
        '{"path":"/tmp/é"}',
        "HOLD/approved by gate rules, rules[0]",
        "workflow ops, approval request a-run-1.2",
        "approved by kim through console after 5.0 s",
        "the call was made: fine",
        "OK after 6000 ms",
    ):
        assert part in out


def test_a_held_call_is_found_by_its_approval_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    (found,) = command(capsys, "audit", "show", "a-run-1.2", "--record", str(path), "--json").json
    assert found["call_id"] == "run-1.2"


def test_everybody_who_voted_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.jsonl"
    late = answered("run-1.1", outcome="timeout", executes=False)
    late.body["approval"] |= {
        "decided_by": "",
        "channel": "",
        "reason": "1 of 2 approved in time",
        "votes": [
            {
                "by": "terminal:ann",
                "channel": "terminal",
                "approve": True,
                "at": "2025-10-09T08:53:22.000Z",
                "reason": "fine by me",
            },
            {"by": "slack:U\x1b1", "approve": False, "at": "?"},
            "no vote",
        ],
    }
    writer = RecordWriter(path, Envelope(RUN))
    writer.write([started("run-1.1"), asked("run-1.1"), late])
    writer.close()
    out = command(capsys, "audit", "show", "run-1.1", "--record", str(path)).out
    assert "vote       2025-10-09T08:53:22Z  approved by terminal:ann: fine by me\n" in out
    assert "vote       -  denied by slack:U" in out
    assert "\x1b" not in out
    assert "timeout by nobody" in out
    assert "the call was not made: 1 of 2 approved in time" in out
    found = command(capsys, "audit", "show", "run-1.1", "--record", str(path), "--json").json
    assert [one["by"] for one in found[0]["votes"]] == ["terminal:ann", "slack:U\x1b1"]


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
    assert "ended      not in the record" in out
    assert "(cut)" in out


def test_the_result_in_a_record_of_an_earlier_version_is_still_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    end = ended("run-1.1")
    end.body["preview"] = {"truncated": False, "result_preview": "hello"}
    writer = RecordWriter(path, Envelope(RUN))
    writer.write([started("run-1.1"), end])
    writer.close()
    out = command(capsys, "audit", "show", "run-1.1", "--record", str(path)).out
    assert "result     hello" in out


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


@pytest.mark.parametrize("name", ["", "  "])
def test_no_name_at_all_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = str(sample_record(tmp_path))
    done = command(capsys, "audit", "show", name, "--record", path)
    assert (done.code, done.out) == (2, "")


def test_json_has_times_and_booleans_as_the_record_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(sample_record(tmp_path))
    (found,) = command(capsys, "audit", "show", "run-1.2", "--record", path, "--json").json
    assert found["approval_at"] == "2025-10-09T08:53:27.000Z"
    assert found["executes"] is True


@pytest.mark.promise("params-are-bound")
def test_what_else_a_request_carried_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    start = started("run-1.1")
    start.body["call"]["extra"] = {"truncated": False, "preview": '{"cwd":"/etc"}'}
    start.body["call"]["extra_hash"] = "ab" * 32
    writer = RecordWriter(path, Envelope(RUN))
    writer.write([start])
    writer.close()
    done = command(capsys, "audit", "show", "run-1.1", "--record", str(path))
    assert 'extra      {"cwd":"/etc"}' in done.out
    assert f"sha256 {'ab' * 32}" in done.out


def test_an_error_that_belongs_to_no_call_is_found_by_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    failed = request_failed(
        T0, "up", "1", method="tools/list", kind="upstream_timeout", correlation_id="run-1.e4"
    )
    folded = Record(
        "agent_auth_rejected",
        T0,
        "up",
        "0",
        {
            "agent": {
                "method": "bearer",
                "reason": "token wrong",
                "correlation_id": "run-1.e9",
                "first_correlation_id": "run-1.e6",
                "repeated": 4,
            }
        },
    )
    writer.write([started("run-1.1"), failed, folded])
    writer.close()
    told = command(capsys, "audit", "show", "run-1.e4", "--record", str(path)).out
    for part in ("error      run-1.e4", "request_failed of up", "tools/list", "upstream_timeout"):
        assert part in told
    (found,) = command(capsys, "audit", "show", ".e4", "--record", str(path), "--json").json
    assert found["request"]["kind"] == "upstream_timeout"
    told = command(capsys, "audit", "show", "run-1.e7", "--record", str(path)).out
    assert "stands for 4 events like it" in told
    done = command(capsys, "audit", "show", "run-1.e99", "--record", str(path))
    assert "approval request or error 'run-1.e99'" in done.err
