"""Editing the ``servers`` of a config file so that comments, order and layout stay.

Every edit is checked as a whole before the file is replaced: a change that would make the
config wrong is not written.
"""

import io
import json
import os
import re
import secrets
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from thoughtgate.config.load import load_settings
from thoughtgate.errors import ConfigError, Conflict, Problem, UsageError

ID_LETTERS: Final = string.ascii_lowercase + string.digits
ID_LENGTH: Final = 4
KEYS: Final = ("servers", "mcpServers")
PASTED: Final = ("mcpServers", "servers", "mcp_servers", "context_servers")
"""Names under which agents keep what can be pasted here."""

FIELDS: Final = frozenset(
    {"type", "name", "command", "args", "env", "cwd", "url", "headers", "disabled", "enabled"}
)
"""What of a pasted entry is taken over; agents add settings of their own."""

MAX_PASTED: Final = 1_000_000
"""Bytes of a pasted block."""


def new_server_id(taken: set[str]) -> str:
    """Return a short id that nobody has: four letters or digits, the first a letter."""
    while True:
        made = secrets.choice(string.ascii_lowercase)
        made += "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH - 1))
        if made not in taken:
            return made


def parse_pasted(text: str) -> dict[str, dict[str, Any]]:
    """Read a pasted block: an ``mcpServers`` object, the entries alone, or one entry's object.

    Raises:
        UsageError: it is none of these.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the pasted block is not JSON: {error}") from None
    for key in PASTED:
        if isinstance(value, dict) and isinstance(value.get(key), dict):
            value = value[key]
            break
    if not isinstance(value, dict) or not value:
        raise UsageError("the pasted block holds no servers; paste an mcpServers object")
    if "command" in value or "url" in value:
        raise UsageError("the pasted block is one entry without its id; use --id")
    bad = [ident for ident, entry in value.items() if not isinstance(entry, dict)]
    if bad:
        raise UsageError(f"{', '.join(bad)}: an entry must be an object with command or url")
    return {_as_id(ident): entry for ident, entry in value.items()}


def known_fields(entry: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what of a pasted entry this config understands, and the names of the rest."""
    kept = {key: value for key, value in entry.items() if key in FIELDS}
    return kept, [key for key in entry if key not in FIELDS]


def _as_id(name: str) -> str:
    """Return a server's name as an id: without dots and slashes, which part names."""
    return re.sub(r"[./\\\s]+", "-", name.strip()).strip("-_")


class ServerFile:
    """One YAML config file that is edited."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        """Read the file.

        Raises:
            ConfigError: it cannot be read, or is not YAML that can be edited.
        """
        self.path = path
        self._environ = environ
        if path.suffix not in {".yaml", ".yml"}:
            problem = Problem(
                "", "only YAML configs are edited; change this file by hand", str(path)
            )
            raise ConfigError([problem])
        self._yaml = YAML()
        self._yaml.preserve_quotes = True
        self._yaml.width = 4096
        try:
            self._text = path.read_text("utf-8")
            self._data = self._yaml.load(self._text)
        except (OSError, UnicodeError) as error:
            raise ConfigError([Problem("", f"cannot be read: {error}", str(path))]) from None
        except YAMLError as error:
            raise ConfigError([Problem("", f"is not YAML: {error}", str(path))]) from None
        if not isinstance(self._data, CommentedMap):
            raise ConfigError([Problem("", "is not a mapping", str(path))])

    @property
    def servers(self) -> CommentedMap:
        """The entries, made when there are none."""
        key = next((key for key in KEYS if key in self._data), KEYS[0])
        found = self._data.get(key)
        if not isinstance(found, CommentedMap):
            found = CommentedMap()
            self._data[key] = found
        return found

    def add(self, ident: str, entry: dict[str, Any], *, replace: bool = False) -> str:
        """Add an entry; an empty id is generated. Return the id.

        Raises:
            Conflict: the id is taken.
        """
        servers = self.servers
        taken = {str(key).lower() for key in servers}
        chosen = ident or new_server_id(taken)
        if chosen.lower() in taken and not replace:
            raise Conflict(f"there is a server {chosen!r} already; use --replace, or another --id")
        servers[chosen] = CommentedMap(entry)
        return chosen

    def remove(self, ident: str) -> list[str]:
        """Remove an entry, and its place in namespaces; return the namespaces it was in.

        Raises:
            UsageError: there is no such server.
        """
        servers = self.servers
        if ident not in servers:
            known = ", ".join(str(key) for key in servers) or "none"
            raise UsageError(f"there is no server {ident!r} in {self.path}; there are: {known}")
        del servers[ident]
        spaces = self._data.get("namespaces")
        left = []
        for name, members in spaces.items() if isinstance(spaces, dict) else ():
            if isinstance(members, list) and ident in members:
                members.remove(ident)
                left.append(str(name))
        return left

    def save(self) -> None:
        """Check the whole config and replace the file.

        Raises:
            ConfigError: the change would make the config wrong; the file is as it was.
        """
        stream = io.StringIO()
        self._yaml.dump(self._data, stream)
        text = stream.getvalue()
        load_settings(
            text, file=str(self.path), env=self._environ, read_text=_reader(self.path.parent)
        )
        _replace(self.path, text)


def _reader(parent: Path) -> Callable[[str], str]:
    return lambda name: (parent / name).read_text("utf-8")


def _replace(path: Path, text: str) -> None:
    """Replace a file whole, keeping its mode."""
    mode = path.stat().st_mode & 0o777
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(temporary, flags, mode), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise Conflict(f"{path} cannot be written: {error.strerror}") from None
