"""Locks around config files.

Owns the two kinds: our own ``flock`` on a file beside the config, which one wrap holds for its
whole life, and the lock directory that Claude Code makes while it writes its file, which is held
for the moment of an edit. Neither touches the config itself: editors replace it by renaming, and
a lock on it would be lost.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from thoughtgate.errors import Conflict

LOCK_SUFFIX: Final = ".thoughtgate-lock"
_MAX_HOLDER: Final = 32
"""Bytes read of a lock file: it holds a process id."""
_ATTEMPTS: Final = 10
"""A lock file can be removed between opening and locking; more often than this it is no accident."""

_WAIT_S: Final = 3.0
"""How long Claude Code's own lock is waited for; it holds it for milliseconds."""
_POLL_S: Final = 0.02
_STALE_S: Final = 15.0
"""Age of a lock directory whose owner is dead: a living one touches it every few seconds."""


class FileLock:
    """The exclusive lock on one config file; released with the process at the latest."""

    def __init__(self, config: Path) -> None:
        """Take the lock, without waiting.

        Raises:
            Conflict: another process holds it.
            OSError: the lock file cannot be made.
        """
        self.config = config
        self.path = config.with_name(config.name + LOCK_SUFFIX)
        self._descriptor = self._take()

    def _take(self) -> int:
        for _ in range(_ATTEMPTS):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(descriptor):
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, str(os.getpid()).encode())
                    return descriptor
                os.close(descriptor)
            except BlockingIOError as error:
                holder = os.pread(descriptor, _MAX_HOLDER, 0).decode(errors="replace").strip()
                os.close(descriptor)
                by = f" (process {holder})" if holder.isdigit() else ""
                message = (
                    f"{self.config} is locked by another thoughtgate wrap{by}; end that one first"
                )
                raise Conflict(message) from error
            except OSError:
                os.close(descriptor)
                raise
        raise Conflict(f"{self.path} keeps being replaced by another process")

    def _is_current(self, descriptor: int) -> bool:
        """Whether the locked file is still the one of that name, and was not removed meanwhile."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.lstat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Remove the lock file and let the lock go; a second call does nothing."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        # Removed while the lock is held: whoever opened the file before sees that it is not current.
        with contextlib.suppress(OSError):
            if self._is_current(descriptor):
                self.path.unlink()
        os.close(descriptor)


@contextlib.contextmanager
def agent_lock(config: Path, *, wanted: bool) -> Iterator[bool]:
    """Hold the agent's own lock directory during an edit; yields False if it could not be had."""
    directory = config.with_name(config.name + ".lock")
    held = wanted and _make(directory)
    try:
        yield held or not wanted
    finally:
        if held:
            with contextlib.suppress(OSError):
                directory.rmdir()


def _make(directory: Path) -> bool:
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            _drop_if_stale(directory)
        except OSError:
            return False
        else:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)


def _drop_if_stale(directory: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - directory.lstat().st_mtime > _STALE_S:
            directory.rmdir()
