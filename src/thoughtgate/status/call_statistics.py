"""Statistics of the recorded calls, as ``thoughtgate audit stats`` and the console show them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from thoughtgate.record.call_totals import CallTotal, read_latencies, read_totals
from thoughtgate.record.ledger_queries import (
    CallFilter,
    Connection,
    approval_times,
    count_by,
    count_frames,
    count_messages,
    count_over_time,
    latencies,
)

PERCENTILES: Final = (50, 90, 99)
CURVES: Final = (50, 95)
"""The percentiles of latency that are shown over time."""

MAX_NAMES: Final = 20
"""Names of tools, rules and so on that are counted, most first."""

_NAMED: Final = {
    "servers": "server",
    "tools": "tool",
    "principals": "principal",
    "statuses": "status",
    "decisions": "decision",
}
_NAMED_IF_ANY: Final = {
    "refusals": "error_kind",
    "approvals": "approval",
    "approvers": "approved_by",
}
"""Statistics with the columns that they count; these leave out calls without a value."""


def collect_statistics(connection: Connection, wanted: CallFilter, step_s: int) -> dict[str, Any]:
    """Count the wanted calls by each of their properties, and over time in steps of ``step_s``."""

    def count(column: str, among: CallFilter = wanted) -> dict[str, int]:
        return dict(count_by(connection, column, among))

    def count_named(column: str, among: CallFilter = wanted) -> dict[str, int]:
        return {name: calls for name, calls in count(column, among).items() if name}

    decisions, ordered = count("decision"), latencies(connection, wanted)
    failed = count("status", replace(wanted, decision="ALLOW", status="ERROR"))
    denied = replace(wanted, decision="BLOCK")
    answered = approval_times(connection, wanted)
    return {
        "calls": sum(decisions.values()),
        "decisions": decisions,
        "failed": sum(failed.values()),
        "statuses": count("status"),
        "servers": count("server"),
        "tools": count("tool"),
        "refusals": count_named("error_kind"),
        "denials": count_named("rule", denied),
        "approvals": count_named("approval"),
        "approvers": count_named("approved_by"),
        "principals": count("principal"),
        "latency_ms": {f"p{share}": percentile(ordered, share) for share in PERCENTILES},
        "approval_s": {f"p{share}": percentile(answered, share) for share in PERCENTILES},
        "step_s": step_s,
        "over_time": count_over_time(connection, wanted, step_s),
        "messages": count_messages(connection, wanted),
        "frames_refused": count_frames(connection, wanted),
    }


def overview_statistics(connection: Connection, wanted: CallFilter, step_s: int) -> dict[str, Any]:
    """Return the same statistics of the calls since a time, from the totals of the ledger."""
    totals = read_totals(connection, wanted, step_s)
    # Too many different names for totals, so the calls themselves are counted.
    if totals is None:
        return collect_statistics(connection, wanted, step_s)
    answered = approval_times(connection, wanted)
    times = read_latencies(connection, wanted, step_s)
    ordered = sorted(pair for each in times.values() for pair in each)
    return {
        "calls": sum(total.calls for total in totals),
        **{name: _most(totals, column) for name, column in _NAMED.items()},
        **{name: _most(totals, column, any_=False) for name, column in _NAMED_IF_ANY.items()},
        "failed": sum(
            one.calls for one in totals if (one.decision, one.status) == ("ALLOW", "ERROR")
        ),
        "denials": _most((one for one in totals if one.decision == "BLOCK"), "rule", any_=False),
        "latency_ms": {f"p{share}": counted_percentile(ordered, share) for share in PERCENTILES},
        "latency_over_time": [
            (at, *(counted_percentile(each, share) for share in CURVES))
            for at, each in times.items()
        ],
        "failed_over_time": _failed_over_time(totals),
        "approval_s": {f"p{share}": percentile(answered, share) for share in PERCENTILES},
        "step_s": step_s,
        "over_time": _over_time(totals),
        "messages": count_messages(connection, wanted),
        "frames_refused": count_frames(connection, wanted),
    }


def add_statistics(several: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Add the statistics of several records over the same period; empty ones are left out.

    Percentiles cannot be added: there are none if more than one record has calls.
    """
    found = [stats for stats in several if stats.get("calls")]
    if len(found) < 2:  # noqa: PLR2004 - nothing to add
        return found[0] if found else {}
    nothing = dict.fromkeys(f"p{share}" for share in PERCENTILES)
    added = {**found[0], "latency_ms": nothing, "approval_s": nothing}
    for name in ("calls", "failed", "messages"):
        added[name] = sum(stats[name] for stats in found)
    for name in (*_NAMED, *_NAMED_IF_ANY, "denials", "frames_refused"):
        counts = Counter[str]()
        for stats in found:
            counts.update(stats[name])
        added[name] = dict(counts.most_common(MAX_NAMES))
    added["over_time"] = sorted(each for stats in found for each in stats["over_time"])
    return added


def _most(totals: Iterable[CallTotal], column: str, *, any_: bool = True) -> dict[str, int]:
    """Count calls by a column, most first; without ``any_``, only those that have a value."""
    counts: Counter[str] = Counter()
    for total in totals:
        counts[getattr(total, column)] += total.calls
    if not any_:
        del counts[""]
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_NAMES])


def _over_time(totals: Iterable[CallTotal]) -> list[tuple[float, str, int]]:
    counts: Counter[tuple[float, str]] = Counter()
    for total in totals:
        counts[total.at, total.decision] += total.calls
    return [(at, decision, count) for (at, decision), count in sorted(counts.items())]


def _failed_over_time(totals: Iterable[CallTotal]) -> list[tuple[float, int, int]]:
    """Return the allowed calls that have ended, and how many of them failed, per step."""
    counts: dict[float, list[int]] = {}
    for total in totals:
        if total.decision == "ALLOW" and total.status:
            each = counts.setdefault(total.at, [0, 0])
            each[0] += total.calls
            each[1] += total.calls * (total.status == "ERROR")
    return [(at, ended, failed) for at, (ended, failed) in sorted(counts.items())]


def counted_percentile(ordered: Sequence[tuple[int, int]], share: int) -> int | None:
    """Return a percentile of rising values, each of which comes with its number of occurrences."""
    left = sum(count for _, count in ordered) * share // 100
    for value, count in ordered:
        left -= count
        if left < 0:
            return value
    return ordered[-1][0] if ordered else None


def percentile(ordered: Sequence[int], share: int) -> int | None:
    """Return the value below which the given percentage of the values lies."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]
