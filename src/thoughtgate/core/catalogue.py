"""Catalogue entries of one server: checked, and as a client of ``serve`` sees them.

Entries keep every field that the server wrote, known or not. Only the name and the description
change, and ``execution`` is removed because the hub cannot answer for a server's tasks.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.core.routing import MAX_NAME, as_entries, compose, length_warning
from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import LISTINGS

MAX_ENTRIES: Final = 10_000
"""Entries per list and server; no model reads more than that."""

MAX_WARNINGS: Final = 20
"""Warnings kept per list; a server may list thousands of invalid names."""

PREFIXED: Final = frozenset({"tools/list", "prompts/list"})
"""Lists whose names get the server's prefix; resources keep their URI."""


class Offer(NamedTuple):
    """One list of one server, after the checks."""

    entries: tuple[dict[str, Json], ...]
    """As the server wrote them, without entries that have no valid name."""
    names: frozenset[str]
    warnings: tuple[str, ...] = ()
    left_out: str = ""
    """Why it lacks entries that an agent would see if it used the server directly."""


NOTHING: Final = Offer((), frozenset())


def check_offer(method: str, listed: list[Any]) -> Offer:
    """Check a server's list: drop entries without a name, duplicates, and entries over the limit."""
    key = LISTINGS[method].key
    kept: dict[str, dict[str, Json]] = {}
    warnings: list[str] = []
    entries = as_entries(listed)
    nameless = len(listed) - len(entries)
    left_out = ""
    for entry in entries:
        name = entry.get(key)
        if type(name) is not str or not name:
            nameless += 1
        elif name in kept:
            warnings.append(f"{name[:MAX_NAME]} is listed twice; the first is kept")
            # An exact copy withholds nothing from the client.
            left_out = left_out or (warnings[-1] if entry != kept[name] else "")
        elif len(kept) >= MAX_ENTRIES:
            warnings.append(f"more than {MAX_ENTRIES} entries; the rest is left out")
            left_out = left_out or warnings[-1]
            break
        else:
            kept[name] = entry
    if nameless:
        skipped = "1 entry that has" if nameless == 1 else f"{nameless} entries that have"
        warnings.insert(0, f"skipped {skipped} no name")
    told = tuple(warnings[:MAX_WARNINGS])
    return Offer(tuple(kept.values()), frozenset(kept), told, left_out)


def exposed_entry(
    method: str, entry: dict[str, Json], server: str, title: str, separator: str
) -> dict[str, Json] | None:
    """Return an entry as the client sees it, or None if its composed name is too long."""
    if method not in PREFIXED:
        return entry
    shown = dict(entry)
    shown["name"] = compose(server, entry["name"], separator)
    if len(shown["name"]) > MAX_NAME:
        return None
    said = entry.get("description")
    shown["description"] = f"[{title}] {said}" if type(said) is str and said else f"[{title}]"
    shown.pop("execution", None)
    return shown


def name_warnings(method: str, offer: Offer, server: str, separator: str) -> list[str]:
    """Return warnings about the composed names of a list."""
    if method not in PREFIXED:
        return []
    found = (length_warning(compose(server, name, separator)) for name in sorted(offer.names))
    return [warning for warning in found if warning][:MAX_WARNINGS]
