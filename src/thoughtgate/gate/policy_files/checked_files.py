"""Reads policy files, and refuses those that somebody else could have written."""

import errno
import grp
import os
import pwd
import shlex
import stat
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from thoughtgate.config.document import MAX_BYTES
from thoughtgate.errors import ConfigError, Problem

_MOUNTED: Final = "..data/"
"""Kubernetes mounts a ConfigMap as symlinks into this directory; no other symlink is followed."""

_EVERYBODY: Final = "everybody"


class PolicyFiles:
    """Files that were read and checked; each is read once, so what was checked is what is used."""

    def __init__(self, kept: Mapping[str, str] | None = None) -> None:
        """Use the texts that were kept, by absolute path, instead of reading these files."""
        self._contents: dict[str, bytes] = {}
        self._kept = kept or {}

    @property
    def texts(self) -> dict[str, str]:
        """The text of every file that was read, by its absolute path."""
        return {absolute_path(name): self.text(name) for name in self._contents}

    def config(self, path: str) -> str:
        """Return the text of a config file.

        Raises:
            ConfigError: it cannot be read, or others can write it.
        """
        try:
            status = Path(path).lstat()
            is_link = stat.S_ISLNK(status.st_mode)
            if is_link:
                if not str(Path(path).readlink()).startswith(_MOUNTED):
                    raise ConfigError([Problem("", "is a symlink; name the file itself", path)])
                status = Path(path).stat()
            if not stat.S_ISREG(status.st_mode):
                raise ConfigError([Problem("", "is not a regular file", path)])
            # Without ``follow``, a link that takes its place in this moment is not followed.
            return self.text(path, follow=is_link)
        except OSError as error:
            raise ConfigError([Problem("", f"cannot be read: {error.strerror}", path)]) from None
        except UnicodeError:
            raise ConfigError([Problem("", "is not UTF-8 text", path)]) from None

    def text(self, path: str, *, follow: bool = True) -> str:
        """Return the text of a policy file; links are followed unless ``follow`` says otherwise.

        Raises:
            OSError: it cannot be read.
            UnicodeError: it is not text.
            ConfigError: others can write it.
        """
        if path not in self._contents:
            text = self._kept.get(absolute_path(path))
            self._contents[path] = _read(path, follow=follow) if text is None else text.encode()
        return self._contents[path].decode("utf-8-sig")

    def digest(self, path: str, others: list[str]) -> str:
        """Return a digest over the bytes of a config file and of the policy files that it names.

        Raises:
            OSError: one cannot be read.
            UnicodeError: one is not text.
            ConfigError: others can write one.
        """
        directory = Path(path).parent
        total = sha256()
        for name in (path, *(str(directory / other) for other in others)):
            self.text(name)
            total.update(sha256(self._contents[name]).digest())
        return total.hexdigest()


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the files whose texts differ, as the record names them: path and digest.

    A file that ``after`` does not have is named without a digest.
    """
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    return [
        {"path": name, "digest": sha256(after[name].encode()).hexdigest()}
        if name in after
        else {"path": name}
        for name in changed
    ]


def refused_files(before: Mapping[str, str], named: Iterable[str]) -> list[dict[str, str]]:
    """Return the files that no longer have their text of ``before``, and those that are ``named``.

    For a config that is not valid: what is in a file that cannot be used is not read as text.
    """
    found = []
    for name in sorted({*before, *map(absolute_path, filter(None, named))}):
        try:
            digest = sha256(_read(name).removeprefix(BOM_UTF8)).hexdigest()
        except (OSError, ConfigError):
            digest = ""
        if name not in before or digest != sha256(before[name].encode()).hexdigest():
            found.append({"path": name, "digest": digest} if digest else {"path": name})
    return found


def absolute_path(path: str) -> str:
    """Return a path that names the same file in every directory; symlinks stay as they are."""
    return os.path.normpath(Path(path).absolute())


def _read(path: str, *, follow: bool = True) -> bytes:
    # A pipe could block, and a truncated policy must not be taken for a complete one.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        # The file that is open is checked, because the path may lead to another one by now.
        is_read_only = bool(os.fstatvfs(file.fileno()).f_flag & os.ST_RDONLY)
        if wrong := _fault(path, status, is_read_only=is_read_only):
            raise ConfigError([Problem("", wrong, path)])
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_BYTES} bytes", path)
    return data


def _fault(path: str, status: os.stat_result, *, is_read_only: bool) -> str:
    """Return what lets somebody else change a policy file, and how to mend it; empty if nothing."""
    folder = str(Path(os.path.realpath(path)).parent)
    around = Path(folder).stat()
    for owner, words, place in (
        (status.st_uid, "belongs", path),
        (around.st_uid, "its directory belongs", folder),
    ):
        if owner not in {os.geteuid(), 0}:
            return (
                f"{words} to {_user_name(owner)}, not to you or root;"
                f" fix it with: chown {_user_name(os.geteuid())} {shlex.quote(place)}"
            )
    if is_read_only:
        # Volumes of Kubernetes have open modes, but nobody can write through a read-only mount.
        return ""
    if whom := _writers(status):
        return f"can be written by {whom}; fix it with: chmod go-w {shlex.quote(path)}"
    # Whoever can write to the directory can put another file of the same owner in its place.
    if not around.st_mode & stat.S_ISVTX and (whom := _writers(around)):
        mend = f"chmod {'o' if whom == _EVERYBODY else 'g'}-w {shlex.quote(folder)}"
        return f"its directory can be written by {whom}; fix it with: {mend}"
    return ""


def _writers(status: os.stat_result) -> str:
    """Return who can write a file or directory besides its owner and root; empty if nobody."""
    if status.st_mode & stat.S_IWOTH:
        return _EVERYBODY
    if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid, status.st_uid):
        return "its group"
    return ""


def _is_private_group(group: int, owner: int) -> bool:
    """Tell whether a group has only the owner, the user and root as members; False if unknown."""
    try:
        named = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return False
    named |= {one.pw_name for one in pwd.getpwall() if one.pw_gid == group}
    return named <= {_user_name(uid) for uid in (owner, os.geteuid(), 0)}


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
