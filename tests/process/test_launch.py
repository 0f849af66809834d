"""Starting programs: who they are, what they inherit, and what a failure leaves."""

import contextlib
import errno
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.support.commands import own_children
from tests.support.waiting import read_some, reap

from thoughtgate.process.launch import launch


def _nothing() -> None:
    """Nobody needs to know of the child."""


def _code(pid: int) -> int:
    return reap(pid)


def test_the_program_runs_with_its_own_streams_and_environment(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_bytes(b"hello\n")
    taken = tmp_path / "taken"
    stdin = os.open(given, os.O_RDONLY)
    stdout = os.open(taken, os.O_WRONLY | os.O_CREAT)
    environ = {"PATH": os.environ["PATH"], "WORD": "world"}

    pid = launch(["sh", "-c", "cat; echo $WORD"], environ, _nothing, stdin=stdin, stdout=stdout)

    assert _code(pid) == 0
    assert taken.read_bytes() == b"hello\nworld\n"
    os.close(stdin)
    os.close(stdout)


def test_the_child_speaks_before_it_is_the_program() -> None:
    reader, writer = os.pipe()

    pid = launch(["true"], os.environ, lambda: _say(writer))

    assert read_some(reader, 32) == b"%d" % pid
    assert _code(pid) == 0
    os.close(reader)
    os.close(writer)


def _say(writer: int) -> None:
    os.write(writer, b"%d" % os.getpid())


@pytest.mark.parametrize(
    ("command", "number"),
    [
        (["no-such-program-here"], errno.ENOENT),
        (["/"], errno.EACCES),
        (["a\0b"], errno.EINVAL),
    ],
)
def test_what_cannot_run_says_why_and_leaves_nothing(command: list[str], number: int) -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the entries are not paths
    children = own_children()

    with pytest.raises(OSError, match=r".") as raised:
        launch(command, {"PATH": os.environ["PATH"]}, _nothing)

    assert raised.value.errno == number
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - the entries are not paths
    assert own_children() == children


def test_a_signal_that_comes_before_the_exec_is_the_programs_own() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        pid = launch(command, os.environ, lambda: os.kill(os.getpid(), signal.SIGTERM))

        assert _code(pid) == -signal.SIGTERM
        assert heard == []
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_dead_guardian_does_not_end_what_is_started() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    def born() -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(writer, b"nobody hears this")

    assert _code(launch(["true"], os.environ, born)) == 0
    os.close(writer)


def test_an_environment_that_is_none_is_reported() -> None:
    with pytest.raises(OSError, match=r".") as raised:
        launch(["true"], {"A": 1}, _nothing)  # type: ignore[dict-item]

    assert raised.value.errno == errno.EINVAL
