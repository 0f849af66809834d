"""Pipes in place of standard streams that an event loop cannot wait for.

Files, devices and terminals cannot be polled. Each such stream is replaced by a pipe, and a
thread copies the data.
"""

import contextlib
import os
import stat
import threading
from typing import Final

FLUSH_S: Final = 5.0
"""How long to wait for the last data to reach a file."""

_CHUNK: Final = 65536


class BlockingStreams:
    """Replaces stdin or stdout by a pipe if it is neither a pipe nor a socket."""

    def __init__(self, stdin_fd: int, stdout_fd: int) -> None:
        self._writing: threading.Thread | None = None
        self.stdin_fd = stdin_fd
        self.stdout_fd = stdout_fd
        self._own: list[int] = []
        if _is_blocking(stdin_fd):
            self.stdin_fd, write_end = os.pipe()
            self._own.append(self.stdin_fd)
            _copy(stdin_fd, write_end)
        if _is_blocking(stdout_fd):
            read_end, self.stdout_fd = os.pipe()
            self._own.append(self.stdout_fd)
            self._writing = _copy(read_end, stdout_fd)

    def close(self) -> None:
        """Wait until everything is written."""
        for descriptor in self._own:
            os.close(descriptor)
        if self._writing is not None:
            self._writing.join(FLUSH_S)


def _is_blocking(descriptor: int) -> bool:
    """Tell whether a descriptor is a file, device or terminal, which cannot be polled."""
    mode = os.fstat(descriptor).st_mode
    return not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def _copy(source: int, target: int) -> threading.Thread:
    def run() -> None:
        with contextlib.suppress(OSError):
            while chunk := os.read(source, _CHUNK):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(target, view) :]
        # The reader of the copy must see an end of file, too.
        with contextlib.suppress(OSError):
            os.close(target)

    # A daemon, because reading a terminal may never end.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
