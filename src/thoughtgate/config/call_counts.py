"""Rates such as ``30/m`` and budgets such as ``200`` or ``200/1d``, as a config writes them."""

from dataclasses import dataclass
from typing import Any

from thoughtgate.config.durations import parse_budget, parse_rate


@dataclass(frozen=True, slots=True)
class CallRate:
    """A number of calls per period."""

    count: int
    period_s: float


@dataclass(frozen=True, slots=True)
class CallBudget:
    """A total number of calls, per window if there is one."""

    count: int
    window_s: float = 0.0


def read_rate(value: Any) -> CallRate:
    """Return the rate that a value of a config means.

    Raises:
        ValueError: it is not a rate.
    """
    return CallRate(*parse_rate(value if isinstance(value, str) else ""))


def read_budget(value: Any) -> CallBudget:
    """Return the budget that a value of a config means.

    Raises:
        ValueError: it is not a budget.
    """
    return CallBudget(*parse_budget(value))
