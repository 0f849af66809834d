"""Putting policy, record and desk together from a loaded config."""

import json
import os
from pathlib import Path

import pytest

from thoughtgate.errors import ConfigError, RecordError, UsageError
from thoughtgate.gate.approvals.queue import ApprovalQueue
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.open_governor import open_governor, record_place, refuse_stdout

BASE = "schema: 1\ndefault: forward\n"


def _load(tmp_path: Path, text: str = BASE) -> Loaded:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return load_configuration(str(path), dict(os.environ), str(tmp_path))


def test_the_flag_goes_before_the_config_and_the_config_before_the_default(tmp_path: Path) -> None:
    named = _load(tmp_path, BASE + "audit: {file: here.jsonl}\n")

    assert record_place(named, "/state", "/x/y") == "/x/y"
    assert record_place(named, "/state") == "/state/here.jsonl"
    elsewhere = _load(tmp_path, BASE + "audit: {file: /logs/here.jsonl}\n")
    assert record_place(elsewhere, "/state") == "/logs/here.jsonl"
    assert record_place(_load(tmp_path), "/state") == "/state/audit.jsonl"
    assert record_place(_load(tmp_path, BASE + "audit: {sink: stderr}\n"), "/s") == "stderr"
    starter = load_configuration(None, {"HOME": str(tmp_path)}, str(tmp_path))
    assert record_place(starter, "/state") == "/state/audit.jsonl"


def test_a_governor_records_where_it_was_told(tmp_path: Path) -> None:
    governor = open_governor(_load(tmp_path), {"SUB_RUN_ID": "r1"}, str(tmp_path))
    governor.start(1.0)
    governor.finish("SUCCEEDED", 2.0)
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()

    assert [json.loads(line)["type"] for line in lines] == ["run_start", "run_end"]
    assert {json.loads(line)["run_id"] for line in lines} == {"r1"}


@pytest.mark.parametrize(("audit", "waits"), [("", 0), ("audit: {fsync: true}\n", 2)])
def test_the_disk_is_waited_for_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audit: str, waits: int
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    governor = open_governor(_load(tmp_path, BASE + audit), {}, str(tmp_path))
    governor.start(1.0)
    governor.finish("SUCCEEDED", 2.0)

    assert len(synced) == waits


def test_with_a_desk_people_can_be_asked(tmp_path: Path) -> None:
    governor = open_governor(_load(tmp_path), {}, str(tmp_path))

    assert isinstance(governor.approvals, ApprovalQueue)
    governor.finish("SUCCEEDED", 2.0)


def test_a_signing_key_that_is_named_must_be_set(tmp_path: Path) -> None:
    loaded = _load(tmp_path, BASE + "audit: {sign_key_env: RECORD_KEY}\n")

    with pytest.raises(ConfigError, match="RECORD_KEY"):
        open_governor(loaded, {}, str(tmp_path))
    governor = open_governor(loaded, {"RECORD_KEY": "k" * 32}, str(tmp_path))
    governor.start(1.0)
    governor.finish("SUCCEEDED", 2.0)
    assert '"checkpoint"' in (tmp_path / "audit.jsonl").read_text()


def test_a_short_signing_key_is_refused_and_not_shown(tmp_path: Path) -> None:
    loaded = _load(tmp_path, BASE + "audit: {sign_key_env: RECORD_KEY}\n")

    with pytest.raises(ConfigError) as refused:
        open_governor(loaded, {"RECORD_KEY": "q" * 31}, str(tmp_path))
    said = str(refused.value)
    assert f"{loaded.path}: audit.sign_key_env: " in said
    assert "RECORD_KEY" in said
    assert "at least 32 random characters" in said
    assert "qq" not in said
    assert not (tmp_path / "audit.jsonl").exists()


@pytest.mark.promise("nothing-unrecorded")
def test_a_device_in_place_of_the_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").symlink_to("/dev/null")
    with pytest.raises(RecordError, match="must be a regular file"):
        open_governor(_load(tmp_path), {}, str(tmp_path))


def test_a_record_that_cannot_be_opened_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no-dir"):
        open_governor(_load(tmp_path), {}, str(tmp_path), audit="/proc/no-dir/audit.jsonl")


@pytest.mark.parametrize(
    ("profile", "said"),
    [("production", "calls are refused"), ("development", "calls are still forwarded")],
)
def test_the_operator_is_told_what_becomes_of_calls_by_the_profile_in_force(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], profile: str, said: str
) -> None:
    other = "development" if profile == "production" else "production"
    governor = open_governor(_load(tmp_path, BASE + f"profile: {other}\n"), {}, str(tmp_path))
    governor.start(1.0)
    governor.judge.replace_policy(_load(tmp_path, BASE + f"profile: {profile}\n").policy)
    (tmp_path / "audit.jsonl").unlink()
    (tmp_path / "audit.jsonl").mkdir()
    governor.finish("FAILED", 2.0)

    assert capfd.readouterr().err.rstrip().endswith(said)


def test_the_record_may_go_anywhere_but_to_stdout(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text("")
    refuse_stdout("stderr", "stderr")
    refuse_stdout(str(path), "")
    refuse_stdout(str(tmp_path / "missing"), "")
    refuse_stdout("/dev/null", "")
    with pytest.raises(UsageError, match="stdout carries MCP"):
        refuse_stdout("stdout", "stdout")
    with pytest.raises(ConfigError, match=r"audit\.sink"):
        refuse_stdout("stdout", "")
