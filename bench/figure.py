"""A measured figure, and the bar it is held against.

A family of scenarios is a module in this folder with

    def measure(*, quick: bool) -> Iterable[Figure]

and needs no other registration. Figures are compared within one run on one machine;
no test ever looks at a time.
"""

import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Figure(NamedTuple):
    """One number."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    """The number to hold; None for one that only tells."""
    at_least: bool = False
    """The bar is a floor, not a ceiling."""
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the bar is met; None without a bar."""
        if self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def as_json(self, family: str) -> dict[str, Any]:
        """Return what the result file keeps."""
        return {"family": family, **self._asdict(), "holds": self.holds}


class Family(Protocol):
    """The shape of ``measure``."""

    def __call__(self, *, quick: bool) -> Iterable[Figure]:
        """Measure; a quick run has fewer rounds."""


def percentile(samples: Sequence[float], share: float) -> float:
    """Return the value that this share of samples does not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def families(folder: Path = Path(__file__).parent) -> dict[str, Callable[[], Family]]:
    """Return what can be measured: name -> function that loads it."""
    names = sorted(path.stem for path in folder.glob("*.py") if _has_measure(path))
    return {name: _loader(name) for name in names}


def _has_measure(path: Path) -> bool:
    return "\ndef measure(" in path.read_text("utf-8")


def _loader(name: str) -> Callable[[], Family]:
    def load() -> Family:
        module = importlib.import_module(f"bench.{name}")
        family: Family = module.measure
        return family

    return load


def render_table(figures: Iterable[tuple[str, Figure]]) -> str:
    """Return the table for people."""
    rows = [("what", "measured", "bar", "", "note")]
    for family, figure in figures:
        sign = ">=" if figure.at_least else "<="
        bar = "" if figure.bar is None else f"{sign} {figure.bar:g}"
        mark = {True: "holds", False: "MISSED", None: ""}[figure.holds]
        value = f"{_short(figure.value)} {figure.unit}"
        rows.append((f"{family}: {figure.name}", value, bar, mark, figure.note))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]
        ).rstrip()
        for row in rows
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
