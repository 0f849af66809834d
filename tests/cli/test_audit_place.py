import csv
import io
from pathlib import Path

import pytest
from tests.support.audit_cli import command, sample_record
from tests.support.records import T0

from thoughtgate.cli.audit_place import find_place, parse_moment, shown_time, write_csv
from thoughtgate.errors import UsageError


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
    monkeypatch.setenv("AUDIT_KEY", "k")
    assert find_place(None, str(config)) == (tmp_path / "here.jsonl", b"k")
    assert find_place(tmp_path / "x", str(config)) == (tmp_path / "x", b"k")
    assert find_place(tmp_path / "x", None) == (tmp_path / "x", b"")


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


def test_csv_cannot_run_in_a_spreadsheet(capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(["tool", "started_at"], [{"tool": "=HYPERLINK(1)", "started_at": T0}])
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows == [["tool", "started_at"], ["'=HYPERLINK(1)", "2025-10-09T08:53:20.000Z"]]


def test_a_time_that_is_not_known_is_a_dash() -> None:
    assert shown_time(None) == "-"
    assert shown_time(T0) == "2025-10-09 08:53:20"
