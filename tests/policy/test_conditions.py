"""Conditions on arguments: what holds, what fails, and what cannot be told."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.policy.conditions import OPERATORS, judge_conditions, parse_conditions

HOLDS, FAILS, UNSURE = True, False, None


def judge(when: dict[str, Any], arguments: dict[str, Any]) -> bool | None:
    return judge_conditions(parse_conditions(when), arguments)


@pytest.mark.requirement("POL-010")
@pytest.mark.parametrize(
    ("test", "value", "expected"),
    [
        (5, 5, HOLDS),
        (5, 5.0, HOLDS),
        (5, 6, FAILS),
        (5, "5", UNSURE),
        (1, True, UNSURE),
        (True, True, HOLDS),
        ("a", "a", HOLDS),
        ("a", ["a"], UNSURE),
        (None, None, HOLDS),
        (None, 1, FAILS),
        (1, None, UNSURE),
        ({"eq": [1, 2]}, [1, 2], HOLDS),
        ({"eq": [1, 2]}, [1, 3], FAILS),
        ({"eq": [1, 2]}, [1], FAILS),
        ({"eq": [1]}, [True], UNSURE),
        ({"eq": [1]}, ["1"], UNSURE),
        ({"eq": {"a": 1}}, {"a": 1.0}, HOLDS),
        ({"eq": {"a": 1}}, {"a": True}, UNSURE),
        ({"eq": {"a": 1}}, {"b": 1}, FAILS),
        ({"contains": 5}, ["5", 1], UNSURE),
        ({"contains": 5}, [1, 5, "x"], HOLDS),
        ({"contains": "/etc"}, ["x", ["/etc"]], UNSURE),
        ({"ne": 5}, 6, HOLDS),
        ({"ne": 5}, 5, FAILS),
        ({"ne": 5}, "x", UNSURE),
        ({"gt": 100}, 101, HOLDS),
        ({"gt": 100}, 100, FAILS),
        ({"gt": 100}, "1000", UNSURE),
        ({"gt": 100}, True, UNSURE),
        ({"gt": 100}, None, UNSURE),
        ({"gt": 100}, [1000], UNSURE),
        ({"gt": 100}, float("nan"), UNSURE),
        ({"gt": 100}, 10**400, HOLDS),
        ({"lt": 100}, -(10**400), HOLDS),
        (2**53, 2**53 + 1, UNSURE),
        (2**53 + 1, 2**53 + 1, HOLDS),
        ({"ne": 2**53}, 2**53 + 1, UNSURE),
        ({"in": [2**53]}, 2**53 + 1, UNSURE),
        ({"contains": 2**53}, [2**53 + 1], UNSURE),
        ({"gt": 2**53}, 2**53 + 1, UNSURE),
        ({"gt": 2**53}, 2**60, HOLDS),
        (2**60, 2**60 + 2**10, FAILS),
        ({"ge": 1.5}, 1.5, HOLDS),
        ({"lt": 3}, 2, HOLDS),
        ({"le": 3}, 4, FAILS),
        ({"in": ["a", "b"]}, "b", HOLDS),
        ({"in": ["a", "b"]}, "c", FAILS),
        ({"in": ["a", "b"]}, 3, UNSURE),
        ({"in": ["a", 3]}, 4, UNSURE),
        ({"in": ["a", 3]}, 3, HOLDS),
        ({"not_in": ["a", 3]}, 4, UNSURE),
        ({"eq": {"a": 1}}, {"A": 1}, UNSURE),
        ({"eq": {"a": 1}}, {"a": 2, "A": 1}, UNSURE),
        ({"eq": {"a": 1}}, {"a": 1, "b": 1}, FAILS),
        ({"not_in": ["a"]}, "b", HOLDS),
        ({"not_in": ["a"]}, "a", FAILS),
        ({"not_in": ["a"]}, 1, UNSURE),
        ({"matches": "^/etc/"}, "/etc/passwd", HOLDS),
        ({"matches": "^/etc/"}, "/tmp", FAILS),
        ({"matches": "a+b"}, "a" * 100_000, UNSURE),
        ({"matches": "x"}, 5, UNSURE),
        ({"glob": "*.sh"}, "run.sh", HOLDS),
        ({"glob": ["*.sh", "*.py"]}, "run.py", HOLDS),
        ({"glob": "*.sh"}, "run.txt", FAILS),
        ({"contains": "rm"}, "a rm b", HOLDS),
        ({"contains": "rm"}, "a", FAILS),
        ({"contains": "rm"}, ["ls", "rm"], HOLDS),
        ({"contains": "rm"}, ["ls"], FAILS),
        ({"contains": "rm"}, [], FAILS),
        ({"contains": "rm"}, [1], UNSURE),
        ({"contains": "rm"}, 5, UNSURE),
        ({"contains": 5}, "5", UNSURE),
        ({"starts_with": "/etc"}, "/etc/x", HOLDS),
        ({"ends_with": ".key"}, "a.pem", FAILS),
        ({"ends_with": ".key"}, {"a": 1}, UNSURE),
        ({"exists": True}, None, HOLDS),
        ({"exists": False}, 1, FAILS),
        ({"length_gt": 2}, "abc", HOLDS),
        ({"length_gt": 2}, [1], FAILS),
        ({"length_lt": 2}, {"a": 1}, HOLDS),
        ({"length_lt": 2}, 5, UNSURE),
    ],
)
def test_an_operator_holds_fails_or_cannot_tell(
    test: Any, value: Any, expected: bool | None
) -> None:
    assert judge({"x": test}, {"x": value}) is expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (5, FAILS),
        ({"ne": 5}, UNSURE),
        ({"gt": 5}, FAILS),
        ({"in": [1]}, FAILS),
        ({"not_in": [1]}, UNSURE),
        ({"matches": "x"}, FAILS),
        ({"contains": "x"}, FAILS),
        ({"length_gt": 1}, FAILS),
        ({"exists": True}, FAILS),
        ({"exists": False}, HOLDS),
    ],
)
def test_a_missing_argument_fails_but_for_the_negative_operators(
    test: Any, expected: bool | None
) -> None:
    assert judge({"x": test}, {}) is expected


def test_a_dotted_path_goes_into_nested_objects() -> None:
    assert judge({"to.country": "DE"}, {"to": {"country": "DE"}}) is HOLDS
    assert judge({"to.country": "DE"}, {"to": {}}) is FAILS
    assert judge({"to.country": "DE"}, {"to": None}) is FAILS


def test_an_escaped_dot_is_part_of_the_name() -> None:
    assert judge({"a\\.b": 1}, {"a.b": 1}) is HOLDS


@pytest.mark.parametrize("value", ["DE", ["DE"], 5])
def test_a_path_through_something_that_is_no_object_cannot_be_told(value: Any) -> None:
    assert judge({"to.country": "DE"}, {"to": value}) is UNSURE
    assert judge({"to.country": {"exists": False}}, {"to": value}) is UNSURE


def test_all_conditions_must_hold_and_one_that_fails_decides() -> None:
    when = {"a": {"gt": 1, "lt": 5}, "b": "x"}
    assert judge(when, {"a": 3, "b": "x"}) is HOLDS
    assert judge(when, {"a": "3", "b": "x"}) is UNSURE
    assert judge(when, {"a": "3", "b": "y"}) is FAILS
    assert judge({}, {}) is HOLDS


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ({"a": {"above": 1}}, "unknown operator 'above'"),
        ({"a": {}}, "at least one operator"),
        ({"a": {"gt": "1"}}, "must be a number"),
        ({"a": {"gt": True}}, "must be a number"),
        ({"a": {"in": "x"}}, "must be a list"),
        ({"a": {"in": []}}, "must be a list"),
        ({"a": {"starts_with": ""}}, "must be a text"),
        ({"a": {"length_gt": -1}}, "whole number"),
        ({"a": {"length_gt": 1.5}}, "whole number"),
        ({"a": {"exists": 1}}, "true or false"),
        ({"a": {"matches": "("}}, "does not compile"),
        ({"a": {"glob": "["}}, "without"),
        ({"a": {"any": {}}}, "at least one operator"),
        ({"a": {"any": {"above": 1}}}, "a: any: unknown operator 'above'"),
        ({"a": {"all": {"gt": "x"}}}, "a: all: gt: must be a number"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_with_its_place(
    when: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        parse_conditions(when)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
OPERANDS = {
    "in": [1, "a"],
    "not_in": [1, "a"],
    "matches": "a",
    "glob": "a*",
    "exists": True,
    "length_gt": 1,
    "length_lt": 1,
    "starts_with": "a",
    "ends_with": "a",
    "contains": "a",
    "under": "/a",
    "any": {"glob": "a*"},
    "all": {"any": {"gt": 1}},
}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(OPERATORS), JSON)
def test_no_value_can_make_a_condition_raise(operator: str, value: Any) -> None:
    assert judge({"x": {operator: OPERANDS.get(operator, 1)}}, {"x": value}) in {True, False, None}


@pytest.mark.parametrize("path", ["", "a.", ".a", "a..b"])
def test_a_path_names_an_argument_at_every_step(path: str) -> None:
    with pytest.raises(ValueError, match="names no argument"):
        parse_conditions({path: 1})


def test_infinity_is_no_bound() -> None:
    with pytest.raises(ValueError, match="must be a number"):
        parse_conditions({"amount": {"gt": float("inf")}})


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("/tmp/a", True),
        ("/tmp", True),
        ("/tmp/x/../a", True),
        ("//tmp//a", True),
        ("/tmp/../etc/passwd", False),
        ("/tmp/./../etc", False),
        ("/tmpfile", False),
        ("/etc", False),
        ("a/b", None),
        ("~/a", None),
        ("/tmp/a\0b", None),
        (7, None),
        ("/TMP/a", None),
        ("/tmp/..\\etc", None),
        ("/tmp/a\\b", True),
        ("/tmp./a", None),
        ("/tmp /a", None),
        ("/tmp/.. /etc", None),
        ("/tmp/a.", True),
        ("/" + "tmp/../" * 10_000 + "etc", None),
    ],
)
def test_under_walks_a_path_before_it_judges(path: Any, outcome: bool | None) -> None:
    (condition,) = parse_conditions({"path": {"under": "/tmp/"}})

    assert judge_conditions([condition], {"path": path}) is outcome


def test_under_takes_several_folders_and_the_root() -> None:
    (condition,) = parse_conditions({"path": {"under": ["/srv", "/tmp"]}})
    (anywhere,) = parse_conditions({"path": {"under": "/"}})

    assert judge_conditions([condition], {"path": "/srv/a"}) is True
    assert judge_conditions([anywhere], {"path": "/etc/passwd"}) is True


def test_under_wants_absolute_paths() -> None:
    with pytest.raises(ValueError, match="absolute path"):
        parse_conditions({"path": {"under": "tmp"}})


DOTFILES = {"glob": [".*", "*/.*"]}


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        (".env", True),
        ("a/.env", True),
        ("./a/.env", True),
        ("/srv/.git/config", True),
        ("a\\.env", None),
        ("a/../.env", True),
        ("b/./a.txt", None),
        ("a.txt", False),
        ("src/a.txt", False),
        ("https://example.com/a", False),
        ("x" * 70_000, None),
    ],
)
def test_a_glob_looks_at_a_path_as_systems_resolve_it(path: str, outcome: bool | None) -> None:
    assert judge({"path": DOTFILES}, {"path": path}) is outcome


@pytest.mark.parametrize(
    ("glob", "text", "outcome"),
    [
        ("/etc/*", "/tmp/../etc/passwd", None),
        ("/etc/*", "/ETC/passwd", None),
        ("*.pem", "KEY.PEM", None),
        ("*.pem", "key.pem.", None),
        ("/tmp/*", "/tmp/../etc/passwd", None),
        ("/tmp/*", "/tmp/x", True),
        ("Makefile", "Makefile", True),
        ("Make.", "Make.", True),
        ("https://example.com/*", "https://example.com/a", True),
        ("https://example.com/*", "https://example.com@evil.org/a", False),
        ("https://example.com*", "https://example.com@evil.org/a", None),
        ("https://evil.org/*", "https:\\\\EVIL.org/a", None),
        ("https://evil.org/*", "http:%40Elocalhost::80/localhost\u00e9.%20//\\%255c%5c", None),
        ("*", "http:/%40Elocalhost::80/localhost\u00e9.%20//\\%255c%5c%3f@E%2f%5c", None),
    ],
)
def test_a_glob_must_match_a_path_or_url_in_all_readings(
    glob: str, text: str, outcome: bool | None
) -> None:
    assert judge({"x": {"glob": glob}}, {"x": text}) is outcome


@pytest.mark.parametrize(
    ("test", "value", "expected"),
    [
        ({"any": DOTFILES}, [".env"], HOLDS),
        ({"any": DOTFILES}, ["a", "b/.env"], HOLDS),
        ({"any": DOTFILES}, ["a", "b"], FAILS),
        ({"any": DOTFILES}, ["a", 5], UNSURE),
        ({"any": DOTFILES}, [5, ".env"], HOLDS),
        ({"any": DOTFILES}, [], FAILS),
        ({"any": DOTFILES}, ".env", UNSURE),
        ({"any": DOTFILES}, None, UNSURE),
        ({"any": "x"}, ["x"], HOLDS),
        ({"any": {"gt": 1, "lt": 5}}, [0, 9], FAILS),
        ({"any": {"gt": 1, "lt": 5}}, [0, 3], HOLDS),
        ({"all": {"under": "/srv"}}, ["/srv/a", "/srv/b"], HOLDS),
        ({"all": {"under": "/srv"}}, ["/srv/a", "/etc"], FAILS),
        ({"all": {"under": "/srv"}}, ["/srv/a", "x"], UNSURE),
        ({"all": {"under": "/srv"}}, ["x", "/etc"], FAILS),
        ({"all": {"under": "/srv"}}, [], UNSURE),
        ({"all": {"under": "/srv"}}, "/srv/a", UNSURE),
        ({"any": {"any": {"gt": 1}}}, [[0], [2]], HOLDS),
        ({"all": {"any": {"gt": 1}}}, [[0], [2]], FAILS),
        ({"any": {"gt": 1}}, [0] * 1_001, UNSURE),
    ],
)
def test_any_and_all_look_into_arrays(test: Any, value: Any, expected: bool | None) -> None:
    assert judge({"x": test}, {"x": value}) is expected


def test_any_and_all_fail_for_a_missing_array() -> None:
    assert judge({"x": {"any": {"gt": 1}}}, {}) is FAILS
    assert judge({"x": {"all": {"gt": 1}}}, {}) is FAILS


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"files": [{"path": "a"}, {"path": ".env"}]}, HOLDS),
        ({"files": [{"path": "a"}]}, FAILS),
        ({"files": [{"path": "a"}, {}]}, FAILS),
        ({"files": [{"path": "a"}, "b"]}, UNSURE),
        ({"files": [{"path": "a", "Path": ".env"}]}, UNSURE),
        ({"files": [{"path": ["a"]}]}, UNSURE),
        ({"files": {"path": [".env"]}}, HOLDS),
        ({"files": {"path": ".env"}}, UNSURE),
        ({"files": []}, FAILS),
        ({}, FAILS),
    ],
)
def test_a_path_leads_through_an_array(arguments: dict[str, Any], expected: bool | None) -> None:
    assert judge({"files.path": {"any": DOTFILES}}, arguments) is expected


@pytest.mark.promise("readings-uri")
@pytest.mark.parametrize(
    "url",
    [
        "file:etc/passwd",
        "FILE:etc/passwd",
        " file:///etc/passwd",
        "\tfile:///etc/passwd",
        "fi\nle:///etc/passwd",
        "file:\r//localhost/etc/passwd",
    ],
)
def test_a_glob_knows_a_url_where_parsers_find_one(url: str) -> None:
    assert judge({"x": {"glob": "file:///etc/*"}}, {"x": url}) is UNSURE


def test_a_path_with_a_drive_is_a_path() -> None:
    assert judge({"x": {"glob": "C:/secret/*"}}, {"x": "C:\\secret.\\key"}) is UNSURE


@pytest.mark.promise("readings-keys")
@pytest.mark.parametrize(
    ("when", "arguments", "expected"),
    [
        ({"a": 1}, {"a": 1, "A": 1}, HOLDS),
        ({"a": 1}, {"a": 1, "A": 2}, UNSURE),
        ({"a": 1}, {"a": 2, "A": 2}, FAILS),
        ({"a": 1}, {"A": 1}, UNSURE),
        ({"a": 1}, {"A": 2}, FAILS),
        ({"a": {"exists": True}}, {"A": 1}, UNSURE),
        ({"a": {"exists": False}}, {"A": 1}, UNSURE),
        ({"a": {"ne": 1}}, {"A": 2}, UNSURE),
        ({"a.b": 1}, {"A": {"B": 1}}, UNSURE),
        ({"a.b": 1}, {"a": {}, "A": {"b": 1}}, UNSURE),
        ({"a.b": {"exists": False}}, {"A": 5}, UNSURE),
    ],
)
def test_a_condition_looks_at_every_key_that_folds_to_the_one_it_names(
    when: dict[str, Any], arguments: dict[str, Any], expected: bool | None
) -> None:
    assert judge(when, arguments) is expected


def test_a_key_in_very_many_spellings_cannot_be_told() -> None:
    name = "abcdefgh"
    spellings = {
        "".join(c.upper() if bits >> place & 1 else c for place, c in enumerate(name)): 2
        for bits in range(256)
    }

    assert judge({name: 1}, spellings) is UNSURE


@pytest.mark.promise("linear-time")
def test_all_searches_for_a_call_together_take_a_limited_number_of_steps() -> None:
    slow = "a" * 2_000  # a search would start at every character and go on to the end
    pattern = r"[\w.]+@example\.com"
    when = {"to": {"any": {"matches": pattern}}}
    assert judge(when, {"to": ["x", "ann@example.com"]}) is True
    assert judge(when, {"to": ["some words"] * 1_000}) is False
    assert judge(when, {"to": [slow] * 3}) is False
    assert judge(when, {"to": [slow] * 1_000}) is None
