"""Arguments as a person reads them: a tree of names and values, long values folded.

Values come from agents. They are escaped, never links, and what a browser would not show
(control characters, reversed text, look-alike spaces) is written out, so that a page
cannot be made to say something else than what would be called.
"""

import json
from typing import Any, Final

from markupsafe import Markup, escape

from thoughtgate.policy.redaction import MASK

FOLD_CHARACTERS: Final = 700
"""Longer text is folded: about seven lines of a card. What is short is read, not unfolded."""
FOLD_LINES: Final = 14
PEEK: Final = 110
"""Characters of a folded text that stand in its summary."""

MAX_DEPTH: Final = 8
"""Deeper values are shown as JSON: a tree of that depth is not read as one."""

FOLD_ITEMS: Final = 20
"""Longer lists are folded."""

_KEPT: Final = frozenset("\n\t ")


def visible(text: str) -> str:
    """Return text with everything a browser would hide or obey written out."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each in _KEPT or each.isprintable()
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def render_arguments(text: str) -> Markup:
    """Return arguments, given as JSON text, as a tree."""
    try:
        value = json.loads(text)
    except ValueError:
        return _text(text)
    if value == {}:
        return Markup('<p class="none">no arguments</p>')
    return _value(value, 0)


def pretty_json(text: str) -> str:
    """Return JSON text with line breaks, invisible characters written out."""
    try:
        return visible(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
    except ValueError:
        return visible(text)


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
    if text == MASK:
        return Markup(
            '<span class="masked" title="a secret; the server gets it as it is">{}</span>'
        ).format(MASK)
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
