"""Variables in values: filled in once, never changing the structure."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.config.substitution import references, substitute


def fill(text: str, **env: str) -> Any:
    data, problems = substitute({"k": text}, env)
    assert problems == []
    return data["k"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", "one"),
        ("x${A}y${B}z", "xoneytwoz"),
        ("${A:-d}", "one"),
        ("${C:-d}", "d"),
        ("${C:-}", ""),
        ("${E}", ""),
        ("${E:-d}", ""),
        ("$${A}", "${A}"),
        ("$A", "$A"),
        ("a$", "a$"),
        ("$$", "$$"),
    ],
)
def test_references_are_filled_in(text: str, expected: str) -> None:
    assert fill(text, A="one", B="two", E="") == expected


def test_a_value_is_not_looked_at_again() -> None:
    assert fill("${A}", A="${B}", B="x") == "${B}"


def test_a_missing_variable_is_a_problem_with_its_path() -> None:
    _, problems = substitute({"a": [{"b": "${GONE}"}], "c": "${ALSO}"}, {})
    assert [path for path, _ in problems] == [("a", 0, "b"), ("c",)]
    assert "GONE is not set" in problems[0][1]


@pytest.mark.parametrize("text", ["${", "${}", "${1A}", "${A", "${A:x}", "${A-b}"])
def test_a_broken_reference_is_a_problem(text: str) -> None:
    assert substitute({"k": text}, {"A": "1"})[1]


def test_only_string_values_are_touched() -> None:
    data = {"${A}": 1, "n": 5, "b": True, "x": None}
    assert substitute(data, {"A": "z"}) == (data, [])


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30))
def test_a_value_can_hold_anything_and_stays_one_text(value: str) -> None:
    assert fill("<${A}>", A=value) == f"<{value}>"


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab$ {}", max_size=20))
def test_escaping_brings_any_text_through(text: str) -> None:
    assert fill(text.replace("${", "$${")) == text or "$${" in text


def test_references_are_found_wherever_they_stand() -> None:
    data = {"a": ["x", "${V}"], "b": {"c": "a${V:-d}"}, "e": 1}
    assert list(references(data)) == [("a", 1), ("b", "c")]
