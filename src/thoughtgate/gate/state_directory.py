"""The state directory, and the environment variables that belong to the gate.

Kept small because every shim loads it, and without pathlib, which would cost time and memory.
"""

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from typing import Final

from thoughtgate.errors import StoreError
from thoughtgate.stores.directory_owners import require_own_path

OWN_PREFIXES: Final = ("THOUGHTGATE_", "SUB_")
"""Variables that belong to the gate; a server never inherits them."""


def state_directory(environ: Mapping[str, str]) -> str:
    """Return the path of the state directory: from the variable, else the platform's default."""
    told = environ.get("THOUGHTGATE_STATE_DIR")
    if told:
        return os.path.abspath(told)
    home = environ.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "thoughtgate")
    base = environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
    return os.path.join(base, "thoughtgate")


def account_home() -> str:
    """Return the home directory of this account, whatever the environment says."""
    import pwd  # most shims are told everything on the command line and never need it

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        raise StoreError(
            f"user id {os.geteuid()} has no entry in the password database; "
            "name the state directory with --state-dir and the config with -c"
        ) from None


def ensure_directory(path: str) -> str:
    """Create a private directory with its parents, and return its path.

    Raises:
        StoreError: it cannot be created.
    """
    try:
        require_own_path(path)
        os.makedirs(path, mode=0o700, exist_ok=True)
        status = os.stat(path)
        # The sticky bit marks directories such as /tmp, which must not be made private.
        if status.st_mode & stat.S_ISVTX:
            raise StoreError(
                f"the state directory {path} is shared with others; "
                "set THOUGHTGATE_STATE_DIR to a directory of yours"
            )
        if status.st_uid == os.geteuid():
            os.chmod(path, 0o700)
    except OSError as error:
        raise StoreError(
            f"the state directory {path} cannot be used: {error.strerror}; "
            "set THOUGHTGATE_STATE_DIR to a directory of yours"
        ) from None
    return path


def write_private_file(path: str, text: str) -> None:
    """Write a file that only its owner can read, atomically; its directory is created too."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def write_once(path: str, content: bytes) -> None:
    """Create a private file with its content, unless it exists; readers never see a part of it.

    Raises:
        OSError: it cannot be created.
    """
    temporary = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(content)
    try:
        # A hard link fails if the file exists, so processes that start at once agree on one.
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)


def read_private_file(path: str, limit: int) -> bytes:
    """Return the first ``limit`` bytes of a file that only its owner can read.

    Raises:
        PermissionError: it belongs to somebody else, or others can read or write it.
        OSError: it cannot be read, or is a link.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise PermissionError(
                f"{path} must belong to you and be readable by you alone (chmod 600)"
            )
        return file.read(limit)


def server_environment(environ: Mapping[str, str], secret: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment for a server: that of this process without ThoughtGate's variables."""
    withheld = frozenset(secret)
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(OWN_PREFIXES) and name not in withheld
    }
