"""The agent as a child: its start, its signals, its end."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.waiting import run_async, wait_for

from thoughtgate.errors import UsageError
from thoughtgate.wrap import agent_process
from thoughtgate.wrap.agent_process import AgentProcess


def _start(command: list[str]) -> AgentProcess:
    return AgentProcess(command, os.environ, lambda: None)


def _run(command: list[str], act: Callable[[AgentProcess], Awaitable[int]]) -> int:
    async def run() -> int:
        return await act(_start(command))

    return run_async(run())


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 37", 37), ("kill -9 $$", 137)])
def test_the_exit_code_is_the_agents_own(script: str, code: int) -> None:
    assert _run(["sh", "-c", script], AgentProcess.wait) == code


def test_an_agent_that_cannot_start_is_named() -> None:
    with pytest.raises(UsageError, match="'no-such-agent' could not be started: No such file"):
        _run(["no-such-agent"], AgentProcess.wait)


def test_a_signal_is_passed_on() -> None:
    script = "import signal, sys; signal.signal(15, lambda *_: sys.exit(5)); signal.pause()"

    async def act(agent: AgentProcess) -> int:
        await _until_handles(agent.pid, signal.SIGTERM)
        return await agent.stop(signal.SIGTERM)

    assert _run([sys.executable, "-c", script], act) == 5


def test_one_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_process, "AGENT_GRACE_S", 0.2)
    script = "import signal; signal.signal(15, lambda *_: None)\nwhile True: signal.pause()"

    async def act(agent: AgentProcess) -> int:
        await _until_handles(agent.pid, signal.SIGTERM)
        return await agent.stop(signal.SIGTERM)

    assert _run([sys.executable, "-c", script], act) == 128 + signal.SIGKILL


def test_the_agent_starts_with_the_systems_own_signals() -> None:
    async def run() -> int:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: None)
        script = "import signal; print(open('/proc/self/status').read())"
        check = f"{script}\nassert signal.getsignal(15) == signal.SIG_DFL"
        return await _start([sys.executable, "-c", check]).wait()

    assert run_async(run()) == 0


async def _until_handles(pid: int, number: int) -> None:
    """Wait until a process has a handler for a signal."""
    await asyncio.to_thread(wait_for, lambda: _handled(pid) >> (number - 1) & 1)


def _handled(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("SigCgt")).split()[1], 16)
