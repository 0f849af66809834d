"""What an agent is started with so that it uses governed servers and no others.

Values only: ``ways`` chooses the module that creates an ``Injection`` for an agent, and ``wrap``
writes the private files and starts the agent.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.documents import parse_document
from thoughtgate.agents.entries import KeyPath, ServerEntry, UngovernedServer
from thoughtgate.agents.entry_shapes import lookup
from thoughtgate.agents.rewrite import Rewrite


@dataclass(frozen=True, slots=True)
class PrivateFile:
    """A file that only its owner can read, in the run's directory."""

    path: Path
    content: bytes


@dataclass(frozen=True, slots=True)
class Injection:
    """How an agent is started, and which servers it then has."""

    command: tuple[str, ...]
    """The agent's whole command line."""
    governed: tuple[str, ...]
    """The names of the servers that the agent gets behind the gate."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to add."""
    files: tuple[PrivateFile, ...] = ()
    left_out: tuple[UngovernedServer, ...] = ()
    """Servers that the agent does not get in this run, with the reason for each."""
    outside: tuple[UngovernedServer, ...] = ()
    """Servers that the agent gets and that are not behind the gate."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Governed:
    """A plan with the governed values of its entries, and where private files may be written."""

    plan: Plan
    command: tuple[str, ...]
    folder: Path
    values: Mapping[KeyPath, Mapping[str, Any]]
    """Every entry that a rewrite puts behind the gate, as it would be written, by its place."""
    reasons: Mapping[KeyPath, str]
    """Why an entry cannot be put behind the gate, by its place."""

    def value_of(self, entry: ServerEntry) -> Mapping[str, Any] | None:
        """Return the governed value of an entry; None if it cannot be governed."""
        return self.values.get(place_of(entry))

    def stacks(self) -> dict[str, list[ServerEntry]]:
        """Return the entries of each name, lowest precedence first."""
        stacks: dict[str, list[ServerEntry]] = {}
        for entry in self.plan.entries:
            stacks.setdefault(entry.id, []).append(entry)
        return stacks

    def ungoverned(self, entry: ServerEntry) -> UngovernedServer:
        """Return an entry as a server that is not behind the gate, with the reason."""
        return UngovernedServer(entry.id, self.reasons.get(place_of(entry)) or "remote server")


def governed(plan: Plan, done: Rewrite, command: Iterable[str], folder: Path) -> Governed:
    """Return the entries of a plan as a rewrite of its files would leave them."""
    documents = {
        one.file.real: parse_document(one.content, one.file.format, file=str(one.file.path)).values
        for one in done.files
    }
    values = {}
    for entry in done.governed:
        value = lookup(documents.get(entry.layer.real), entry.path)
        values[place_of(entry)] = value if value is not None else entry.raw
    reasons = {place_of(entry): entry.note for entry in done.ungoverned}
    return Governed(plan, tuple(command), folder, values, reasons)


def place_of(entry: ServerEntry) -> KeyPath:
    """Return a key that distinguishes an entry from those of the same name in other layers."""
    return (str(entry.layer.real), *entry.path)
