"""The record's contract: every event type and every member, read from ``contract.toml``.

``docs/reference/audit.md`` is generated from this, and tests compare real events with it. The
contract is a data file in the package, so that a program in any language can read it too.
"""

import tomllib
from importlib.resources import files
from typing import Any, Final, NamedTuple


class Member(NamedTuple):
    """One member of an event."""

    path: str
    """The dotted path; ``[]`` marks the items of a list."""
    type: str
    meaning: str
    optional: bool


class EventType(NamedTuple):
    """One type of event."""

    name: str
    meaning: str
    members: tuple[Member, ...]


def _members(table: dict[str, str]) -> tuple[Member, ...]:
    split = ((path, *text.split(": ", 1)) for path, text in table.items())
    return tuple(
        Member(path, kind.removesuffix("?"), meaning, kind.endswith("?"))
        for path, kind, meaning in split
    )


def _event_type(name: str, said: dict[str, Any]) -> EventType:
    call = _OF_A_CALL if said.get("of_a_call") else ()
    return EventType(name, said["meaning"], (*call, *_members(said["members"])))


_TABLES: Final = tomllib.loads(files(__package__).joinpath("contract.toml").read_text("utf-8"))
_OF_A_CALL: Final = _members(_TABLES["of_a_call"])

ENVELOPE: Final = _members(_TABLES["envelope"])
"""Members that every event has."""

EVENTS: Final = tuple(_event_type(*item) for item in _TABLES["events"].items())
"""All event types."""

FREE_FORM: Final = frozenset({"workload", "run.meta", "list.entries", "server", "policy"})
"""Members whose own members are not part of the contract."""
