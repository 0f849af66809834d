"""Who decides about held calls: how often, how, and how fast."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from thoughtgate.status.call_statistics import percentile

MAX_DECISIONS: Final = 5000
"""Decisions that are counted, newest first."""

APPROVED: Final = frozenset({"approved", "used"})


class PersonSummary(NamedTuple):
    """The decisions of one person."""

    by: str
    decided: int
    approved: int
    median_s: int | None
    """How long calls waited for them."""
    last_at: float


def summarize_people(decisions: Iterable[tuple[str, str, float, float]]) -> list[PersonSummary]:
    """Return the people who decided, most decisions first."""
    found: dict[str, list[tuple[str, float, float]]] = {}
    for by, outcome, asked_at, at in decisions:
        found.setdefault(by, []).append((outcome, asked_at, at))
    people = [
        PersonSummary(
            by,
            len(each),
            sum(outcome in APPROVED for outcome, _, _ in each),
            percentile(sorted(round(at - asked_at) for _, asked_at, at in each), 50),
            max(at for _, _, at in each),
        )
        for by, each in found.items()
    ]
    return sorted(people, key=lambda one: (-one.decided, one.by))
