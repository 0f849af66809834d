"""YAML: the core schema of 1.2, lines, and nothing that surprises."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.config.parse_yaml import parse_yaml
from thoughtgate.errors import ConfigError


def value(text: str) -> Any:
    return parse_yaml(f"x: {text}\n", "f").data["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("-12", -12),
        ("+12", 12),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("0b11", "0b11"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("'é ✓'", "é ✓"),
    ],
)
def test_a_plain_word_means_what_yaml_1_2_says(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_keys_are_always_texts() -> None:
    assert parse_yaml("on: 1\n2: x\nnull: y\n", "f").data == {"on": 1, "2": "x", "null": "y"}


def test_lines_are_known_for_keys_and_list_members() -> None:
    lines = parse_yaml("a:\n  b: 1\n\n  c:\n  - x\n  - {d: 1}\n", "f").lines
    assert lines["a",] == 1
    assert lines["a", "b"] == 2
    assert lines["a", "c"] == 4
    assert lines["a", "c", 0] == 5
    assert lines["a", "c", 1, "d"] == 6


def test_anchors_and_aliases_repeat_a_value() -> None:
    text = "a: &one [1, &two {x: 2}]\nb: *one\nc: *two\nd: &s text\ne: *s\n"
    data = parse_yaml(text, "f").data
    assert data == {"a": [1, {"x": 2}], "b": [1, {"x": 2}], "c": {"x": 2}, "d": "text", "e": "text"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\na: 2\n", 2, "duplicate key"),
        ("a: {b: 1, b: 2}\n", 1, "duplicate key"),
        ("a: &x [*x]\n", 1, "has no anchor"),
        ("a: &x {b: &y [*x]}\n", 1, "has no anchor"),
        ("a: *missing\n", 1, "anchor"),
        ("a: 1\nb: [1, 2\n", 3, "not valid YAML"),
        ("a: !!python/object:os.system x\n", 1, "tags"),
        ("a: !thing {b: 1}\n", 1, "tags"),
        ("a: !!set {b}\n", 1, "tags"),
        ("<<: {a: 1}\n", 1, "merge"),
        ("? [1]\n: 2\n", 1, "plain text"),
        ("a: 1\n---\nb: 2\n", 2, "one document"),
        ("a: 1\n\tb: 2\n", 2, "not valid YAML"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", 1, "nested too deeply"),
    ],
)
def test_what_a_config_does_not_need_is_refused_with_its_line(
    text: str, line: int, words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse_yaml(text, "f.yaml")
    assert caught.value.problems[0].line == line


def test_a_small_file_cannot_be_blown_up_by_aliases() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(ConfigError, match="too many values"):
        parse_yaml("\n".join(lines), "f")


def test_an_empty_text_is_nothing() -> None:
    assert parse_yaml("", "f").data is None
    assert parse_yaml("# only a comment\n", "f").data is None


def test_a_control_character_is_refused() -> None:
    with pytest.raises(ConfigError, match="not valid YAML"):
        parse_yaml("a: \x00\n", "f")


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(
        alphabet=st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), max_size=8
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet="abc<&*", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(PLAIN)
def test_json_is_read_as_what_it_is(data: Any) -> None:
    assert parse_yaml(json.dumps(data), "f").data == data


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#,\n ", max_size=24))
def test_any_text_is_data_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_yaml(text, "f")
