"""Files of an earlier version still open, verify and restore.

``tests/data/previous_version`` was written by the revision before the package ``runtime`` was
split, for a user whose home is ``/home/dev``. Its chains and digests are as that code computed
them. Never edit these files: if a format changes, a new version must still read them.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import NOW
from tests.support.audit_cli import command

from thoughtgate.agents.journal import find_journals
from thoughtgate.core.approval import APPROVED, DENIED, PENDING
from thoughtgate.gate.run_file import RunFile, read_run_file
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.database import Database
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.tasks import TaskStore

FILES = Path(__file__).parent / "data" / "previous_version"
HOME = "/home/dev"
SIGN_KEY = "key of the previous version"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's home, copied below the test's directory; its configs are still wrapped."""
    copy = tmp_path / "home"
    shutil.copytree(FILES / "home", copy)
    return copy


@pytest.fixture
def state(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory, whose journal names the copied home."""
    copy = tmp_path / "state"
    shutil.copytree(FILES / "state", copy)
    journal = copy / "wraps" / "run1.json"
    journal.write_text(journal.read_text("utf-8").replace(f'"{HOME}/', f'"{home}/'), "utf-8")
    # Git keeps no modes but the one for programs.
    (copy / "runs" / "run1.json").chmod(0o600)
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(copy))
    return copy


@pytest.fixture
def database(state: Path) -> Iterator[Database]:
    opened = open_database(state)
    yield opened
    opened.close()


def test_the_record_verifies_across_its_files_with_its_key(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECORD_KEY", SIGN_KEY)
    record = str(state / "audit.jsonl")
    done = command(capsys, "audit", "verify", record, "--key-env", "RECORD_KEY", "--json")
    assert (done.code, done.json["sound"], done.json["runs"]) == (0, True, 2)
    assert done.json["checkpoints"] > 0


def test_the_record_is_queried_and_exported(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = ("--record", str(state / "audit.jsonl"))
    calls = command(capsys, "audit", "query", *record, "--json").json
    assert [call["call_id"] for call in calls] == ["run-2.1", "run-1.3", "run-1.2", "run-1.1"]
    for form in ("ocsf", "flat", "csv", "jsonl"):
        assert command(capsys, "audit", "export", *record, "--format", form).code == 0


def test_approvals_and_grants_are_listed(database: Database) -> None:
    store = ApprovalStore(database)
    listed = {one.id: one.status for one in store.listed()}
    assert listed == {"pending1": PENDING, "decided1": APPROVED, "denied1": DENIED}
    assert [grant.id for grant in store.grants(NOW + 2)] == ["grant1"]
    assert store.handle("pending1", "slack") == "C1/1700000000.1"


def test_approvals_are_listed_on_the_command_line(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = command(capsys, "approvals", "list", "--all", "--json")
    assert done.code == 0
    assert {one["id"] for one in done.json} == {"pending1", "decided1", "denied1"}


def test_tasks_are_loaded(database: Database) -> None:
    (task,) = TaskStore(database, "gate1").load()
    assert task.server == "files"


def test_the_run_file_is_read(state: Path) -> None:
    told = RunFile("127.0.0.1", 43210, "token-of-a-past-run", "production", 0)
    assert read_run_file(str(state / "runs" / "run1.json")) == told


@pytest.mark.parametrize("has_backups", [True, False])
def test_unwrap_restores_the_configs(
    has_backups: bool, home: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configs = [home / ".claude.json", home / "project" / ".mcp.json"]
    backups = [one.with_name(f"{one.name}.thoughtgate-backup") for one in configs]
    originals = [one.read_bytes() for one in backups]
    if not has_backups:
        for one in backups:
            one.unlink()

    done = command(capsys, "unwrap", "--json")

    assert done.code == 0
    assert sorted(done.json["restored"]) == sorted(map(str, configs))
    assert [one.read_bytes() for one in configs] == originals
    assert find_journals(state) == ((), ())
    assert "shim" not in json.dumps([json.loads(one.read_bytes()) for one in configs])
