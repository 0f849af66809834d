"""A wrap's hold on config files: locked, rewritten, put back, whatever happens."""

import contextlib
import json
import os
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.agent_files import (
    OURS,
    Scene,
    head,
    put_behind_gate,
    server,
    shim_args,
    two_files,
    wrapping,
)

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.journal import find_journals
from thoughtgate.agents.left_configs import is_live, restore_orphan
from thoughtgate.agents.rewrite import Rewrite, rewrite
from thoughtgate.agents.wrapped_configs import WrappedConfigs
from thoughtgate.errors import ConfigError, Conflict, UsageError


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return two_files(tmp_path)


def _contents(scene: Scene) -> list[bytes]:
    return [
        path.read_bytes() for path in (scene.home / ".claude.json", scene.project / ".mcp.json")
    ]


@pytest.fixture
def killed(scene: Scene) -> Iterator[int]:
    """A wrap that was killed; its process id."""
    with wrapping(scene) as process:
        process.kill()
        process.wait(10)
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
def test_a_wrap_that_only_this_state_directory_does_not_know_is_refused(scene: Scene) -> None:
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        during = _contents(scene)
        ((journal,), ()) = find_journals(scene.state)
        assert is_live(journal)
        with pytest.raises(Conflict):
            restore_orphan(journal)
        journal.file.unlink()
        with pytest.raises(Conflict, match="locked by another thoughtgate wrap"):
            scene.configs(key="run2").acquire()
        assert _contents(scene) == during


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_whoever_ends_last_restores_a_shared_file(scene: Scene, first_ends_first: bool) -> None:
    before = _contents(scene)
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        one = first.enter_context(scene.configs())
        one.write(put_behind_gate)
        during = _contents(scene)
        two = second.enter_context(scene.configs(key="run2"))
        two.write(put_behind_gate)
        assert (dict(two.runs), len(two.warnings)) == (dict(one.runs), 2)
        assert _contents(scene) == during
        assert len(find_journals(scene.state)[0]) == 2
        (first if first_ends_first else second).close()
        assert _contents(scene) == during
        ((journal,), ()) = find_journals(scene.state)
        assert journal.key == ("run2" if first_ends_first else "run1")
        assert is_live(journal)
    assert _contents(scene) == before
    assert scene.litter() == []
    assert find_journals(scene.state) == ((), ())


def test_a_wrap_restores_what_only_it_uses_and_leaves_what_is_shared(scene: Scene) -> None:
    before = _contents(scene)
    other = Scene(scene.top, agent="claude-code", cwd=scene.top / "work" / "other")
    other.write(other.project / ".mcp.json", {"mcpServers": {"c": server("node")}})
    theirs = (other.project / ".mcp.json").read_bytes()
    with scene.configs() as first:
        first.write(put_behind_gate)
        with other.configs(key="run2") as second:
            second.write(put_behind_gate)
            assert OURS in (other.project / ".mcp.json").read_text()
            first.restore()
            first.release()
            user, project = _contents(scene)
            assert (OURS in user.decode(), project) == (True, before[1])
    assert (_contents(scene), (other.project / ".mcp.json").read_bytes()) == (before, theirs)
    assert scene.litter() == []


def test_a_server_that_one_wrap_takes_in_is_restored_by_the_other(scene: Scene) -> None:
    path = scene.project / ".mcp.json"
    with scene.configs() as first:
        first.write(put_behind_gate)
        with scene.configs(key="run2") as second:
            second.write(put_behind_gate)
            values = json.loads(path.read_bytes())
            values["mcpServers"]["late"] = server("late")
            scene.write(path, values)
            assert second.rewrite_added(put_behind_gate) is not None
            assert first.rewrite_added(put_behind_gate) is not None
            assert json.loads(path.read_bytes())["mcpServers"]["late"]["command"] == OURS
        assert OURS in path.read_text()
    assert json.loads(path.read_bytes()) == {
        "mcpServers": {"b": server("node"), "late": server("late")}
    }
    assert scene.litter() == []


def test_a_file_that_was_rewritten_in_another_way_is_not_shared(scene: Scene) -> None:
    def otherwise(plan: Plan) -> Rewrite:
        return rewrite(plan, ["/elsewhere/thoughtgate"], shim_args)

    with scene.configs() as first:
        first.write(put_behind_gate)
        during = _contents(scene)
        with (
            pytest.raises(Conflict, match="another installation"),
            scene.configs(key="2") as second,
        ):
            second.write(otherwise)
        assert _contents(scene) == during
        ((journal,), ()) = find_journals(scene.state)
        assert journal.key == "run1"
    assert scene.litter() == []


def test_a_killed_wrap_leaves_a_shared_file_to_the_other(scene: Scene) -> None:
    before = _contents(scene)
    with wrapping(scene) as other, scene.configs(key="run2") as mine:
        mine.write(put_behind_gate)
        assert [str(other.pid) in str(one) for one in mine.warnings] == [True, True]
        during = _contents(scene)
        other.kill()
        other.wait(10)
        theirs = next(one for one in find_journals(scene.state)[0] if one.key == "run1")
        assert restore_orphan(theirs, ended=True).restored == ()
        assert _contents(scene) == during
    assert _contents(scene) == before
    assert scene.litter() == []
    assert find_journals(scene.state) == ((), ())


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
                os.chown(scene.state, 65534, -1)
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


def test_a_wrap_that_cannot_be_mended_stops_the_next_one(scene: Scene, killed: int) -> None:
    (scene.project / ".mcp.json").write_text("{ half")
    with pytest.raises(ConfigError, match="restore the backup with: cp"):
        scene.configs().acquire()
    assert (scene.project / ".mcp.json.thoughtgate-backup").exists()


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
