"""Locks around config files."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.support.waiting import ending, read_line

from thoughtgate.agents.locks import LOCK_SUFFIX, FileLock, agent_lock, state_lock
from thoughtgate.errors import Conflict

HOLD = (
    "import sys; from pathlib import Path; from thoughtgate.agents.locks import FileLock\n"
    "lock = FileLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "c.json"
    path.write_text("{}")
    return path


@pytest.mark.requirement("EC-STDIO-005")
def test_a_lock_of_another_process_is_a_conflict_that_names_it(config: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(config)]
    with ending(subprocess.Popen(command, stdin=-1, stdout=-1, text=True)) as holder:
        assert read_line(holder.stdout) == "held\n"
        with pytest.raises(Conflict, match=rf"c\.json is locked by .* \(process {holder.pid}\)"):
            FileLock(config)
        holder.kill()
        holder.communicate(timeout=10)
    FileLock(config).release()


@pytest.mark.requirement("EC-STDIO-043")
def test_a_lock_outlives_an_atomic_save_of_the_config(config: Path) -> None:
    lock = FileLock(config)
    saved = config.with_name("editor.tmp")
    saved.write_text('{"saved": 1}')
    saved.replace(config)
    with pytest.raises(Conflict):
        FileLock(config)
    lock.release()


@pytest.mark.requirement("EC-STDIO-044")
def test_a_stale_lock_file_is_no_lock(config: Path) -> None:
    config.with_name(config.name + LOCK_SUFFIX).write_text("99999999")
    FileLock(config).release()


def test_a_released_lock_leaves_no_file_and_can_be_released_again(config: Path) -> None:
    lock = FileLock(config)
    assert lock.path.stat().st_mode & 0o777 == 0o600
    lock.release()
    lock.release()
    assert [one.name for one in config.parent.iterdir()] == ["c.json"]


def test_a_lock_file_that_was_replaced_is_not_removed(config: Path) -> None:
    lock = FileLock(config)
    lock.path.unlink()
    second = FileLock(config)
    lock.release()
    assert second.path.exists()
    second.release()


def test_a_link_in_the_place_of_the_lock_is_not_followed(config: Path) -> None:
    victim = config.with_name("victim")
    config.with_name(config.name + LOCK_SUFFIX).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(config)
    assert not victim.exists()


def test_a_child_process_does_not_inherit_the_lock(config: Path) -> None:
    lock = FileLock(config)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, close_fds=False)
    lock.release()
    FileLock(config).release()
    child.communicate(timeout=10)


def test_the_agents_lock_is_a_directory_for_the_time_of_an_edit(config: Path) -> None:
    directory = config.with_name("c.json.lock")
    with agent_lock(config, wanted=True) as held:
        assert held
        assert directory.is_dir()
    assert not directory.exists()
    with agent_lock(config, wanted=False) as held:
        assert held
        assert not directory.exists()


def test_the_agents_lock_is_waited_for(config: Path) -> None:
    directory = config.with_name("c.json.lock")
    directory.mkdir()
    threading.Timer(0.1, directory.rmdir).start()
    with agent_lock(config, wanted=True) as held:
        assert held


def test_a_lock_directory_of_a_dead_agent_is_taken_over(config: Path) -> None:
    directory = config.with_name("c.json.lock")
    directory.mkdir()
    os.utime(directory, (1, 1))
    with agent_lock(config, wanted=True) as held:
        assert held
    assert not directory.exists()


def test_a_lock_that_is_never_given_back_is_given_up(config: Path) -> None:
    directory = config.with_name("c.json.lock")
    directory.mkdir()
    with agent_lock(config, wanted=True) as held:
        assert not held
    assert directory.exists()


def test_a_lock_that_cannot_be_made_is_not_held(tmp_path: Path) -> None:
    with agent_lock(tmp_path / "no" / "c.json", wanted=True) as held:
        assert not held


def test_the_last_of_those_who_share_a_lock_gets_it_alone(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    first = FileLock(config)
    with pytest.raises(Conflict):
        FileLock(config, shared=True)
    first.share()
    second = FileLock(config, shared=True)
    with pytest.raises(Conflict):
        FileLock(config)
    assert not first.claim(shared=True)
    assert first.path.exists()
    assert second.claim(shared=True)
    second.release()
    assert not second.path.exists()


def test_a_lock_that_is_never_given_back_is_waited_for_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.agents.locks._WAIT_FOR_OTHERS_S", 0.05)
    held, again = state_lock(tmp_path), state_lock(tmp_path)
    with held, pytest.raises(Conflict, match="try again"), again:
        pass
    with state_lock(tmp_path):
        pass


def test_nothing_is_changed_by_the_state_directory_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)

    with pytest.raises(Conflict, match="belongs to another user"), state_lock(tmp_path):
        pass

    assert list(tmp_path.iterdir()) == []
