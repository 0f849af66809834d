"""Parses TOML into plain data, with the lines of its tables and keys."""

import datetime as dt
import re
from typing import Any, Final

from thoughtgate.config.document import MAX_DEPTH, Document, Path, syntax_error

_KEY_PART: Final = r"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
_DOTTED: Final = rf"{_KEY_PART}(?:\s*\.\s*{_KEY_PART})*"
_HEADER: Final = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?")
_ENTRY: Final = re.compile(rf"\s*({_DOTTED})\s*=")
_LINE: Final = re.compile(r"\(at line (\d+)")


def parse_toml(text: str, file: str) -> Document:
    """Read one TOML document.

    Raises:
        ConfigError: the text is not TOML.
    """
    import tomllib  # most configs are YAML, and start sooner without it

    try:
        data = _plain(tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, deep nesting
        found = _LINE.search(str(error))
        line = int(found[1]) if found else 0
        raise syntax_error(
            f"not valid TOML: {str(error).partition(' (at ')[0]}", file, line
        ) from None
    return Document(data, _lines(text))


def _plain(value: Any, depth: int = 0) -> Any:
    """Return plain data; dates become text, because no key has a date as its value."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {key: _plain(member, depth + 1) for key, member in value.items()}
    if isinstance(value, list):
        return [_plain(member, depth + 1) for member in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return value


def _lines(text: str) -> dict[Path, int]:
    """Find the lines of headers and keys; keys in inline tables get the line of the table."""
    lines: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _split(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            lines.setdefault(table, number)
        elif entry := _ENTRY.match(line):
            lines.setdefault((*table, *_split(entry[1])), number)
    return lines


def _split(dotted_key: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_KEY_PART, dotted_key))
