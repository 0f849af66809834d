"""Verifying the record in the background."""

import sys
from pathlib import Path

from tests.support.audit_cli import sample_record
from tests.support.waiting import wait_for

from thoughtgate.status.record_integrity import FILE, LastVerification, RecordIntegrity


def verified(integrity: RecordIntegrity) -> LastVerification:
    assert integrity.begin("console:ann")
    wait_for(lambda: not integrity.began_at)
    found = integrity.last()
    assert found is not None
    return found


def test_a_sound_record_is_sound_until_somebody_edits_it(tmp_path: Path) -> None:
    record = sample_record(tmp_path)
    integrity = RecordIntegrity(str(tmp_path), [str(record)], {})
    assert integrity.last() is None

    found = verified(integrity)
    assert (found.sound, found.by, found.findings, found.problem) == (True, "console:ann", (), "")
    assert found.lines > 3
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600

    record.write_bytes(record.read_bytes().replace(b"read", b"raed", 1))
    found = verified(RecordIntegrity(str(tmp_path), [str(record)], {}))
    assert not found.sound
    assert found.findings


def test_only_one_verification_runs_at_a_time(tmp_path: Path) -> None:
    gate = tmp_path / "go"
    wait = (
        f"import time, pathlib\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.01)\n"
    )
    integrity = RecordIntegrity(str(tmp_path), [], {}, lambda: [sys.executable, "-c", wait])

    assert integrity.begin("a")
    assert not integrity.begin("b")
    gate.touch()
    wait_for(lambda: not integrity.began_at)


def test_a_record_that_cannot_be_read_is_not_called_sound(tmp_path: Path) -> None:
    found = verified(RecordIntegrity(str(tmp_path), [str(tmp_path / "absent.jsonl")], {}))

    assert not found.sound
    assert found.problem

    (tmp_path / FILE).write_text("[]")
    assert RecordIntegrity(str(tmp_path), [], {}).last() is None


def test_a_result_that_cannot_be_read_is_not_called_late(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no JSON')"]
    found = verified(RecordIntegrity(str(tmp_path), [], {}, lambda: command))

    assert not found.sound
    assert found.problem == "the result of the verification cannot be read"
