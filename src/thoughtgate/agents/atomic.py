"""Atomic file writes: a file is written completely or not at all.

The content goes to a temporary file in the same directory, which is synced, gets the mode and
owner of the file that it replaces, and is renamed over it. An existing file is replaced in a
directory that was opened without following links: an agent or a repository that puts a link in the
place of a directory must not choose which file is written.
"""

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

PRIVATE: Final = 0o600
TEMPORARY: Final = ".thoughtgate-"
"""The beginning of the names of temporary files."""

_MAX_PARTS: Final = 10_000
"""More parts than a path and the links in it can have; links in a circle never end."""

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


def read_regular(path: Path, limit: int, *, is_own: bool = False) -> bytes:
    """Return the content of a regular file; with ``is_own``, only of one that this user owns.

    It never waits for a pipe or a terminal.

    Raises:
        OSError: it cannot be read, is not a regular file, has more than ``limit`` bytes, or belongs
            to another user.
    """
    # Non-blocking, because opening a pipe without a writer would wait forever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if is_own and os.fstat(descriptor).st_uid != os.geteuid():
        os.close(descriptor)
        raise OSError(errno.EPERM, "belongs to another user", str(path))
    return _read_opened(descriptor, str(path), limit)


def foreign_link(path: Path) -> Path | None:
    """Return a link on the way to a file that belongs neither to this user nor to root."""
    at = Path(path.anchor)
    rest = list(reversed(path.absolute().parts[1:]))
    for _ in range(_MAX_PARTS):
        if not rest:
            break
        at = Path(os.path.normpath(at / rest.pop()))
        if not at.is_symlink():
            continue
        if at.lstat().st_uid not in {0, os.geteuid()}:
            return at
        target = at.readlink()
        rest += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        at = Path(target.anchor) if target.is_absolute() else at.parent
    return None


def replace_file(path: Path, content: bytes, *, expected: bytes) -> bool:
    """Replace the content of an existing file; mode, owner and attributes stay.

    Returns False, with nothing changed, if another program wrote the file since it was read.

    Args:
        path: the real path of the file, without links.
        content: the new content.
        expected: the content that the file must still have.

    Raises:
        OSError: the file could not be written, or its path leads through a link now; nothing was
            changed.
    """
    # Everything below is relative to this descriptor: a directory that is replaced by a link from
    # now on changes nothing.
    with opened_directory(path.parent) as folder:
        before = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(before.st_mode):
            raise OSError(f"{path} is not a regular file")
        name = f"{_prefix(os.getpid())}{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(name, flags, PRIVATE, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                _copy_attributes(path.name, descriptor, folder)
                _fill(file, content, stat.S_IMODE(before.st_mode), before)
            # As late as possible: whatever an agent writes between here and the rename is lost.
            if _read_beside(path.name, folder) != expected:
                return False
            os.replace(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            # Also after an interrupt: no temporary file stays in the user's directory.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
        _sync_directory(".", folder)
    return True


@contextlib.contextmanager
def opened_directory(directory: Path) -> Iterator[int]:
    """Open a directory by its real path; no part of the path may be a link.

    Raises:
        OSError: a part is a link or no directory.
    """
    # O_PATH needs no permission to list the directories on the way; macOS does not have it.
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(directory.anchor, flags)
    try:
        # One part at a time, because O_NOFOLLOW concerns only the last part of a path.
        for part in directory.parts[1:]:
            try:
                inner = os.open(part, flags, dir_fd=descriptor)
            except OSError as error:
                if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
                    raise
                message = "a directory was replaced by a link or a file"
                raise OSError(error.errno, message, str(directory)) from None
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _read_beside(name: str, folder: int) -> bytes | None:
    """Return the content of a file in an opened directory; None if it is missing or a link."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return _read_opened(os.open(name, flags, dir_fd=folder), name, MAX_READ)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP}:
            return None
        raise


def _read_opened(descriptor: int, name: str, limit: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", name)
        # One byte more than allowed tells a file that is too long from one that just fits.
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit} bytes", name)
    return content


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, replacing any existing file, and read it back.

    A link of that name is replaced, never followed.

    Raises:
        OSError: the file could not be written or reads back differently.
    """
    with _temporary(path, content) as temporary:
        temporary.replace(path)
    _sync_directory(path.parent)
    if read_or_none(path) != content:
        raise OSError(f"{path} does not read back as it was written")


@contextlib.contextmanager
def _temporary(path: Path, content: bytes) -> Iterator[Path]:
    """Write a private file next to ``path``, synced to the disk, for the caller to rename."""
    # Keep the name short: adding to the config's own name could exceed the limit of 255 bytes.
    prefix = _prefix(os.getpid())
    descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _fill(file, content, PRIVATE, None)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _fill(file: BinaryIO, content: bytes, mode: int, owner: os.stat_result | None) -> None:
    """Write a temporary file and sync it to the disk."""
    file.write(content)
    file.flush()
    descriptor = file.fileno()
    created = os.fstat(descriptor)
    if owner and (created.st_uid, created.st_gid) != (owner.st_uid, owner.st_gid):
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    # After the content and the owner: until now, only the user could open the file.
    os.fchmod(descriptor, mode)
    os.fsync(descriptor)


def remove_temporaries(directory: Path, pid: int) -> None:
    """Remove the temporary files that a process left in a directory when it was killed."""
    for left in directory.glob(f"{_prefix(pid)}*.tmp"):
        with contextlib.suppress(OSError):
            left.unlink()


def _prefix(pid: int) -> str:
    return f"{TEMPORARY}{pid}-"


def _copy_attributes(name: str, target: int, folder: int) -> None:
    """Copy extended attributes where the system has them; failing to copy one is not an error."""
    if not hasattr(os, "listxattr"):
        return
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        source = os.open(name, flags, dir_fd=folder)
        try:
            for attribute in os.listxattr(source):
                with contextlib.suppress(OSError):
                    os.setxattr(target, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)


def _sync_directory(directory: Path | str, folder: int | None = None) -> None:
    """Make a rename durable where the file system supports it.

    ``folder`` is the opened directory that ``directory`` is relative to, if any.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
