"""The record on a stream: stderr, stdout, a pipe or a device, where writes cannot be undone.

Each process starts a new chain. A line that was written only in part is terminated before the
next one, so a reader never joins two halves to one line.
"""

import os
import select
import stat
from pathlib import Path
from typing import Final

from thoughtgate.core.envelope import GENESIS
from thoughtgate.errors import RecordError
from thoughtgate.record.file import Render, Tail

STREAMS: Final = {"stdout": 1, "stderr": 2}

WRITE_WAIT_S: Final = 5.0
"""How long a pipe may stay full before the record counts as unwritable."""


def is_stream(path: str) -> bool:
    """Tell whether a path is a pipe or a device, which cannot be read back."""
    try:
        return not stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        return False


class RecordStream:
    """A record that is written to a file descriptor."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tail = Tail(GENESIS)
        self._owned = name not in STREAMS
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(name, flags) if self._owned else STREAMS[name]
        except OSError as error:
            raise RecordError(f"{name}: the record cannot be opened: {error.strerror}") from error

    def append(self, render: Render) -> None:
        """Write what ``render`` returns.

        Raises:
            RecordError: it could not be written completely.
        """
        data, chain = render(self._tail)
        written = 0
        try:
            while written < len(data):
                written += self._write_some(data[written:] if written else data)
        except OSError as error:
            if written:
                self._tail = self._tail._replace(needs_newline=True)
            raise RecordError(
                f"{self._name}: the record cannot be written: {error.strerror}"
            ) from error
        self._tail = Tail(chain)

    def close(self) -> None:
        """Close the descriptor if it is ours."""
        if self._owned and self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _write_some(self, data: bytes) -> int:
        while True:
            try:
                return os.write(self._fd, data)
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._fd, select.POLLOUT)
                if not poll.poll(WRITE_WAIT_S * 1000):
                    raise
