"""Config files are put back as their owner left them."""

import json
from pathlib import Path

import pytest
from tests.support.agent_files import Scene, put_behind_gate, server

from thoughtgate.agents.journal import Journal, find_journals
from thoughtgate.agents.restoration import restore_files


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path, agent="cursor")
    scene.write(scene.home / ".cursor/mcp.json", {"mcpServers": {"a": server()}})
    return scene


def _wrapped(scene: Scene) -> Journal:
    """Wrap, and lose the process as a kill would: locks gone, everything else in place."""
    configs = scene.configs()
    configs.acquire()
    configs.write(put_behind_gate)
    configs.release()
    ((journal,), ()) = find_journals(scene.state)
    return journal


def test_a_file_that_nobody_touched_gets_its_bytes_back(scene: Scene) -> None:
    path = scene.home / ".cursor/mcp.json"
    path.chmod(0o604)
    before = path.read_bytes()
    journal = _wrapped(scene)
    assert path.read_bytes() != before
    outcome = restore_files(journal)
    assert outcome.restored == (path,)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o604
    assert scene.litter() == []
    assert find_journals(scene.state) == ((), ())


def test_a_file_that_was_never_written_is_left(scene: Scene) -> None:
    path = scene.home / ".cursor/mcp.json"
    before = path.read_bytes()
    journal = _wrapped(scene)
    path.write_bytes(before)
    inode = path.stat().st_ino
    assert not restore_files(journal).problems
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("backup", [None, b"{}", b"somebody else's"])
def test_a_backup_that_is_not_the_original_is_not_believed(
    scene: Scene, backup: bytes | None
) -> None:
    path = scene.home / ".cursor/mcp.json"
    before = path.read_bytes()
    journal = _wrapped(scene)
    journal.files[0].backup.unlink()
    if backup is not None:
        journal.files[0].backup.write_bytes(backup)
    assert not restore_files(journal).problems
    assert path.read_bytes() == before


@pytest.mark.requirement("EC-STDIO-039")
def test_what_the_agent_added_meanwhile_is_kept(scene: Scene) -> None:
    path = scene.home / ".cursor/mcp.json"
    journal = _wrapped(scene)
    values = json.loads(path.read_bytes())
    values["mcpServers"]["new"] = server("new")
    path.write_text(json.dumps(values))
    assert not restore_files(journal).problems
    assert json.loads(path.read_bytes()) == {"mcpServers": {"a": server(), "new": server("new")}}
    assert scene.litter() == []


def test_a_link_stays_a_link(scene: Scene) -> None:
    path = scene.home / ".cursor/mcp.json"
    target = scene.top / "dotfiles.json"
    path.rename(target)
    path.symlink_to(target)
    before = target.read_bytes()
    journal = _wrapped(scene)
    assert path.is_symlink()
    assert target.read_bytes() != before
    restore_files(journal)
    assert path.is_symlink()
    assert target.read_bytes() == before


def test_a_link_that_the_agent_replaced_by_a_file_is_undone_in_both_places(scene: Scene) -> None:
    path = scene.home / ".cursor/mcp.json"
    target = scene.top / "dotfiles.json"
    path.rename(target)
    path.symlink_to(target)
    before = target.read_bytes()
    journal = _wrapped(scene)
    wrapped = path.read_bytes()
    path.unlink()
    path.write_bytes(wrapped + b"\n")
    assert not restore_files(journal).problems
    assert target.read_bytes() == before
    assert path.read_bytes() == before + b"\n"


@pytest.mark.promise("config-restored")
@pytest.mark.parametrize("swapped", ["file", "directory"])
def test_a_link_that_came_later_does_not_choose_which_file_is_written(
    scene: Scene, swapped: str
) -> None:
    (scene.home / ".cursor/mcp.json").unlink()
    path = scene.project / ".cursor/mcp.json"
    scene.write(path, {"mcpServers": {"a": {**server(), "url": "https://evil.example/"}}})
    journal = _wrapped(scene)
    victim = scene.top / "elsewhere" / "mcp.json"
    scene.write(victim, {**json.loads(path.read_bytes()), "theme": "mine"})
    before = victim.read_bytes()
    if swapped == "file":
        path.unlink()
        path.symlink_to(victim)
    else:
        path.parent.rename(scene.project / "moved")
        path.parent.symlink_to(victim.parent)

    (problem,) = restore_files(journal).problems

    assert f"a link to {victim} is in its place" in str(problem)
    assert ("rm " in str(problem)) == (swapped == "file")
    assert victim.read_bytes() == before


def test_a_file_that_was_removed_stays_removed_and_its_backup_is_kept(scene: Scene) -> None:
    path = scene.home / ".cursor/mcp.json"
    before = path.read_bytes()
    journal = _wrapped(scene)
    path.unlink()
    outcome = restore_files(journal)
    assert "was removed while it was wrapped" in str(outcome.warnings[0])
    assert not path.exists()
    assert journal.files[0].backup.read_bytes() == before
    assert find_journals(scene.state) == ((), ())


def test_one_file_that_fails_does_not_stop_the_others(scene: Scene) -> None:
    user = scene.home / ".cursor/mcp.json"
    project = scene.write(scene.project / ".cursor/mcp.json", {"mcpServers": {"b": server()}})
    before = project.read_bytes()
    journal = _wrapped(scene)
    user.write_text("{ half a fi")
    outcome = restore_files(journal)
    (problem,) = outcome.problems
    backup = f"{user}.thoughtgate-backup"
    assert f"cp {backup} {user}" in str(problem)
    assert user.read_text() == "{ half a fi"
    assert project.read_bytes() == before
    ((left,), ()) = find_journals(scene.state)
    assert [record.path for record in left.files] == [user]
    assert Path(backup).exists()
    # Once the file can be read again, the rest of the journal mends it.
    Path(backup).replace(user)
    assert not restore_files(left).problems
    assert find_journals(scene.state) == ((), ())
