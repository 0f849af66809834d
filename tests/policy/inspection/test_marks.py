"""The first pass over a text."""

from thoughtgate.policy.inspection import marks


def test_marks_are_found_by_group() -> None:
    found = marks.marks_for("arguments").find("x ghp_abc ://y .ssh")
    assert {marks.TOKEN, marks.URL, marks.PATH, marks.WORD} <= set(found)
    assert found[marks.URL][0].start == 10
    assert marks.marks_for("result").find("plain words") == {}


def test_a_mark_does_not_hide_the_one_that_it_begins_with() -> None:
    found = marks.marks_for("result").find("secret_key_base=x")
    assert next((hit.start, hit.end) for hit in found[marks.NAMED]) == (0, len("secret"))
