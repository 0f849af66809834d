"""Arguments for people: escaped, folded, and nothing hidden by a browser's manners."""

import json
import re
from typing import Any

from hypothesis import given, settings
from tests.support.json_values import json_values

from thoughtgate.web.approvals.arguments import render_arguments, visible


def shown(value: Any) -> str:
    return str(render_arguments(json.dumps(value)))


def test_names_and_values_stand_side_by_side() -> None:
    assert '<dt>path</dt><dd><span class="str">/tmp/x</span></dd>' in shown({"path": "/tmp/x"})


def test_no_arguments_are_said_to_be_none() -> None:
    assert "no arguments" in shown({})


def test_numbers_and_truth_look_unlike_text() -> None:
    text = shown({"a": 1, "b": True, "c": None, "d": "1", "e": [], "f": ""})

    assert '<code class="lit">1</code>' in text
    assert '<code class="lit">true</code>' in text
    assert '<code class="lit">null</code>' in text
    assert '<span class="str">1</span>' in text
    assert '<code class="lit">[]</code>' in text
    assert "empty" in text


def test_long_text_is_folded_and_whole() -> None:
    text = shown({"text": "x" * 5000})

    assert "<details" in text
    assert "5,000 characters" in text
    assert "x" * 5000 in text


def test_a_short_script_is_read_without_unfolding() -> None:
    text = shown({"text": "one\ntwo"})

    assert '<pre class="str">one\ntwo</pre>' in text


def test_many_lines_are_folded() -> None:
    assert "40 lines" in shown({"text": "line\n" * 39})


def test_long_lists_are_folded() -> None:
    text = shown({"list": list(range(100))})

    assert "100 items" in text
    assert "<details" in text


def test_a_masked_secret_is_shown_as_one() -> None:
    assert 'class="masked"' in shown({"token": "[secret, 8 characters]"})


def test_deep_values_do_not_become_a_deep_page() -> None:
    value: Any = "bottom"
    for _ in range(60):
        value = {"a": value}

    text = shown(value)
    assert text.count("<dl") < 12
    assert "bottom" in text


def test_reversed_and_invisible_characters_are_written_out() -> None:
    assert visible("a\u202eb\u200bc\x1b[0m") == "a[U+202E]b[U+200B]c[U+001B][0m"
    assert visible("zwei\nZeilen\tä") == "zwei\nZeilen\tä"
    assert "\u202e" not in shown({"\u202ekey": "\u202evalue"})


def test_what_is_not_json_is_shown_as_it_is() -> None:
    assert "no &lt;json&gt;" in str(render_arguments("no <json>"))


@settings(max_examples=150, deadline=None)
@given(json_values())
def test_nothing_of_a_value_becomes_markup(value: Any) -> None:
    text = shown({"value": value, "attack": "<b onmouseover=x>"})

    tags = set(re.findall(r"<\s*([a-zA-Z]+)", text))
    assert tags <= {
        "dl",
        "div",
        "dt",
        "dd",
        "ol",
        "li",
        "span",
        "code",
        "pre",
        "p",
        "details",
        "summary",
        "small",
    }
