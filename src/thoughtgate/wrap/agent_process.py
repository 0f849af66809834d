"""The agent as a child of the wrap, with the user's own terminal.

Owns its start, the signals that are passed on to it, and its end. It knows nothing of
config files, shims or rules.
"""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final

from thoughtgate.errors import UsageError
from thoughtgate.process.launch import launch
from thoughtgate.process.process_tree import descendants_of, end_processes

AGENT_GRACE_S: Final = 5.0
"""From the signal passed on to the agent until it is killed."""

KIN_GRACE_S: Final = 2.0
"""From SIGTERM to SIGKILL for what the agent left behind."""


class AgentProcess:
    """A running agent."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], born: Callable[[], None]
    ) -> None:
        """Start the agent in the wrap's own process group, so that the terminal is its too.

        ``born`` is called in the child before it is the agent.

        Raises:
            UsageError: it cannot be started.
        """
        try:
            self.pid = launch(command, environ, born)
        except OSError as error:
            raise UsageError(
                f"the agent {command[0]!r} could not be started: {error.strerror}; "
                "its config is as it was"
            ) from None
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = loop.create_future()
        # A thread of its own, and a daemon: nothing waits for it if the wrap must end first.
        threading.Thread(target=self._reap, args=(loop,), daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """The agent has not ended."""
        return not self._ended.done()

    async def wait(self) -> int:
        """Return the agent's exit code: 128 + n when signal n ended it."""
        return await asyncio.shield(self._ended)

    async def stop(self, number: int, spare: Container[int] = ()) -> int:
        """Pass a signal on, wait a while, and kill; return the exit code.

        What the agent had started in its own group ends with it, as a launcher's program must,
        but for those to be spared: shims stop by themselves, and gently.
        """
        descendants = [one for one in descendants_of(self.pid) if one.pid not in spare]
        self.signal(number)
        await asyncio.wait({self._ended}, timeout=AGENT_GRACE_S)
        self.signal(signal.SIGKILL)
        code = await self._ended
        if any(one.is_alive for one in descendants):
            await asyncio.to_thread(end_processes, descendants, KIN_GRACE_S)
        return code

    def signal(self, number: int) -> None:
        """Send a signal to the agent, if it is still there."""
        if self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _reap(self, loop: asyncio.AbstractEventLoop) -> None:
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        # The loop may be gone if the wrap had to end first; then nobody asks any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._set_ended, code if code >= 0 else 128 - code)

    def _set_ended(self, code: int) -> None:
        if not self._ended.done():
            self._ended.set_result(code)
