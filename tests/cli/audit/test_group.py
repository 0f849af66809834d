from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_events, sample_record
from tests.support.records import RUN

from thoughtgate.core.envelope import GENESIS, Envelope, seal
from thoughtgate.record.writer import RecordWriter


def test_the_command_lists_what_it_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    done = command(capsys, "audit", "--help")
    assert done.code == 0
    for name in ("tail", "query", "show", "stats", "verify", "export"):
        assert name in done.out


@pytest.mark.parametrize("name", ["tail", "query", "stats", "verify", "export"])
def test_a_record_that_is_not_there_is_an_error_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    flag = [] if name == "verify" else ["--record"]
    done = command(capsys, "audit", name, *flag, str(tmp_path / "none.jsonl"))
    assert done.code == 2
    assert done.out == ""
    assert "none.jsonl" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["tail", "query", "stats", "export"])
def test_a_foreign_file_is_read_to_its_end_and_its_faults_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = sample_record(tmp_path)
    with path.open("ab") as file:
        file.write(b"\xff\xfe not ours\n[1,2]\n")
    for _ in range(2):
        done = command(capsys, "audit", name, "--record", str(path))
        assert done.code == 0
        assert "Traceback" not in done.err
        assert f"{path}:20: not UTF-8\n" in done.err
        assert f"{path}:21: not a JSON object\n" in done.err


RECORD_COMMANDS = {
    "query": ("audit", "query"),
    "stats": ("audit", "stats"),
    "csv": ("audit", "export", "--format", "csv"),
    "jsonl": ("audit", "export"),
    "flat": ("audit", "export", "--format", "flat"),
    "replay": ("policy", "replay"),
    "learn": ("policy", "learn"),
}
"""Commands that read a whole record."""


def halved_record(directory: Path) -> Path:
    """A sealed line with half of a surrogate pair as its run, between sound lines."""
    path = sample_record(directory)
    line, _ = seal(b'{"v":"1.0","type":"run_start","run_id":"\\ud800","seq":1', GENESIS)
    with path.open("ab") as file:
        file.write(line)
    writer = RecordWriter(path, Envelope(RUN))
    writer.write(sample_events()[3:6])
    writer.close()
    return path


@pytest.mark.parametrize("name", RECORD_COMMANDS)
def test_half_of_a_surrogate_pair_is_a_fault_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = halved_record(tmp_path)
    done = command(capsys, *RECORD_COMMANDS[name], "--record", str(path))
    assert done.code == 0
    assert f"{path}:20: half of a surrogate pair" in done.err
    assert f"{path}:21" not in done.err
    done.out.encode()
    if name == "jsonl":
        assert len(done.out.splitlines()) == 19 + 3


def test_verify_and_show_name_half_of_a_surrogate_pair(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = halved_record(tmp_path)
    done = command(capsys, "audit", "verify", str(path))
    assert done.code == 1
    done.out.encode()
    assert f"FAULT: {path}:20: foreign" in done.out
    assert "half of a surrogate pair" in done.out
    shown = command(capsys, "audit", "show", ".1", "--record", str(path))
    assert shown.code == 0
    assert f"{path}:20: half of a surrogate pair" in shown.err


@pytest.mark.parametrize("name", RECORD_COMMANDS)
def test_a_file_in_another_encoding_is_named_and_nothing_of_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = sample_record(tmp_path)
    path.write_bytes(path.read_text(encoding="utf-8").encode("utf-16"))
    done = command(capsys, *RECORD_COMMANDS[name], "--record", str(path))
    assert f"{path}:1: not UTF-8" in done.err
    assert "Traceback" not in done.err
