"""Stdio servers on the event loop."""

import asyncio
import contextlib
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop
from tests.support.waiting import PATIENCE_S, run_async, wait_for, within

from thoughtgate.errors import PeerGone
from thoughtgate.transports.child_process import Child, ChildCommand

_ECHO = "import sys\nfor line in sys.stdin: print('got', line.strip(), flush=True)"


class _Heard:
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.codes: list[int] = []
        self.errors = b""

    def stderr(self, data: bytes) -> None:
        self.errors += data

    def child(self, code: str, **env: str) -> Child:
        command = ChildCommand(sys.executable, ("-c", code), {**os.environ, **env})
        return Child(
            command,
            on_line=self.lines.append,
            on_exit=self.codes.append,
            on_stderr=self.stderr,
        )


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)


def test_lines_go_in_and_come_out() -> None:
    async def main() -> None:
        heard = _Heard()
        child = heard.child(_ECHO)
        await child.start()
        assert child.is_running
        child.send(b"one")
        child.send(b"two")
        await _until(lambda: len(heard.lines) >= 2)
        assert heard.lines == [b"got one", b"got two"]
        assert await child.stop() == 0
        assert heard.codes == [0]
        assert not child.is_running

    run_async(main())


def test_a_command_that_does_not_exist_says_so_without_a_path() -> None:
    async def main() -> None:
        child = Child(
            ChildCommand("/nonexistent/command"),
            on_line=lambda _: None,
            on_exit=lambda _: None,
        )
        with pytest.raises(PeerGone, match="No such file") as raised:
            await child.start()
        assert "nonexistent" not in str(raised.value)
        with pytest.raises(PeerGone):
            child.send(b"x")
        assert await child.stop() == 0

    run_async(main())


def test_a_gate_without_descriptors_says_that_the_server_cannot_start() -> None:
    async def main() -> None:
        child = _Heard().child(_ECHO)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            with pytest.raises(PeerGone, match="Too many open files"):
                await child.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not child.is_running

    run_async(main())


def test_a_server_that_ends_by_itself_is_reported_with_its_code() -> None:
    async def main() -> None:
        heard = _Heard()
        child = heard.child("import sys; print('last', end=''); sys.exit(3)")
        await child.start()
        async with asyncio.timeout(10):
            while not heard.codes:  # noqa: ASYNC110  what is waited for has no event
                await asyncio.sleep(0.005)
        assert heard.codes == [3]
        assert heard.lines == [b"last"]
        with pytest.raises(PeerGone):
            child.send(b"x")

    run_async(main())


def test_a_server_that_ignores_everything_is_killed_with_what_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    code = (
        "import os,signal,subprocess,sys,time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "kid = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(note)!r},'w').write(f'{{os.getpid()}} {{kid.pid}}')\n"
        "print('up', flush=True)\n"
        "time.sleep(600)\n"
    )

    async def main() -> None:
        heard = _Heard()
        child = heard.child(code)
        await child.start()
        await _until(lambda: len(heard.lines) >= 1)
        await child.stop(0.1, 0.1)

    run_async(main())
    pids = [int(word) for word in note.read_text().split()]
    wait_for(lambda: not any(_is_alive(pid) for pid in pids), what="the end of both processes")


def test_stderr_is_kept_apart() -> None:
    async def main() -> None:
        heard = _Heard()
        child = heard.child("import sys; print('noise', file=sys.stderr); print('up', flush=True)")
        await child.start()
        await _until(lambda: len(heard.lines) >= 1)
        await _until(lambda: b"noise" in heard.errors)  # the two pipes are read in any order
        await child.stop()
        assert heard.lines == [b"up"]

    run_async(main())


def _is_alive(pid: int) -> bool:
    try:
        with Path(f"/proc/{pid}/stat").open() as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class _Watched:
    """Hears, in the parent as in the child, through a pipe, as a guardian does."""

    def __init__(self) -> None:
        self.reader, self._writer = os.pipe()

    def watch(self, pid: int) -> None:
        os.write(self._writer, b"+%d " % pid)

    def forget(self, pid: int) -> None:
        os.write(self._writer, b"-%d " % pid)

    def said(self) -> list[int]:
        os.close(self._writer)
        with os.fdopen(self.reader, "rb") as pipe:
            return [int(word) for word in within(pipe.read).split()]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    "command",
    [
        ChildCommand("/nonexistent/command"),
        ChildCommand("/"),
        ChildCommand("true", cwd="/nonexistent"),
        ChildCommand(sys.executable, ("-c", "pass")),
    ],
)
def test_whoever_named_itself_is_forgotten_whatever_became_of_it(
    command: ChildCommand, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    watched = _Watched()

    async def main() -> None:
        over = asyncio.Event()
        child = Child(
            replace(command, env=dict(os.environ)),
            on_line=lambda _: None,
            on_exit=lambda _: over.set(),
            watcher=watched,
        )
        with contextlib.suppress(PeerGone):
            await child.start()
            async with asyncio.timeout(10):
                await over.wait()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(main(), PATIENCE_S))
    said = watched.said()
    assert sum(said) == 0
    assert said or command.cwd  # some loops look at the directory first
    assert 0 not in said


def test_a_group_is_not_signalled_after_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        child = _Heard().child("")
        await child.start()
        await child.stop()
        signalled: list[int] = []
        # The system may have given the id to another group by now.
        monkeypatch.setattr(os, "killpg", lambda group, _: signalled.append(group))
        child.signal_group(15)
        await child.stop()
        assert signalled == []

    run_async(main())
