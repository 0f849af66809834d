"""Project policies that the user has trusted: one private JSON file in the state directory."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from thoughtgate.gate.state_directory import (
    ensure_directory,
    read_private_file,
    write_private_file,
)

FILE: Final = "trusted-policies.json"
_LOCK: Final = "trusted-policies.lock"
_MAX_BYTES: Final = 1024 * 1024


class TrustedFile(NamedTuple):
    """One policy file that the user has trusted."""

    path: str
    """The absolute path, as ``place_of`` returns it."""
    digest: str
    """Covers its bytes and those of the policy files that it names."""
    at: str
    """When."""


def place_of(path: str) -> str:
    """Return the absolute path of a file, with the links of its directory resolved.

    A link at the end stays: otherwise a repository could use the trust in another project's file by
    a link to it.
    """
    return str(Path(path).parent.resolve() / Path(path).name)


def list_trusted(state: str) -> dict[str, TrustedFile]:
    """Return the trusted files by path; none if the list is missing, damaged or not private."""
    try:
        entries = json.loads(read_private_file(str(Path(state, FILE)), _MAX_BYTES))
        return {
            path: TrustedFile(path, str(entry["digest"]), str(entry["at"]))
            for path, entry in entries.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def is_trusted(state: str, path: str, digest: str) -> bool:
    """Tell whether the user has trusted a file with this content."""
    found = list_trusted(state).get(place_of(path))
    return found is not None and found.digest == digest


def trust_file(state: str, path: str, digest: str, at: str) -> TrustedFile:
    """Trust a file with this content; an earlier entry for the path is replaced.

    Raises:
        StoreError: the state directory cannot be used.
    """
    added = TrustedFile(place_of(path), digest, at)
    with _changing(state) as entries:
        entries[added.path] = added
    return added


def distrust_file(state: str, path: str) -> bool:
    """Remove a file from the list; return whether it was there."""
    with _changing(state) as entries:
        return entries.pop(place_of(path), None) is not None


@contextlib.contextmanager
def _changing(state: str) -> Iterator[dict[str, TrustedFile]]:
    """Read the list, and write it again after the block; one process at a time."""
    ensure_directory(state)
    # Not only for writing: opening a pipe like that would wait for its reader.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(Path(state, _LOCK), flags, 0o600), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entries = list_trusted(state)
        yield entries
        told = {one.path: {"digest": one.digest, "at": one.at} for one in entries.values()}
        write_private_file(str(Path(state, FILE)), json.dumps(told, indent=1, sort_keys=True))
