"""A wrap's hold on config files: locked, rewritten, put back, whatever happens."""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.agent_files import OURS, Scene, head, put_behind_gate, server
from tests.support.commands import ROOT
from tests.support.waiting import ending, read_line

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.journal import find_journals
from thoughtgate.agents.rewrite import Rewrite
from thoughtgate.agents.wrapped_configs import (
    WrappedConfigs,
    is_live,
    remove_entries,
    restore_orphan,
)
from thoughtgate.errors import ConfigError, Conflict, UsageError

WRAP_AND_WAIT = """
import sys
from pathlib import Path
from tests.support.agent_files import Scene, put_behind_gate
configs = Scene(Path(sys.argv[1]), agent="claude-code").configs()
configs.acquire()
configs.write(put_behind_gate)
print("wrapped", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path, agent="claude-code")
    scene.write(
        scene.home / ".claude.json",
        {
            "userID": "u",
            "mcpServers": {"a": server()},
            "projects": {str(scene.project): {"mcpServers": {"db": server("uvx", "db")}}},
        },
    )
    scene.write(scene.project / ".mcp.json", {"mcpServers": {"b": server("node")}})
    return scene


def _contents(scene: Scene) -> list[bytes]:
    return [
        path.read_bytes() for path in (scene.home / ".claude.json", scene.project / ".mcp.json")
    ]


@pytest.fixture
def killed(scene: Scene) -> Iterator[int]:
    """A wrap that was killed; its process id."""
    command = [sys.executable, "-c", WRAP_AND_WAIT, str(scene.top)]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=ROOT)
    with ending(process):
        assert read_line(process.stdout) == "wrapped\n"
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=10)
        yield process.pid


def test_files_are_wrapped_inside_the_context_and_as_before_after_it(scene: Scene) -> None:
    before = _contents(scene)
    with scene.configs() as configs:
        result = configs.write(put_behind_gate)
        assert len(result.governed) == 3
        for path in (scene.home / ".claude.json", scene.project / ".mcp.json"):
            backup = path.with_name(path.name + ".thoughtgate-backup")
            assert backup.read_bytes() in before
            assert backup.stat().st_mode & 0o777 == 0o600
        assert OURS in (scene.project / ".mcp.json").read_text()
        assert not (scene.home / ".claude.json.lock").exists()
    assert _contents(scene) == before
    assert scene.litter() == []
    assert find_journals(scene.state) == ((), ())


def test_files_are_put_back_when_the_context_ends_in_an_error(scene: Scene) -> None:
    before = _contents(scene)

    def fail_inside() -> None:
        with scene.configs() as configs:
            configs.write(put_behind_gate)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_inside()
    assert _contents(scene) == before
    assert scene.litter() == []


def test_restoring_twice_is_restoring_once(scene: Scene) -> None:
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        assert len(configs.restore().restored) == 2
        (scene.project / ".mcp.json").write_text("theirs now")
        assert configs.restore().restored == ()
    assert (scene.project / ".mcp.json").read_text() == "theirs now"


def test_files_may_be_left_wrapped_and_unwrapped_later(scene: Scene) -> None:
    before = _contents(scene)
    with scene.configs(restore_on_exit=False) as configs:
        configs.write(put_behind_gate)
    assert _contents(scene) != before
    ((journal,), ()) = find_journals(scene.state)
    assert not is_live(journal)
    assert len(restore_orphan(journal).restored) == 2
    assert _contents(scene) == before
    assert scene.litter() == []


@pytest.mark.requirement("EC-STDIO-005")
def test_a_second_wrap_of_the_same_config_is_refused(scene: Scene) -> None:
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        during = _contents(scene)
        second = scene.configs(key="run2")
        with pytest.raises(Conflict, match="locked by another thoughtgate wrap"):
            second.acquire()
        ((journal,), ()) = find_journals(scene.state)
        assert is_live(journal)
        with pytest.raises(Conflict):
            restore_orphan(journal)
        assert _contents(scene) == during


@pytest.mark.requirement("EC-STDIO-006")
def test_a_stale_backup_is_overwritten_with_a_warning(scene: Scene) -> None:
    backup = scene.write(scene.project / ".mcp.json.thoughtgate-backup", "stale")
    before = _contents(scene)
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        assert backup.read_bytes() == before[1]
        (warning,) = configs.warnings
        assert "overwrote the backup of an earlier wrap" in str(warning)
        assert str(backup) in str(warning)
    assert _contents(scene) == before


@pytest.mark.requirement("EC-STDIO-006")
def test_a_backup_that_is_still_true_is_no_reason_to_warn(scene: Scene) -> None:
    content = (scene.project / ".mcp.json").read_bytes()
    scene.write(scene.project / ".mcp.json.thoughtgate-backup", content)
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        assert configs.warnings == []


@pytest.mark.requirement("EC-STDIO-007")
def test_a_write_that_fails_puts_everything_back(scene: Scene) -> None:
    padding = {"mcpServers": {"b": server("node")}, "padding": "x" * 50_000}
    big = scene.write(scene.project / ".mcp.json", padding)
    before = _contents(scene)
    configs = scene.configs()
    configs.acquire()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (big.stat().st_size + 1, hard))
    try:
        with pytest.raises(ConfigError, match="cannot be written: File too large"):
            configs.write(put_behind_gate)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        configs.release()
    assert _contents(scene) == before
    assert scene.litter() == []
    assert find_journals(scene.state) == ((), ())


@pytest.mark.requirement("EC-STDIO-007")
def test_a_directory_without_permission_is_an_error_and_nothing_changes() -> None:
    with tempfile.TemporaryDirectory() as top:
        scene = Scene(Path(top), agent="claude-desktop")
        scene.write(scene.desktop, {"mcpServers": {"a": server()}})
        Path(top).chmod(0o755)
        scene.desktop.parent.chmod(0o555)
        is_root = os.geteuid() == 0
        try:
            if is_root:
                os.seteuid(65534)
            with pytest.raises(ConfigError, match="cannot be locked: Permission denied"):
                scene.configs().acquire()
        finally:
            if is_root:
                os.seteuid(0)
            scene.desktop.parent.chmod(0o755)
        assert scene.litter() == []


@pytest.mark.requirement("EC-STDIO-034")
def test_a_config_that_is_already_ours_is_refused(scene: Scene) -> None:
    wrapped = {"mcpServers": {"b": server(*head("b"), "node"), "c": server()}}
    scene.write(scene.project / ".mcp.json", wrapped)
    before = _contents(scene)
    with pytest.raises(Conflict, match="Config already managed by ThoughtGate") as caught:
        scene.configs().acquire()
    assert "mcpServers.b" in str(caught.value)
    assert "thoughtgate unwrap" in str(caught.value)
    assert _contents(scene) == before
    assert scene.litter() == []


@pytest.mark.requirement("EC-STDIO-043")
def test_an_atomic_save_during_the_session_is_kept(scene: Scene) -> None:
    path = scene.project / ".mcp.json"
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        values = json.loads(path.read_bytes())
        values["mcpServers"]["mine"] = server("mine")
        scene.write(scene.project / "editor.tmp", values).replace(path)
        with pytest.raises(Conflict):
            scene.configs(key="run2").acquire()
    assert json.loads(path.read_bytes()) == {
        "mcpServers": {"b": server("node"), "mine": server("mine")}
    }


def test_a_killed_wrap_is_mended_by_the_next_one(scene: Scene, killed: int) -> None:
    assert OURS in (scene.project / ".mcp.json").read_text()
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        assert [str(killed) in str(warning) for warning in configs.warnings] == [True, True]
        backup = scene.project / ".mcp.json.thoughtgate-backup"
        assert OURS not in backup.read_text()
    assert json.loads((scene.project / ".mcp.json").read_text()) == {
        "mcpServers": {"b": server("node")}
    }
    assert scene.litter() == []


def test_a_killed_wrap_is_mended_by_hand(scene: Scene, killed: int) -> None:
    ((journal,), ()) = find_journals(scene.state)
    assert (journal.pid, journal.agent_type) == (killed, "claude-code")
    assert not is_live(journal)
    assert len(restore_orphan(journal).restored) == 2
    assert OURS not in "".join(content.decode() for content in _contents(scene))
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


def test_a_wrap_that_cannot_be_mended_stops_the_next_one(scene: Scene, killed: int) -> None:
    (scene.project / ".mcp.json").write_text("{ half")
    with pytest.raises(ConfigError, match="restore the backup with: cp"):
        scene.configs().acquire()
    assert (scene.project / ".mcp.json.thoughtgate-backup").exists()


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


def test_a_file_that_changes_before_the_write_is_read_again(scene: Scene) -> None:
    path = scene.project / ".mcp.json"
    calls: list[Plan] = []

    def make(plan: Plan) -> Rewrite:
        result = put_behind_gate(plan)
        if not calls:
            scene.write(path, {"mcpServers": {"late": server("late")}})
        calls.append(plan)
        return result

    with scene.configs() as configs:
        configs.write(make)
        assert len(calls) == 2
        assert OURS in path.read_text()
    assert json.loads(path.read_bytes()) == {"mcpServers": {"late": server("late")}}
    assert scene.litter() == []


def test_a_file_that_keeps_changing_is_given_up(scene: Scene) -> None:
    path = scene.project / ".mcp.json"
    calls: list[int] = []

    def make(plan: Plan) -> Rewrite:
        result = put_behind_gate(plan)
        calls.append(1)
        scene.write(path, {"mcpServers": {f"s{len(calls)}": server()}})
        return result

    configs = scene.configs()
    configs.acquire()
    with pytest.raises(Conflict, match="keep changing"):
        configs.write(make)
    configs.release()
    assert OURS not in "".join(content.decode() for content in _contents(scene))
    assert scene.litter() == []


def test_a_file_that_the_agent_is_writing_is_not_written(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.agents.locks._WAIT_S", 0.2)
    before = _contents(scene)
    (scene.home / ".claude.json.lock").mkdir()
    configs = scene.configs()
    configs.acquire()
    with pytest.raises(Conflict, match="being written by the agent"):
        configs.write(put_behind_gate)
    configs.release()
    assert _contents(scene) == before
    assert scene.litter() == []


def test_a_plan_with_problems_is_not_acquired(scene: Scene) -> None:
    scene.write(scene.project / ".mcp.json", "")
    with pytest.raises(ConfigError, match="the file is empty"):
        scene.configs().acquire()
    assert scene.litter() == []


def test_an_unreadable_journal_is_a_warning(scene: Scene) -> None:
    scene.write(scene.state / "wraps" / "x.json", "nonsense")
    with scene.configs() as configs:
        assert "cannot be read as a journal" in str(configs.warnings[0])


def test_a_plan_without_changes_writes_nothing(scene: Scene) -> None:
    before = _contents(scene)
    with scene.configs() as configs:
        configs.write(lambda _: Rewrite((), (), ()))
        assert find_journals(scene.state) == ((), ())
        assert _contents(scene) == before


def test_what_could_not_be_restored_is_said_at_the_end(scene: Scene) -> None:
    def spoil(*, and_fail: bool) -> None:
        with scene.configs() as configs:
            configs.write(put_behind_gate)
            (scene.project / ".mcp.json").write_text("{ half")
            if and_fail:
                raise RuntimeError("agent crashed")

    with pytest.raises(ConfigError, match="could not be restored"):
        spoil(and_fail=False)
    backup = scene.project / ".mcp.json.thoughtgate-backup"
    backup.replace(scene.project / ".mcp.json")
    with pytest.raises(RuntimeError, match="agent crashed") as caught:
        spoil(and_fail=True)
    assert "could not be restored" in caught.value.__notes__[0]


def test_a_run_key_must_be_a_file_name(scene: Scene) -> None:
    with pytest.raises(UsageError):
        WrappedConfigs(scene.plan(), state=scene.state, key="../x", started_at="")
