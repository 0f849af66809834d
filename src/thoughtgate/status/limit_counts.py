"""The counts of limits that several processes share: reads them for people, and resets them."""

from contextlib import closing
from typing import Any

from thoughtgate.core.envelope import render_time
from thoughtgate.errors import StoreError
from thoughtgate.gate.clock import now
from thoughtgate.stores.limit_tables import LimitTables
from thoughtgate.stores.open_database import StoreLocation, open_database


def read_limit_counts(location: StoreLocation) -> list[dict[str, Any]]:
    """Return each count of a budget, and each open breaker, with the id of its limit.

    Raises:
        StoreError: the store cannot be read.
    """
    with closing(open_database(location)) as database:
        tables, at = LimitTables(database), now()
        # Times are shown on this machine's clock.
        ahead_s = database.time(at) - at
        counts: list[dict[str, Any]] = [
            {
                "limit": one.limit,
                "of": list(one.members),
                "budget": one.total,
                "used": one.used,
                "left": one.left,
                "leased": one.leased,
                "lost": one.lost,
                "window_ends_at": render_time(one.window_ends_at - ahead_s)
                if one.window_ends_at
                else None,
            }
            for one in tables.budgets(at)
        ]
        return counts + [
            {
                "limit": one.limit,
                "of": list(one.members),
                "open_until": render_time(one.open_until - ahead_s),
            }
            for one in tables.open_breakers(at)
        ]


def shared_limits(location: StoreLocation) -> list[dict[str, Any]]:
    """Return the same, or nothing if there is no store or it cannot be read."""
    if not location.may_exist:
        return []
    try:
        return read_limit_counts(location)
    except StoreError:
        return []


def reset_limit(location: StoreLocation, limit: str) -> int:
    """Let a limit start anew; return how many counts it had.

    Raises:
        StoreError: the store cannot be written.
    """
    with closing(open_database(location)) as database:
        return LimitTables(database).reset(limit, now())


def describe_count(count: dict[str, Any]) -> str:
    """Return a count as a line of text."""
    of = " ".join(count["of"])
    place = f"{of}: " if of else ""
    if "open_until" in count:
        return f"{place}breaker open until {count['open_until']}"
    parts = [f"{count['used']:,} of {count['budget']:,} used", f"{count['left']:,} left"]
    if count["leased"]:
        parts.append(f"up to {count['leased']:,} leased by running gates")
    if count["lost"]:
        parts.append(f"up to {count['lost']:,} lost with gates that died")
    if count["window_ends_at"]:
        parts.append(f"window ends {count['window_ends_at']}")
    return place + ", ".join(parts)
