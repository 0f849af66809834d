"""The findings of the definition checks in a definition, and which of them the policy silences."""

import threading
from collections.abc import Collection, Mapping
from typing import Any, Final

from thoughtgate.core.definitions.pinned import Definition
from thoughtgate.policy.definitions import DefinitionPolicy

HARD: Final = "hard"

MAX_FINDINGS: Final = 50
"""Findings that are kept per definition; one hard finding is enough to hold it."""


_TYPICAL: Final = {
    "name": "read",
    "description": "Reads a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
"""A definition that every check looks at."""


def load_checks() -> threading.Thread:
    """Load the checks in a thread: on a busy machine the first definition would wait for seconds."""
    thread = threading.Thread(target=_load, name="load the checks", daemon=True)
    thread.start()
    return thread


def _load() -> None:
    from thoughtgate.policy.inspection.inspect import inspect_definition

    inspect_definition(_TYPICAL)


def inspect(
    definition: Definition,
    entry: Mapping[str, Any],
    server: str,
    policy: DefinitionPolicy,
    neighbours: Mapping[str, Collection[str]],
) -> tuple[dict[str, Any], ...]:
    """Return the findings as the pins and the record keep them, the hard ones first."""
    # Imported here: it is needed only when a definition is new, and a shim must stay small.
    from thoughtgate.policy.inspection.inspect import inspect_definition

    found = []
    for one in inspect_definition(
        entry, kind=definition.kind, server=server, neighbours=neighbours
    ):
        told = {"check": one.check, "tier": one.tier, "where": one.where, "what": one.what}
        reason = policy.silenced(server, one.check, definition.name)
        found.append({**told, "silenced": reason} if reason else told)
    found.sort(key=lambda one: (one["tier"] != HARD, "silenced" in one))
    return tuple(found[:MAX_FINDINGS])


def is_hard(findings: Collection[Mapping[str, Any]]) -> bool:
    """Tell whether a finding holds the definition."""
    return any(one["tier"] == HARD and "silenced" not in one for one in findings)


def checks_in(findings: Collection[Mapping[str, Any]]) -> list[str]:
    """Return the ids of the checks that count, without duplicates."""
    return list(dict.fromkeys(one["check"] for one in findings if "silenced" not in one))
