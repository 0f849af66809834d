"""In-place editing of TOML, based on tomlkit.

tomlkit preserves comments, order and layout; ``render`` restores the file's line endings.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, InlineTable, Item, Table

from thoughtgate.agents.entries import KeyPath
from thoughtgate.errors import ConfigError, Problem

_BEFORE_FIRST_ELEMENT = re.compile(r"\[(?:[ \t\r\n]+|#[^\n]*)*")
_LONE_NEWLINE = re.compile(r"(?<!\r)\n")


class TomlDocument:
    """An editable TOML text."""

    def __init__(self, text: str) -> None:
        """Parse a text.

        Raises:
            ConfigError: the text is not valid TOML, or tomlkit cannot edit it in place.
        """
        self._bom = "\ufeff" if text.startswith("\ufeff") else ""
        body = text.removeprefix("\ufeff")
        # Two parsers: tomllib gives plain values that can be compared, tomlkit keeps the layout.
        try:
            self.values: dict[str, Any] = tomllib.loads(body)
            self._document = tomlkit.parse(body)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError([Problem("", f"not valid TOML: {error}")]) from error
        except (TOMLKitError, ValueError, RecursionError) as error:  # a number too long for Python
            raise ConfigError([Problem("", f"this TOML cannot be edited: {error}")]) from error
        if tomlkit.dumps(self._document) != body:
            message = "this TOML cannot be edited without changing other settings"
            raise ConfigError([Problem("", message)])
        # tomlkit writes new lines with a line feed alone. A file with mixed endings stays as it is.
        self._crlf = "\r\n" in body and not _LONE_NEWLINE.search(body)
        self.extra: tuple[int, str] | None = None

    def render(self) -> str:
        """Return the text with every edit in it."""
        text = tomlkit.dumps(self._document)
        if self._crlf:
            text = _LONE_NEWLINE.sub("\r\n", text)
        return self._bom + text

    def raw(self, path: KeyPath) -> str:
        """Return the text of a value; for a table with its own header, the inline form."""
        found = self._find(path)
        if isinstance(found, Item) and not isinstance(found, Table | AoT):
            return found.as_string()
        return self.encode(found.unwrap())

    @classmethod
    def encode(cls, value: Any) -> str:
        """Return a value as TOML text on one line."""
        if isinstance(value, Mapping):
            pairs = (f"{basic_string(key)} = {cls.encode(item)}" for key, item in value.items())
            return "{" + ", ".join(pairs) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(cls.encode, value)) + "]"
        if isinstance(value, str):
            return basic_string(value)
        return str(tomlkit.item(value).as_string())

    @staticmethod
    def decode(raw: str) -> Any:
        """Parse a TOML value."""
        return tomllib.loads(f"value = {raw}")["value"]

    def replace(self, entry: KeyPath, keys: KeyPath, raw: str) -> None:
        """Replace a value with ``raw``."""
        self._find((*entry, *keys[:-1]))[keys[-1]] = tomlkit.value(raw)

    def insert(self, entry: KeyPath, keys: KeyPath, raw: str, after: str | None) -> None:
        """Add a key at the end of its table; TOML ignores ``after``."""
        del after
        path = (*entry, *keys[:-1])
        table = self._find(path)
        if not isinstance(table, InlineTable):
            table[keys[-1]] = tomlkit.value(raw)
            return
        # tomlkit would reformat an inline table, so the key is added to its text.
        inside = table.as_string()[:-1]
        end = len(inside.rstrip())
        separator = ", " if len(table) else ""
        longer = f"{inside[:end]}{separator}{keys[-1]} = {raw}{inside[end:]}}}"
        self.replace((), path, longer)

    def remove(self, entry: KeyPath, keys: KeyPath) -> None:
        """Remove a key and its value."""
        path = (*entry, *keys[:-1])
        table = self._find(path)
        if isinstance(table, InlineTable):
            # tomlkit would leave a space, so the text that `insert` wrote is cut out instead.
            written = f", {keys[-1]} = {self.raw((*path, keys[-1]))}"
            shorter = table.as_string().replace(written, "", 1)
            if self.decode(shorter) == {k: v for k, v in table.unwrap().items() if k != keys[-1]}:
                self.replace((), path, shorter)
                return
        del table[keys[-1]]

    def prepend(self, entry: KeyPath, keys: KeyPath, values: Sequence[Any]) -> None:
        """Insert values at the start of an array without reformatting the rest."""
        array = self._find((*entry, *keys))
        raw = array.as_string()
        match = _BEFORE_FIRST_ELEMENT.match(raw)
        at = match.end() if match and len(array) else 1
        separator = ", " if len(array) else ""
        head = ", ".join(map(self.encode, values)) + separator
        self.replace(entry, keys, raw[:at] + head + raw[at:])

    def remove_first(self, entry: KeyPath, keys: KeyPath, count: int) -> None:
        """Remove the first elements of an array."""
        array = self._find((*entry, *keys))
        raw = array.as_string()
        head = ", ".join(self.encode(value) for value in array.unwrap()[:count])
        # Cut out the text that `prepend` wrote; if it was reformatted, delete element by element.
        for written in (head + ", ", head):
            if raw.count(written) == 1 and len(array) >= count:
                shorter = raw.replace(written, "", 1)
                if tomlkit.value(shorter).unwrap() == array.unwrap()[count:]:
                    self.replace(entry, keys, shorter)
                    return
        del array[:count]

    def _find(self, path: KeyPath) -> Any:
        found: Any = self._document
        for key in path:
            found = found[key]
        return found


def basic_string(value: str) -> str:
    """Return a string in TOML's notation. The escapes are those of JSON, but DEL needs one too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
