import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.commands import thoughtgate
from tests.support.records import RUN, call, write_run
from tests.support.waiting import PATIENCE_S, wait_for, within

from thoughtgate.cli.audit.tail import EventFilter, events_of, render_event
from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.record.file import rotated_files
from thoughtgate.record.ledger import MAX_FAULTS
from thoughtgate.record.reader import read_record
from thoughtgate.record.writer import RecordWriter


def test_the_newest_events_are_shown_without_ungated_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(sample_record(tmp_path))
    out = command(capsys, "audit", "tail", "--record", path, "-n", "100").out
    assert len(out.splitlines()) == 18
    assert "\x1b" not in out
    every = command(capsys, "audit", "tail", "--record", path, "-n", "100", "--all").out
    assert len(every.splitlines()) == 19
    assert len(command(capsys, "audit", "tail", "--record", path, "-n", "3").out.splitlines()) == 3


def test_filters_apply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(sample_record(tmp_path))

    def types(*flags: str) -> list[str]:
        out = command(capsys, "audit", "tail", "--record", path, "--json", *flags).out
        return [json.loads(line)["type"] for line in out.splitlines()]

    assert types("--decision", "block") == ["tool_call_decision"]
    assert types("--tool", "delete_*") == [
        "tool_call_start",
        "tool_call_decision",
        "approval_requested",
        "approval_decided",
        "tool_call_end",
    ]
    assert types("--type", "message") == ["message"]
    assert types("--server", "nobody") == []
    assert types("--run", "run-2") == []
    assert types("--run", "run-?", "--type", "run_start") == ["run_start"]
    assert types("--tool", "[rd") == types("--tool", "[a-z]*") == []
    too_long = command(capsys, "audit", "tail", "--record", path, "--tool", "x" * 9000)
    assert too_long.code == 2


def test_a_line_is_coloured_for_a_terminal() -> None:
    event = {"type": "tool_call_decision", "decision": {"action": "BLOCK"}, "call": {}}
    assert "\x1b[31mBLOCK" in render_event(event, coloured=True)
    assert "\x1b" not in render_event({**event, "server_name": "\x1b[2J"})


def test_a_terminal_is_coloured_unless_the_operator_wants_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(sample_record(tmp_path))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31mBLOCK" in command(capsys, "audit", "tail", "--record", path).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in command(capsys, "audit", "tail", "--record", path).out


def test_a_followed_record_shows_what_comes_even_after_it_was_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    tail = subprocess.Popen(
        thoughtgate("audit", "tail", "-f", "--json", "--record", str(path)),
        stdout=subprocess.PIPE,
        text=True,
    )
    seen: list[str] = []
    reader = threading.Thread(target=lambda: seen.extend(tail.stdout or []), daemon=True)
    reader.start()
    try:
        writer = RecordWriter(path, Envelope(RUN), rotate_bytes=4000, keep=100)
        writer.write(call(1))
        wait_for(lambda: "run-1.1" in str(seen))
        for number in range(2, 40):
            writer.write(call(number))
        writer.close()
        wait_for(lambda: "run-1.39" in str(seen))
    finally:
        tail.kill()
        tail.wait(timeout=10)
        reader.join(timeout=10)
        if tail.stdout is not None:
            tail.stdout.close()
    ends = [line for line in seen if '"tool_call_end"' in line]
    assert len(ends) == 39
    assert len(rotated_files(path)) > 3


def test_a_followed_record_that_is_not_there_yet_is_waited_for_aloud(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nope.jsonl"
    wanted = EventFilter({}, None, "", "", every=True)
    events = events_of(path, wanted, 5, follow=True)
    writing = threading.Timer(0.3, write_run, (path, 1))
    writing.start()
    assert within(lambda: next(events))["type"] == "run_start"
    writing.join(PATIENCE_S)
    assert capsys.readouterr().err == f"Waiting for {path} to be created.\n"
    next(events_of(path, wanted, 5, follow=True))
    assert capsys.readouterr().err == ""


def rotated_record(tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    write_run(path, 20, rotate_bytes=4000, keep=100)
    assert len(rotated_files(path)) > 3
    return path


def test_the_newest_events_come_from_the_files_put_aside_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rotated_record(tmp_path)
    every = [entry.event for entry in read_record(path)]

    def shown(count: int) -> list[dict[str, Any]]:
        flags = ("--record", str(path), "--json", "-n", str(count))
        out = command(capsys, "audit", "tail", *flags).out
        return [json.loads(line) for line in out.splitlines()]

    assert shown(0) == []
    assert shown(1) == every[-1:]
    assert shown(25) == every[-25:]
    assert shown(1000) == every
    path.unlink()
    left = [entry.event for entry in read_record(path)]
    assert shown(25) == left[-25:]


def test_a_followed_record_begins_with_what_was_put_aside(tmp_path: Path) -> None:
    path = rotated_record(tmp_path)
    every = [entry.event for entry in read_record(path)]
    wanted = EventFilter({}, None, "", "", every=True)
    events = events_of(path, wanted, 25, follow=True)
    assert [next(events) for _ in range(25)] == every[-25:]
    write_run(path, 1, run=Run("run-2"))
    assert next(events)["run_id"] == "run-2"


def test_a_file_full_of_other_things_is_not_remembered_line_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    with path.open("ab") as file:
        file.write(b"not an event\n" * (MAX_FAULTS + 500))
    said = command(capsys, "audit", "tail", "--record", str(path)).err.splitlines()

    assert 1 < len(said) < 50
    assert int(said[-1].split()[1]) < MAX_FAULTS


def test_a_list_is_told_in_words() -> None:
    said = {
        "method": "tools/list",
        "offered": 9,
        "returned": 2,
        "hidden": [f"t{number}" for number in range(7)],
        "entries": {"a": "ab12", "b": "cd34"},
        "enforced": True,
    }
    line = render_event({"type": "tools_list", "list": said})
    assert line.endswith("tools/list  2 of 9 shown; hidden: t0, t1, t2, t3, t4 and 2 more")
    observed = render_event(
        {"type": "tools_list", "list": {**said, "hidden": ["t0"], "enforced": False}}
    )
    assert observed.endswith("2 of 9 shown; would hide: t0")


def test_facts_are_told_in_words() -> None:
    event = {"type": "policy_changed", "policy": {"loaded": False, "after": {"a": None, "b": [1]}}}
    assert render_event(event).endswith("loaded no  after a none, b …")


def test_a_verdict_without_a_reason_names_its_rule() -> None:
    decision = {"action": "ALLOW", "rule_id": "reads", "explain": {"summary": ""}}
    event = {"type": "tool_call_decision", "decision": decision, "call": {"tool_name": "read"}}
    assert render_event(event).endswith("read  by reads")


def test_a_type_that_is_none_of_ours_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(sample_record(tmp_path))
    done = command(capsys, "audit", "tail", "--record", path, "--type", "nonsense")
    assert done.code == 2
    assert "tool_call_decision" in done.err


def test_a_file_that_is_no_record_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "foreign"
    path.write_text("a diary\nof somebody\n")
    done = command(capsys, "audit", "tail", "--record", str(path))
    assert done.code == 2
    assert f"{path} is not a record" in done.err
    assert not done.out
