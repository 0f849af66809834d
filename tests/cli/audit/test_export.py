import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.audit_cli import command, sample_record

from thoughtgate.errors import visible
from thoughtgate.record.reader import verify_record


def export(capsys: pytest.CaptureFixture[str], path: Path, form: str, *flags: str) -> list[Any]:
    done = command(capsys, "audit", "export", "--record", str(path), "--format", form, *flags)
    assert done.code == 0
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.requirement("FR16", "FR17", "FR18", "FR20")
def test_flat_records_are_those_of_the_older_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = export(capsys, sample_record(tmp_path), "flat")
    assert records[0] == {
        "version": 1,
        "timestamp": "2025-10-09T08:53:20.000Z",
        "event": "tools_list",
        "tools_upstream": 9,
        "tools_returned": 7,
        "session_id": "1",
        "upstream": "files",
    }
    assert [(one["tool_name"], one["allowed"]) for one in records if "allowed" in one] == [
        ("read_file", True),
        ("delete_file", True),
        ("wipe", False),
    ]
    assert [one["event"] for one in records[-2:]] == ["agent_connected", "agent_auth_rejected"]


def test_a_call_approved_after_the_time_cut_out_was_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--since", "2025-10-09T08:53:22Z", "--until", "2025-10-09T08:53:23Z")
    (held,) = export(capsys, sample_record(tmp_path), "flat", *flags)
    assert (held["tool_name"], held["allowed"]) == ("delete_file", True)


def test_an_export_as_it_is_can_be_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    done = command(capsys, "audit", "export", "--record", str(path))
    copy = tmp_path / "copy.jsonl"
    copy.write_text(done.out)
    assert copy.read_bytes() == path.read_bytes()
    assert verify_record(copy).is_sound


def test_every_event_becomes_an_ocsf_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = export(capsys, sample_record(tmp_path), "ocsf")
    assert len(events) == 19
    assert all(one["type_uid"] == one["class_uid"] * 100 + one["activity_id"] for one in events)


def test_who_calls_is_known_after_the_time_of_the_call_s_start_is_cut_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = export(capsys, sample_record(tmp_path), "ocsf", "--since", "2025-10-09T08:53:25Z")
    found = {one["metadata"]["event_code"]: one for one in events}
    assert "tool_call_start" not in found
    assert found["approval_decided"]["user"]["name"] == "local"
    assert found["tool_call_end"]["actor"]["user"]["name"] == "local"


def test_a_time_can_be_cut_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--since", "2025-10-09T08:53:24Z", "--until", "2025-10-09T08:53:25Z")
    events = export(capsys, sample_record(tmp_path), "jsonl", *flags)
    assert [one["type"] for one in events] == ["frame_refused"]


def test_calls_are_exported_as_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(sample_record(tmp_path))
    done = command(capsys, "audit", "export", "--record", path, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["decision"] for row in rows] == ["BLOCK", "HOLD", "ALLOW"]


def test_an_unknown_form_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(sample_record(tmp_path))
    done = command(capsys, "audit", "export", "--record", path, "--format", "xml")
    assert done.code == 2
    assert "ocsf" in done.err


def stamped(path: Path, number: int, stamp: str) -> None:
    """Give a line another time."""
    lines = path.read_text().splitlines(keepends=True)
    event = json.loads(lines[number])
    lines[number] = lines[number].replace(event["ts"], stamp, 1)
    path.write_text("".join(lines))


def test_an_event_without_a_time_has_that_of_the_line_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    stamped(path, 9, "yesterday")
    events = export(capsys, path, "ocsf")
    assert len(events) == 19
    assert events[9]["time"] == events[8]["time"]
    assert events[9]["metadata"]["labels"] == ["time_of_line_before"]
    since = "2025-10-09T08:53:21Z"
    assert events[9] in export(capsys, path, "ocsf", "--since", since)


def test_a_first_line_without_a_time_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    stamped(path, 0, "yesterday")
    done = command(capsys, "audit", "export", "--record", str(path), "--format", "ocsf")
    assert len(done.out.splitlines()) == 18
    assert f"{path}:1: the time cannot be read" in done.err
    assert '"time":0' not in done.out


@pytest.mark.parametrize("form", ["jsonl", "flat", "ocsf"])
def test_a_last_line_without_its_end_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    path = sample_record(tmp_path)
    whole = export(capsys, path, form)
    *_, verdict = (line for line in path.read_text().splitlines() if "tool_call_decision" in line)
    with path.open("a") as stream:
        stream.write(verdict)
    done = command(capsys, "audit", "export", "--record", str(path), "--format", form)
    assert [json.loads(line) for line in done.out.splitlines()] == whole
    assert f"{path}:20: the line is incomplete" in done.err


def test_a_file_that_is_no_record_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "foreign"
    path.write_text("a diary\nof somebody\n")
    done = command(capsys, "audit", "export", "--record", str(path), "--format", "flat")
    assert done.code == 2
    assert f"{path} is not a record" in done.err
    assert not done.out


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_cannot_control_the_terminal_that_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    path = sample_record(tmp_path)
    text = path.read_text("utf-8")
    path.write_text(text.replace("read_file", "read\u009b2J\u202e_file"), "utf-8")
    flags = ("audit", "export", "--record", str(path), "--format", form)
    assert "read\u009b2J\u202e_file" in command(capsys, *flags).out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    shown = command(capsys, *flags).out
    assert "read[U+009B]2J[U+202E]_file" in shown
    assert visible(shown, "\n") == shown
