"""Servers as the record describes them: what each offers, what is hidden, what has changed.

They are built from events in the order of the record. A tool has changed if a server lists it with
a different description or schema than before: a model then reads a text that nobody has reviewed.
"""

from dataclasses import dataclass, field
from typing import Final

MAX_SERVERS: Final = 500
"""Maximum number of servers that are remembered; a page cannot show more."""

MAX_ENTRIES: Final = 2000
"""Maximum number of entries that are remembered per list and server."""


@dataclass(slots=True)
class OfferedEntry:
    """One tool, resource or prompt of a server."""

    name: str
    digest: str = ""
    hidden: bool = False
    changed_at: float = 0.0
    """When its description or schema last changed; 0 for never."""


@dataclass(slots=True)
class ServerSummary:
    """One server, as the record describes it."""

    name: str
    running: bool | None = None
    """None if the record does not say."""
    seen_at: float = 0.0
    lists: dict[str, dict[str, OfferedEntry]] = field(default_factory=dict)
    """Entries by name, by the method that lists them."""

    def entries(self, method: str) -> list[OfferedEntry]:
        """Return the entries of a list: changed ones first, then by name."""
        found = self.lists.get(method, {}).values()
        return sorted(found, key=lambda each: (not each.changed_at, each.name))

    @property
    def changed(self) -> list[OfferedEntry]:
        """Every entry that has changed since it was first seen."""
        return [
            each for listed in self.lists.values() for each in listed.values() if each.changed_at
        ]


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
        """Add a list or a page of one: names with their digests, and the hidden names."""
        summary = self._server(server, at)
        if summary is None:
            return
        listed = summary.lists.setdefault(method, {})
        names = {**dict.fromkeys(hidden, ""), **entries}
        for name, digest in list(names.items())[:MAX_ENTRIES]:
            self._entry(listed, name, digest, at).hidden = name in hidden

    def moved(self, server: str, *, running: bool, at: float) -> None:
        """Note that a server started or exited."""
        summary = self._server(server, at)
        if summary is not None:
            summary.running = running

    def _server(self, name: str, at: float) -> ServerSummary | None:
        if not name or (name not in self.servers and len(self.servers) >= MAX_SERVERS):
            return None
        summary = self.servers.setdefault(name, ServerSummary(name))
        summary.seen_at = max(summary.seen_at, at)
        return summary

    def _entry(
        self, listed: dict[str, OfferedEntry], name: str, digest: str, at: float
    ) -> OfferedEntry:
        entry = listed.get(name)
        if entry is None:
            entry = listed[name] = OfferedEntry(name, digest)
        elif digest and digest != entry.digest:
            if entry.digest:
                entry.changed_at = at
            entry.digest = digest
        return entry
