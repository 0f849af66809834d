"""What is found in agents' config files, as frozen values.

Owns the records that the rest of the room passes around: a place where servers are listed
(``Layer``), a file as it was read (``ConfigFile``), one server in it (``ServerEntry``). It knows
no agent by name and reads nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

KeyPath = tuple[str, ...]
"""Keys from the top of a file, or of an entry, down to a value."""

Format = Literal["json", "toml"]
Transport = Literal["stdio", "http", "sse"]

Status = Literal["governed", "shadowed", "disabled", "remote", "managed", "unsupported"]
"""What becomes of an entry.

``governed``     a stdio server that is put behind the gate
``shadowed``     the same, though another file's entry of that name is in force today
``disabled``     the agent will not start it; left as it is
``remote``       reached by URL; behind the gate only if the caller offers a command for it
``managed``      its command is already ours
``unsupported``  cannot be put behind the gate; ``ServerEntry.note`` says why
"""


@dataclass(frozen=True, slots=True)
class Layer:
    """One place an agent loads servers from: a table inside a file."""

    path: Path
    """The file as the agent names it."""
    real: Path
    """The file itself, links followed: what is locked and written."""
    scope: str
    """``user``, ``local``, ``project``, ``flag`` or ``system``."""
    key: KeyPath
    """Where in the file the servers are listed."""
    format: Format = "json"
    strict: bool = False
    """The agent reads plain JSON here: a comment makes it refuse or ignore the file."""
    writable: bool = True
    """False for what an administrator put there for everybody."""
    lock_directory: bool = False
    """The agent itself locks this file with a ``<file>.lock`` directory while it writes."""


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
    """One server of one layer, with what the agent would run for it."""

    id: str
    layer: Layer
    status: Status
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[Any, ...] = ()
    """As written, unexpanded; strings in every valid file, but kept whatever they are."""
    env: Mapping[str, Any] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, Any] = field(default_factory=dict)
    cwd: str = ""
    enabled: bool = True
    note: str = ""
    """Why an entry is unsupported."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The entry as this layer alone has it; the fields above hold what is merged into force."""

    @property
    def path(self) -> KeyPath:
        """Where the entry stands in its file."""
        return (*self.layer.key, self.id)


@dataclass(frozen=True, slots=True)
class OutsideServer:
    """Servers that the agent may start from a place that no rewrite reaches."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"
