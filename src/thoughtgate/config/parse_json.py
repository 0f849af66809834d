"""Parses JSON and JSONC (comments, trailing commas) with line numbers; duplicate keys are errors."""

import json
import re
from typing import Any, Final, NoReturn

from thoughtgate.config.document import MAX_DEPTH, MAX_VALUES, Document, Path, syntax_error

MAX_DIGITS: Final = 64
"""Longer whole numbers are read as floats."""

_SKIP: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")


def _integer(text: str) -> int | float:
    # Python refuses to convert very long texts to int, so they become floats.
    return int(text) if len(text.lstrip("-")) <= MAX_DIGITS else float(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_scan: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_constant).raw_decode


def parse_json(text: str, file: str) -> Document:
    """Read one JSON or JSONC document.

    Raises:
        ConfigError: the text is not JSON, or has a duplicate key.
    """
    return _Reader(text.removeprefix("\ufeff"), file).read()


class _Reader:
    """A parser with a position in a text."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._values = 0
        self._line = 1
        self._counted_to = 0

    def read(self) -> Document:
        if not self._next():
            return Document(None, {})
        data = self._value((), 0)
        if self._next():
            self._fail("unexpected text after the end", ())
        return Document(data, self._lines)

    def _next(self) -> str:
        """Skip blanks and comments; return the next character, or an empty string at the end."""
        skipped = _SKIP.match(self._text, self._at)
        self._at = skipped.end() if skipped else self._at
        return self._text[self._at : self._at + 1]

    def _here(self) -> int:
        # From the previous position on: counting from the beginning each time would be quadratic.
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        return self._line

    def _value(self, path: Path, depth: int) -> Any:
        self._values += 1
        char = self._next()
        self._lines.setdefault(path, self._here())
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            self._fail("nested too deeply, or too many values", path)
        if char == "{":
            return self._object(path, depth)
        if char == "[":
            return self._array(path, depth)
        return self._scalar(path)

    def _object(self, path: Path, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._at += 1
        while self._next() != "}":
            if self._next() != '"':
                self._fail("expected a key in double quotes", path)
            key = str(self._scalar(path))
            inner = (*path, key)
            if key in members:
                self._fail(f"duplicate key {key!r}; keep one of them", inner)
            self._lines[inner] = self._here()
            if self._next() != ":":
                self._fail("expected ':' after the key", inner)
            self._at += 1
            members[key] = self._value(inner, depth + 1)
            self._separator("}", path)
        self._at += 1
        return members

    def _array(self, path: Path, depth: int) -> list[Any]:
        members: list[Any] = []
        self._at += 1
        while self._next() != "]":
            members.append(self._value((*path, len(members)), depth + 1))
            self._separator("]", path)
        self._at += 1
        return members

    def _separator(self, closing: str, path: Path) -> None:
        char = self._next()
        if char == ",":
            self._at += 1
        elif char != closing:
            self._fail(f"expected ',' or '{closing}'", path)

    def _scalar(self, path: Path) -> Any:
        is_text = self._text.startswith('"', self._at)
        try:
            value, self._at = _scan(self._text, self._at)
        except ValueError as error:
            words = getattr(error, "msg", "") if is_text else "expected a value"
            self._fail(f"not valid JSON: {words}", path)
        return value

    def _fail(self, message: str, path: Path) -> NoReturn:
        raise syntax_error(message, self._file, self._here(), path)
