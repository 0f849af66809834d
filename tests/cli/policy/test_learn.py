from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record


def test_a_config_is_proposed_that_replays_without_loosening(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = str(sample_record(tmp_path))
    output = tmp_path / "candidate.yaml"
    done = command(capsys, "policy", "learn", "--record", record, "-o", str(output))
    assert done.code == 0
    assert output.stat().st_mode & 0o777 == 0o600
    assert command(capsys, "validate-config", "-c", str(output)).code == 0
    replayed = command(capsys, "policy", "replay", "-c", str(output), "--record", record, "--json")
    assert replayed.json["flipped"] == 0


def test_the_proposal_goes_to_stdout_or_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = str(sample_record(tmp_path))
    assert "default: deny" in command(capsys, "policy", "learn", "--record", record).out
    listed = command(capsys, "policy", "learn", "--record", record, "--json").json
    assert {one["name"]: one["calls"] for one in listed} == {
        "delete_file": 1,
        "read_file": 1,
        "wipe": 1,
    }


def test_a_file_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = str(sample_record(tmp_path))
    output = tmp_path / "mine.yaml"
    output.write_text("mine")
    done = command(capsys, "policy", "learn", "--record", record, "-o", str(output))
    assert done.code == 2
    assert output.read_text() == "mine"
    nowhere = str(tmp_path / "no" / "x.yaml")
    assert command(capsys, "policy", "learn", "--record", record, "-o", nowhere).code == 2


def test_nothing_is_learned_from_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = str(sample_record(tmp_path))
    done = command(capsys, "policy", "learn", "--record", record, "--since", "2030-01-01")
    assert done.code == 2
    assert "the record has no calls in that time" in done.err
