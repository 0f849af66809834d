"""Tables and times, as every command prints them."""

import pytest

from thoughtgate.cli.tables import MAX_CELL, paint, shown_time, table_lines

T0 = 1760000000.0


def test_a_row_is_one_line_however_long_and_hostile_it_is() -> None:
    rows = [{"id": "a\nb\x1b[31m", "tool": "x" * 5000, "note": "seen"}, {"id": "c"}]

    head, first, second = table_lines(("id", "tool", "note"), rows)

    assert head.split() == ["ID", "TOOL", "NOTE"]
    assert first.isprintable()
    assert first.endswith("…  seen")
    assert len(first) < MAX_CELL + 60
    assert second.split() == ["c", "-", "-"]


def test_columns_stand_below_each_other_and_no_line_ends_in_spaces() -> None:
    lines = list(table_lines(("id", "on"), [{"id": "日本", "on": True}, {"id": "a", "on": False}]))

    assert lines == ["ID    ON", "日本  yes", "a     no"]


def test_no_rows_are_no_lines() -> None:
    assert list(table_lines(("id",), [])) == []


@pytest.mark.parametrize("at", [T0, "2025-10-09T08:53:20.123Z"])
def test_times_are_utc_in_the_format_that_since_takes(at: float | str) -> None:
    assert shown_time(at) == "2025-10-09T08:53:20Z"


def test_a_time_that_is_not_known_is_a_dash() -> None:
    assert shown_time(None) == "-"
    assert shown_time("soon") == "-"


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paint("up", "green") == "up"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert paint("up", "green") == "\x1b[32mup\x1b[0m"
    assert paint("up", "") == "up"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("up", "green") == "up"
