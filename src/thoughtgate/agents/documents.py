"""A config text under edit, whatever its format.

Owns the one interface that rewriting and restoring speak, and its JSON side. An edit names the
entry it belongs to and the keys inside it; only that entry's text is parsed again for it, so a
file of many servers costs no more than its length.
"""

import json
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, Protocol

from thoughtgate.agents import jsonc
from thoughtgate.agents.entries import Format, KeyPath
from thoughtgate.agents.toml_document import TomlDocument
from thoughtgate.errors import ConfigError, Problem


class Document(Protocol):
    """A parsed config text whose entries can be edited in place."""

    @property
    def values(self) -> Any:
        """The whole file as values, as it was before any edit."""

    @property
    def extra(self) -> tuple[int, str] | None:
        """Line and name of the first thing that a strict reader refuses."""

    def raw(self, path: KeyPath) -> str:
        """Return the text of a value as it was before any edit."""

    def encode(self, value: Any) -> str:
        """Return a value as text in this format."""

    def decode(self, raw: str) -> Any:
        """Return the value that a text in this format stands for."""

    def replace(self, entry: KeyPath, keys: KeyPath, raw: str) -> None:
        """Put ``raw`` in the place of a value."""

    def insert(self, entry: KeyPath, keys: KeyPath, raw: str, after: str | None) -> None:
        """Add a key after a sibling, or first when that is None."""

    def remove(self, entry: KeyPath, keys: KeyPath) -> None:
        """Take a key and its value out."""

    def prepend(self, entry: KeyPath, keys: KeyPath, values: Sequence[Any]) -> None:
        """Insert values at the head of an array."""

    def behead(self, entry: KeyPath, keys: KeyPath, count: int) -> None:
        """Take the first elements out of an array."""

    def render(self) -> str:
        """Return the text with every edit in it."""


class JsonDocument:
    """A JSON or JSONC text under edit."""

    def __init__(self, text: str) -> None:
        self._tree = jsonc.parse(text)
        self._edited: dict[KeyPath, str] = {}
        self.values: Any = self._tree.value(self._tree.root)

    @property
    def extra(self) -> tuple[int, str] | None:
        """Line and name of the first comment or trailing comma."""
        if not self._tree.extras:
            return None
        offset, name = min(self._tree.extras)
        return jsonc.line_of(self._tree.text, offset), name

    def raw(self, path: KeyPath) -> str:
        """Return the text of a value as it was before any edit."""
        return self._tree.raw(self._node(path))

    @staticmethod
    def encode(value: Any) -> str:
        """Return a value as JSON text on one line."""
        return jsonc.encode(value)

    @staticmethod
    def decode(raw: str) -> Any:
        """Return the value that a JSON text stands for."""
        tree = jsonc.parse(raw)
        return tree.value(tree.root)

    def replace(self, entry: KeyPath, keys: KeyPath, raw: str) -> None:
        """Put ``raw`` in the place of a value."""
        self._edited[entry] = jsonc.replace(self._text(entry), keys, raw)

    def insert(self, entry: KeyPath, keys: KeyPath, raw: str, after: str | None) -> None:
        """Add a key after a sibling, or first when that is None."""
        self._edited[entry] = jsonc.insert(self._text(entry), keys, raw, after)

    def remove(self, entry: KeyPath, keys: KeyPath) -> None:
        """Take a key and its value out."""
        self._edited[entry] = jsonc.remove(self._text(entry), keys)

    def prepend(self, entry: KeyPath, keys: KeyPath, values: Sequence[Any]) -> None:
        """Insert values at the head of an array."""
        self._edited[entry] = jsonc.prepend(self._text(entry), keys, values)

    def behead(self, entry: KeyPath, keys: KeyPath, count: int) -> None:
        """Take the first elements out of an array."""
        self._edited[entry] = jsonc.behead(self._text(entry), keys, count)

    def render(self) -> str:
        """Return the text with every edit in it."""
        text, parts, at = self._tree.text, [], 0
        spans = [(self._node(path), edited) for path, edited in self._edited.items()]
        for node, edited in sorted(spans, key=lambda span: span[0].start):
            parts += [text[at : node.start], edited]
            at = node.end
        return "".join([*parts, text[at:]])

    def _text(self, entry: KeyPath) -> str:
        return self._edited.get(entry) or self.raw(entry)

    def _node(self, path: KeyPath) -> jsonc.Node:
        node = self._tree.find(path)
        if node is None:
            raise KeyError(path)
        return node


def parse_document(content: bytes, form: Format, *, file: str = "") -> Document:
    """Parse the bytes of a config file.

    Raises:
        ConfigError: they are not UTF-8 or not of that format; the problem names file and line.
    """
    try:
        text = content.decode()
        return TomlDocument(text) if form == "toml" else JsonDocument(text)
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text: byte {error.start} cannot be read"
        raise ConfigError([Problem("", message, file)]) from error
    except ConfigError as error:
        raise in_file(error, file) from error


def in_file(error: ConfigError, file: str) -> ConfigError:
    """Return the same complaint with the file's name in it."""
    return ConfigError([problem._replace(file=file) for problem in error.problems])


def read_back(text: str, form: Format) -> Any:
    """Return the values of a text by a reader other than the one that edited it, where there is one.

    Raises:
        ConfigError: it cannot be read.
    """
    if form == "json":
        try:
            return json.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError):  # comments, or numbers of thousands of digits
            pass
    return parse_document(text.encode(), form).values


def says(text: str, form: Format, expected: Any) -> bool:
    """Whether a text, read back, holds exactly these values."""
    try:
        return bool(read_back(text, form) == expected)
    except (ConfigError, RecursionError):
        return False


def detached(values: Any, entries: Iterable[KeyPath]) -> Any:
    """Return the same values with these entries, and the tables around them, free to be changed."""
    copy = dict(values)
    fresh = {id(copy)}
    for path in entries:
        table = copy
        for key in path[:-1]:
            if id(table[key]) not in fresh:
                table[key] = dict(table[key])
                fresh.add(id(table[key]))
            table = table[key]
        table[path[-1]] = deepcopy(table[path[-1]])
    return copy
