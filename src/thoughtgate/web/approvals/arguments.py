"""Rendering of arguments as an HTML tree of names and values, with long values collapsed.

Values come from agents. They are escaped and never become links. Characters that a browser
would not show (control characters, text direction marks, unusual spaces) are written as escape
sequences, so that the page always shows what would really be called. Arguments that usually decide
whether a call is harmless (paths, commands, URLs, amounts) come first and are marked.
"""

import json
import re
from typing import Any, Final

from markupsafe import Markup, escape

from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.errors import visible as escape_invisible
from thoughtgate.policy.redaction import is_mask
from thoughtgate.web.approvals.edits import (
    MAX_STEPS,
    find_pair,
    is_patch,
    render_pair,
    render_patch,
)

FOLD_CHARACTERS: Final = 700
"""Longer text is collapsed; this is about seven lines of a card."""
FOLD_LINES: Final = 14
KEY_CHARACTERS: Final = 4000
"""Longer text is collapsed even where it decides, such as a command."""
KEY_LINES: Final = 60
PEEK: Final = 110
"""Characters of a collapsed text that are shown in its summary."""

GIST: Final = 160
"""Characters of a request's arguments in a list."""
GIST_MEMBERS: Final = 6

MAX_DEPTH: Final = 8
"""Deeper values are shown as JSON, because such a deep tree is hard to read."""

FOLD_ITEMS: Final = 20
"""Longer lists are collapsed."""

KEY_NAMES: Final = frozenset(
    [
        "command",
        "cmd",
        "commands",
        "script",
        "code",
        "sql",
        "query",
        "statement",
        "path",
        "paths",
        "file",
        "files",
        "filename",
        "filepath",
        "dir",
        "directory",
        "folder",
        "source",
        "destination",
        "src",
        "dst",
        "uri",
        "url",
        "urls",
        "href",
        "endpoint",
        "host",
        "hostname",
        "address",
        "to",
        "recipient",
        "recipients",
        "cc",
        "bcc",
        "email",
        "channel",
        "amount",
        "total",
        "price",
        "sum",
        "quantity",
        "value",
        "currency",
        "account",
        "iban",
        "name",
        "id",
        "repo",
        "repository",
        "branch",
        "table",
        "database",
        "bucket",
        "key",
    ]
)
"""Names of arguments on which a decision usually depends, in lower case."""

_LAST_WORD: Final = re.compile(r"[A-Za-z][a-z]*\Z")
_PLACE: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]{1,15}:|[A-Za-z]:\\|~?/|\.{1,2}/)\S")
"""How paths and URLs begin."""


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
    return _Tree().render(value, 0)


def gist(text: str) -> str:
    """Return the beginning of the arguments on one line, the most telling ones first, for a list."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    members = value.items() if isinstance(value, dict) else [("", value)]
    ordered = sorted(members, key=lambda pair: not is_key(*pair))
    parts = []
    for name, member in ordered[:GIST_MEMBERS]:
        told = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False)
        parts.append(f"{name}: {told[:GIST]}" if name else told[:GIST])
    shown = escape_invisible(", ".join(parts)[:GIST].replace("\n", " "))
    return shown if len(shown) < GIST else f"{shown}…"


def is_key(name: str, value: Any) -> bool:
    """Tell whether a decision usually depends on an argument: a path, a command, a URL, an amount."""
    last = _LAST_WORD.search(name)
    if name.lower() in KEY_NAMES or (last is not None and last[0].lower() in KEY_NAMES):
        return True
    return isinstance(value, str) and len(value) <= KEY_CHARACTERS and bool(_PLACE.match(value))


class _Tree:
    """Renders one value; all edits in it share one limit on the work of comparing texts."""

    def __init__(self) -> None:
        self._difference = WordDifference(MAX_STEPS)

    def render(self, value: Any, depth: int, *, key: bool = False) -> Markup:
        """Render a value."""
        if isinstance(value, str):
            return _text(value, key=key)
        if isinstance(value, dict | list) and value:
            if depth >= MAX_DEPTH:
                return _text(json.dumps(value, ensure_ascii=False))
            if isinstance(value, dict):
                return self._object(value, depth)
            return self._items(value, depth, key=key)
        return Markup('<code class="lit">{}</code>').format(json.dumps(value))

    def _object(self, value: dict[str, Any], depth: int) -> Markup:
        pair = find_pair(value)
        rows: list[tuple[bool, Markup]] = []
        for name, member in value.items():
            if pair is not None and name in pair:
                if name == pair[0]:
                    changed = render_pair(member, value[pair[1]], self._difference)
                    rows.append((False, _row(f"{name} → {pair[1]}", changed, "edit")))
                continue
            if isinstance(member, str) and is_patch(name, member):
                rows.append((False, _row(name, render_patch(member), "edit")))
                continue
            key = depth == 0 and is_key(name, member)
            rows.append((key, _row(name, self.render(member, depth + 1, key=key), "key" * key)))
        # Stable: among themselves, arguments stay in the order in which they are sent.
        rows.sort(key=lambda row: not row[0])
        shown = Markup("").join(row for _, row in rows)
        return Markup('<dl class="tree">{}</dl>').format(shown)

    def _items(self, value: list[Any], depth: int, *, key: bool) -> Markup:
        rows = (
            Markup("<li>{}</li>").format(self.render(member, depth + 1, key=key))
            for member in value
        )
        tree = Markup('<ol class="tree" start="0">{}</ol>').format(Markup("").join(rows))
        if len(value) <= FOLD_ITEMS:
            return tree
        return _folded(f"{len(value)} items", "", tree)


def _row(name: str, value: Markup, kind: str) -> Markup:
    given = Markup(' class="{}"').format(kind) if kind else ""
    return Markup("<div{}><dt>{}</dt><dd>{}</dd></div>").format(given, visible(name), value)


def _text(text: str, *, key: bool = False) -> Markup:
    if is_mask(text):
        return Markup(
            '<span class="masked" title="a masked secret; the server gets the real value">{}</span>'
        ).format(text)
    shown = visible(text)
    lines = shown.count("\n") + 1
    limits = (KEY_CHARACTERS, KEY_LINES) if key else (FOLD_CHARACTERS, FOLD_LINES)
    if len(shown) <= limits[0] and lines <= limits[1]:
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
