"""A rewritten config, its backup and its lock are never part of a commit."""

import subprocess
from pathlib import Path

import pytest
from tests.support.agent_files import Scene, put_behind_gate, server

from thoughtgate.agents import git_worktree
from thoughtgate.agents.journal import find_journals
from thoughtgate.agents.left_configs import restore_orphan
from thoughtgate.agents.wrapped_configs import WrappedConfigs


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="claude-code")
    made.write(made.project / ".mcp.json", {"mcpServers": {"proj": server("project")}})
    _git(made, "init", "-q")
    return made


def _git(scene: Scene, *args: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(scene.project), *own, *args]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def _commit(scene: Scene) -> None:
    _git(scene, "add", "-A")
    _git(scene, "commit", "-qm", "x")


def _staged(scene: Scene) -> str:
    _git(scene, "add", "-A")
    return _git(scene, "diff", "--cached", "--name-only")


def _exclude(scene: Scene) -> str:
    return (scene.project / ".git" / "info" / "exclude").read_text("utf-8")


def test_a_tracked_config_is_unchanged_for_git_before_during_and_after(scene: Scene) -> None:
    _commit(scene)
    before, original = _exclude(scene), (scene.project / ".mcp.json").read_bytes()
    with scene.configs() as configs:
        assert _git(scene, "status", "--porcelain") == "", "the lock alone"
        configs.write(put_behind_gate)
        assert (scene.project / ".mcp.json").read_bytes() != original
        assert "\n".join(map(str, configs.warnings)).endswith("until it is restored")
        assert _git(scene, "status", "--porcelain") == ""
        assert _staged(scene) == ""
    assert _git(scene, "status", "--porcelain") == ""
    assert _git(scene, "ls-files", "-v").startswith("H ")
    assert _exclude(scene) == before
    (scene.project / ".mcp.json").write_text("{}", "utf-8")
    assert _staged(scene) == ".mcp.json\n"


def test_an_untracked_config_is_not_staged_as_it_was_rewritten(scene: Scene) -> None:
    (scene.project / "code.py").write_text("x", "utf-8")
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        assert _staged(scene) == "code.py\n"
    assert _staged(scene) == ".mcp.json\ncode.py\n"


def _leave(configs: WrappedConfigs) -> None:
    """End as a killed process does: without restoring, but without its locks."""
    for lock in configs._locks.values():
        lock.release()


def test_after_a_kill_whoever_restores_the_file_shows_it_to_git_again(scene: Scene) -> None:
    _commit(scene)
    before = _exclude(scene)
    configs = scene.configs()
    configs.acquire()
    configs.write(put_behind_gate)
    _leave(configs)
    assert _git(scene, "status", "--porcelain") == ""

    (journal,), _ = find_journals(scene.state)
    assert restore_orphan(journal).problems == ()

    assert _git(scene, "status", "--porcelain") == ""
    assert _git(scene, "ls-files", "-v").startswith("H ")
    assert _exclude(scene) == before


def test_the_next_wrap_after_a_kill_keeps_everything_out_again(scene: Scene) -> None:
    _commit(scene)
    configs = scene.configs()
    configs.acquire()
    configs.write(put_behind_gate)
    _leave(configs)

    with scene.configs() as again:
        again.write(put_behind_gate)
        assert _git(scene, "status", "--porcelain") == ""
        assert _staged(scene) == ""
    assert _git(scene, "ls-files", "-v").startswith("H ")


def test_a_flag_that_the_user_has_set_stays(scene: Scene) -> None:
    _commit(scene)
    _git(scene, "update-index", "--skip-worktree", ".mcp.json")
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        assert _staged(scene) == ""
    assert _git(scene, "ls-files", "-v").startswith("S ")


def test_a_backup_beside_a_link_is_kept_out_too(scene: Scene) -> None:
    target = scene.top / "dotfiles" / "mcp.json"
    scene.write(target, (scene.project / ".mcp.json").read_bytes())
    (scene.project / ".mcp.json").unlink()
    (scene.project / ".mcp.json").symlink_to(target)
    _commit(scene)
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        assert _staged(scene) == ""
    assert _git(scene, "status", "--porcelain") == ""


def test_programs_that_a_repository_names_are_not_run(scene: Scene) -> None:
    _commit(scene)
    trap = scene.top / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {scene.top}/sprung\n", "utf-8")
    trap.chmod(0o755)
    hooks = scene.project / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").symlink_to(trap)
    _git(scene, "config", "core.fsmonitor", str(trap))
    (scene.top / "sprung").unlink(missing_ok=True)
    with scene.configs() as configs:
        configs.write(put_behind_gate)
    assert not (scene.top / "sprung").exists()


def test_lines_of_the_user_are_kept_and_a_missing_file_is_made(scene: Scene) -> None:
    exclude = scene.project / ".git" / "info" / "exclude"
    exclude.write_text("/mine\n/a.lock", "utf-8")
    held = git_worktree.hold(scene.project, [scene.project / "a.lock", scene.project / "b[1]"])
    assert held is not None
    assert held.lines == ("/b\\[1]", "/.thoughtgate-*.tmp")
    git_worktree.release(held)
    assert exclude.read_text("utf-8") == "/mine\n/a.lock\n"

    exclude.unlink()
    held = git_worktree.hold(scene.project, [scene.project / "a.lock"])
    assert held is not None
    assert git_worktree.flag(held)
    assert git_worktree.unflag(held)
    assert "/a.lock\n" in exclude.read_text("utf-8")


def test_outside_of_a_work_tree_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert git_worktree.hold(tmp_path, [tmp_path / "x"]) is None


@pytest.mark.promise("config-restored")
@pytest.mark.parametrize("linked", ["info/exclude", "info"])
def test_no_link_chooses_which_file_gets_the_lines_for_git(scene: Scene, linked: str) -> None:
    outside = scene.home / "outside"
    outside.mkdir()
    precious = outside / "exclude"
    precious.write_text("precious\n", "utf-8")
    place = scene.project / ".git" / linked
    place.rename(place.with_name("moved"))
    place.symlink_to(precious if linked == "info/exclude" else outside)
    inode = precious.stat().st_ino

    with scene.configs() as configs:
        configs.write(put_behind_gate)
        assert precious.read_text("utf-8") == "precious\n"
        assert "do not commit it" in "\n".join(map(str, configs.warnings))

    assert precious.stat().st_ino == inode
