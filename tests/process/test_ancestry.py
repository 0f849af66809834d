"""Ancestors of a process, and the agent behind a gate's stdin."""

import json
import os
import pty
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from tests.support.waiting import PATIENCE_S, ending, read_some, reap, wait_for

from thoughtgate.process import ancestry
from thoughtgate.process.ancestry import (
    Process,
    cgroup_of,
    environment_of,
    find_agent,
    lineage,
    read_process,
    sees_namespace,
)

TELL = (
    "import json\n"
    "from thoughtgate.process.ancestry import find_agent\n"
    "print(json.dumps(find_agent()), flush=True)\n"
)


def test_a_process_comes_first_and_then_its_ancestors() -> None:
    line = lineage(os.getpid())
    assert [one.pid for one in line[:2]] == [os.getpid(), os.getppid()]
    assert line[0].user == os.getuid()
    assert all(above.started <= below.started for below, above in pairwise(line))
    assert line[0] == read_process(os.getpid())


def test_a_process_that_has_exited_is_unknown() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait(PATIENCE_S)
    assert read_process(ended.pid) is None
    assert lineage(ended.pid) == []
    assert cgroup_of(ended.pid) == ""
    assert environment_of(ended.pid) == {}


def test_the_environment_of_a_process_is_the_one_that_it_was_started_with() -> None:
    told = {"A": "b=c", "EMPTY": ""}
    with ending(subprocess.Popen(["cat"], env=told, stdin=subprocess.PIPE)) as process:
        # Until the process has executed the command, it may show no environment.
        wait_for(lambda: environment_of(process.pid) == told, what="the environment")


def test_ps_tells_the_same_where_there_is_no_proc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from_proc = lineage(os.getpid())
    monkeypatch.setattr(ancestry, "PROC", str(tmp_path))
    from_ps = lineage(os.getpid())
    assert [one[:3] for one in from_ps] == [one[:3] for one in from_proc]
    assert [one.name for one in from_ps] == [one.name for one in from_proc]
    assert [bool(one.terminal) for one in from_ps] == [bool(one.terminal) for one in from_proc]
    assert read_process(os.getpid()) == from_ps[0]
    assert not sees_namespace("pid:[1]")


def test_lines_of_ps_that_make_no_sense_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ancestry, "PROC", str(tmp_path))
    said = "1 0 0 ? a day without a date x\nshort\n1 0 0 ?? Mon Nov 16 16:32:28 2026 /sbin/launchd"
    monkeypatch.setattr(ancestry, "_PS", ("printf", said))
    one = read_process(1)
    assert one is not None
    assert (one.name, one.terminal, one.is_reaper) == ("launchd", "", True)
    monkeypatch.setattr(ancestry, "_PS", (str(tmp_path / "nothing"),))
    assert read_process(1) is None


def test_own_namespace_is_visible() -> None:
    assert sees_namespace(str(Path("/proc/self/ns/pid").readlink()))
    assert not sees_namespace("pid:[1]")


def ask(*command: str) -> Process:
    done = subprocess.run(
        command, input="", capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return Process(*json.loads(done.stdout))


def test_the_parent_is_the_agent() -> None:
    assert ask(sys.executable, "-c", TELL).pid == os.getpid()


def test_a_launcher_in_between_is_not_the_agent() -> None:
    assert ask("sh", "-c", 'sh -c \'"$0" -c "$1"; :\' "$0" "$1"; :', sys.executable, TELL).pid == (
        os.getpid()
    )


def test_a_program_that_makes_the_pipe_is_the_agent() -> None:
    found = ask("sh", "-c", ': | "$0" -c "$1" | cat', sys.executable, TELL)
    assert (found.parent, found.name) == (os.getpid(), "sh")


def in_terminal(*command: str) -> str:
    """Run a command as the first process of a new terminal and return what it prints."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    try:
        return read_some(master).decode()
    finally:
        reap(pid)
        os.close(master)


def test_a_terminal_emulator_or_multiplexer_is_not_an_agent() -> None:
    assert in_terminal(sys.executable, "-c", TELL).strip() == "null"


def test_the_shell_of_a_terminal_counts_as_the_agent() -> None:
    said = in_terminal("/bin/sh", "-c", '"$0" -c "$1"; :', sys.executable, TELL)
    assert Process(*json.loads(said)).name == "sh"


@pytest.mark.parametrize("name", ["systemd", "tmux: server"])
def test_a_service_manager_is_not_an_agent(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    parent = Process(700, 1, 1000, "", 5000, name)
    monkeypatch.setattr(ancestry, "lineage", lambda _pid: [parent, parent])
    monkeypatch.setattr(ancestry, "_session", lambda _pid: 700)
    monkeypatch.setattr(os, "isatty", lambda _descriptor: False)
    assert find_agent() is None
    monkeypatch.setattr(ancestry, "_session", lambda _pid: 600)
    assert find_agent() == parent


def test_nobody_is_the_agent_of_an_orphan(monkeypatch: pytest.MonkeyPatch) -> None:
    init = Process(1, 0, 0, "", 0, "anything")
    monkeypatch.setattr(ancestry, "lineage", lambda _pid: [init, init])
    monkeypatch.setattr(os, "isatty", lambda _descriptor: False)
    assert find_agent() is None
