"""JSON laid out for people: nothing is left out, and everything can be seen."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.wire.json_text import lay_out_part, pretty_json


def test_json_is_indented_and_other_text_is_shown_as_it_is() -> None:
    assert pretty_json('{"a":[1]}') == '{\n  "a": [\n    1\n  ]\n}'
    assert pretty_json("no <json>\x1b") == "no <json>[U+001B]"


def test_invisible_characters_are_written_out() -> None:
    assert pretty_json('{"a":"x\u3164\u202e"}') == '{\n  "a": "x[U+3164][U+202E]"\n}'


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (r'{"a":"1\n2"}', '{"a":"1\\n\n2"}'),
        (r'{"a":"1\\n2"}', r'{"a":"1\\n2"}'),
        (r'{"a":"1\\\n2"}', '{"a":"1\\\\\\n\n2"}'),
        ("\u200b", "[U+200B]"),
    ],
)
def test_a_part_has_a_new_line_at_each_line_break(part: str, shown: str) -> None:
    assert lay_out_part(part) == shown


@given(st.text())
def test_a_part_loses_nothing(text: str) -> None:
    part = json.dumps(text)
    assert lay_out_part(part).replace("\n", "") == part
