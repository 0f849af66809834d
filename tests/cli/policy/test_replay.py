from pathlib import Path
from typing import Any

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.records import RUN, T0, blocked, call, decided, ended, started

from thoughtgate.core.envelope import Envelope, render_time
from thoughtgate.core.record_events import NOWHERE
from thoughtgate.record.writer import RecordWriter

CANDIDATE = """\
schema: 1
default: deny
rules:
  - {tool: read_file, action: deny, reason: nothing is read}
  - {tool: delete_file, action: approve}
  - {tool: wipe, action: forward}
"""


@pytest.fixture
def candidate(tmp_path: Path) -> str:
    path = tmp_path / "candidate.yaml"
    path.write_text(CANDIDATE)
    return str(path)


def test_decisions_that_change_are_listed(
    tmp_path: Path, candidate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record = str(sample_record(tmp_path))
    done = command(capsys, "policy", "replay", "-c", candidate, "--record", record)
    assert done.code == 0
    assert "3 calls replayed, 2 decisions changed" in done.out
    assert "ALLOW -> BLOCK  (tighter)  1 call" in done.out
    assert "BLOCK -> ALLOW  (LOOSER)  1 call" in done.out
    assert "for example run-1.3" in done.out


def test_the_outcome_is_json_too_and_can_fail_a_build(
    tmp_path: Path, candidate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("-c", candidate, "--record", str(sample_record(tmp_path)), "--json")
    done = command(capsys, "policy", "replay", *flags, "--fail-on-flip")
    assert done.code == 1
    assert done.json["flipped"] == 2
    assert {flip["name"] for flip in done.json["flips"]} == {"read_file", "wipe"}
    since = command(capsys, "policy", "replay", *flags, "--since", "2030-01-01")
    assert since.json["calls"] == 0


def test_what_hangs_on_masked_values_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hints.yaml"
    path.write_text(
        "schema: 1\ndefault: forward\nrules:\n"
        "  - {id: hints, kind: tool, annotations: {destructiveHint: true}, action: deny}\n"
    )
    record = str(sample_record(tmp_path))
    done = command(capsys, "policy", "replay", "-c", str(path), "--record", record)
    assert "3 calls: hints looks at annotations, which are not on record" in done.out
    listed = command(capsys, "policy", "replay", "-c", str(path), "--record", record, "--json")
    assert listed.json["uncertain"] == 3


def test_a_candidate_that_is_wrong_exits_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("schema: 1\nrulez: []\n")
    done = command(capsys, "policy", "replay", "-c", str(path))
    assert done.code == 1
    assert "rulez" in done.err


def test_what_no_server_offers_is_left_out_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, path = tmp_path / "audit.jsonl", tmp_path / "open.yaml"
    nobody: dict[str, Any] = {"server": NOWHERE, "tool": "nothing"}
    writer = RecordWriter(record, Envelope(RUN))
    writer.write(call(1))
    writer.write([started("run-1.2", **nobody), decided("run-1.2", **nobody, action="BLOCK")])
    writer.write([ended("run-1.2", **nobody, status="ERROR", error=blocked())])
    writer.close()
    path.write_text("schema: 1\ndefault: forward\n")
    flags = ("-c", str(path), "--record", str(record), "--fail-on-flip")
    done = command(capsys, "policy", "replay", *flags)
    assert done.code == 0
    assert "1 call replayed, 0 decisions changed" in done.out
    assert "1 call left out: no server offers the name that was called" in done.out
    listed = command(capsys, "policy", "replay", *flags, "--json")
    assert (listed.json["calls"], listed.json["left_out"]) == (1, 1)


def test_limits_count_a_run_from_its_beginning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, path = tmp_path / "audit.jsonl", tmp_path / "few.yaml"
    writer = RecordWriter(record, Envelope(RUN))
    for number in (1, 2, 3):
        writer.write(call(number))
    writer.close()
    path.write_text("schema: 1\ndefault: forward\nlimits: [{id: few, budget: 2}]\n")
    since = render_time(T0 + 3)
    flags = ("-c", str(path), "--record", str(record), "--since", since, "--json")
    done = command(capsys, "policy", "replay", *flags)
    assert done.json["calls"] == 1
    assert [flip["after"] for flip in done.json["flips"]] == ["THROTTLE"]
