"""Governed entries for agents that merge what they are given with their files, key by key.

Only what differs from the files is given: the command line of the shim, and empty values for
variables that must not reach the gate. Everything else, secrets included, stays in the files.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.entry_environment import moved_keys
from thoughtgate.agents.entry_shapes import argv_of, lookup, merge_keys, will_start
from thoughtgate.agents.injection.injection import Governed


def merged_value(given: Governed, stack: Iterable[ServerEntry]) -> dict[str, Any] | None:
    """Return the governed entry that the layers of one name add up to; None if one is not governed."""
    merged: dict[str, Any] = {}
    for entry in stack:
        value = given.value_of(entry)
        # A layer without a command only changes keys of another layer's server.
        if value is None and argv_of(entry.raw):
            return None
        merged = merge_keys(merged, value if value is not None else entry.raw)
    return merged if argv_of(merged) else None


def is_off(given: Governed, stack: Iterable[ServerEntry]) -> bool:
    """Tell whether the layers of one name disable the server with the key that the agent heeds."""
    merged: dict[str, Any] = {}
    for entry in stack:
        merged = merge_keys(merged, entry.raw)
    return not will_start(merged, given.plan.agent)


def emptied(stack: Sequence[ServerEntry]) -> dict[str, Any]:
    """Return empty values for the variables of all layers that must not reach the gate."""
    found: dict[str, Any] = {}
    for entry in stack:
        for keys in moved_keys(entry.raw):
            if isinstance(lookup(entry.raw, keys[:-1]), Mapping):
                found = merge_keys(found, _nested(keys))
    return found


def _nested(keys: Sequence[str]) -> dict[str, Any]:
    value: Any = ""
    for key in reversed(keys):
        value = {key: value}
    nested: dict[str, Any] = value
    return nested
