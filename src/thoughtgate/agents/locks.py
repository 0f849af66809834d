"""Locks for config files.

There are three kinds: our own ``flock`` on a separate file next to the config, which a wrap holds
as long as it runs; the lock directory that Claude Code creates while it writes its file, which is
held only during an edit; and a lock of the state directory, held while locks on configs are taken
or released. The config itself is not locked: editors replace it by renaming, and the lock would be
lost.

A process that changes a config holds its lock exclusively. Running wraps share it, so that the
system counts them, even if they are killed in any order: the wrap that gets the lock exclusively is
the last one. An agent can hold a lock as well, so a lock counts only together with the journal of a
running wrap.
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
_WAIT_FOR_OTHERS_S: Final = 10.0
"""How long to wait for another process of ours, which needs less than a second."""
STATE_LOCK: Final = "configs.lock"
"""The name of the file that ``state_lock`` locks."""
_STALE_S: Final = 15.0
"""Age at which a lock directory is stale: a running owner updates it every few seconds."""


class Locked(Conflict):
    """Another process holds the lock on a config file."""

    def __init__(self, config: Path, holder: int, agent: str = "") -> None:
        """``holder`` is the process id, or 0; ``agent`` is the agent that it runs, if known."""
        by = ", ".join(word for word in (f"process {holder}" if holder else "", agent) if word)
        super().__init__(
            f"{config} is locked by another thoughtgate wrap{f' ({by})' if by else ''}; end that "
            "one first, or start this agent without wrap: until that wrap ends, the servers in "
            "the file run behind its gate"
        )
        self.holder = holder


class FileLock:
    """A lock on one config file; the system releases it when the process ends."""

    def __init__(self, config: Path, *, shared: bool = False) -> None:
        """Take the lock without waiting, exclusively or shared with others.

        Raises:
            Locked: another process holds it.
            OSError: the lock file cannot be created.
        """
        self.config = config
        self.path = config.with_name(config.name + LOCK_SUFFIX)
        self._is_shared = shared
        self._descriptor = self._take()

    def _take(self) -> int:
        for _ in range(_ATTEMPTS):
            # Never through a link, which a repository can contain: its target would be overwritten.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.path, flags, 0o600)
            try:
                _require_own(descriptor, self.path)
                kind = fcntl.LOCK_SH if self._is_shared else fcntl.LOCK_EX
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                # The previous holder may have removed the file after we had opened it. A lock on
                # a removed file excludes nobody, so the new file is tried instead.
                if self._is_current(descriptor):
                    # For the messages of other processes; a shared lock has no single holder.
                    if not self._is_shared:
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

    def share(self) -> None:
        """Let others share the lock.

        The caller holds the ``state_lock``, because ``flock`` may release the lock in between.
        """
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        self._is_shared = True

    def claim(self, *, shared: bool) -> bool:
        """Make a shared lock exclusive; False, with the lock released, if another wrap shares it.

        The caller holds the ``state_lock``, because ``flock`` may release the lock in between.

        Args:
            shared: whether another wrap has recorded the file. If none has, the other holder is a
                foreign program, which must not keep the file from being restored.
        """
        if self._is_shared and self._descriptor >= 0:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if shared:
                    self.release()
                    return False
            self._is_shared = False
        return True

    def release(self) -> None:
        """Release the lock, and remove its file unless others share it; a second call does nothing."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        # Removed while locked, so a process that already opened it will see that it is not current.
        with contextlib.suppress(OSError):
            if not self._is_shared and self._is_current(descriptor):
                self.path.unlink()
        os.close(descriptor)


def _require_own(descriptor: int, path: Path) -> None:
    """Refuse a pipe, or another name of a file that writing our process id would destroy.

    Raises:
        OSError: it is one of these.
    """
    status = os.fstat(descriptor)
    # No link at all is fine: the holder may just have removed the file.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise OSError(errno.EINVAL, "not a lock file; remove it", str(path))


@contextlib.contextmanager
def waiting_lock(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock that processes of ours need only briefly; wait while another one holds it.

    Raises:
        Conflict: another process keeps it; ``busy`` is the message. Or its directory belongs to
            another user, whose journals could name any file of ours.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.parent.stat().st_uid != os.geteuid():
        raise Conflict(
            f"{path.parent} belongs to another user; run this command as that user, "
            "or set THOUGHTGATE_STATE_DIR to your own directory"
        )
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    deadline = time.monotonic() + _WAIT_FOR_OTHERS_S
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        # Polled, because a blocking flock has no timeout.
        while True:
            try:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Conflict(busy) from None
                time.sleep(_POLL_S)
            else:
                break
        yield


@contextlib.contextmanager
def state_lock(state: Path) -> Iterator[None]:
    """Keep other processes of a state directory from taking or releasing locks on configs.

    Raises:
        Conflict: another process keeps it.
    """
    busy = "another thoughtgate wrap or unwrap does not end its change of the configs; try again"
    with waiting_lock(state / STATE_LOCK, busy):
        yield


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
        # The modification time is what a running owner updates; a monotonic clock has no relation
        # to it.
        if time.time() - directory.lstat().st_mtime > _STALE_S:
            directory.rmdir()
