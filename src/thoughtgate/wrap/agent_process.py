"""The agent as a child process of ``wrap``, with the user's own terminal.

Starts the agent, forwards signals to it and ends it. Knows nothing of config files, shims and
rules.
"""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final

from thoughtgate.errors import UsageError
from thoughtgate.gate.run_file import is_stopped
from thoughtgate.process.launch import launch
from thoughtgate.process.process_tree import descendants_of, end_processes

AGENT_GRACE_S: Final = 5.0
"""From the forwarded signal until the agent is killed."""

DESCENDANT_GRACE_S: Final = 2.0
"""From SIGTERM to SIGKILL for processes that the agent left behind."""

CONTINUE_S: Final = 0.05
"""How long an agent that was continued after a stop may still be seen as stopped."""


class AgentProcess:
    """A running agent."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], before_exec: Callable[[], None]
    ) -> None:
        """Start the agent in the process group of ``wrap``, so that it can use the terminal.

        ``before_exec`` is called in the child before it executes the agent.

        Raises:
            UsageError: the agent cannot be started.
        """
        try:
            self.pid = launch(command, environ, before_exec)
        except OSError as error:
            raise UsageError(
                f"the agent {command[0]!r} could not be started: {error.strerror}; "
                "its config is as it was"
            ) from None
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = loop.create_future()
        # A daemon thread, so that it cannot delay the exit of ``wrap``.
        threading.Thread(target=self._reap, args=(loop,), daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether the agent is still running."""
        return not self._ended.done()

    async def wait(self) -> int:
        """Return the agent's exit code: 128 + n when signal n ended it."""
        return await asyncio.shield(self._ended)

    async def stop(self, number: int, spare: Container[int] = ()) -> int:
        """Forward a signal, wait, and kill; return the exit code.

        Processes that the agent started in its own group end with it, such as the program behind
        a launcher, except those in ``spare``: shims stop their servers and then exit by themselves.
        """
        # Before the signal: once the agent has exited, its descendants have another parent.
        descendants = [one for one in descendants_of(self.pid) if one.pid not in spare]
        self.signal(number)
        await asyncio.wait({self._ended}, timeout=AGENT_GRACE_S)
        self.signal(signal.SIGKILL)
        code = await self._ended
        if any(one.is_alive for one in descendants):
            await asyncio.to_thread(end_processes, descendants, DESCENDANT_GRACE_S)
        return code

    def signal(self, number: int) -> None:
        """Send a signal to the agent, if it is still running."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _reap(self, loop: asyncio.AbstractEventLoop) -> None:
        # WUNTRACED also reports that Ctrl-Z has stopped the agent.
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        while os.WIFSTOPPED(status):
            _stop_with(self.pid)
            _, status = os.waitpid(self.pid, os.WUNTRACED)
        code = os.waitstatus_to_exitcode(status)
        # The loop may be closed if ``wrap`` had to exit first; then nothing waits for the code.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._set_ended, code if code >= 0 else 128 - code)

    def _set_ended(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)


def _stop_with(agent: int) -> None:
    """Stop this process too, so that the shell gets its terminal back.

    Ctrl-Z stops the whole group. Agents that read single keys send the signal themselves, some of
    them to their own process only. ``fg`` continues the whole group.
    """
    # When ``fg`` continues the group, this process may run before the agent does, and would see
    # it as stopped and stop itself again.
    time.sleep(CONTINUE_S)
    if os.isatty(0) and is_stopped(agent):
        os.kill(os.getpid(), signal.SIGTSTP)
