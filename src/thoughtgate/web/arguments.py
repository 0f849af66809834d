"""Rendering of arguments as an HTML tree of names and values, with long values collapsed.

Values come from agents. They are escaped and never become links. Characters that a browser
would not show (control characters, text direction marks, unusual spaces) are written as escape
sequences, so that the page always shows what would really be called.
"""

import json
from typing import Any, Final

from markupsafe import Markup, escape

from thoughtgate.errors import visible as escape_invisible
from thoughtgate.policy.redaction import is_mask

FOLD_CHARACTERS: Final = 700
"""Longer text is collapsed; this is about seven lines of a card."""
FOLD_LINES: Final = 14
PEEK: Final = 110
"""Characters of a collapsed text that are shown in its summary."""

MAX_DEPTH: Final = 8
"""Deeper values are shown as JSON, because such a deep tree is hard to read."""

FOLD_ITEMS: Final = 20
"""Longer lists are collapsed."""


def visible(text: str) -> str:
    """Escape every character that a browser would hide or interpret."""
    return escape_invisible(text, kept="\n\t")


def render_arguments(text: str) -> Markup:
    """Render arguments, given as JSON text, as an HTML tree."""
    try:
        value = json.loads(text)
    except ValueError:
        return _text(text)
    if value == {}:
        return Markup('<p class="none">no arguments</p>')
    return _value(value, 0)


def _value(value: Any, depth: int) -> Markup:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict | list) and value:
        if depth >= MAX_DEPTH:
            return _text(json.dumps(value, ensure_ascii=False))
        return _object(value, depth) if isinstance(value, dict) else _items(value, depth)
    return Markup('<code class="lit">{}</code>').format(json.dumps(value))


def _object(value: dict[str, Any], depth: int) -> Markup:
    rows = (
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(visible(name), _value(member, depth + 1))
        for name, member in value.items()
    )
    return Markup('<dl class="tree">{}</dl>').format(Markup("").join(rows))


def _items(value: list[Any], depth: int) -> Markup:
    rows = (Markup("<li>{}</li>").format(_value(member, depth + 1)) for member in value)
    tree = Markup('<ol class="tree" start="0">{}</ol>').format(Markup("").join(rows))
    if len(value) <= FOLD_ITEMS:
        return tree
    return _folded(f"{len(value)} items", "", tree)


def _text(text: str) -> Markup:
    if is_mask(text):
        return Markup(
            '<span class="masked" title="a masked secret; the server gets the real value">{}</span>'
        ).format(text)
    shown = visible(text)
    lines = shown.count("\n") + 1
    if len(shown) <= FOLD_CHARACTERS and lines <= FOLD_LINES:
        return _short(shown)
    size = f"{len(text):,} characters" + (f", {lines:,} lines" if lines > 1 else "")
    return _folded(
        shown[:PEEK].replace("\n", " ⏎ ") + "…", size, Markup("<pre>{}</pre>").format(shown)
    )


def _short(shown: str) -> Markup:
    if not shown:
        return Markup('<span class="none">empty</span>')
    if "\n" in shown:
        return Markup('<pre class="str">{}</pre>').format(shown)
    return Markup('<span class="str">{}</span>').format(shown)


def _folded(peek: str, size: str, whole: Markup) -> Markup:
    return Markup(
        '<details class="fold"><summary><span class="str">{}</span> <small>{}</small></summary>{}</details>'
    ).format(escape(peek), size, whole)
