"""A stdio server as a child process on the event loop.

The child leads its own process group, so that everything it starts is ended with it. Commands
never go through a shell, and lines are not interpreted here.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

from thoughtgate.errors import PeerGone, ServerExited
from thoughtgate.wire.lines import LineSplitter

GRACE_S: Final = 5.0
"""How long a server may take to exit after its stdin is closed."""

TERM_S: Final = 2.0
"""How long a server may take to exit after SIGTERM."""

OUTPUT_S: Final = 1.0
"""How long to wait for the output of an ended server: processes it started may hold it open."""

MAX_BACKLOG: Final = 64 * 1024 * 1024
"""Maximum bytes queued for a server that does not read; beyond it, sending fails."""


class Watcher(Protocol):
    """Ends process groups if the gate itself is killed."""

    def watch(self, pid: int) -> None:
        """Add a group; called in the child, before the exec."""

    def forget(self, pid: int) -> None:
        """Remove a group that has ended; its id may be reused."""


@dataclass(frozen=True, slots=True)
class ChildCommand:
    """The command of a server and its environment."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The complete environment of the child; nothing is inherited."""
    cwd: str = ""


class Child(asyncio.SubprocessProtocol):
    """One running server. ``on_line`` gets its lines, ``on_exit`` its code, once."""

    def __init__(
        self,
        command: ChildCommand,
        *,
        on_line: Callable[[bytes], None],
        on_exit: Callable[[int], None],
        on_stderr: Callable[[bytes], None] | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.command = command
        self._on_line = on_line
        self._on_exit = on_exit
        self._on_stderr = on_stderr
        self._watcher = watcher
        self._splitter = LineSplitter()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._exited = asyncio.Event()
        self._stdout_open = True
        self._code: int | None = None
        self._told = False
        self._last_wait: asyncio.TimerHandle | None = None
        self._naming = -1
        self.pid = 0

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._transport is not None and self._code is None

    async def start(self) -> None:
        """Start the process.

        Raises:
            PeerGone: the process cannot be started.
        """
        loop = asyncio.get_running_loop()
        try:
            # Through this pipe, a child that cannot be started tells its id, so that the watcher
            # forgets it.
            named, self._naming = os.pipe()
        except OSError as error:
            text = f"the server could not be started: {error.strerror}"
            raise PeerGone(text, "start_failed") from None
        try:
            transport, _ = await loop.subprocess_exec(
                lambda: self,
                self.command.command,
                *self.command.args,
                env=dict(self.command.env),
                cwd=self.command.cwd or None,
                stderr=None if self._on_stderr is None else asyncio.subprocess.PIPE,
                # The child leads its own process group, so that a signal reaches all it starts.
                start_new_session=True,
                preexec_fn=self._name_itself if self._watcher is not None else None,
            )
        except (OSError, ValueError) as error:
            self._forget(named)
            reason = error.strerror if isinstance(error, OSError) else "the command is not valid"
            raise PeerGone(f"the server could not be started: {reason}", "start_failed") from None
        finally:
            os.close(named)
            os.close(self._naming)
        self._stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))

    def send(self, line: bytes) -> None:
        """Write one line; the LF is added here.

        Raises:
            PeerGone: the server has ended, or does not read its input.
        """
        if self._stdin is None:
            raise PeerGone("the server is not running", "stopped")
        if self._code is not None or self._stdin.is_closing():
            raise ServerExited(ServerExited.before_answer)
        if self._stdin.get_write_buffer_size() > MAX_BACKLOG:
            raise PeerGone("the server does not read its input")
        self._stdin.write(line + b"\n")

    def signal_group(self, number: int) -> None:
        """Send a signal to everything the server started in its group."""
        # Not after its end: the group was killed then, and its id may belong to others by now.
        if self.pid and not self._exited.is_set():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def stop(self, grace_s: float = GRACE_S, term_s: float = TERM_S) -> int:
        """Close stdin, wait, SIGTERM, wait, SIGKILL; return the exit code."""
        if self._transport is None:
            return 0
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.close()
        if not await self._gone_within(grace_s):
            self.signal_group(signal.SIGTERM)
            if not await self._gone_within(term_s):
                self.signal_group(signal.SIGKILL)
                await self._exited.wait()
        self._transport.close()
        return self._code or 0

    def _name_itself(self) -> None:
        """Runs in the child, which already leads its process group."""
        if self._watcher is not None:
            self._watcher.watch(os.getpid())
            os.write(self._naming, b"%d" % os.getpid())

    def _forget(self, named: int) -> None:
        """Remove a child that registered itself but could not be started."""
        os.set_blocking(named, False)
        with contextlib.suppress(BlockingIOError):
            pid = int(os.read(named, 32))
            if self._watcher is not None:
                self._watcher.forget(pid)

    async def _gone_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    # The transport's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note that the process was started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid() or 0

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Handle output of the server."""
        if fd == 1:
            for line in self._splitter.feed(data):
                self._on_line(line)
        elif self._on_stderr is not None:
            self._on_stderr(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Handle the end of the server's output."""
        del exc
        if fd == 1:
            self._stdout_ended()

    def process_exited(self) -> None:
        """Handle the end of the server's process."""
        code = self._transport.get_returncode() if self._transport is not None else None
        self._code = code or 0
        # Processes that the server left behind may keep its stdout open forever.
        self.signal_group(signal.SIGKILL)
        self._exited.set()
        if self._watcher is not None:
            self._watcher.forget(self.pid)
        self._tell_end()
        if self._stdout_open:
            loop = asyncio.get_running_loop()
            self._last_wait = loop.call_later(OUTPUT_S, self._stdout_ended)

    def _stdout_ended(self) -> None:
        if not self._stdout_open:
            return
        self._stdout_open = False
        for line in self._splitter.close():
            self._on_line(line)
        self._tell_end()

    def _tell_end(self) -> None:
        """Report the end once both the process and its output have ended."""
        if self._code is not None and not self._stdout_open and not self._told:
            self._told = True
            if self._last_wait is not None:
                self._last_wait.cancel()
            if self._transport is not None:
                self._transport.close()
            self._on_exit(self._code)
