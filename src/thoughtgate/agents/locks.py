"""Locks for config files.

There are two kinds: our own ``flock`` on a separate file next to the config, which a wrap holds
as long as it runs, and the lock directory that Claude Code creates while it writes its file,
which is held only during an edit. The config itself is not locked: editors replace it by
renaming, and the lock would be lost.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from thoughtgate.errors import Conflict

LOCK_SUFFIX: Final = ".thoughtgate-lock"
_MAX_HOLDER: Final = 32
"""Maximum bytes read of a lock file, which contains a process id."""
_ATTEMPTS: Final = 10
"""How often locking is tried: the lock file can be removed between opening and locking it."""

_WAIT_S: Final = 3.0
"""How long to wait for Claude Code's own lock, which it holds for milliseconds."""
_POLL_S: Final = 0.02
_STALE_S: Final = 15.0
"""Age at which a lock directory is stale: a running owner updates it every few seconds."""


class Locked(Conflict):
    """Another process holds the lock on a config file."""

    def __init__(self, config: Path, holder: int, agent: str = "") -> None:
        """``holder`` is its process id, or 0; ``agent`` the agent that it runs, if known."""
        by = ", ".join(word for word in (f"process {holder}" if holder else "", agent) if word)
        super().__init__(
            f"{config} is locked by another thoughtgate wrap{f' ({by})' if by else ''}; end that "
            "one first, or start this agent without wrap: until that wrap ends, the servers in "
            "the file run behind its gate"
        )
        self.config = config
        self.holder = holder


class FileLock:
    """An exclusive lock on one config file; the system releases it when the process ends."""

    def __init__(self, config: Path) -> None:
        """Take the lock, without waiting.

        Raises:
            Locked: another process holds it.
            OSError: the lock file cannot be created.
        """
        self.config = config
        self.path = config.with_name(config.name + LOCK_SUFFIX)
        self._descriptor = self._take()

    def _take(self) -> int:
        for _ in range(_ATTEMPTS):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            try:
                _require_own(descriptor, self.path)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(descriptor):
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, str(os.getpid()).encode())
                    return descriptor
                os.close(descriptor)
            except BlockingIOError as error:
                holder = os.pread(descriptor, _MAX_HOLDER, 0).decode(errors="replace").strip()
                os.close(descriptor)
                raise Locked(self.config, int(holder) if holder.isdigit() else 0) from error
            except OSError:
                os.close(descriptor)
                raise
        raise Conflict(f"{self.path} keeps being replaced by another process")

    def _is_current(self, descriptor: int) -> bool:
        """Tell whether the path still names the locked file, which may have been removed."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.lstat())
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Remove the lock file and release the lock; a second call does nothing."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        # Removed while locked, so a process that already opened it will see that it is not current.
        with contextlib.suppress(OSError):
            if self._is_current(descriptor):
                self.path.unlink()
        os.close(descriptor)


def _require_own(descriptor: int, path: Path) -> None:
    """Refuse a pipe, or another name of a file that writing our process id would destroy.

    Raises:
        OSError: it is one of these.
    """
    status = os.fstat(descriptor)
    # A lock that was just released has no name any more.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise OSError(errno.EINVAL, "not a lock file; remove it", str(path))


@contextlib.contextmanager
def agent_lock(config: Path, *, wanted: bool) -> Iterator[bool]:
    """Hold the agent's own lock directory during an edit; yields False if it is unavailable."""
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
