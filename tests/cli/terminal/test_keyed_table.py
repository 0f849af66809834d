"""Columns that fit; the selection of a table is tested with the whole interface."""

import pytest

from thoughtgate.cli.terminal.keyed_table import MIN_COLUMN, fit_widths


@pytest.mark.parametrize(
    ("wanted", "available", "widths"),
    [
        ([4, 10, 6], 40, [4, 10, 6]),
        ([4, 30, 6], 30, [4, 20, 6]),
        ([6, 30, 28], 36, [6, 15, 15]),
        ([6, 9, 9], 3, [MIN_COLUMN, MIN_COLUMN, MIN_COLUMN]),
    ],
)
def test_the_widest_columns_are_cut_until_all_fit(
    wanted: list[int], available: int, widths: list[int]
) -> None:
    assert fit_widths(wanted, available) == widths
