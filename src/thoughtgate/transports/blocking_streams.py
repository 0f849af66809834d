"""Standard streams that are files, devices or terminals, which no event loop can wait for.

Each such stream gets a pipe in its place and a thread that copies. What is copied is
not looked at here.
"""

import contextlib
import os
import stat
import threading
from typing import Final

FLUSH_S: Final = 5.0
"""How long the last answers may take to reach a file."""

_CHUNK: Final = 65536


class PlainStreams:
    """Stands in where stdin or stdout is neither a pipe nor a socket."""

    def __init__(self, stdin_fd: int, stdout_fd: int) -> None:
        self._writing: threading.Thread | None = None
        self.stdin_fd = stdin_fd
        self.stdout_fd = stdout_fd
        self._own: list[int] = []
        if _is_plain(stdin_fd):
            self.stdin_fd, write_end = os.pipe()
            self._own.append(self.stdin_fd)
            _copy(stdin_fd, write_end)
        if _is_plain(stdout_fd):
            read_end, self.stdout_fd = os.pipe()
            self._own.append(self.stdout_fd)
            self._writing = _copy(read_end, stdout_fd)

    def close(self) -> None:
        """Wait until everything is written."""
        for descriptor in self._own:
            os.close(descriptor)
        if self._writing is not None:
            self._writing.join(FLUSH_S)


def _is_plain(descriptor: int) -> bool:
    """Tell files and terminals from pipes and sockets, which alone an event loop takes."""
    mode = os.fstat(descriptor).st_mode
    return not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def _copy(source: int, target: int) -> threading.Thread:
    def run() -> None:
        with contextlib.suppress(OSError):
            while chunk := os.read(source, _CHUNK):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(target, view) :]
        with contextlib.suppress(OSError):
            os.close(target)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
