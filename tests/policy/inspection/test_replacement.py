"""Placeholders in place of what was found."""

from thoughtgate.policy.inspection.finding import HARD, Finding
from thoughtgate.policy.inspection.inspect import inspect_result, without_findings


def spans(pointer: str, *places: tuple[int, int]) -> list[Finding]:
    return [Finding("secret-token", HARD, pointer, start, end, "x") for start, end in places]


def test_spans_are_replaced_and_the_value_itself_stays() -> None:
    value = {"a/b": ["one two", {"c": 5}]}
    changed = without_findings(value, spans("/a~1b/0", (4, 7), (0, 1)))
    assert changed == {"a/b": ["[removed: secret-token]ne [removed: secret-token]", {"c": 5}]}
    assert value == {"a/b": ["one two", {"c": 5}]}


def test_overlapping_spans_are_replaced_once() -> None:
    assert without_findings("abcdef", spans("", (1, 4), (2, 5))) == "a[removed: secret-token]f"


def test_a_whole_member_and_a_number_are_replaced() -> None:
    value = {"a": {"b": 1}, "c": 4539578763621486}
    assert without_findings(value, spans("/a", (0, 0)))["a"] == "[removed: secret-token]"
    assert without_findings(value, spans("/c", (0, 16)))["c"] == "[removed: secret-token]"


def test_what_was_found_is_gone_afterwards() -> None:
    value = {"content": [{"type": "text", "text": "card 4539 5787 6362 1486, thanks"}]}
    clean = without_findings(value, inspect_result(value))
    assert clean["content"][0]["text"] == "card [removed: personal-card], thanks"
    assert inspect_result(clean) == ()
