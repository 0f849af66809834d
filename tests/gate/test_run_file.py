"""The run file: private, replaced whole, and believed only from its owner."""

import json
import os
import signal
import stat
from pathlib import Path

import pytest
from tests.support.waiting import reap, wait_for

from thoughtgate.errors import UsageError
from thoughtgate.gate.run_file import (
    RunFile,
    find_run_file,
    has_ended,
    is_stopped,
    keys_in_use,
    read_run_file,
    remove_dead_runs,
    remove_run_file,
    run_path,
    runs_directory,
    write_run_file,
)

RUN = RunFile("127.0.0.1", 4242, "secret", "production", os.getpid())


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "runs" / "key.json")


def test_a_run_file_reads_back_and_is_its_owners_alone(place: str) -> None:
    write_run_file(place, RUN)

    assert read_run_file(place) == RUN
    moved = RUN._replace(entries={"k": {"env": {"HOME": "/h"}}})
    write_run_file(place, moved)
    assert read_run_file(place) == moved
    file = Path(place)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_touch_is_refused(place: str, mode: int) -> None:
    write_run_file(place, RUN)
    Path(place).chmod(mode)

    with pytest.raises(UsageError, match="chmod 600"):
        read_run_file(place)


def test_a_link_is_refused(place: str, tmp_path: Path) -> None:
    write_run_file(place, RUN)
    (tmp_path / "link.json").symlink_to(place)

    with pytest.raises(UsageError, match="unwrap"):
        read_run_file(str(tmp_path / "link.json"))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"host": 1}', "null", '{"port": "x"}'])
def test_another_content_is_refused(place: str, text: str) -> None:
    write_run_file(place, RUN)
    Path(place).write_text(text, "utf-8")

    with pytest.raises(UsageError, match="not a run file"):
        read_run_file(place)


def test_a_missing_file_says_what_mends_it(place: str) -> None:
    with pytest.raises(UsageError, match="thoughtgate unwrap"):
        read_run_file(place)


@pytest.mark.parametrize("key", ["../escape", "a/b", ".hidden", "..", "./x"])
def test_a_key_cannot_leave_its_directory(key: str) -> None:
    with pytest.raises(UsageError, match="neither a key nor an absolute path"):
        run_path(key, {})


def test_a_key_stands_for_a_file_in_the_state_directory_and_a_path_for_itself() -> None:
    environ = {"THOUGHTGATE_STATE_DIR": "/somewhere"}

    assert run_path("abc", environ) == "/somewhere/runs/abc.json"
    assert run_path("/else/where.json", environ) == "/else/where.json"


def test_a_run_removes_its_own_file_and_no_other(place: str) -> None:
    other = RUN._replace(token="another")
    write_run_file(place, other)

    remove_run_file(place, RUN)
    assert read_run_file(place) == other

    remove_run_file(place, other)
    assert not Path(place).exists()
    remove_run_file(place, other)


def test_only_files_of_ended_services_are_cleared_away(tmp_path: Path) -> None:
    environ = {"THOUGHTGATE_STATE_DIR": str(tmp_path)}
    gone = os.posix_spawnp("true", ["true"], {})
    reap(gone)
    write_run_file(run_path("alive", environ), RUN)
    write_run_file(run_path("gone", environ), RUN._replace(pid=gone))
    Path(runs_directory(environ), "odd.json").write_text(json.dumps({}), "utf-8")

    assert remove_dead_runs(runs_directory(environ)) == [run_path("gone", environ)]
    left = sorted(one.name for one in Path(runs_directory(environ)).iterdir())
    assert left == ["alive.json", "odd.json"]
    assert remove_dead_runs(str(tmp_path / "nowhere")) == []


def test_a_zombie_has_ended_and_nobody_never_ends() -> None:
    pid = os.posix_spawnp("sleep", ["sleep", "60"], {"PATH": os.environ["PATH"]})
    assert not has_ended(pid)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG))

    assert has_ended(pid)
    reap(pid)
    assert has_ended(pid)
    assert not has_ended(0)
    assert not has_ended(10**30)


def test_a_stopped_process_is_told_from_one_that_runs_or_has_ended() -> None:
    pid = os.posix_spawnp("sleep", ["sleep", "60"], {"PATH": os.environ["PATH"]})
    assert not is_stopped(pid)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: is_stopped(pid), what="the stop")
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: not is_stopped(pid), what="the continuation")
    os.kill(pid, signal.SIGKILL)
    reap(pid)
    assert not is_stopped(pid)
    assert not is_stopped(0)


def test_the_run_of_the_nearest_ancestor_is_found_among_those_that_serve_an_entry(
    place: str, tmp_path: Path
) -> None:
    mine = RUN._replace(serves=(place,), token="mine")
    parents = RUN._replace(pid=os.getppid(), token="parents")
    other = RUN._replace(pid=os.getppid(), token="other")
    write_run_file(str(tmp_path / "runs" / "other.json"), other)
    with pytest.raises(UsageError, match="no governed run"):
        find_run_file(place)
    write_run_file(place, parents)
    assert find_run_file(place) == parents
    write_run_file(str(tmp_path / "runs" / "key-2.json"), mine)
    assert find_run_file(place) == mine
    Path(place).unlink()
    assert find_run_file(place) == mine
    assert keys_in_use({"THOUGHTGATE_STATE_DIR": str(tmp_path)}) == {"key", "key-2", "other"}


def test_a_process_that_no_wrap_started_gets_the_run_that_its_entry_names(
    place: str, tmp_path: Path
) -> None:
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        child = RUN._replace(pid=pid, serves=(place,))
        write_run_file(str(tmp_path / "runs" / "a.json"), child)
        assert find_run_file(place) == child
        named = child._replace(serves=(), token="named")
        write_run_file(place, named)
        assert find_run_file(place) == named
    finally:
        os.kill(pid, signal.SIGKILL)
        reap(pid)
