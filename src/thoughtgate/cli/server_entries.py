"""Edit the server entries of a config file while keeping its comments, order and layout.

The whole config is validated before the file is replaced, so an edit that would make it
invalid is never written.
"""

import io
import json
import re
import secrets
import string
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError

from thoughtgate.agents.atomic import replace_file
from thoughtgate.config.load import load_settings
from thoughtgate.errors import ConfigError, Conflict, Problem, UsageError
from thoughtgate.gate.approvals.installed_channels import installed_channels

ID_LETTERS: Final = string.ascii_lowercase + string.digits
ID_LENGTH: Final = 4
KEYS: Final = ("servers", "mcpServers")
"""Keys of a ThoughtGate config that hold server entries."""
AGENT_KEYS: Final = ("mcpServers", "servers", "mcp_servers", "context_servers")
"""Keys under which agents keep their server entries, which can be pasted here."""

FIELDS: Final = frozenset(
    {"type", "name", "command", "args", "env", "cwd", "url", "headers", "disabled", "enabled"}
)
"""Fields of a pasted entry that are kept; agents also have settings that only they understand."""

MAX_PASTED: Final = 1_000_000
"""Maximum size of a pasted block, in characters."""


def new_server_id(taken: set[str]) -> str:
    """Return an unused id: four letters or digits, beginning with a letter."""
    while True:
        new = secrets.choice(string.ascii_lowercase)
        new += "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH - 1))
        if new not in taken:
            return new


def parse_pasted(text: str) -> dict[str, dict[str, Any]]:
    """Parse a pasted block: an ``mcpServers`` object, or only its entries by id.

    Raises:
        UsageError: it is neither.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the pasted block is not JSON: {error}") from None
    for key in AGENT_KEYS:
        if isinstance(value, dict) and isinstance(value.get(key), dict):
            value = value[key]
            break
    if not isinstance(value, dict) or not value:
        raise UsageError("the pasted block contains no servers; paste an mcpServers object")
    if "command" in value or "url" in value:
        raise UsageError(
            'the pasted block is a single entry without an id; wrap it as {"ID": {...}}'
        )
    bad = [ident for ident, entry in value.items() if not isinstance(entry, dict)]
    if bad:
        raise UsageError(
            f"{', '.join(bad)}: a server entry must be an object with 'command' or 'url'"
        )
    return {_as_id(ident): entry for ident, entry in value.items()}


def known_fields(entry: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of a pasted entry that a config can hold, and the names of the others."""
    kept = {key: value for key, value in entry.items() if key in FIELDS}
    return kept, [key for key in entry if key not in FIELDS]


def _as_id(name: str) -> str:
    """Return a server's name as an id, without the dots and slashes that separate names."""
    return re.sub(r"[./\\\s]+", "-", name.strip()).strip("-_")


class ServerFile:
    """A YAML config file that is being edited."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        """Read the file.

        Raises:
            ConfigError: the file cannot be read, or is not editable YAML.
        """
        self.path = path
        self._environ = environ
        if path.suffix not in {".yaml", ".yml"}:
            problem = "this command can only edit YAML files; edit this file by hand"
            raise ConfigError([Problem("", problem, str(path))])
        self._yaml = YAML()
        self._yaml.preserve_quotes = True
        # Otherwise, long values would be wrapped, also on lines that were not edited.
        self._yaml.width = 4096
        try:
            self._content = path.read_bytes()
            self._data = self._yaml.load(self._content.decode().replace("\r\n", "\n"))
        except YAMLError:
            hint = f"is not valid YAML; for the line, run: thoughtgate validate-config -c {path}"
            raise ConfigError([Problem("", hint, str(path))]) from None
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ConfigError([Problem("", f"cannot be read: {reason}", str(path))]) from None
        if not isinstance(self._data, CommentedMap):
            raise ConfigError([Problem("", "is not a mapping", str(path))])

    @property
    def servers(self) -> CommentedMap:
        """The server entries; an empty mapping is added if there are none."""
        key = next((key for key in KEYS if key in self._data), KEYS[0])
        found = self._data.get(key)
        if not isinstance(found, CommentedMap):
            found = CommentedMap()
            self._data[key] = found
        return found

    def add(self, ident: str, entry: dict[str, Any], *, replace: bool = False) -> str:
        """Add an entry and return its id, which is generated if empty.

        Raises:
            Conflict: the id is already in use.
        """
        servers = self.servers
        taken = {str(key).lower() for key in servers}
        chosen = ident or new_server_id(taken)
        if chosen.lower() in taken and not replace:
            raise Conflict(
                f"{self.path} already has a server {chosen!r}; use --replace, or another --id"
            )
        servers[chosen] = CommentedMap(entry)
        return chosen

    def remove(self, ident: str) -> list[str]:
        """Remove an entry, also from all namespaces; return the namespaces it was in.

        Raises:
            UsageError: there is no such server.
        """
        servers = self.servers
        if ident not in servers:
            known = ", ".join(str(key) for key in servers if key != "*") or "none"
            raise UsageError(f"{self.path} has no server {ident!r}; its servers are: {known}")
        del servers[ident]
        spaces = self._data.get("namespaces")
        left = []
        for name, members in spaces.items() if isinstance(spaces, dict) else ():
            if isinstance(members, list) and ident in members:
                members.remove(ident)
                left.append(str(name))
        return left

    def save(self, variables: Mapping[str, str] = MappingProxyType({})) -> None:
        """Validate the whole config and replace the file.

        ``variables`` are set for the validation; the config may refer to them.

        Raises:
            ConfigError: the edit would make the config invalid; the file is unchanged.
            Conflict: the file cannot be written, or was changed since it was read.
        """
        stream = io.StringIO()
        self._yaml.dump(self._data, stream)
        text = stream.getvalue()
        load_settings(
            text,
            file=str(self.path),
            env={**self._environ, **variables},
            read_text=lambda name: (self.path.parent / name).read_text("utf-8"),
            channels=installed_channels,
        )
        try:
            # The file that a link points to is replaced, not the link.
            if not replace_file(self.path.resolve(), text.encode(), expected=self._content):
                raise Conflict(f"{self.path} was changed by another program; run the command again")
        except OSError as error:
            raise Conflict(f"cannot write {self.path}: {error.strerror or error}") from None
