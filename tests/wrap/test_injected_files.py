"""Runs that touch no file have keys of their own, and leave nothing behind."""

from pathlib import Path

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.agents.injection.injection import PrivateFile
from thoughtgate.wrap.injected_files import (
    RunKey,
    base_key,
    folder_of,
    is_first_time,
    remove_files,
    remove_stale_files,
    stale_folders,
    write_files,
)
from thoughtgate.wrap.rewritten_entry import run_key


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}


def test_the_first_free_key_is_taken_so_that_command_lines_stay_the_same(
    environ: dict[str, str],
) -> None:
    one, two = RunKey("k", environ), RunKey("k", environ)
    assert (one.key, two.key) == ("k", "k-2")
    one.release()
    again = RunKey("k", environ)
    assert again.key == "k"
    for key in (again, two):
        key.release()
        key.release()
    assert list(Path(environ["THOUGHTGATE_STATE_DIR"], "runs").iterdir()) == []


def test_a_key_is_never_that_of_a_run_that_rewrites(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="claude-code")
    scene.write(scene.home / ".claude.json", {"mcpServers": {"a": server()}})
    plan = scene.plan()
    assert base_key(plan) == base_key(scene.plan())
    assert base_key(plan) != run_key(plan)


def test_private_files_are_for_their_owner_alone_and_are_removed(environ: dict[str, str]) -> None:
    folder = folder_of("k", environ)
    write_files(folder, [PrivateFile(folder / "mcp.json", b"x")])
    assert (folder / "mcp.json").read_bytes() == b"x"
    assert (folder / "mcp.json").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    remove_files(folder)
    remove_files(folder)
    assert not folder.exists()


def test_only_files_of_keys_that_nobody_holds_are_stale(environ: dict[str, str]) -> None:
    held = RunKey("k", environ)
    for key in ("k", "dead"):
        folder = folder_of(key, environ)
        write_files(folder, [PrivateFile(folder / "mcp.json", b"x")])
    assert stale_folders(environ) == [folder_of("dead", environ)]
    remove_stale_files(environ)
    assert folder_of("k", environ).exists()
    assert not folder_of("dead", environ).exists()
    held.release()
    remove_stale_files(environ)
    assert not folder_of("k", environ).exists()


def test_something_is_said_once(environ: dict[str, str]) -> None:
    assert is_first_time("resume-x", environ)
    assert not is_first_time("resume-x", environ)
    assert is_first_time("resume-y", environ)
