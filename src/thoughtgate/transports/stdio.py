"""The gate's own stdin and stdout as an MCP connection on the event loop.

Lines are read from stdin, and only frames are written to stdout. This module does not interpret
them.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Final

from thoughtgate.wire.content_length import FrameSplitter
from thoughtgate.wire.lines import LineSplitter

CLOSE_STEPS: Final = 200
STEP_S: Final = 0.01
"""Together two seconds for an agent to read the last messages."""

MAX_BACKLOG: Final = 64 * 1024 * 1024
"""Maximum bytes queued for an agent that does not read; beyond it, the agent is disconnected."""


class StdioHost(asyncio.Protocol):
    """The agent at the other end of this process's standard streams."""

    def __init__(
        self,
        *,
        on_line: Callable[[bytes], None],
        on_gone: Callable[[], None],
        stdin_fd: int = 0,
        stdout_fd: int = 1,
        splitter: FrameSplitter | None = None,
    ) -> None:
        self._on_line = on_line
        self._on_gone = on_gone
        self._fds = (stdin_fd, stdout_fd)
        self._splitter = splitter or LineSplitter()
        self._frame = splitter.frame if splitter is not None else _as_line
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._gone = False

    @property
    def backlog(self) -> int:
        """Bytes that the agent has not read yet."""
        return self._writer.get_write_buffer_size() if self._writer is not None else 0

    async def start(self) -> None:
        """Start reading and writing, on duplicates of the descriptors, which the transports close."""
        loop = asyncio.get_running_loop()
        stdin_fd, stdout_fd = self._fds
        incoming = os.fdopen(os.dup(stdin_fd), "rb", buffering=0)
        outgoing = os.fdopen(os.dup(stdout_fd), "wb", buffering=0)
        self._writer, _ = await loop.connect_write_pipe(lambda: self, outgoing)
        self._reader, _ = await loop.connect_read_pipe(lambda: self, incoming)

    def send(self, line: bytes) -> None:
        """Write one message; the framing is added here."""
        writer = self._writer
        if writer is None or writer.is_closing():
            return
        if writer.get_write_buffer_size() > MAX_BACKLOG:
            writer.abort()
            return
        writer.write(self._frame(line))

    def pause(self) -> None:
        """Stop reading until ``resume``."""
        if self._reader is not None and not self._reader.is_closing():
            self._reader.pause_reading()

    def resume(self) -> None:
        """Continue reading."""
        if self._reader is not None and not self._reader.is_closing():
            self._reader.resume_reading()

    async def close(self) -> None:
        """Write the rest of the queue, then close."""
        writer = self._writer
        if writer is not None and not writer.is_closing():
            for _ in range(CLOSE_STEPS):
                if not writer.get_write_buffer_size():
                    break
                await asyncio.sleep(STEP_S)
            writer.close()
        if self._reader is not None:
            self._reader.close()
        self._gone = True

    # The callbacks of both transports.

    def data_received(self, data: bytes) -> None:
        """Handle bytes from the agent."""
        for line in self._splitter.feed(data):
            self._on_line(line)

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the agent closing one of its streams."""
        del exc
        if self._gone:
            return
        self._gone = True
        for line in self._splitter.close():
            self._on_line(line)
        self._on_gone()


def _as_line(data: bytes) -> bytes:
    return data + b"\n"


def protect_stdout() -> int:
    """Redirect descriptor 1 to stderr and return a duplicate of the real stdout.

    After this, a stray print in our code or a library can no longer reach the agent.
    """
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    return real
