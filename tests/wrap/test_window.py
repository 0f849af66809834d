"""Windows that outlive their launchers: followed with and without a terminal, or handed over."""

import asyncio
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import thoughtgate
from tests.support.stdio_peer import StdioPeer
from tests.support.terminal_shell import PipedOrders, TerminalShell, end_quietly
from tests.support.waiting import run_async
from tests.support.wraps import Machine, WrappedAgent, text_of

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.wrap import window as window_module
from thoughtgate.wrap.window import Window

FORKS = """\
#!{python}
import subprocess, sys
subprocess.Popen({command!r}, start_new_session=True)
"""
"""A launcher as of VS Code: it starts the window in a session of its own and exits."""


def _launcher(machine: Machine, command: list[str] | None = None) -> str:
    """Write a launcher called ``cursor``; without a command it hands over and exits."""
    path = machine.top / "cursor"
    text = FORKS.format(python=sys.executable, command=command) if command else "#!/bin/sh\n"
    path.write_text(text, "utf-8")
    path.chmod(0o755)
    return str(path)


def _wrap(machine: Machine, *command: str) -> WrappedAgent:
    return machine.wrap("--agent-type", "cursor", agent=command)


def test_a_window_is_followed_without_a_terminal_until_it_is_closed(machine: Machine) -> None:
    original = machine.write_sample()
    with _wrap(machine, _launcher(machine, machine.agent())) as run:
        run.open()
        run.peer.wait_for_stderr("Cursor went on in its own window (python")
        assert text_of(run.call("echo", {"text": "in the window"})) == "in the window"
        assert machine.config.read_bytes() != original
        assert run.finish() == 0
        run.assert_nothing_left()
    assert machine.config.read_bytes() == original
    assert "NOT GOVERNED" not in run.stderr


def test_ctrl_c_ends_the_run_and_says_that_the_window_is_open(machine: Machine) -> None:
    original = machine.write_sample()
    orders = PipedOrders(machine.top)
    launcher = _launcher(machine, ["sh", "-c", orders.command(machine.agent())])
    line = ["wrap", "--agent-type", "cursor", "--config-path", str(machine.config), "--", launcher]
    with TerminalShell(machine.env, machine.project) as shell:
        shell.types(shlex.join(thoughtgate(*line)) + "; echo code=$?\n")
        window = orders.receive()["ready"]
        orders.order("open")
        shell.sees("or until you press Ctrl-C here")
        shell.types("\x03")
        shell.sees("the window is still open")
        shell.sees("code=0")
        assert machine.config.read_bytes() == original
        os.kill(window, 0)
        end_quietly(window)
    orders.close()


@pytest.mark.long
def test_a_window_that_was_open_already_is_governed_while_its_servers_run(machine: Machine) -> None:
    original = machine.write_sample()
    with StdioPeer(machine.agent(), env=machine.env) as window:
        window.receive()
        with _wrap(machine, _launcher(machine)) as run:
            run.peer.wait_for_stderr("handed over to a window that was open already")
            assert "NOT GOVERNED until it starts them again" in run.stderr
            window.send({"do": "open"})
            window.receive()
            machine.wait_for_event("server_started")
            window.send({"do": "close"})
            window.receive()
            assert run.wait() == 0
            assert "the run ends" in run.stderr
            assert "governed  1 server: sample" in run.stderr
        window.finish()
    assert machine.config.read_bytes() == original


def test_a_launcher_that_opens_no_window_is_not_followed(machine: Machine) -> None:
    machine.write_sample()
    with _wrap(machine, _launcher(machine), "--version") as run:
        assert run.wait() == 0
        assert "window" not in run.stderr


class _Scene:
    """A window without processes of its own, on a loop of its own."""

    def __init__(self, agent: str = "cursor", *words: str) -> None:
        self.said: list[str] = []
        self.stop = asyncio.Event()
        self.sessions: dict[str, Any] = {}
        command = [AGENTS[agent].commands[0], *words]
        self.window = Window(AGENTS[agent], command, self.stop, self.said.append)

    async def follow(self, code: int = 0, lasted_s: float = 0.1) -> None:
        await self.window.follow(code, lasted_s, self.sessions, self.others())

    @staticmethod
    def others() -> set[int]:
        """Return the children of the test process, which are not the window's."""
        found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
        return {int(word) for path in found for word in path.read_text().split()}


def test_a_running_window_that_starts_nothing_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window_module, "FIRST_SERVER_S", 0.0)
    monkeypatch.setattr(window_module, "_has_terminal", lambda: False)

    async def play() -> list[str]:
        scene = _Scene()
        await scene.follow()
        return scene.said

    handed_over, ended = run_async(play())
    assert "stays rewritten until its servers are closed" in handed_over
    assert "no server of the window runs behind the gate any more" in ended


def test_a_server_that_came_and_went_unseen_counts_as_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window_module, "QUIET_S", 0.0)
    monkeypatch.setattr(window_module, "_has_terminal", lambda: False)

    async def play() -> None:
        scene = _Scene()
        async with asyncio.timeout(30):
            await scene.window.follow(0, 0.1, {}, scene.others(), {"sample"})

    run_async(play())


def test_a_running_window_may_restart_its_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_module, "_has_terminal", lambda: False)
    monkeypatch.setattr(window_module, "LOOK_S", 0.001)

    async def play() -> None:
        scene = _Scene()
        scene.sessions["1"] = None
        monkeypatch.setattr(scene.window, "_left", lambda *_: [])
        following = asyncio.ensure_future(scene.follow())
        await asyncio.sleep(0)
        scene.sessions.clear()
        await asyncio.sleep(0)
        scene.sessions["2"] = None
        await asyncio.sleep(0)
        assert not following.done()
        scene.stop.set()
        await following

    run_async(play())


@pytest.mark.parametrize(
    ("agent", "words", "code", "lasted_s"),
    [
        pytest.param("codex", (), 0, 0.1, id="an agent in the terminal"),
        pytest.param("cursor", (), 1, 0.1, id="a launcher that failed"),
        pytest.param("cursor", (), 0, 3600.0, id="a window in the foreground"),
        pytest.param("vscode", ("--list-extensions",), 0, 0.1, id="no window"),
    ],
)
def test_nothing_is_followed(
    agent: str, words: tuple[str, ...], code: int, lasted_s: float
) -> None:
    async def play() -> list[str]:
        scene = _Scene(agent, *words)
        await scene.follow(code, lasted_s)
        return scene.said

    assert run_async(play()) == []


def test_the_terminals_own_program_of_an_editor_is_not_followed() -> None:
    async def play() -> None:
        said: list[str] = []
        window = Window(AGENTS["cursor"], ["cursor-agent"], asyncio.Event(), said.append)
        await window.follow(0, 0.1, {}, set())
        assert said == []

    run_async(play())
