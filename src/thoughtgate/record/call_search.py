"""Search for the newest calls that match a filter, also for one that few of a million calls match.

The totals tell in which hours such calls were made, so only these are read.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from thoughtgate.record.call_totals import STEPS_S, count_steps
from thoughtgate.record.ledger_queries import EXACT, CallFilter, Connection, find_calls

_COUNTED: Final = ("server", "tool", "decision", "status", *EXACT)
"""The filters that totals know."""

_DENSE_DAYS: Final = 2
"""So many days can be read as they are; of more, only the hours with matching calls are."""


def search_calls(connection: Connection, wanted: CallFilter) -> list[dict[str, Any]]:
    """Return the calls that match a filter, newest first."""
    counted = {name: getattr(wanted, name) for name in _COUNTED if getattr(wanted, name)}
    if not counted or not wanted.limit or wanted.run or wanted.text or wanted.finding:
        return find_calls(connection, wanted)
    found = list[dict[str, Any]]()
    for since, end in _periods(connection, wanted, CallFilter(**counted)):
        left = wanted.limit - len(found)
        if left <= 0:
            return found
        until = min(end, wanted.until or end)
        part = replace(wanted, since=max(since, wanted.since), until=until, limit=left)
        found += find_calls(connection, part)
    if len(found) < wanted.limit and not (wanted.since or wanted.until or wanted.before):
        left = wanted.limit - len(found)
        found += find_calls(connection, replace(wanted, is_untimed=True, limit=left))
    return found


def _periods(
    connection: Connection, wanted: CallFilter, counted: CallFilter
) -> Iterator[tuple[float, float]]:
    """Yield the periods in which matching calls were made, newest first."""
    hour_s, *_, day_s = STEPS_S
    newest = wanted.before[0] + 1 if wanted.before else wanted.until
    span = replace(counted, since=wanted.since, until=min(newest, wanted.until or newest))
    days = _enough(count_steps(connection, span, day_s), wanted.limit)
    if len(days) <= _DENSE_DAYS:
        yield from ((at, at + day_s) for at in days)
        return
    span = replace(span, since=max(span.since, days[-1]))
    for at in _enough(count_steps(connection, span, hour_s), wanted.limit):
        yield at, at + hour_s


def _enough(steps: list[tuple[float, int]], limit: int) -> list[float]:
    """Return the newest steps with enough calls; the first one may be only partly wanted."""
    found, total = list[float](), 0
    for number, (at, calls) in enumerate(steps):
        if total >= limit:
            break
        found.append(at)
        total += calls if number else 0
    return found
