import csv
import io
import json
from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.frames import call, result
from tests.support.records import RUN, T0, decided, ended, started
from tests.support.session_play import YES, agent, judged, new_session, records, server

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import content_found
from thoughtgate.record.writer import RecordWriter


def test_calls_are_listed_newest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample_record(tmp_path)
    done = command(capsys, "audit", "query", "--record", str(path))
    lines = done.out.splitlines()
    assert lines[0].split() == ["TIME", "SERVER", "TOOL", "DECISION", "STATUS", "MS", "CALL"]
    assert [line.split()[-1] for line in lines[1:]] == ["run-1.3", "run-1.2", "run-1.1"]
    assert "HOLD/approved" in lines[2]


def test_filters_are_passed_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(sample_record(tmp_path))

    def found(*flags: str) -> list[str]:
        done = command(capsys, "audit", "query", "--record", path, "--json", *flags)
        return [row["call_id"] for row in done.json]

    assert found("--decision", "block") == ["run-1.3"]
    assert found("--status", "ok") == ["run-1.2", "run-1.1"]
    assert found("--tool", "*_file", "--limit", "1") == ["run-1.2"]
    assert found("--text", "tmp a") == ["run-1.1"]
    assert found("--since", "2025-10-09T08:53:22.500Z") == ["run-1.3"]
    assert found("--server", "files", "--run", "run-1", "--until", "2025-10-09T08:53:22Z") == [
        "run-1.1"
    ]


def test_calls_without_an_end_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write([started("run-1.1"), started("run-1.2"), ended("run-1.2")])
    writer.close()
    done = command(capsys, "audit", "query", "--record", str(path), "--status", "open", "--json")
    assert [one["call_id"] for one in done.json] == ["run-1.1"]


def test_calls_are_listed_as_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample_record(tmp_path)
    done = command(capsys, "audit", "query", "--record", str(path), "--csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["tool"] for row in rows] == ["wipe", "delete_file", "read_file"]


def test_a_word_that_is_none_of_ours_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(sample_record(tmp_path))
    done = command(capsys, "audit", "query", "--record", path, "--decision", "maybe")
    assert done.code == 2
    assert "allow, hold, block, throttle" in done.err


def test_json_has_times_and_booleans_as_the_record_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    blocked, held, made = command(capsys, "audit", "query", "--record", str(path), "--json").json
    ends = [
        event["ts"]
        for event in map(json.loads, path.read_text().splitlines())
        if event["type"] == "tool_call_end"
    ]
    assert [made["ended_at"], held["ended_at"], blocked["ended_at"]] == ends
    assert held["started_at"] == "2025-10-09T08:53:22.000Z"
    assert (held["enforced"], held["executes"], held["truncated"], held["is_error"]) == (
        True,
        True,
        False,
        False,
    )
    assert (made["asked_at"], made["executes"]) == (None, None)


def test_json_and_csv_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(sample_record(tmp_path))
    done = command(capsys, "audit", "query", "--record", path, "--json", "--csv")
    assert (done.code, done.out) == (2, "")
    assert "--csv" in done.err


def test_a_result_that_says_is_error_is_listed_found_and_counted_as_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = new_session()
    session.receive(agent(call(7, "read_file"), at=T0))
    session.receive(judged(7, YES, at=T0))
    ends = records(session, server(result(7, {"isError": True}), at=T0 + 1))
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write([started("run.7"), decided("run.7"), *ends])
    writer.close()

    def found(status: str) -> list[str]:
        chosen = ("--json", "--status", status)
        done = command(capsys, "audit", "query", "--record", str(path), *chosen)
        return [row["call_id"] for row in done.json]

    listed = command(capsys, "audit", "query", "--record", str(path)).out.splitlines()
    assert listed[1].split()[-3:] == ["ERROR", "1000", "run.7"]
    assert (found("error"), found("ok")) == (["run.7"], [])
    stats = command(capsys, "audit", "stats", "--record", str(path), "--json").json
    assert stats["statuses"] == {"ERROR": 1}


def test_calls_are_found_by_the_checks_that_found_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    said = {"server_name": "files", "tool_name": "read_file", "args_hash": "a"}
    for number, check in enumerate(("secret-key", "link-data", ""), 1):
        ident = f"run-1.{number}"
        writer.write([started(ident, T0 + number), decided(ident, T0 + number)])
        if check:
            content = content_found(
                T0,
                "files",
                "1",
                {"call_id": ident, **said},
                findings=[(check, "hard", "/content/0/text:1-5")],
                direction="server_to_agent",
                action="redact",
                enforced=True,
            )
            writer.write([content])
    writer.close()

    def found(check: str) -> list[str]:
        flags = ("--record", str(path), "--json", "--finding", check)
        done = command(capsys, "audit", "query", *flags)
        return [row["call_id"] for row in done.json]

    assert found("secret-key") == ["run-1.1"]
    assert found("secret-*") == ["run-1.1"]
    assert found("*") == ["run-1.2", "run-1.1"]
    assert found("secret") == []
    shown = command(capsys, "audit", "show", "run-1.2", "--record", str(path)).out
    assert "link-data (hard) in the result at /content/0/text:1-5" in shown
    assert "what happened to the result: redact" in shown


@pytest.mark.promise("approver-sees-invisible-characters")
def test_a_server_id_cannot_control_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write([started("run-1.1", T0, server="ev\x1b[2Jil")])
    writer.close()
    shown = command(capsys, "audit", "query", "--record", str(path)).out
    assert "ev[U+001B][2Jil" in shown
    assert "\x1b" not in shown
