"""JSON and JSONC (comments, trailing commas) to plain data with lines; duplicate keys are errors."""

import json
import re
from typing import Any, Final, NoReturn

from thoughtgate.config.document import MAX_DEPTH, MAX_VALUES, Document, Path, syntax_error

_SKIP: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_scan: Final = json.JSONDecoder().raw_decode
_WORDS: Final = {"true": True, "false": False, "null": None}
_WORD: Final = re.compile(r"true|false|null")


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
        return self._string(path) if char == '"' else self._literal(path)

    def _object(self, path: Path, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._at += 1
        while self._next() != "}":
            if self._next() != '"':
                self._fail("expected a key in double quotes", path)
            key = self._string(path)
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

    def _string(self, path: Path) -> str:
        try:
            value, self._at = _scan(self._text, self._at)
        except json.JSONDecodeError as error:
            self._fail(f"not valid JSON: {error.msg}", path)
        return str(value)

    def _literal(self, path: Path) -> Any:
        for pattern in (_WORD, _NUMBER):
            match = pattern.match(self._text, self._at)
            if match:
                self._at = match.end()
                return _WORDS[match[0]] if pattern is _WORD else _number(match[0])
        return self._fail("not valid JSON: expected a value", path)

    def _fail(self, message: str, path: Path) -> NoReturn:
        raise syntax_error(message, self._file, self._here(), path)


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"-?[0-9]{1,64}", text) else float(text)
