"""The bench's harness: bars, percentiles, the table, and how families are found."""

from pathlib import Path

import pytest
from bench.figure import Figure, families, percentile, render_table


@pytest.mark.parametrize(
    ("figure", "holds"),
    [
        (Figure("a", 1, "ms", 2), True),
        (Figure("a", 3, "ms", 2), False),
        (Figure("a", 3, "a second", 2, at_least=True), True),
        (Figure("a", 1, "a second", 2, at_least=True), False),
        (Figure("a", 1, "ms"), None),
    ],
)
def test_a_figure_holds_its_bar_or_not(figure: Figure, holds: bool | None) -> None:
    assert figure.holds is holds
    assert figure.as_json("family")["holds"] is holds


def test_percentiles_are_samples() -> None:
    samples = [5.0, 1.0, 4.0, 2.0, 3.0]

    assert (percentile(samples, 0.5), percentile(samples, 0.99)) == (3.0, 5.0)


def test_the_table_marks_what_was_missed() -> None:
    table = render_table(
        [("f", Figure("slow", 5, "ms", 2)), ("f", Figure("many", 1234567, "a second"))]
    )

    assert "MISSED" in table
    assert "1,234,567 a second" in table


def test_every_module_with_measure_is_a_family() -> None:
    found = families()

    assert {"stdio", "gates"} <= set(found)
    assert callable(found["gates"]())


def test_other_modules_are_none(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("def main(): ...\n")

    assert families(tmp_path) == {}
