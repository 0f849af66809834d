"""Atomic file writes: a file is written completely or not at all.

The content goes to a temporary file in the same directory, which is synced, gets the mode and
owner of the file that it replaces, and is renamed over it.
"""

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600
TEMPORARY: Final = ".thoughtgate-"
"""The beginning of the names of temporary files."""

MAX_READ: Final = 256 * 1024 * 1024
"""Maximum bytes of a file that is read: more than a config that grew while it was wrapped."""


def digest(content: bytes) -> str:
    """Return the SHA-256 of some content as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def read_or_none(path: Path) -> bytes | None:
    """Return a file's content, or None if there is no such file.

    Raises:
        OSError: it cannot be read, or is not a regular file: reading a pipe or a device, which an
            agent can put in the place of a file, might never end.
    """
    try:
        return read_regular(path, MAX_READ)
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: it cannot be read, is not a regular file, or has more than ``limit`` bytes.
    """
    # Non-blocking, because opening a pipe without a writer would wait forever.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", str(path))
    return content


def replace_file(path: Path, content: bytes, *, expected: bytes) -> bool:
    """Replace the content of an existing file; mode, owner and attributes stay.

    Returns False, with nothing changed, if another program wrote the file since it was read.

    Args:
        path: the file itself, not a link.
        content: the new content.
        expected: the content that the file must still have.

    Raises:
        OSError: the file could not be written; nothing was changed.
    """
    before = path.lstat()
    if not stat.S_ISREG(before.st_mode):
        raise OSError(f"{path} is not a regular file")
    with _temporary(path, content, stat.S_IMODE(before.st_mode), before) as temporary:
        _copy_attributes(path, temporary)
        # As late as possible: whatever an agent writes between here and the rename is lost.
        if read_or_none(path) != expected:
            return False
        temporary.replace(path)
    _sync_directory(path.parent)
    return True


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, replacing any existing file, and read it back.

    A link of that name is replaced, never followed.

    Raises:
        OSError: the file could not be written or reads back differently.
    """
    with _temporary(path, content, PRIVATE, None) as temporary:
        temporary.replace(path)
    _sync_directory(path.parent)
    if path.read_bytes() != content:
        raise OSError(f"{path} does not read back as it was written")


@contextlib.contextmanager
def _temporary(
    path: Path, content: bytes, mode: int, owner: os.stat_result | None
) -> Iterator[Path]:
    """Write a temporary file next to ``path``, synced to the disk, for the caller to rename."""
    # Keep the name short: adding to the config's own name could exceed the limit of 255 bytes.
    prefix = _prefix(os.getpid())
    descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            created = os.fstat(descriptor)
            if owner and (created.st_uid, created.st_gid) != (owner.st_uid, owner.st_gid):
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        yield temporary
    finally:
        # Whatever went wrong, an interrupt as well: no litter in the user's directory.
        temporary.unlink(missing_ok=True)


def remove_temporaries(directory: Path, pid: int) -> None:
    """Remove the temporary files that a process left in a directory when it was killed."""
    for litter in directory.glob(f"{_prefix(pid)}*.tmp"):
        with contextlib.suppress(OSError):
            litter.unlink()


def _prefix(pid: int) -> str:
    return f"{TEMPORARY}{pid}-"


def _copy_attributes(source: Path, target: Path) -> None:
    """Copy extended attributes where the system has them; failing to copy one is not an error."""
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name))


def _sync_directory(directory: Path) -> None:
    """Make a rename durable, on file systems that support it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
