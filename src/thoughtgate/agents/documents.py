"""Editing of config files in place, independent of their format.

``JsonDocument``, ``TomlDocument`` and ``YamlDocument`` have the same methods, which rewriting and
restoring use. An edit names an entry and the keys inside it. In JSON, only the text of that entry
is parsed again, so the cost of an edit does not grow with the number of servers.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from thoughtgate.agents.entries import Format, KeyPath
from thoughtgate.agents.entry_shapes import lookup
from thoughtgate.agents.expansion import filled, fillings
from thoughtgate.agents.formats import jsonc
from thoughtgate.agents.formats.toml_document import TomlDocument
from thoughtgate.errors import ConfigError, Problem

if TYPE_CHECKING:
    from thoughtgate.agents.formats.yaml_document import YamlDocument


class JsonDocument:
    """An editable JSON or JSONC text."""

    def __init__(self, text: str) -> None:
        self._tree = jsonc.parse(text)
        self._edited: dict[KeyPath, str] = {}
        self.values: Any = self._tree.value(self._tree.root)
        """The values of the whole file before any edit."""

    @property
    def extra(self) -> tuple[int, str] | None:
        """Line and kind of the first thing that a strict parser refuses, such as a comment."""
        if not self._tree.extras:
            return None
        offset, name = min(self._tree.extras)
        return jsonc.line_of(self._tree.text, offset), name

    def raw(self, path: KeyPath) -> str:
        """Return the text of a value before any edit."""
        return self._tree.raw(self._tree.find(path))

    encode = staticmethod(jsonc.encode)

    @staticmethod
    def decode(raw: str) -> Any:
        """Parse a JSON value."""
        tree = jsonc.parse(raw)
        return tree.value(tree.root)

    def replace(self, entry: KeyPath, keys: KeyPath, raw: str) -> None:
        """Replace a value with ``raw``."""
        self._edited[entry] = jsonc.replace(self._text(entry), keys, raw)

    def insert(self, entry: KeyPath, keys: KeyPath, raw: str, after: str | None) -> None:
        """Add a key after the key ``after``, or as the first key if that is None."""
        self._edited[entry] = jsonc.insert(self._text(entry), keys, raw, after)

    def remove(self, entry: KeyPath, keys: KeyPath) -> None:
        """Remove a key and its value."""
        self._edited[entry] = jsonc.remove(self._text(entry), keys)

    def prepend(self, entry: KeyPath, keys: KeyPath, values: Sequence[Any]) -> None:
        """Insert values at the start of an array."""
        self._edited[entry] = jsonc.prepend(self._text(entry), keys, values)

    def remove_first(self, entry: KeyPath, keys: KeyPath, count: int) -> None:
        """Remove the first elements of an array."""
        self._edited[entry] = jsonc.remove_first(self._text(entry), keys, count)

    def render(self) -> str:
        """Return the text with every edit in it."""
        text, parts, at = self._tree.text, [], 0
        spans = [(self._tree.find(path), edited) for path, edited in self._edited.items()]
        for node, edited in sorted(spans, key=lambda span: span[0].start):
            parts += [text[at : node.start], edited]
            at = node.end
        return "".join([*parts, text[at:]])

    def _text(self, entry: KeyPath) -> str:
        return self._edited.get(entry) or self.raw(entry)


ConfigDocument: TypeAlias = "JsonDocument | TomlDocument | YamlDocument"


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of an entry, in the text and in the values that the text must parse to."""

    op: Literal["replace", "insert", "remove", "prepend", "remove_first"]
    keys: KeyPath
    value: Any = None
    """The new value; for ``prepend``, the elements to add."""
    raw: str = ""
    """The text of the new value, if it must be exactly this one."""
    after: str | None = None
    """The preceding key, for ``insert``; None to insert it as the first."""
    count: int = 0
    """How many elements ``remove_first`` removes."""


def apply_edit(document: ConfigDocument, values: Any, entry: KeyPath, edit: Edit) -> None:
    """Edit an entry in a document, and in a copy of its values."""
    keys, key = edit.keys, edit.keys[-1]
    parent = lookup(values, (*entry, *keys[:-1]))
    if edit.op == "remove":
        document.remove(entry, keys)
        del parent[key]
    elif edit.op == "prepend":
        document.prepend(entry, keys, edit.value)
        parent[key] = [*edit.value, *parent[key]]
    elif edit.op == "remove_first":
        document.remove_first(entry, keys, edit.count)
        parent[key] = parent[key][edit.count :]
    else:
        raw = edit.raw or document.encode(edit.value)
        if edit.op == "insert":
            document.insert(entry, keys, raw, edit.after)
        else:
            document.replace(entry, keys, raw)
        parent[key] = edit.value


def parse_document(content: bytes, form: Format, *, file: str = "") -> ConfigDocument:
    """Parse the bytes of a config file.

    Raises:
        ConfigError: they are not UTF-8 or not of that format; the problem names file and line.
    """
    try:
        text = content.decode()
        if form == "yaml":
            # Imported here: only one agent needs it, and it is slow to load.
            from thoughtgate.agents.formats.yaml_document import YamlDocument

            return YamlDocument(text)
        return TomlDocument(text) if form == "toml" else JsonDocument(text)
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text: byte {error.start} cannot be read"
        raise ConfigError([Problem("", message, file)]) from error
    except ConfigError as error:
        raise with_file(error, file) from error


def with_file(error: ConfigError, file: str) -> ConfigError:
    """Return the same error with the file's name added to each problem."""
    return ConfigError([problem._replace(file=file) for problem in error.problems])


def read_back(text: str, form: Format) -> Any:
    """Parse an edited text, for JSON with a different parser than the one that edited it.

    Raises:
        ConfigError: the text cannot be parsed.
    """
    if form == "json":
        # An independent parser also catches mistakes of our own parser.
        try:
            return json.loads(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError):  # comments, or numbers with thousands of digits
            pass
    return parse_document(text.encode(), form).values


def reads_back_as(text: str, form: Format, expected: Any) -> bool:
    """Tell whether a text parses to exactly these values."""
    try:
        return bool(read_back(text, form) == expected)
    except (ConfigError, RecursionError):
        return False


def references_change_more_than_values(text: str, values: Any, env: Mapping[str, str]) -> bool:
    """Tell whether replacing references in a text changes more than the strings in its values.

    A reference in a key, in a comment or across several values can turn text that looks harmless
    into a server.
    """
    return any(
        filled(text, fill) != text
        and not reads_back_as(filled(text, fill), "json", filled(values, fill))
        for fill in fillings(env)
    )


def copy_entries(values: Any, entries: Iterable[KeyPath]) -> Any:
    """Return the values with copies of these entries, and of the tables around them.

    Copying everything would be slow: a file can contain megabytes of an agent's history.
    """
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
