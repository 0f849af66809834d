"""The contents of agents' config files as immutable values.

A ``Layer`` is a place where servers are listed, a ``ConfigFile`` is a file as it was read, and a
``ServerEntry`` is one server in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

KeyPath = tuple[str, ...]
"""Keys that lead from the root of a file, or of an entry, to a value."""

Format = Literal["json", "toml", "yaml"]
Transport = Literal["stdio", "http", "sse"]

Status = Literal["governed", "shadowed", "disabled", "remote", "managed", "unsupported"]
"""How an entry is treated.

``governed``     a stdio server that is put behind the gate
``shadowed``     the same, but another file's entry of that name currently takes precedence
``disabled``     the agent will not start it; left unchanged
``remote``       has a URL; put behind the gate only if the caller supplies a command for it
``managed``      its command is the shim of a wrap whose journal is not known here
``unsupported``  cannot be put behind the gate; ``ServerEntry.note`` gives the reason
"""


_FORMATS: Final[dict[str, Format]] = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


def format_of(path: Path) -> Format:
    """Return the format of a config file, by its suffix; JSON if that is unknown."""
    return _FORMATS.get(path.suffix, "json")


@dataclass(frozen=True, slots=True)
class Layer:
    """A place from which an agent loads servers: a table inside a file."""

    path: Path
    """The path that the agent uses."""
    real: Path
    """The path with links resolved; this file is locked and written."""
    scope: str
    """``user``, ``local``, ``project``, ``flag`` or ``system``."""
    key: KeyPath
    """The keys of the table of servers in the file."""
    format: Format = "json"
    strict: bool = False
    """The agent accepts only plain JSON: with a comment it refuses or ignores the file."""
    writable: bool = True
    """False for system-wide files that an administrator manages."""
    lock_directory: bool = False
    """Whether the agent creates a ``<file>.lock`` directory while it writes this file."""
    inline: str = ""
    """The text of servers on the command line or in a variable; then there is no file."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A config file as it was read."""

    path: Path
    real: Path
    format: Format
    content: bytes
    lock_directory: bool = False


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server of one layer, and how the agent would start or reach it."""

    id: str
    layer: Layer
    status: Status
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[Any, ...] = ()
    """As written, with variables not expanded. Usually strings; other types are preserved."""
    env: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict)
    cwd: str = ""
    enabled: bool = True
    note: str = ""
    """The reason why an entry is unsupported."""
    skipped: int = 0
    """How many words of the command line run a shim that was in the entry before."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The entry in this layer alone; the fields above contain the merged values."""

    @property
    def path(self) -> KeyPath:
        """The keys that lead to the entry in its file."""
        return (*self.layer.key, self.id)


@dataclass(frozen=True, slots=True)
class UngovernedServer:
    """A source of servers that rewriting config files cannot govern."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"
