from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.records import write_run


def test_a_sound_record_exits_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample_record(tmp_path)
    done = command(capsys, "audit", "verify", str(path))
    assert done.code == 0
    assert "sound: 19 lines, 1 runs, 0 without an end; not signed" in done.out


def test_a_tampered_record_exits_1_and_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b"ALLOW", b"BLOCK")
    path.write_bytes(b"".join(lines))
    done = command(capsys, "audit", "verify", str(path))
    assert done.code == 1
    assert f"FAULT: {path}:5: edited" in done.out
    listed = command(capsys, "audit", "verify", str(path), "--json")
    assert listed.code == 1
    assert listed.json["sound"] is False
    assert [(one["line"], one["fault"]) for one in listed.json["findings"]] == [(5, True)]


def test_a_cut_tail_is_found_with_the_key_or_an_anchor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 3, sign_key=b"secret key", checkpoint_every=4)
    monkeypatch.setenv("AUDIT_KEY", "secret key")
    whole = command(capsys, "audit", "verify", str(path), "--key-env", "AUDIT_KEY", "--json")
    assert whole.code == 0
    assert whole.json["signatures_checked"] is True
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    done = command(capsys, "audit", "verify", str(path), "--key-env", "AUDIT_KEY")
    assert done.code == 1
    assert "truncated" in done.out
    assert "secret key" not in done.out + done.err
    anchored = command(capsys, "audit", "verify", str(path), "--anchor", whole.json["head"])
    assert anchored.code == 1
    assert command(capsys, "audit", "verify", str(path)).code == 0


def test_a_key_that_is_not_set_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = command(capsys, "audit", "verify", str(sample_record(tmp_path)), "--key-env", "NO_KEY")
    assert done.code == 2
    assert "NO_KEY" in done.err


def test_a_long_list_of_faults_is_cut_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text("rubbish\n" * 80)
    done = command(capsys, "audit", "verify", str(path), "--alone")
    assert done.code == 1
    assert "… and 30 more" in done.out
