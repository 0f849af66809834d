"""The types of keys: each says what would be right."""

from typing import Any, get_args

import pytest

from thoughtgate.config.key_types import Checked, Count, Globs, Words, between, matching, one_of


@pytest.mark.parametrize(
    ("values", "wrong", "words"),
    [
        ((1,), True, "unknown value; must be 1"),
        ((1,), 1.0, "unknown value; must be 1"),
        (("a", "b"), "c", "unknown value; must be 'a' or 'b'"),
        (("a", "b", "c"), ["a"], "unknown value; must be 'a', 'b' or 'c'"),
    ],
)
def test_one_of_lists_what_is_allowed(values: tuple[Any, ...], wrong: Any, words: str) -> None:
    assert one_of(*values).parse(values[0]) == values[0]
    with pytest.raises(ValueError, match=words):
        one_of(*values).parse(wrong)


def test_one_of_a_single_value_is_a_constant() -> None:
    assert one_of("a").schema == {"type": "string", "const": "a"}
    assert one_of(1, 2).schema == {"type": "integer", "enum": [1, 2]}


def test_between_accepts_its_ends_and_nothing_outside() -> None:
    mark = between(1, 3)
    mark.check(1)
    mark.check(3)
    with pytest.raises(ValueError, match="at least 1"):
        mark.check(0)
    with pytest.raises(ValueError, match="at most 3"):
        mark.check(4)
    assert mark.schema == {"minimum": 1, "maximum": 3}
    assert between(0).schema == {"minimum": 0}


@pytest.mark.parametrize("text", ["ab", "a\n", ""])
def test_matching_is_about_the_whole_text(text: str) -> None:
    mark = matching("^a$", "must be a")
    mark.check("a")
    with pytest.raises(ValueError, match="must be a"):
        mark.check(text)


def test_types_can_be_optional() -> None:
    # A union hashes its members, and what marks them with it.
    for type_ in (Globs, Words, Count):
        assert get_args(type_ | None)[1] is type(None)


def test_a_check_adds_to_the_schema() -> None:
    assert Checked(len, minItems=1).schema == {"minItems": 1}
