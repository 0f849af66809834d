"""Writing to a descriptor without blocking and without changing its mode.

Standard output is shared: setting it to non-blocking would affect every process that has the
same open file, including the server's stderr. Therefore a pipe is reopened where the system
allows that, a socket is written with a flag per call, and anything else gets at most as many
bytes as a writable pipe accepts without blocking.
"""

import _socket
import contextlib
import os
import stat
from collections.abc import Callable
from typing import Final, NamedTuple

CHUNK: Final = 256 * 1024
PIPE_BUF: Final = 4096
"""Bytes that a writable pipe accepts without blocking (POSIX guarantees 512, Linux 4096)."""


class _Output(NamedTuple):
    """A way to write to a descriptor that cannot block."""

    descriptor: int
    """The descriptor to poll for writability."""
    needs_poll: bool
    """Whether a write could block unless a poll has just reported the descriptor writable."""
    write: Callable[[memoryview], int]
    """Writes some of the data and returns how much."""


class NonblockingWriter:
    """Queues bytes and writes them in order, as far as the descriptor accepts them."""

    def __init__(self, descriptor: int, *, shared: bool) -> None:
        self.descriptor = descriptor
        self.waiting = bytearray()
        self.broken = False
        self._output = _shared_output(descriptor) if shared else _owned(descriptor)

    @property
    def watched(self) -> int:
        """The descriptor to poll for writability."""
        return self._output.descriptor

    def put(self, data: bytes) -> None:
        """Queue one frame and a newline; nothing is queued once the reader has gone."""
        if self.broken:
            return
        self.waiting += data
        self.waiting += b"\n"

    def push(self, *, writable: bool) -> None:
        """Write as much as possible. ``writable`` is the result of a poll just before."""
        while self.waiting and not self.broken:
            if self._output.needs_poll and not writable:
                return
            try:
                with memoryview(self.waiting) as view:
                    written = self._output.write(view)
            except BlockingIOError:
                return
            except OSError:
                # The reader has closed its end, so the rest can be discarded.
                self.broken = True
                self.waiting.clear()
                return
            del self.waiting[:written]
            # The poll spoke for one write; the next one could block.
            writable = False


def _owned(descriptor: int) -> _Output:
    """Write to a descriptor that only we use and that is already non-blocking."""
    return _Output(descriptor, False, lambda data: os.write(descriptor, data[:CHUNK]))


def _shared_output(descriptor: int) -> _Output:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(mode):
        # Node and Bun use sockets for the standard streams of their child processes.
        link = _socket.socket(fileno=os.dup(descriptor))
        flag = _socket.MSG_DONTWAIT
        return _Output(descriptor, False, lambda data: link.send(data[:CHUNK], flag))
    if stat.S_ISFIFO(mode):
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            return _owned(os.open(f"/proc/self/fd/{descriptor}", flags))
    # A shared blocking descriptor is written only in pieces that cannot block.
    return _Output(descriptor, True, lambda data: os.write(descriptor, data[:PIPE_BUF]))
