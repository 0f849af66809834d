"""Rates and budgets in a config."""

import pytest

from thoughtgate.config.call_counts import CallBudget, CallRate, read_budget, read_rate


def test_a_rate_is_text() -> None:
    assert read_rate("30/m") == CallRate(30, 60.0)
    for value in (30, None, "x"):
        with pytest.raises(ValueError, match="30/m"):
            read_rate(value)


def test_a_budget_is_a_number_or_text() -> None:
    assert read_budget(200) == read_budget("200") == CallBudget(200)
    assert read_budget("200/1d") == CallBudget(200, 86_400.0)
    with pytest.raises(ValueError, match="200/1d"):
        read_budget([])
