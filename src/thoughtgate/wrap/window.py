"""Following an agent whose launcher exits while its window stays open, such as Cursor or VS Code.

``wrap`` adopts the processes that the launcher leaves behind, so on Linux the window is closed when
they have exited; on macOS the process table shows the application. If nothing is left behind, the
launcher has handed over to a window that was already open. That window reads the rewritten config
too, so the run goes on while servers of that window run behind the gate, or until the user ends it.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from thoughtgate.agents.catalog import Agent
from thoughtgate.agents.launchers import program_name
from thoughtgate.gate.clock import monotonic
from thoughtgate.process.applications import processes_of
from thoughtgate.process.process_tree import descendants_of
from thoughtgate.service.shim_session import ShimSession

HANDED_OVER_S: Final = 10.0
"""A launcher that exits within this time without a window has handed over to a running one."""

SETTLE_S: Final = 5.0
"""How long a second copy of an editor needs at most to find the running one and exit."""

FIRST_SERVER_S: Final = 60.0
"""How long a running window may take to start the first server of the rewritten config."""

QUIET_S: Final = 10.0
"""How long no server may run before a window that cannot be seen counts as closed.

Editors stop all servers and start them again when their config changes."""

LOOK_S: Final = 0.25

MAX_NAMED: Final = 5
"""Maximum processes that a message names; an editor has dozens."""

NO_WINDOW: Final = frozenset(
    {"--version", "-v", "-V", "--help", "-h", "--status", "-s", "--list-extensions"}
    | {"--install-extension", "--uninstall-extension", "--update-extensions", "--add-mcp"}
)
"""Options with which a launcher does something other than opening a window."""

IN_TERMINAL: Final = frozenset({"cursor-agent", "kiro-cli"})
"""Programs of a graphical agent that run in the terminal."""

Sessions = Mapping[str, ShimSession]


class Window:
    """The window of one run."""

    def __init__(
        self,
        agent: Agent,
        command: Sequence[str],
        stop: asyncio.Event,
        say: Callable[[str], None],
    ) -> None:
        """Note the application's running processes; call it before the launcher starts.

        ``command`` is the agent's own command line, without launchers such as ``env``.
        """
        self._agent = agent
        is_window = agent.windowed and program_name(command[0]) not in IN_TERMINAL
        self._opens = is_window and not NO_WINDOW.intersection(command[1:])
        self._may_hand_over = program_name(command[0]) in agent.commands or ".app/" in command[0]
        """Whether the command is the agent's own launcher; a script opens no window of its own."""
        self._stop = stop
        self._say = say
        self._before = frozenset(processes_of(agent.application))
        """The application's processes that no launcher of ours has started."""

    async def follow(
        self,
        code: int,
        lasted_s: float,
        sessions: Sessions,
        own: Collection[int],
        reported: Collection[str] = (),
    ) -> None:
        """Return when the window that the launcher opened is closed, or the user ends the run.

        Args:
            code: the exit code of the launcher.
            lasted_s: how long the launcher ran.
            sessions: the shims that are connected; the caller keeps it up to date.
            own: other child processes of ours.
            reported: the servers whose shims have ever connected; the caller keeps it up to date.
        """
        if not self._opens:
            return
        # A launcher that hands over first starts an editor process, which exits on its own.
        await self._wait(lambda: not self._left(sessions, own), SETTLE_S)
        if self._stop.is_set():
            return
        if left := self._left(sessions, own):
            await self._follow_processes(left, sessions, own)
        elif self._may_hand_over and code == 0 and lasted_s <= HANDED_OVER_S:
            await self._follow_running_window(sessions, reported)

    async def _follow_processes(
        self, left: Sequence[str], sessions: Sessions, own: Collection[int]
    ) -> None:
        self._say(
            f"{self._agent.name} went on in its own window ({', '.join(left[:MAX_NAMED])}); "
            f"its servers are governed until it is closed{_or_ctrl_c()}"
        )
        await self._wait(lambda: not self._left(sessions, own))
        if self._stop.is_set():
            self._say(
                "the window is still open: the servers behind the gate are stopped, and servers "
                "that it starts from now on are not governed"
            )

    async def _follow_running_window(self, sessions: Sessions, reported: Collection[str]) -> None:
        """Wait while a window that we did not start uses the rewritten config."""
        until = "you press Ctrl-C here" if _has_terminal() else "its servers are closed"
        self._say(
            f"{self._agent.name} handed over to a window that was open already; the config stays "
            f"rewritten until {until}. Servers that this window started before are NOT GOVERNED "
            "until it starts them again"
        )
        if _has_terminal():
            await self._stop.wait()
            return
        # A server may start and end between two looks.
        await self._wait(lambda: bool(sessions or reported), FIRST_SERVER_S)
        runs = bool(sessions or reported)
        while runs and not self._stop.is_set():
            await self._wait(lambda: not sessions)
            await self._wait(lambda: bool(sessions), QUIET_S)
            runs = bool(sessions)
        if not self._stop.is_set():
            self._say("no server of the window runs behind the gate any more; the run ends")

    def _left(self, sessions: Sessions, own: Collection[int]) -> list[str]:
        """Return the processes of the window that still run, by name and number."""
        if sys.platform == "darwin":
            found = processes_of(self._agent.application)
            return [f"process {pid}" for pid in found if pid not in self._before]
        spare = {*own, *(session.pid for session in sessions.values())}
        left = descendants_of(os.getpid(), any_group=True, spare=spare)
        return [f"{one.name} {one.pid}" for one in left if one.is_alive]

    async def _wait(self, condition: Callable[[], bool], limit_s: float | None = None) -> None:
        """Wait until a condition holds, the run is ended or the time is up."""
        deadline = None if limit_s is None else monotonic() + limit_s
        while not self._stop.is_set() and not condition():
            if deadline is not None and monotonic() >= deadline:
                return
            await asyncio.sleep(LOOK_S)


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _or_ctrl_c() -> str:
    return ", or until you press Ctrl-C here" if _has_terminal() else ""
