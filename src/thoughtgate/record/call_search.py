"""Search for the newest calls that match a filter, even if only few of a million calls match it.

The totals say in which hours matching calls were made, so only these hours are read.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from thoughtgate.record.call_totals import STEPS_S, count_steps
from thoughtgate.record.ledger_queries import EXACT, CallFilter, Connection, find_calls, has_words

_COUNTED: Final = ("server", "tool", "decision", "status", *EXACT)
"""The fields of a filter that totals can be counted by."""

MAX_SEARCHED: Final = 50_000
"""The newest calls that are searched for a text without words: a tenth of a second."""


def search_calls(connection: Connection, wanted: CallFilter) -> list[dict[str, Any]]:
    """Return the calls that match a filter, newest first."""
    # The full-text index has no entry for such a text: every row has to be compared.
    if wanted.text and not has_words(wanted.text):
        return find_calls(connection, replace(wanted, among_newest=MAX_SEARCHED))
    counted = {name: getattr(wanted, name) for name in _COUNTED if getattr(wanted, name)}
    # Totals do not distinguish runs, texts and findings, so they cannot narrow these searches.
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
    # Calls without a start time belong to no hour; they are at the end of the list.
    if len(found) < wanted.limit and not (wanted.since or wanted.until or wanted.before):
        left = wanted.limit - len(found)
        found += find_calls(connection, replace(wanted, is_untimed=True, limit=left))
    return found


def _periods(
    connection: Connection, wanted: CallFilter, counted: CallFilter
) -> Iterator[tuple[float, float]]:
    """Yield the periods in which matching calls were made, newest first."""
    hour_s, *_, day_s = STEPS_S
    # Other calls of the same moment may follow the last one of a page, so its second counts too.
    newest = wanted.before[0] + 1 if wanted.before else wanted.until
    span = replace(counted, since=wanted.since, until=min(newest, wanted.until or newest))
    days = _enough(count_steps(connection, span, day_s), wanted.limit)
    if not days:
        return
    # Days first: a year has 8,760 hours, but only 365 days to look through.
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
