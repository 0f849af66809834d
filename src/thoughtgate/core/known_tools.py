"""What servers have listed about their tools: annotations, and digests of the definitions."""

from collections.abc import Callable
from hashlib import sha256
from itertools import islice
from typing import Any, Final

from thoughtgate.core.task import declares_tasks
from thoughtgate.core.tool_listing import DONE
from thoughtgate.policy.call import TOOL
from thoughtgate.wire.canonical import NotCanonical
from thoughtgate.wire.fast_frame import canonical_quickly
from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import LISTINGS, Named

_NOT_DEFINING: Final = frozenset({"_meta", "icons"})
"""Members of a tool's entry that say nothing about what the tool does, and may change any time."""

MAX_KNOWN_TOOLS: Final = 20_000
"""Tools per server whose definitions are remembered; bounds the cost of a hostile list."""

MAX_ANNOTATIONS: Final = 64
"""Annotations of one tool that further lists may add up to; the protocol has five."""

MAX_LISTED: Final = 1000
"""Entries of a list that a record event names."""

_DIGEST: Final = 16
"""Hex digits of an entry's digest: enough to detect that a server changed the entry."""

_UNREADABLE: Final = "unreadable"
"""In place of the digest of a definition that has no canonical form."""

UNLISTED: Final[tuple[dict[str, Any] | None, str]] = (None, "")
"""What is known of a tool that no list has shown."""


class KnownTools:
    """What servers have listed about their tools, for the judge."""

    def __init__(self) -> None:
        self._listed: dict[str, dict[str, tuple[dict[str, Any] | None, str]]] = {}
        """The annotations of each server's tools, and the digests of their definitions."""
        self._last: dict[str, dict[str, str]] = {}
        """The digests that were listed last, even if the server has since announced a change."""
        self._unkept: dict[str, int] = {}
        """How often each server listed a tool that its full table has no room for."""
        self._tasked: dict[str, set[str]] = {}
        """The tools of each server that make tasks of calls themselves."""
        self._complete: set[str] = set()
        """Servers whose tools are all known."""
        self._changed: set[str] = set()
        """Servers that announced a change of their list."""

    def find(self, server: str, name: str) -> tuple[dict[str, Any] | None, str]:
        """Return the annotations of a tool and the digest of its definition."""
        known = self._listed.get(server)
        return known.get(name, UNLISTED) if known is not None else UNLISTED

    def listed_last(self, server: str, name: str) -> str:
        """Return a digest that identifies the last listed definition of a tool; empty if none was.

        Unlike in ``find``, a server cannot erase it by saying that its list has changed. All tools
        that a full table has no room for share one, which changes with each of them that is listed.
        """
        unkept = self._unkept.get(server)
        return self._last.get(server, {}).get(name, f"unkept {unkept}" if unkept else "")

    def learn(self, server: str, entries: tuple[dict[str, Json], ...]) -> None:
        """Remember a page of a server's list."""
        known = self._listed.setdefault(server, {})
        last = self._last.setdefault(server, {})
        tasked = self._tasked.setdefault(server, set())
        for entry in entries:
            name, said = entry.get("name"), entry.get("annotations")
            # A full table still learns changes of the tools that are in it.
            if type(name) is str and name not in known and len(known) >= MAX_KNOWN_TOOLS:
                self._unkept[server] = self._unkept.get(server, 0) + 1
            elif type(name) is str:
                hints = _annotations(known.get(name, UNLISTED)[0], said)
                definition = _definition(entry)
                known[name] = (hints, definition)
                # Never empty, so that a held call notices a definition that became unreadable.
                last[name] = definition or _UNREADABLE
                if declares_tasks(entry):
                    tasked.add(name)
                else:
                    tasked.discard(name)

    def makes_tasks(self, server: str, name: str) -> bool:
        """Tell whether a server says that calls to a tool can be tasks of its own."""
        return name in self._tasked.get(server, ())

    def forget(self, server: str) -> None:
        """Note that a server's list has changed, so that it is fetched again.

        Until a list shows a tool again, its definition is unknown: a grant must not apply to it.
        """
        self._complete.discard(server)
        self._changed.add(server)
        known = self._listed.get(server, {})
        known.update((name, (hints, "")) for name, (hints, _) in known.items())

    def must_list(self, server: str, named: tuple[Named, ...], listed: str) -> bool:
        """Tell whether the list must be fetched before a request is judged."""
        if listed:
            if listed == DONE:
                self._complete.add(server)
                self._changed.discard(server)
            return False
        if server in self._changed:
            # The tools that are known may be among those that changed.
            return any(one.kind == TOOL for one in named)
        known = self._listed.get(server, {})
        return server not in self._complete and any(
            one.kind == TOOL and one.name not in known for one in named
        )


def _annotations(before: dict[str, Any] | None, said: Json) -> dict[str, Any] | None:
    """Return a tool's annotations after a further list.

    A server may only add to them, so a list that omits them, or one of them, takes nothing back.
    """
    if type(said) is not dict or not before:
        return said if type(said) is dict else before
    # A null would take an annotation back as well.
    kept = before | {
        name: value for name, value in said.items() if value is not None or name not in before
    }
    return dict(islice(kept.items(), MAX_ANNOTATIONS))


def _definition(entry: dict[str, Json]) -> str:
    """Return the digest of what a server says about a tool; empty if it has no canonical form."""
    return hash_of({name: one for name, one in entry.items() if name not in _NOT_DEFINING})


def digests_of(
    entries: tuple[dict[str, Json], ...], key: str, shown: Callable[[str], str]
) -> dict[str, str]:
    """Return the entries of a list by name, each with a digest that changes with its content.

    ``shown`` returns a name as the record has it.
    """
    digests: dict[str, str] = {}
    for entry in entries[:MAX_LISTED]:
        name = entry.get(key)
        if type(name) is str:
            digests[shown(name)] = hash_of(entry)[:_DIGEST]
    return digests


def list_event(
    method: str,
    entries: tuple[dict[str, Json], ...],
    names: tuple[frozenset[str], frozenset[str]],
    shown: Callable[[str], str],
) -> dict[str, Any]:
    """Return what the record says about a list; ``names`` are those to hide and those hidden."""
    key = LISTINGS[method].key
    hidden, withheld = names
    listed = (entry.get(key) for entry in entries)
    return {
        "list": {
            "method": method,
            "offered": len(entries),
            "returned": sum(type(name) is str and name not in withheld for name in listed),
            "hidden": sorted(map(shown, hidden))[:MAX_LISTED],
            "entries": digests_of(entries, key, shown),
        }
    }


def hash_of(value: dict[str, Json]) -> str:
    """Return the hash of a JSON object; empty if it has no canonical form."""
    try:
        return sha256(canonical_quickly(value).encode()).hexdigest()
    except NotCanonical:
        return ""
