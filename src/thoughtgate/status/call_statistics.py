"""Statistics of the recorded calls, as ``thoughtgate audit stats`` and the console show them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

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


def collect_statistics(connection: Connection, wanted: CallFilter, step_s: int) -> dict[str, Any]:
    """Count the wanted calls by each of their properties, and over time in steps of ``step_s``."""

    def count(column: str, among: CallFilter = wanted) -> dict[str, int]:
        return dict(count_by(connection, column, among))

    def count_named(column: str, among: CallFilter = wanted) -> dict[str, int]:
        return {name: calls for name, calls in count(column, among).items() if name}

    decisions, ordered = count("decision"), latencies(connection, wanted)
    denied = replace(wanted, decision="BLOCK")
    answered = approval_times(connection, wanted)
    return {
        "calls": sum(decisions.values()),
        "decisions": decisions,
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


def percentile(ordered: Sequence[int], share: int) -> int | None:
    """Return the value below which the given percentage of the values lies."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]
