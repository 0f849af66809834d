"""Differences for edits: nothing is hidden, nothing is executed, time is bounded."""

import html
import re

import pytest

from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.web.approvals.edits import (
    MAX_STEPS,
    find_pair,
    is_patch,
    render_pair,
    render_patch,
)


def rendered(old: str, new: str) -> str:
    return str(render_pair(old, new, WordDifference(MAX_STEPS)))


def text_of(markup: str, mark: str) -> str:
    """Return the text of the lines with a mark, as a person would read it."""
    shown = re.search(r"<pre[^>]*>(.*)</pre>", markup, re.DOTALL)
    assert shown is not None
    lines = html.unescape(re.sub(r"<[^>]+>", "", shown[1])).removesuffix("\n").split("\n")
    return "\n".join(line[1:] for line in lines if line[:1] in {" ", mark})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\nc", "a\nB\nc"),
        ("", "x"),
        ("x\n", "x"),
        ("same", "same"),
        ("a\n" * 300, "b\n" * 300),
        ("\n".join(map(str, range(2000))), "\n".join(map(str, range(3, 2003)))),
    ],
)
def test_a_difference_contains_both_texts_whole(old: str, new: str) -> None:
    markup = rendered(old, new)

    assert text_of(markup, "-") == old
    assert text_of(markup, "+") == new


def test_what_is_removed_and_added_is_marked() -> None:
    markup = rendered("keep\nold", "keep\nnew")

    assert "<del>-old</del>" in markup
    assert "<ins>+new</ins>" in markup
    assert "<span> keep</span>" in markup
    assert "1 removed, 1 added" in markup


def test_hostile_text_stays_text_and_hidden_characters_are_written_out() -> None:
    markup = rendered("<b>\u202e", "</pre><script>\r")

    assert "<b>" not in markup
    assert "<script>" not in markup
    assert "[U+202E]" in markup
    assert "[U+000D]" in markup


def test_pairs_are_found_only_if_both_are_texts() -> None:
    assert find_pair({"path": "x", "old_string": "a", "new_string": "b"}) == (
        "old_string",
        "new_string",
    )
    assert find_pair({"oldText": "a", "newText": "b"}) == ("oldText", "newText")
    assert find_pair({"old_string": "a"}) is None
    assert find_pair({"old_string": "a", "new_string": 1}) is None


def test_a_patch_keeps_every_line() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"

    assert is_patch("patch", patch)
    assert not is_patch("patch", "no format")
    assert not is_patch("text", patch)
    assert html.unescape(re.sub(r"<[^>]+>", "", str(render_patch(patch)))).endswith(patch + "\n")
