"""Durations, rates and sizes as people write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.config.durations import (
    MAX_SECONDS,
    parse_budget,
    parse_duration,
    parse_rate,
    parse_size,
    render_duration,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("0s", 0.0),
        ("30s", 30.0),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("1h 30m", 5400.0),
        ("1.5h", 5400.0),
        ("2d", 172_800.0),
        ("1w", 604_800.0),
        ("PT10M", 600.0),
        ("PT1H30M", 5400.0),
        ("P2D", 172_800.0),
        ("P1W", 604_800.0),
        ("P1DT12H", 129_600.0),
        ("PT0.5S", 0.5),
    ],
)
def test_a_duration_is_read_in_both_grammars(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "1.5",
        "-5s",
        "10 m",
        "5x",
        "s",
        "1h30",
        "P",
        "PT",
        "P1H",
        "PT1D",
        "1e3s",
        "٣s",
        "5s\n",
        "10m 5",
    ],
)
def test_what_has_no_unit_or_no_meaning_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unit"):
        parse_duration(text)


def test_more_than_a_year_is_refused() -> None:
    with pytest.raises(ValueError, match="year"):
        parse_duration("9999d")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, MAX_SECONDS * 1000))
def test_what_is_rendered_is_read_back(milliseconds: int) -> None:
    assert parse_duration(render_duration(milliseconds / 1000)) == milliseconds / 1000


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="0123456789.smhdwPT: ", max_size=12))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    assert 0 <= seconds <= MAX_SECONDS


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("30/m", (30, 60.0)),
        ("5/s", (5, 1.0)),
        ("100/h", (100, 3600.0)),
        ("10/30s", (10, 30.0)),
        ("1/d", (1, 86_400.0)),
    ],
)
def test_a_rate_is_a_count_in_a_time(text: str, rate: tuple[int, float]) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "30", "30/", "/m", "0/m", "-1/m", "1.5/m", "30/q", "30/0s", "30/m/s"]
)
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="calls per period"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("value", "budget"),
    [
        (0, (0, 0.0)),
        (200, (200, 0.0)),
        ("200", (200, 0.0)),
        ("200/1d", (200, 86_400.0)),
        ("50/8h", (50, 28_800.0)),
        ("5/m", (5, 60.0)),
    ],
)
def test_a_budget_is_a_count_with_or_without_a_window(
    value: object, budget: tuple[int, float]
) -> None:
    assert parse_budget(value) == budget


@pytest.mark.parametrize("value", [-1, True, None, 1.5, "", "x", "-1", "200/", "200/0s", "0/1d"])
def test_what_is_no_budget_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="200/1d"):
        parse_budget(value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 1_048_576),
        ("64KiB", 65_536),
        ("10 MB", 10_000_000),
        ("1GiB", 1_073_741_824),
        ("0", 0),
        ("5B", 5),
    ],
)
def test_a_size_is_in_bytes_or_has_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.5MB", "10mb", "MB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)
