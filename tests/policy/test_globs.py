"""Globs: what matches, what is refused, and that no pattern can stall."""

import fnmatch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.policy.globs import MAX_PATTERN, Glob, any_matches, compile_globs, is_glob

NAMES = st.text(alphabet="abAB-]![_./\n", max_size=8)
PATTERNS = st.lists(
    st.sampled_from(["a", "b", "A", "-", "*", "**", "?", "[ab]", "[!a]", "[a-b]", "[]]", "/", "."]),
    min_size=1,
    max_size=8,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(PATTERNS, NAMES)
def test_a_glob_matches_what_fnmatch_matches(pattern: str, name: str) -> None:
    assert Glob(pattern).matches(name) is fnmatch.fnmatchcase(name, pattern)


@settings(max_examples=100, deadline=None)
@given(
    st.text(min_size=1, max_size=20).filter(lambda text: not is_glob(text)), st.text(max_size=20)
)
def test_a_name_without_wildcards_matches_itself_alone(pattern: str, name: str) -> None:
    glob = Glob(pattern)
    assert glob.exact
    assert glob.matches(pattern)
    assert glob.matches(name) is (name == pattern)


@pytest.mark.requirement("NFR-C1")
@pytest.mark.parametrize(
    "name",
    ["Read_file", "read_file ", " read_file", "read_file\x00", "read_file\n", "re\u0301ad_file"],
)
def test_look_alikes_do_not_match_an_exact_name(name: str) -> None:
    assert not Glob("read_file").matches(name)
    assert not Glob("read_fil[e]").matches(name)


def test_a_composed_and_a_decomposed_letter_differ() -> None:
    assert not Glob("caf\u00e9").matches("cafe\u0301")


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("file:///etc/*", "file:///etc/a/b", True),
        ("*_admin", "x/y_admin", True),
        ("*", "", True),
        ("a*b*c", "a--b--c", True),
        ("a*b*c", "a--c--b", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("[!a]x", "bx", True),
        ("x[[]y", "x[y", True),
        ("[a-]x", "-x", True),
        ("[^a]", "^", True),
        ("[\\]", "\\", True),
    ],
)
def test_wildcards_and_sets(pattern: str, name: str, expected: bool) -> None:
    assert Glob(pattern).matches(name) is expected


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "empty"),
        ("a[b", "without"),
        ("[]", "without"),
        ("[z-a]", "turn it round"),
        ("a" * (MAX_PATTERN + 1), "at most"),
    ],
)
def test_a_broken_pattern_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Glob(pattern)


def test_many_stars_over_a_long_name_end_soon() -> None:
    assert not Glob("*a" * 200 + "b").matches("a" * 20_000)


def test_several_globs_are_compiled_in_order() -> None:
    globs = compile_globs(["a*", "b"])
    assert [repr(glob) for glob in globs] == ["Glob('a*')", "Glob('b')"]
    assert any_matches(globs, "abc")
    assert not any_matches(globs, "c")
    assert (globs[0].prefix, globs[0].suffix) == ("a", "")
    assert Glob("*[ab]c").suffix == "c"
