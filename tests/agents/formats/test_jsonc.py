"""JSON with comments: what is read, and that an edit touches nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.agents.formats import jsonc
from thoughtgate.errors import ConfigError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def _value(text: str) -> Any:
    tree = jsonc.parse(text)
    return tree.value(tree.root)


@settings(max_examples=150, deadline=None)
@given(JSON, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_plain_json_reads_as_the_standard_library_reads_it(
    value: Any, indent: Any, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert _value(text) == value


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='{}[]",:/*\\ \n0123eE.-+truefalsn', max_size=30))
def test_whatever_the_standard_library_refuses_is_refused_or_uses_comments(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        expected = ...
    try:
        tree = jsonc.parse(text)
    except ConfigError:
        assert expected is ...
        return
    assert expected is not ... or tree.extras


def test_comments_and_trailing_commas_are_read_and_reported() -> None:
    tree = jsonc.parse('// top\n{"a": [1, 2,], /* mid */ "b": {"c": null,},}\n// end')
    assert tree.value(tree.root) == {"a": [1, 2], "b": {"c": None}}
    assert sorted({name for _, name in tree.extras}) == ["comment", "trailing comma"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("  \n // nothing\n", 3),
        ('{"a" 1}', 1),
        ("{a: 1}", 1),
        ("{'a': 1}", 1),
        ('{"a": 1}\n{}', 2),
        ('{\n"a": tru}', 2),
        ('{"a": "x\ny"}', 1),
        ('{"a": 01}', 1),
        ("[1 2]", 1),
        ("[,]", 1),
        ("{,}", 1),
        ("[1,,2]", 1),
        ("[", 1),
        ("/* open", 1),
        ('"\\x"', 1),
        ("NaN", 1),
        ("[" * 5000, 1),
    ],
)
def test_text_that_is_not_json_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        jsonc.parse(text)
    (problem,) = caught.value.problems
    assert problem.line == line
    assert "not valid JSON" in problem.message


def test_a_byte_order_mark_is_passed_over() -> None:
    assert _value('\ufeff{"a": 1}') == {"a": 1}


def test_an_integer_of_thousands_of_digits_is_read() -> None:
    assert _value("[" + "1" * 5000 + "]") == [float("inf")]


def test_a_key_that_stands_twice_has_no_place() -> None:
    tree = jsonc.parse('{"a": {"b": 1,\n"b": 2}}')
    assert tree.value(tree.root) == {"a": {"b": 2}}
    with pytest.raises(ConfigError, match=r"a\.b: duplicate key") as caught:
        tree.find(("a", "b"))
    assert caught.value.problems[0].line == 2


def test_a_path_that_leads_nowhere_finds_nothing() -> None:
    tree = jsonc.parse('{"a": [1]}')
    for path in (("b",), ("a", "0")):
        with pytest.raises(KeyError):
            tree.find(path)


def test_replacing_a_value_leaves_every_other_byte() -> None:
    text = '{ // why\r\n\t"a" : "old" /* x */,\r\n}'
    assert jsonc.replace(text, ("a",), '"new"') == text.replace('"old"', '"new"')


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("{}", "a", '{"k": 1}'),
        ('{"a":0}', "a", '{"a":0, "k":1}'),
        ('{"a": 0, "b": 2}', "a", '{"a": 0, "k": 1, "b": 2}'),
        ('{"a": 0, "b": 2}', "gone", '{"a": 0, "b": 2, "k": 1}'),
        ('{"a": 0}', None, '{"k": 1, "a": 0}'),
        ('{\n  "a": 0, // c\n  "b": 2,\n}', "a", '{\n  "a": 0,\n  "k": 1, // c\n  "b": 2,\n}'),
        ('{\r\n\t"a" /**/ : 0\r\n}', "a", '{\r\n\t"a" /**/ : 0,\r\n\t"k": 1\r\n}'),
        ('{\n  "a": 0\n}', None, '{\n  "k": 1,\n  "a": 0\n}'),
    ],
)
def test_an_inserted_key_follows_the_layout(text: str, after: str | None, expected: str) -> None:
    assert jsonc.insert(text, ("k",), "1", after) == expected
    assert jsonc.remove(expected, ("k",)) == text


def test_removing_the_only_key_takes_its_comma_along() -> None:
    assert jsonc.remove('{ "a": 1 /* c */, }', ("a",)) == "{  }"
    assert jsonc.remove('{"a": 1}', ("a",)) == "{}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", '["x", 2]'),
        ("[ ]", '["x", 2 ]'),
        ('["a"]', '["x", 2, "a"]'),
        ('[ "a", ]', '[ "x", 2, "a", ]'),
        ('[\n    // first\n    "a",\n]', '[\n    // first\n    "x",\n    2,\n    "a",\n]'),
        ('[\r\n\t"a"\r\n]', '[\r\n\t"x",\r\n\t2,\r\n\t"a"\r\n]'),
    ],
)
def test_elements_put_before_others_follow_the_layout_and_come_off_again(
    text: str, expected: str
) -> None:
    entry = f'{{"args": {text}}}'
    longer = jsonc.prepend(entry, ("args",), ["x", 2])
    assert longer == f'{{"args": {expected}}}'
    assert jsonc.remove_first(longer, ("args",), 2) == entry


def test_a_missing_path_cannot_be_edited() -> None:
    with pytest.raises(KeyError):
        jsonc.replace("{}", ("a",), "1")


@pytest.mark.parametrize("value", ["é", "\ud800", "\u2028", '"\\', ["a", {"b": None}]])
def test_every_value_survives_its_text(value: Any) -> None:
    text = jsonc.encode(value)
    assert text.encode()
    assert _value(text) == value


TRIVIA = st.sampled_from(["", " ", "\n", "\r\n  ", " // c\n", "/* , } */", "\t"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(), TRIVIA, TRIVIA), max_size=4), st.booleans(), TRIVIA)
def test_prepend_and_behead_are_inverse_under_any_layout(
    items: list[tuple[int, str, str]], trailing: bool, end: str
) -> None:
    inside = ",".join(f"{before}{item}{behind}" for item, before, behind in items)
    text = '{"l": [' + inside + ("," if trailing and items else "") + end + "]}"
    longer = jsonc.prepend(text, ("l",), ["a", "b"])
    assert _value(longer)["l"] == ["a", "b", *(item for item, _, _ in items)]
    assert jsonc.remove_first(longer, ("l",), 2) == text


def test_plain_parts_beside_comments_are_found_at_every_depth() -> None:
    tree = jsonc.parse(
        '{"p": {"x": {"y": [1, {"z": 2}]}}, // c\n "q": {"r": {"s": 1}, /**/ "t": 2}}'
    )
    for path, raw in (
        (("p", "x", "y"), '[1, {"z": 2}]'),
        (("p",), '{"x": {"y": [1, {"z": 2}]}}'),
        (("q", "r", "s"), "1"),
        (("q", "t"), "2"),
    ):
        for _ in range(2):
            node = tree.find(path)
            assert node is not None
            assert tree.raw(node) == raw
    with pytest.raises(KeyError):
        tree.find(("p", "x", "y", "0"))


def test_a_duplicate_inside_a_plain_part_is_seen() -> None:
    with pytest.raises(ConfigError, match="duplicate key"):
        jsonc.parse('{"a": {"b": {"c": 1, "c": 2}}}').find(("a", "b", "c"))


@pytest.mark.parametrize("text", ['{"a": [NaN]}', '{"a": {"b": Infinity}}'])
def test_constants_of_python_are_no_json(text: str) -> None:
    with pytest.raises(ConfigError, match="expected a value"):
        jsonc.parse(text)
