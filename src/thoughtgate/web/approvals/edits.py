"""Differences for calls that edit text: what is removed and what is added, line by line.

Only what the arguments say is compared; no file is read. Nothing is left out: the difference
contains every character of both texts.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from markupsafe import Markup

from thoughtgate.core.definitions.difference import ADDED, REMOVED, SAME, WordDifference
from thoughtgate.errors import visible as escape_invisible

PAIRS: Final = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldText", "newText"),
    ("oldString", "newString"),
    ("old_content", "new_content"),
    ("search", "replace"),
    ("original", "replacement"),
    ("original", "content"),
    ("before", "after"),
    ("old", "new"),
)
"""Names that editing tools use for a text and its replacement."""

PATCHES: Final = frozenset({"patch", "diff"})
"""Members that hold a difference themselves, in the unified format."""

FOLD_LINES: Final = 60
"""Longer differences are collapsed."""

MAX_STEPS: Final = 250_000
"""Pairs of lines that are compared for all edits of one request."""

_MARKS: Final = {SAME: " ", REMOVED: "-", ADDED: "+"}
_TAGS: Final = {SAME: "span", REMOVED: "del", ADDED: "ins"}


def find_pair(members: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the names of a text and its replacement, if an object has such a pair."""
    for old, new in PAIRS:
        if isinstance(members.get(old), str) and isinstance(members.get(new), str):
            return old, new
    return None


def is_patch(name: str, text: str) -> bool:
    """Tell whether a text is a difference in the unified format."""
    return name.lower() in PATCHES and (text.startswith("@@") or "\n@@" in text)


def render_pair(old: str, new: str, difference: WordDifference) -> Markup:
    """Render the difference of two texts as HTML."""
    # Only line feeds separate lines: every other character, and a missing last one, is shown.
    parts = difference.aligned(old.split("\n"), new.split("\n"))
    return _render([(kind, line) for kind, lines in parts for line in lines], marked=True)


def render_patch(text: str) -> Markup:
    """Render a text in the unified format, with its own marks."""
    kinds = {"-": REMOVED, "+": ADDED}
    lines = text.split("\n")
    return _render([(kinds.get(line[:1], SAME), line) for line in lines], marked=False)


def _render(lines: list[tuple[str, str]], *, marked: bool) -> Markup:
    shown = Markup("").join(_line(kind, text, marked=marked) for kind, text in lines)
    whole = Markup('<pre class="diff">{}</pre>').format(shown)
    told = f"{_count(lines, REMOVED)} removed, {_count(lines, ADDED)} added"
    if len(lines) <= FOLD_LINES:
        return Markup('<p class="none">{}</p>{}').format(told, whole)
    return Markup('<details class="fold"><summary>{}, {:,} lines</summary>{}</details>').format(
        told, len(lines), whole
    )


def _line(kind: str, text: str, *, marked: bool) -> Markup:
    mark = _MARKS[kind] if marked else ""
    tag = Markup(_TAGS[kind])  # noqa: S704 - one of our own three
    return Markup("<{}>{}{}</{}>\n").format(tag, mark, escape_invisible(text, kept="\t"), tag)


def _count(lines: Iterable[tuple[str, str]], kind: str) -> int:
    return sum(found == kind for found, _ in lines)
