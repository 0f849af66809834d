"""JSON and JSONC, with lines."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.config import parse_json as parse_json_module
from thoughtgate.config.parse_json import parse_json
from thoughtgate.errors import ConfigError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_what_json_writes_is_read_back(data: Any) -> None:
    assert parse_json(json.dumps(data, indent=1), "f").data == data


def test_comments_trailing_commas_and_a_byte_order_mark_are_fine() -> None:
    text = '\ufeff// top\n{"a": [1, 2,], /* in\n between */ "b": {"c": "// no comment",},}\n// end'
    document = parse_json(text, "f")
    assert document.data == {"a": [1, 2], "b": {"c": "// no comment"}}
    assert document.lines["b", "c"] == 3


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"a": 1,\n "a": 2}', 2, "duplicate key"),
        ('{"a": 1} x', 1, "after the end"),
        ('{"a" 1}', 1, "expected ':'"),
        ("{a: 1}", 1, "double quotes"),
        ('{"a": 1 "b": 2}', 1, "expected '"),
        ("[1 2]", 1, "expected '"),
        ("[,]", 1, "expected a value"),
        ('{"a": ', 1, "expected a value"),
        ('{"a": "x', 1, "not valid JSON"),
        ('{"a": "\n"}', 1, "not valid JSON"),
        ("[NaN]", 1, "expected a value"),
        ("[01]", 1, "expected '"),
        ("[" * 40, 1, "nested too deeply"),
        ("/* open", 1, "expected a value"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        parse_json(text, "f.json")
    assert caught.value.problems[0].line == line


def test_nothing_but_blanks_and_comments_is_nothing() -> None:
    assert parse_json(" // x\n", "f").data is None


def test_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse_json_module, "MAX_VALUES", 5)
    with pytest.raises(ConfigError, match="too many"):
        parse_json("[1,2,3,4,5,6]", "f")


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='{}[]",:/*\\ 1e-.tn\n', max_size=24))
def test_any_text_is_data_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_json(text, "f")
