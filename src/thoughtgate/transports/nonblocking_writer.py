"""Writing to a descriptor without ever blocking and without changing it for others.

Standard output is shared: making it non-blocking would make it so for every process
that holds the same open file, the server's stderr among them. So a pipe is opened anew
where the system can, a socket is written with a flag for each call, and anything else
gets no more than a pipe is sure to take once it says that it is writable.
"""

import _socket
import os
import stat
from typing import Final, Protocol

CHUNK: Final = 256 * 1024
PIPE_BUF: Final = 4096
"""Bytes that a pipe which polls as writable takes without blocking (POSIX promises 512, Linux 4096)."""


class Outlet:
    """Bytes on their way out, in order, with a count of how many still wait."""

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
        """Queue one frame with its line end; nothing is kept for a reader that is gone."""
        if self.broken:
            return
        self.waiting += data
        self.waiting += b"\n"

    def push(self, *, writable: bool) -> None:
        """Write as much as goes. ``writable`` says that a poll has just said so."""
        while self.waiting and not self.broken:
            if self._write.needs_poll and not writable:
                return
            try:
                with memoryview(self.waiting) as view:
                    written = self._write(view)
            except BlockingIOError:
                return
            except OSError:
                # The reader is gone; what it was to be told no longer matters.
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
    """A descriptor that is ours alone and already non-blocking."""

    needs_poll = False

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __call__(self, data: memoryview) -> int:
        return os.write(self.descriptor, data[:CHUNK])


class _Careful:
    """A descriptor that must stay as it is: written only in pieces that cannot block."""

    needs_poll = True

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __call__(self, data: memoryview) -> int:
        return os.write(self.descriptor, data[:PIPE_BUF])


class _Socket:
    """A socket, as Node and Bun give their servers."""

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
