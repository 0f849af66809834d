"""How commands print tables and times: one line per row, whether a person or a program reads it.

A row is never wrapped or cut to the width of a terminal, so that lines stay whole when the
output is piped into another program.
"""

import os
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from thoughtgate.core.envelope import render_time
from thoughtgate.errors import visible
from thoughtgate.record.call_rows import parse_time

MAX_CELL: Final = 200
"""Longest cell, in characters: agents and servers choose names, which must not fill the screen."""

NOTHING: Final = "-"

_COLOURS: Final = {
    "bold": "1",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "grey50": "90",
    "bold red": "1;31",
}
"""The codes (SGR) with which terminals select colours."""


def table_lines(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    colours: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield a table: a line with the names of the columns, then a line per row.

    ``colours`` has the colour of some texts, such as states; it is used in terminals only.
    """
    if not rows:
        return
    cells = [tuple(name.upper() for name in columns)]
    cells += [tuple(_cell(row.get(name)) for name in columns) for row in rows]
    widths = [max(_width(line[at]) for line in cells) for at in range(len(columns))]
    for number, line in enumerate(cells):
        padded = (
            paint(text, (colours or {}).get(text, "") if number else "")
            + " " * (width - _width(text))
            for text, width in zip(line, widths, strict=True)
        )
        yield "  ".join(padded).rstrip()


def shown_time(at: float | str | None) -> str:
    """Return a time in UTC to the second, in the format that ``--since`` takes."""
    when = parse_time(at) if isinstance(at, str) else at
    return f"{render_time(when)[:19]}Z" if when else NOTHING


def paint(text: str, colour: str) -> str:
    """Return a text in a colour if stdout is a terminal and the user has not disabled colours."""
    code = _COLOURS.get(colour, "")
    if not code or not text or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def _cell(value: Any) -> str:
    """Return a value as text that is safe for a terminal and a single line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = NOTHING if value is None or value == "" else visible(str(value))
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    # Wide characters take two columns of a terminal, combining marks none.
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return len(text) + wide - sum(unicodedata.combining(one) > 0 for one in text)
