"""Writing to a descriptor without blocking and without changing its mode.

Standard output is shared: setting it to non-blocking would affect every process that has the
same open file, including the server's stderr. Therefore a pipe is reopened where the system
allows that, a socket is written with a flag per call, and anything else gets at most as many
bytes as a writable pipe accepts without blocking.
"""

import _socket
import os
import stat
from typing import Final, Protocol

CHUNK: Final = 256 * 1024
PIPE_BUF: Final = 4096
"""Bytes that a writable pipe accepts without blocking (POSIX guarantees 512, Linux 4096)."""


class NonblockingWriter:
    """Queues bytes and writes them in order, as far as the descriptor accepts them."""

    def __init__(self, descriptor: int, *, shared: bool) -> None:
        self.descriptor = descriptor
        self.waiting = bytearray()
        self.broken = False
        self._write = _shared_writer(descriptor) if shared else _Owned(descriptor)

    @property
    def watched(self) -> int:
        """The descriptor to poll for writability."""
        return self._write.descriptor

    def put(self, data: bytes) -> None:
        """Queue one frame and a newline; nothing is queued once the reader has gone."""
        if self.broken:
            return
        self.waiting += data
        self.waiting += b"\n"

    def push(self, *, writable: bool) -> None:
        """Write as much as possible. ``writable`` is the result of a poll just before."""
        while self.waiting and not self.broken:
            if self._write.needs_poll and not writable:
                return
            try:
                with memoryview(self.waiting) as view:
                    written = self._write(view)
            except BlockingIOError:
                return
            except OSError:
                # The reader has closed its end, so the rest can be discarded.
                self.broken = True
                self.waiting.clear()
                return
            del self.waiting[:written]
            writable = False


class _Writer(Protocol):
    descriptor: int
    needs_poll: bool

    def __call__(self, data: memoryview) -> int:
        """Write some of the data and return how much."""


class _Owned:
    """A descriptor that only we use and that is already non-blocking."""

    needs_poll = False

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __call__(self, data: memoryview) -> int:
        return os.write(self.descriptor, data[:CHUNK])


class _Careful:
    """A shared blocking descriptor: written only in pieces that cannot block."""

    needs_poll = True

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __call__(self, data: memoryview) -> int:
        return os.write(self.descriptor, data[:PIPE_BUF])


class _Socket:
    """A socket, which Node and Bun use for the standard streams of their child processes."""

    needs_poll = False

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._socket = _socket.socket(fileno=os.dup(descriptor))

    def __call__(self, data: memoryview) -> int:
        return self._socket.send(data[:CHUNK], _socket.MSG_DONTWAIT)


def _shared_writer(descriptor: int) -> _Writer:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(mode):
        return _Socket(descriptor)
    if stat.S_ISFIFO(mode):
        try:
            anew = os.open(
                f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except OSError:
            return _Careful(descriptor)
        return _Owned(anew)
    return _Careful(descriptor)
