"""A process is never taken for another."""

import os
import signal
import subprocess
import sys

import pytest
from tests.support.waiting import ending, read_line, wait_for

from thoughtgate.stores.process_owner import is_alive, name_of, other_namespace, own_name

_SAY = "import sys; from thoughtgate.stores.process_owner import own_name; print(own_name(), flush=True); sys.stdin.read()"


def changed(name: str, place: int, value: str) -> str:
    parts = name.split("|")
    parts[place] = value
    return "|".join(parts)


def test_this_process_is_alive_and_keeps_its_name() -> None:
    assert own_name() == own_name()
    assert is_alive(own_name())


def test_a_killed_process_is_not_alive() -> None:
    command = [sys.executable, "-c", _SAY]
    pipe = subprocess.PIPE
    with ending(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)) as process:
        name = read_line(process.stdout).strip()
        assert name != own_name()
        assert is_alive(name)
        process.send_signal(signal.SIGKILL)
        wait_for(lambda: not is_alive(name), what="death, also as a zombie nobody has waited for")
        assert process.wait(10) == -signal.SIGKILL
    assert not is_alive(name)


def test_a_process_id_used_again_is_another_process() -> None:
    assert not is_alive(changed(own_name(), 5, "1"))


def test_a_reboot_ends_every_process() -> None:
    assert not is_alive(changed(own_name(), 2, "another-boot"))


@pytest.mark.parametrize("place", [1, 3])
def test_another_machine_or_namespace_cannot_be_judged_from_here(place: int) -> None:
    elsewhere = changed(changed(own_name(), place, "elsewhere"), 4, "999999999")
    assert is_alive(elsewhere)


@pytest.mark.parametrize("name", ["", "task:tg_1", "gate|a|b", "gate|m|b|n|{pid}x|1"])
def test_what_names_no_process_counts_as_alive(name: str) -> None:
    assert is_alive(name.format(pid=os.getpid()))


def test_another_process_can_be_named_while_it_lives() -> None:
    command = [sys.executable, "-c", "input()"]
    with ending(subprocess.Popen(command, stdin=subprocess.PIPE)) as process:
        name = name_of(process.pid)
        assert is_alive(name)
        assert name != own_name()
        process.kill()
    assert not is_alive(name)


def test_a_namespace_of_this_machine_is_named_if_it_is_not_ours() -> None:
    assert other_namespace(own_name()) == ""
    assert other_namespace("nothing") == ""
    inner = changed(own_name(), 3, "pid:[1]")
    assert other_namespace(inner) == "pid:[1]"
    assert other_namespace(changed(inner, 1, "another machine")) == ""
    assert other_namespace(changed(inner, 2, "another boot")) == ""
