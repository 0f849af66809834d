"""The difference between two definitions, for people."""

from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.core.definitions.difference import ADDED, REMOVED, SAME, WordDifference
from thoughtgate.core.definitions.pinned import define

WORDS = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)


@given(WORDS, WORDS)
def test_the_parts_are_the_two_texts(old: str, new: str) -> None:
    parts = WordDifference().parts(old, new)
    kept = [text for kind, text in parts if kind in {SAME, REMOVED}]
    made = [text for kind, text in parts if kind in {SAME, ADDED}]
    assert (" ".join(kept).split(), " ".join(made).split()) == (old.split(), new.split())


def test_words_are_marked() -> None:
    assert WordDifference().marked("a b c d e", "a x c e f") == "a [-b-] {+x+} c [-d-] e {+f+}"


def test_without_steps_left_texts_are_shown_whole() -> None:
    assert WordDifference(steps=1).marked("a b c d", "a x y d") == "a [-b c-] {+x y+} d"


def test_a_difference_shows_the_most_severe_change_first() -> None:
    old = define("tool", "t", {"name": "t", "description": "Reads"})
    new = define(
        "tool", "t", {"name": "t", "description": "Writes", "annotations": {"readOnlyHint": False}}
    )
    told = WordDifference().describe(old, new)
    assert told["weight"] == "severe"
    assert [one["weight"] for one in told["changes"]] == ["severe", "mild"]
    lines = WordDifference().lines(old, new)
    assert lines[0].startswith("severe")
    assert lines[-1].strip() == "[-Reads-] {+Writes+}"


def test_a_new_definition_is_shown_whole() -> None:
    new = define("tool", "t", {"name": "t", "description": "Reads"})
    assert WordDifference().describe(None, new)["definition"] == new.body
    assert any('"description": "Reads"' in line for line in WordDifference().lines(None, new))
