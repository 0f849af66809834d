"""No reader takes more steps per byte for a longer text, and the tool finds one that does."""

import json
import re
from typing import Any

import pytest
from tools.fuzz_growth import MAX_EXPONENT, READERS, SHAPES, count_steps, measure, shapes_for

from tools import fuzz_growth

SIZE = 1500
"""Small, because every step is counted; enough for a square to show. More than the 1,024 characters
that a YAML scanner looks ahead."""

LONG = frozenset({"yaml", "uri", "inspected definition", "inspected arguments"})
"""Readers of more than five seconds. What inspects a result stays: it runs the same checks."""


@pytest.mark.promise("linear-time")
@pytest.mark.parametrize(
    "reader",
    [pytest.param(one, marks=[pytest.mark.long] if one in LONG else []) for one in READERS],
)
def test_the_steps_of_a_reader_grow_no_faster_than_the_text(reader: str) -> None:
    found = [measure(reader, shape, SIZE, count_steps) for shape in shapes_for(reader)]
    steep = {one.shape: one.costs for one in found if one.exponent > MAX_EXPONENT}
    # A few dozen steps more say nothing.
    assert {shape: costs for shape, costs in steep.items() if costs[-1] > 2000} == {}


def test_every_shape_is_read_by_something() -> None:
    read = {shape for reader in READERS for shape in shapes_for(reader)}
    assert read == set(SHAPES)
    answer = json.loads(SHAPES["tools"](1_600_000))
    assert len(answer["result"]["tools"]) > 20_000


def test_a_reader_that_looks_back_at_every_byte_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_back(data: bytes) -> Any:
        return [len(data) for end in range(len(data)) for _ in range(end)]

    monkeypatch.setitem(READERS, "square", look_back)
    growth = measure("square", "spaces", 50, count_steps)
    assert growth.exponent > 1.8


def test_a_pattern_that_backtracks_is_found_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(READERS, "pattern", lambda data: re.search(rb"a*a*b", data))
    monkeypatch.setitem(SHAPES, "letters", lambda size: b"a" * size)
    seconds = iter([0.03, 0.12, 0.5, 2.0, 0.03, 0.12, 0.5, 2.0])
    monkeypatch.setattr(fuzz_growth, "cpu_seconds", lambda _read, _data: next(seconds, 0.0))
    monkeypatch.setattr(fuzz_growth, "SHAPES", {"letters": SHAPES["letters"]})
    (found,) = fuzz_growth.find_offenders(["pattern"], 10, 60.0)
    assert (found.reader, found.shape) == ("pattern", "letters")


def test_what_is_too_quick_to_measure_is_no_offender() -> None:
    assert fuzz_growth.cpu_seconds(bytes.strip, b" ") == 0.0
    assert measure("id", "ids", 10, fuzz_growth.cpu_seconds).exponent == 0
