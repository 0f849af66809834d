"""The keys that seal session ids and prompt states.

One gate on one machine creates a key in its state directory. Gates that share a PostgreSQL store
share sessions too, so they get their keys from a file that the operator distributes: the first
key seals, and every key of the file verifies, so that keys can be replaced while gates run.
"""

import hashlib
import hmac
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from thoughtgate.errors import ConfigError, Problem
from thoughtgate.gate.state_directory import read_private_file, write_once

KEY_FILE: Final = "session-key"

MAX_KEYS: Final = 16
"""Keys of a file; each is tried for an id that no earlier one has sealed."""

MAKE_ONE: Final = "(umask 077; openssl rand -hex 32 > {file})"

_KEY_BYTES: Final = 32
_MAX_FILE: Final = 65_536
# Without O_NONBLOCK, opening a named pipe would wait for its writer.
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class KeyPlace(NamedTuple):
    """Where a gate's keys are."""

    state: str
    """The state directory."""
    file: str = ""
    """The key file of the config, if it names one."""

    def load(self) -> "KeyRing":
        """Return the keys.

        Raises:
            ConfigError: the key file cannot be used.
        """
        return KeyRing(read_keys(self.file) if self.file else (load_key(self.state),))


def place_of_keys(state: str, file: str, config: str) -> KeyPlace:
    """Return where the keys of a gate are; the file is relative to the config file."""
    base = Path(config).absolute().parent if config else Path.cwd()
    return KeyPlace(state, str(base / Path(file).expanduser()) if file else "")


class KeyRing:
    """Keys of which the first seals and every one verifies."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = tuple(keys)

    def derive(self, purpose: str) -> "KeyRing":
        """Return the keys for one purpose, so that no seal is valid for another."""
        name = purpose.encode()
        return KeyRing([hmac.digest(key, name, hashlib.sha256) for key in self._keys])

    def seal(self, text: bytes) -> bytes:
        """Return the MAC of a text."""
        return hmac.digest(self._keys[0], text, hashlib.sha256)

    def is_sealed(self, text: bytes, shown: bytes) -> bool:
        """Tell whether a MAC, or its beginning, was made with one of the keys."""
        macs = (hmac.digest(key, text, hashlib.sha256)[: len(shown)] for key in self._keys)
        return any(hmac.compare_digest(mac, shown) for mac in macs)


def check_keys(place: KeyPlace, config: str, *, is_shared: bool) -> None:
    """Check the keys of an HTTP gate before anything is started.

    Raises:
        ConfigError: gates share the store, but have no common keys; or the file cannot be used.
    """
    if place.file:
        place.load()
    elif is_shared:
        made = MAKE_ONE.format(file="session-keys")
        text = (
            "required with a PostgreSQL store, so that every gate accepts the sessions of the"
            f" others; create one file for all of them with: {made}"
        )
        raise ConfigError([Problem("keys.file", text, config)])


def read_keys(file: str) -> tuple[bytes, ...]:
    """Return the keys of a file, the current one first.

    Symbolic links are followed: Kubernetes mounts a secret as a link to its current version.

    Raises:
        ConfigError: it cannot be read, others can read or change it, or a line is not a key.
    """
    made = MAKE_ONE.format(file=file)
    try:
        descriptor = os.open(file, _READ)
    except OSError as error:
        text = f"{file}: {error.strerror}; create it with: {made}"
        raise ConfigError([Problem("keys.file", text)]) from None
    try:
        # The opened file, not the path: what is checked is what is read.
        fault = exposure(os.fstat(descriptor), file)
        content = b"" if fault else os.read(descriptor, _MAX_FILE)
    finally:
        os.close(descriptor)
    if fault:
        raise ConfigError([Problem("keys.file", f"{file} {fault}")])
    lines = [line.strip() for line in content.splitlines()]
    keys = [_key(line) for line in lines if line]
    found = [key for key in keys if key is not None]
    if len(found) < len(keys) or not found or len(found) > MAX_KEYS:
        text = (
            f"{file} must contain 1 to {MAX_KEYS} lines of 64 hexadecimal digits, the current key"
            f" first; create it with: {made}"
        )
        raise ConfigError([Problem("keys.file", text)])
    return tuple(found)


def exposure(found: os.stat_result, file: str) -> str:
    """Return why a file must not hold a key; empty if it may."""
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if found.st_uid not in {0, os.geteuid()}:
        return "belongs to another user; give it to root or to the user that the gate runs as"
    # The group may read: a mounted secret belongs to root and to a group of the gate.
    if mode & 0o027:
        return f"has mode {mode:04o}, so others can read or change it; run: chmod 0600 {file}"
    return ""


def _key(line: bytes) -> bytes | None:
    try:
        key = bytes.fromhex(line.decode("ascii"))
    except ValueError:
        return None
    # ``fromhex`` also accepts spaces between digits.
    return key if len(key) == _KEY_BYTES and len(line) == 2 * _KEY_BYTES else None


def load_key(state: str) -> bytes:
    """Return the sealing key from the state directory; a temporary one if it cannot be stored."""
    path = str(Path(state, KEY_FILE))
    made = os.urandom(_KEY_BYTES)
    try:
        write_once(path, made)
        kept = read_private_file(path, _MAX_FILE)
    except OSError:
        return made
    return kept if len(kept) == _KEY_BYTES else made
