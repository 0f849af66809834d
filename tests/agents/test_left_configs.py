"""Config files that a killed wrap left rewritten: restored with and without their journal."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.agent_files import OURS, Scene, server, two_files, wrapping

from thoughtgate.agents.journal import find_journals
from thoughtgate.agents.left_configs import is_live, remove_entries, restore_orphan
from thoughtgate.errors import Conflict, UsageError


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return two_files(tmp_path)


@pytest.fixture
def killed(scene: Scene) -> Iterator[int]:
    """A wrap that was killed; its process id."""
    with wrapping(scene) as process:
        process.kill()
        process.wait(10)
        yield process.pid


def test_a_killed_wrap_is_mended_by_hand(scene: Scene, killed: int) -> None:
    ((journal,), ()) = find_journals(scene.state)
    assert (journal.pid, journal.agent_type) == (killed, "claude-code")
    assert not is_live(journal)
    assert len(restore_orphan(journal).restored) == 2
    assert OURS not in (scene.home / ".claude.json").read_text()
    assert OURS not in (scene.project / ".mcp.json").read_text()
    assert scene.litter() == []


def test_a_killed_wrap_whose_files_were_edited_is_mended_around_the_edits(
    scene: Scene, killed: int
) -> None:
    path = scene.home / ".claude.json"
    values = json.loads(path.read_bytes())
    values["firstStartTime"] = "now"
    path.write_text(json.dumps(values))
    ((journal,), ()) = find_journals(scene.state)
    assert not restore_orphan(journal).problems
    values = json.loads(path.read_bytes())
    assert values["firstStartTime"] == "now"
    assert values["mcpServers"] == {"a": server()}


def test_a_journal_whose_directory_is_gone_is_settled(scene: Scene, killed: int) -> None:
    for path in scene.project.iterdir():
        path.unlink()
    scene.project.rmdir()
    ((journal,), ()) = find_journals(scene.state)
    assert not is_live(journal)
    assert len(restore_orphan(journal).warnings) == 1
    assert find_journals(scene.state) == ((), ())


def test_a_lost_journal_is_made_up_for_by_the_command_lines(scene: Scene, killed: int) -> None:
    for path in (scene.state / "wraps").iterdir():
        path.unlink()
    path = scene.project / ".mcp.json"
    with pytest.raises(Conflict, match="already managed"):
        scene.configs().acquire()
    assert remove_entries(path).restored == (path,)
    assert json.loads(path.read_bytes()) == {"mcpServers": {"b": server("node")}}
    assert remove_entries(path).restored == ()


def test_salvaging_a_missing_file_says_so(scene: Scene) -> None:
    with pytest.raises(UsageError, match="no such file"):
        remove_entries(scene.project / "missing.json")
    with pytest.raises(UsageError, match="cannot be locked"):
        remove_entries(scene.project / "no" / "missing.toml")
