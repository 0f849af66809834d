import csv
import io
from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.records import T0, write_run

from thoughtgate.cli.audit.source import Place, find_place, parse_moment, write_csv
from thoughtgate.errors import UsageError
from thoughtgate.record.ledger import ledger_path


def test_times_are_ago_or_absolute() -> None:
    assert parse_moment("", 100.0) == 0.0
    assert parse_moment("1h30m", 10_000.0) == 10_000 - 5400
    assert parse_moment("2025-10-09T08:53:20Z", 0) == T0
    assert parse_moment("2025-10-09T10:53:20+02:00", 0) == T0
    assert parse_moment("2025-10-09T08:53:20", 0) == T0
    assert parse_moment("2025-10-09", 0) == T0 - 8 * 3600 - 53 * 60 - 20
    with pytest.raises(UsageError, match="yesterday"):
        parse_moment("yesterday", 0)


def test_the_record_is_where_the_config_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "thoughtgate.yaml"
    config.write_text(
        "schema: 1\ndefault: deny\naudit: {file: here.jsonl, sign_key_env: AUDIT_KEY}\n"
    )
    state = tmp_path / "state"
    monkeypatch.setenv("AUDIT_KEY", "k")
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(state))
    assert find_place(None, str(config)) == Place(state / "here.jsonl", b"k")
    assert find_place(tmp_path / "x", str(config)) == Place(tmp_path / "x", b"k")
    assert find_place(tmp_path / "x", None) == Place(tmp_path / "x")


def test_without_a_config_the_record_is_in_the_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    sample_record(tmp_path)
    assert command(capsys, "audit", "query", "--json").json[0]["call_id"] == "run-1.3"


def test_a_record_on_a_stream_cannot_be_asked(tmp_path: Path) -> None:
    config = tmp_path / "thoughtgate.yaml"
    config.write_text("schema: 1\ndefault: deny\naudit: {sink: stderr}\n")
    with pytest.raises(UsageError, match="--record"):
        find_place(None, str(config))


@pytest.mark.parametrize("first", ["=", "\n=", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_csv_cannot_run_in_a_spreadsheet(capsys: pytest.CaptureFixture[str], first: str) -> None:
    write_csv(["tool", "started_at"], [{"tool": f"{first}HYPERLINK(1)", "started_at": T0}])
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows == [["tool", "started_at"], [f"'{first}HYPERLINK(1)", "2025-10-09T08:53:20.000Z"]]


def test_a_record_without_a_ledger_is_asked_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, config = sample_record(tmp_path), tmp_path / "thoughtgate.yaml"
    config.write_text(f"schema: 1\ndefault: deny\naudit: {{file: {path}, ledger: false}}\n")
    done = command(capsys, "audit", "query", "-c", str(config), "--json")
    assert len(done.json) == 3
    assert not ledger_path(path).exists()


def test_a_ledger_that_cannot_be_kept_is_done_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    ledger_path(path).mkdir()
    done = command(capsys, "audit", "query", "--record", str(path), "--json")
    assert len(done.json) == 3
    assert "using a temporary database instead" in done.err


def test_many_faulty_lines_are_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    with path.open("ab") as file:
        file.write(b"rubbish\n" * 9)
    done = command(capsys, "audit", "stats", "--record", str(path), "--json")
    assert "4 more unreadable lines" in done.err


@pytest.mark.parametrize(
    "asked", [("query", "--json"), ("tail", "--json"), ("export", "--format", "jsonl")]
)
def test_files_put_aside_are_read_when_the_current_one_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: tuple[str, ...]
) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 20, rotate_bytes=4_000, keep=100)
    path.unlink()
    done = command(capsys, "audit", *asked, "--record", str(path))
    assert done.code == 0
    assert "run-1.1" in done.out
    assert done.err == (
        f"Warning: {path}: the current file is missing; only the rotated files are read\n"
    )
    assert not path.exists()


def test_no_record_and_no_directory_are_told_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = command(capsys, "audit", "query", "--record", str(tmp_path / "none" / "audit.jsonl"))
    assert done.code == 2
    assert "there is no record here" in done.err


@pytest.mark.parametrize(
    "content", [b"\x7fELF\x00\n\xff\n", b'{"name": 1}', b"schema: 1\nrules: []\n"]
)
@pytest.mark.parametrize(
    "asked", [("audit", "query"), ("audit", "stats"), ("audit", "show", ".1"), ("policy", "learn")]
)
def test_a_file_that_is_no_record_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: tuple[str, ...], content: bytes
) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    done = command(capsys, *asked, "--record", str(path))
    assert done.code == 2
    assert f"{path} is not a record" in done.err
    assert done.out == ""
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_without_a_line_yet_is_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch()
    done = command(capsys, "audit", "query", "--record", str(path), "--json")
    assert (done.code, done.json) == (0, [])


def test_one_event_among_rubbish_makes_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    path.write_bytes(b"rubbish\n" + path.read_bytes())
    done = command(capsys, "audit", "query", "--record", str(path), "--json")
    assert len(done.json) == 3
    assert f"{path}:1: " in done.err


def test_a_ledger_that_is_damaged_is_made_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    ledger_path(path).write_bytes(b"no database" * 1000)
    done = command(capsys, "audit", "query", "--record", str(path), "--json")
    assert (done.code, len(done.json)) == (0, 3)
