"""What the record tells of the servers: what each offers, what is hidden, what has changed.

Filled from events in the order of the record. A tool has changed when a server lists it
with another description or schema than before: the text that a model reads is then not
the one that somebody once looked at.
"""

from dataclasses import dataclass, field
from typing import Final

MAX_SERVERS: Final = 500
"""Servers remembered; more in one record is not a record that a page can show."""

MAX_ENTRIES: Final = 2000
"""Entries remembered of one list of one server."""


@dataclass(slots=True)
class OfferedEntry:
    """One tool, resource or prompt of a server."""

    name: str
    digest: str = ""
    hidden: bool = False
    first_at: float = 0.0
    seen_at: float = 0.0
    changed_at: float = 0.0
    """When its description or schema last became another; 0 for never."""


@dataclass(slots=True)
class ServerSummary:
    """One server as the record knows it."""

    name: str
    running: bool | None = None
    """None when the record does not say."""
    seen_at: float = 0.0
    lists: dict[str, dict[str, OfferedEntry]] = field(default_factory=dict)
    """Entries by name, by the method that lists them."""

    def entries(self, method: str) -> list[OfferedEntry]:
        """Return what a list holds: what changed first, then by name."""
        found = self.lists.get(method, {}).values()
        return sorted(found, key=lambda each: (not each.changed_at, each.name))

    @property
    def changed(self) -> list[OfferedEntry]:
        """Everything that became another since it was first seen."""
        return [each for held in self.lists.values() for each in held.values() if each.changed_at]

    @property
    def hidden(self) -> list[OfferedEntry]:
        """Everything that agents are not shown."""
        return [each for held in self.lists.values() for each in held.values() if each.hidden]


class ServerSummaries:
    """Every server of a record."""

    def __init__(self) -> None:
        self.servers: dict[str, ServerSummary] = {}

    def all(self) -> list[ServerSummary]:
        """Return the servers by name."""
        return sorted(self.servers.values(), key=lambda server: server.name)

    def listed(
        self,
        server: str,
        method: str,
        *,
        entries: dict[str, str],
        hidden: frozenset[str],
        at: float,
    ) -> None:
        """Take in a list, or a page of one: names with their digests, and which stay hidden."""
        book = self._server(server, at)
        if book is None:
            return
        held = book.lists.setdefault(method, {})
        names = {**dict.fromkeys(hidden, ""), **entries}
        for name, digest in list(names.items())[:MAX_ENTRIES]:
            self._entry(held, name, digest, at).hidden = name in hidden

    def moved(self, server: str, *, running: bool, at: float) -> None:
        """Take in that a server started or ended."""
        book = self._server(server, at)
        if book is not None:
            book.running = running

    def _server(self, name: str, at: float) -> ServerSummary | None:
        if not name or (name not in self.servers and len(self.servers) >= MAX_SERVERS):
            return None
        book = self.servers.setdefault(name, ServerSummary(name))
        book.seen_at = max(book.seen_at, at)
        return book

    def _entry(
        self, held: dict[str, OfferedEntry], name: str, digest: str, at: float
    ) -> OfferedEntry:
        entry = held.get(name)
        if entry is None:
            entry = held[name] = OfferedEntry(name, digest, first_at=at)
        elif digest and digest != entry.digest:
            if entry.digest:
                entry.changed_at = at
            entry.digest = digest
        entry.seen_at = at
        return entry
