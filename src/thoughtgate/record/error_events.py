"""Finding errors that belong to no call, by the correlation id that the agent was given.

The ledger has rows for calls only, so the lines of the record are searched. If many errors of
one kind were folded into one event, that event has the first and the last of their ids.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from thoughtgate.record.reader import read_entry
from thoughtgate.record.verification import RecordLine

MAX_FOUND: Final = 20

_MEMBERS: Final = ("frame", "request", "agent")
"""The members of events that may describe an error."""

_NUMBERED: Final = re.compile(r"(.*\.e)([0-9]{1,18})", re.DOTALL)


def error_of(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the member of an event that describes an error with a correlation id."""
    for name in _MEMBERS:
        said = event.get(name)
        if type(said) is dict and type(said.get("correlation_id")) is str:
            return said
    return None


def error_events(lines: Iterable[RecordLine], ident: str) -> Iterator[dict[str, Any]]:
    """Yield the events of those lines that may be about an error with this id."""
    wanted = ident.encode("utf-8", "replace")
    for line in lines:
        # Most lines are about calls; comparing bytes is cheaper than parsing them.
        if b'"correlation_id":"' in line.data and (
            wanted in line.data or b'"first_correlation_id":"' in line.data
        ):
            event = read_entry(line).event
            if event:
                yield event


def find_errors(events: Iterable[Mapping[str, Any]], ident: str) -> list[dict[str, Any]]:
    """Return the events about errors with this id, or else those whose id ends with it."""
    exact: list[dict[str, Any]] = []
    folded: list[dict[str, Any]] = []
    ending: list[dict[str, Any]] = []
    for event in events:
        said = error_of(event)
        if said is None:
            continue
        if said["correlation_id"] == ident:
            exact.append(dict(event))
        elif _is_within(said, ident):
            folded.append(dict(event))
        elif said["correlation_id"].endswith(ident):
            ending.append(dict(event))
    return (exact or folded or ending)[:MAX_FOUND]


def _is_within(said: Mapping[str, Any], ident: str) -> bool:
    """Tell whether an id is one of those that were folded into an event."""
    first, last = said.get("first_correlation_id"), said["correlation_id"]
    if type(first) is not str:
        return False
    parts = [_NUMBERED.fullmatch(one) for one in (first, ident, last)]
    # Only numbers with the same run before them can be compared.
    if None in parts or len({one[1] for one in parts if one is not None}) != 1:
        return False
    low, number, high = (int(one[2]) for one in parts if one is not None)
    return low <= number <= high
