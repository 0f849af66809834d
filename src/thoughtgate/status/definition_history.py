"""The history of servers' definitions: pinned versions, decisions on them, and differences."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from thoughtgate.core.definitions.changes import compare, heaviest
from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.core.definitions.pinned import Definition
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.pins import FIRST_SEEN, HELD, PinLine, PinStore, server_of
from thoughtgate.wire.json_text import pretty_json

MAX_TOOLS: Final = 500
MAX_RECENT: Final = 6
MAX_TEXT: Final = 20_000
"""Characters of a definition that a page shows."""

_MASKS: Final = Redactor()


class DefinitionChange(NamedTuple):
    """A definition that a server gave, and what was decided about it."""

    at: float
    by: str
    status: str
    digest: str
    weight: str
    """How severe the change is; empty for the first definition."""
    lines: list[str]
    """The difference from the definition before; the whole one is in ``ToolDefinition``."""


class ToolDefinition(NamedTuple):
    """The definition of one tool, prompt or resource, with its history, the latest first."""

    key: str
    text: str
    status: str
    findings: tuple[dict[str, Any], ...]
    changes: list[DefinitionChange]


class DefinitionHistory:
    """Reads pinned definitions for people."""

    def __init__(self, pins: PinStore) -> None:
        self._pins = pins

    def names(self) -> list[str]:
        """Return the names of all servers that have pins."""
        return sorted({server_of(key) for key in self._pins.servers()})

    def keys(self, server: str) -> list[str]:
        """Return the keys of a server, one for each command line or URL with which it was seen."""
        return [key for key in self._pins.servers() if server_of(key) == server]

    def recent(self, since: float, server: str = "") -> list[PinLine]:
        """Return what was first seen, changed or decided since a time, newest first."""
        if not server:
            return self._pins.listed(MAX_RECENT, since=since)
        found = (
            one
            for key in self.keys(server)
            for one in self._pins.listed(MAX_RECENT, server=key, since=since)
        )
        return sorted(found, key=lambda one: -one.at)[:MAX_RECENT]

    def tools(self, server: str) -> dict[tuple[str, str], PinLine]:
        """Return what a server offers by kind and name; undecided definitions take precedence."""
        found: dict[tuple[str, str], PinLine] = {}
        for key in self.keys(server):
            for line in self._pins.listed(MAX_TOOLS, server=key):
                known = found.get((line.kind, line.name))
                if known is None or line.status == HELD:
                    found[line.kind, line.name] = line
        return found

    def about(self, server: str, kind: str, name: str) -> list[ToolDefinition]:
        """Return the definitions of one name, by the keys of its server."""
        found = (self._tool(key, kind, name) for key in self.keys(server))
        return [one for one in found if one is not None]

    def _tool(self, key: str, kind: str, name: str) -> ToolDefinition | None:
        named = self._pins.named(server_of(key), kind, name)
        pins = sorted((pin for pin in named if pin.server == key), key=lambda pin: -pin.at)
        past = self._pins.history(key, kind, name)
        if not pins and not past:
            return None
        told = {(one.at, one.by, one.status, one.digest, one.text) for one in pins}
        told |= {(one.at, one.by, one.status, one.digest, one.text) for one in past}
        changes = list(_compared(kind, name, sorted(told)))[::-1]
        if not pins:
            return ToolDefinition(key, _shown(past[0].text), past[0].status, (), changes)
        first = pins[0]
        return ToolDefinition(key, _shown(first.text), first.status, first.findings, changes)


def was_first_seen(line: PinLine) -> bool:
    """Tell whether a definition is unchanged since its server was first seen."""
    return line.by == FIRST_SEEN


def _compared(
    kind: str, name: str, told: list[tuple[float, str, str, str, str]]
) -> Iterator[DefinitionChange]:
    """Yield definitions in the order of time, each with the difference from the one before."""
    words, before = WordDifference(), Definition(kind, name, "", "")
    for at, by, status, digest, text in told:
        new = Definition(kind, name, text, digest)
        weight, lines = "", list[str]()
        if before.digest not in {"", digest}:
            weight = heaviest(compare(before, new))
            lines = [_MASKS.mask_text(line) for line in words.lines(before, new)]
        before = new
        yield DefinitionChange(at, by, status, digest, weight, lines)


def _shown(text: str) -> str:
    shown = _MASKS.mask_text(pretty_json(text)) if text else ""
    return shown if len(shown) <= MAX_TEXT else f"{shown[:MAX_TEXT]}…"
