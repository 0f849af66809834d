"""The guide's channel: installed as its reader would install it, used through the real command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.channel_packages import install_from_guide
from tests.support.commands import ROOT, thoughtgate
from tests.support.shim_peer import ShimPeer
from tests.support.waiting import wait_for
from tests.support.wraps import kind_of, text_of

SECRET = "sk-abcdefghijklmnop"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return install_from_guide(tmp_path / "package")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "requests"
    made.mkdir()
    return made


def config(options: str, channel: str = "folder") -> str:
    return (
        "schema: 1\ndefault: forward\nrules:\n"
        "  - {tool: delete_note, action: approve, approval: notes}\n"
        f"approval:\n  notes: {{channel: {channel}, options: {options}}}\n"
    )


def call(peer: ShimPeer, ident: int, note: str) -> None:
    params = {"name": "delete_note", "arguments": {"name": note, "api_key": SECRET}}
    peer.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})


def newest(folder: Path, count: int) -> Path:
    """Wait for so many requests and return the newest that is pending."""
    requests = wait_for(
        lambda: found if len(found := list(folder.glob("*.json"))) == count else None,
        what="the request in the folder",
    )
    # The channel writes in two steps: a new file is empty at first.
    wait_for(lambda: all(one.read_text() for one in requests), what="the requests' text")
    (pending,) = [one for one in requests if json.loads(one.read_text())["status"] == "pending"]
    return pending


def test_calls_are_decided_in_the_folder(tmp_path: Path, package: Path, folder: Path) -> None:
    env = {"PYTHONPATH": str(package)}
    with ShimPeer(tmp_path, config(f"{{folder: {folder}}}"), env=env) as peer:
        call(peer, 1, "draft")
        request = newest(folder, 1)
        assert json.loads(request.read_text())["tool"] == "delete_note"
        assert SECRET not in request.read_text()
        assert peer.calls_reached() == []
        request.with_suffix(".ann.decision").write_text("approve checked\n")
        assert text_of(peer.receive_answer(1)) == "deleted draft"
        wait_for(lambda: json.loads(request.read_text())["status"] in {"approved", "used"})

        call(peer, 2, "budget")
        newest(folder, 2).with_suffix(".bob.decision").write_text("deny not now")
        assert kind_of(peer.receive_answer(2)) == "approval_rejected"
        assert peer.calls_reached() == ["delete_note"]

        call(peer, 3, "plan")
        withdrawn = newest(folder, 3)
        peer.finish()
    assert json.loads(withdrawn.read_text())["status"] == "withdrawn"
    decided = [one["approval"] for one in peer.events("approval_decided")]
    assert [(one["decided_by"], one["channel"], one["reason"]) for one in decided[:2]] == [
        ("folder:ann", "folder", "checked"),
        ("folder:bob", "folder", "not now"),
    ]


def test_options_that_the_channel_refuses_are_a_config_error(tmp_path: Path, package: Path) -> None:
    with ShimPeer(tmp_path, config("{place: x}"), env={"PYTHONPATH": str(package)}) as peer:
        assert peer.wait() == 1
        peer.wait_for_stderr("approval.notes.options: folder must be the path of a directory")


def test_a_channel_that_is_not_installed_is_a_config_error(tmp_path: Path, package: Path) -> None:
    file = tmp_path / "thoughtgate.yaml"
    file.write_text(config("{}", "pigeon"), "utf-8")
    run = subprocess.run(
        thoughtgate("validate-config", "-c", str(file)),
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 1
    assert "approval.notes.channel" in run.stderr
    assert "no channel 'pigeon'" in run.stderr
    assert "from installed packages: folder" in run.stderr


def test_the_guides_own_test_passes(package: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."],
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=package,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "8 passed" in run.stdout


def test_the_guides_code_is_linted(package: Path) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    rules = ROOT / "pyproject.toml"
    checked = ["check", "--no-cache", "--config", str(rules), "--ignore", "ARG002,INP001,FBT003"]
    run = subprocess.run(
        [str(ruff), *checked, "folder_channel.py"],
        cwd=package,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
