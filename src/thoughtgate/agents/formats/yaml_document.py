"""In-place editing of YAML: only the characters of the edited values change.

The parser tells where each value begins and ends; edits are made in the text, which keeps
comments, order and layout. Values that cannot be edited safely, such as block scalars, are
refused. The caller checks after an edit that the text parses to the intended values.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from thoughtgate.agents.entries import KeyPath
from thoughtgate.errors import ConfigError, Problem

_BLOCK_STYLES: Final = frozenset({"|", ">"})
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class YamlDocument:
    """An editable YAML text with one mapping as its root."""

    extra: tuple[int, str] | None = None

    def __init__(self, text: str) -> None:
        """Parse a text.

        Raises:
            ConfigError: the text is not valid YAML, or has more than one document.
        """
        self._bom = "\ufeff" if text.startswith("\ufeff") else ""
        self._text = text.removeprefix("\ufeff")
        self._newline = "\r\n" if "\r\n" in self._text else "\n"
        self.values: Any = _load(self._text)
        if self.values is None:
            self.values = {}

    def render(self) -> str:
        """Return the text with every edit in it."""
        return self._bom + self._text

    def raw(self, path: KeyPath) -> str:
        """Return the text of a value; of a block, an equivalent on one line."""
        node = self._find(path)
        if _is_inline(node):
            return self._text[_start(node) : _end(node)]
        return self.encode(_load(self._text[_start(node) : _end(node)], indent=_column(node)))

    @staticmethod
    def encode(value: Any) -> str:
        """Return a value as YAML on one line: JSON is a part of YAML."""
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    @staticmethod
    def decode(raw: str) -> Any:
        """Parse a YAML value."""
        return _load(raw)

    def replace(self, entry: KeyPath, keys: KeyPath, raw: str) -> None:
        """Replace a value that is written on its own, not as a block."""
        node = self._find((*entry, *keys))
        if not _is_inline(node):
            raise _refusal((*entry, *keys))
        self._splice(_start(node), _end(node), raw)

    def insert(self, entry: KeyPath, keys: KeyPath, raw: str, after: str | None) -> None:
        """Add a key after the key ``after``, or as the first key if that is None."""
        parent = self._mapping((*entry, *keys[:-1]))
        pair = f"{_key(keys[-1])}: {raw}"
        before = next((pair for pair in parent.value if pair[0].value == after), None)
        if parent.flow_style:
            at = _end(before[1]) if before else _start(parent) + 1
            follows = bool(parent.value) and before is None
            self._splice(at, at, f", {pair}" if before else pair + ", " * follows)
            return
        indent = " " * _column(parent.value[0][0])
        if before is None:
            at = _start(parent.value[0][0])
            self._splice(at, at, f"{pair}{self._newline}{indent}")
            return
        if not _is_inline(before[1]):
            raise _refusal((*entry, *keys))
        at = self._line_end(_end(before[1]))
        self._splice(at, at, f"{self._newline}{indent}{pair}")

    def remove(self, entry: KeyPath, keys: KeyPath) -> None:
        """Remove a key and its value, with the line if it has one of its own."""
        path = (*entry, *keys)
        parent = self._mapping(path[:-1])
        at = next(n for n, (key, _) in enumerate(parent.value) if key.value == path[-1])
        key, value = parent.value[at]
        if not _is_inline(value):
            raise _refusal(path)
        if parent.flow_style:
            if at:
                self._splice(_end(parent.value[at - 1][1]), _end(value), "")
            else:
                last = len(parent.value) == 1
                self._splice(_start(key), _end(value) if last else _start(parent.value[1][0]), "")
            return
        if at:
            begin = self._line_end(_end(parent.value[at - 1][1]))
            line = self._text.rfind("\n", 0, _start(key))
            line -= self._text[line - 1 : line] == "\r"
            self._splice(max(begin, line), self._line_end(_end(value)), "")
        elif len(parent.value) > 1:
            self._splice(_start(key), _start(parent.value[1][0]), "")
        else:
            raise _refusal(path)

    def prepend(self, entry: KeyPath, keys: KeyPath, values: Sequence[Any]) -> None:
        """Insert values at the start of a list."""
        node = self._sequence((*entry, *keys))
        words = list(map(self.encode, values))
        if node.flow_style:
            at = _start(node.value[0]) if node.value else _start(node) + 1
            self._splice(at, at, ", ".join(words) + ", " * bool(node.value))
            return
        at, indent = _start(node), " " * _column(node)
        self._splice(at, at, "".join(f"- {word}{self._newline}{indent}" for word in words))

    def remove_first(self, entry: KeyPath, keys: KeyPath, count: int) -> None:
        """Remove the first elements of a list."""
        node = self._sequence((*entry, *keys))
        if count >= len(node.value):
            end = _end(node.value[-1])
            if node.flow_style:
                self._splice(_start(node) + 1, self._text.index("]", end), "")
            else:
                self._splice(_start(node), end, "[]")
            return
        if node.flow_style:
            self._splice(_start(node.value[0]), _start(node.value[count]), "")
            return
        dash = self._text.rfind("-", 0, _start(node.value[count]))
        self._splice(_start(node), dash, "")

    def _splice(self, start: int, end: int, text: str) -> None:
        self._text = self._text[:start] + text + self._text[end:]

    def _line_end(self, at: int) -> int:
        """Return where the line around an index ends, without its line feed."""
        end = self._text.find("\n", at)
        end = len(self._text) if end < 0 else end
        return end - (self._text[end - 1 : end] == "\r")

    def _find(self, path: KeyPath) -> Node:
        # Parsed again each time, because every edit moves the offsets behind it.
        found = _compose(self._text)
        for key in path:
            pairs = found.value if isinstance(found, MappingNode) else ()
            found = next((value for name, value in pairs if name.value == key), None)
            if found is None:
                raise KeyError(key)
        if not isinstance(found, Node):
            raise KeyError(path)
        return found

    def _mapping(self, path: KeyPath) -> MappingNode:
        node = self._find(path)
        if not isinstance(node, MappingNode) or not (node.flow_style or node.value):
            raise _refusal(path)
        return node

    def _sequence(self, path: KeyPath) -> SequenceNode:
        node = self._find(path)
        if not isinstance(node, SequenceNode):
            raise _refusal(path)
        return node


def _start(node: Node) -> int:
    return int(node.start_mark.index)


def _end(node: Node) -> int:
    return int(node.end_mark.index)


def _column(node: Node) -> int:
    return int(node.start_mark.column)


def _is_inline(node: Node) -> bool:
    """Tell whether a value ends where its text ends; a block extends to the next line's indentation."""
    if isinstance(node, ScalarNode):
        return node.style not in _BLOCK_STYLES
    return isinstance(node, MappingNode | SequenceNode) and bool(node.flow_style)


def _key(name: str) -> str:
    return name if _PLAIN_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _refusal(path: KeyPath) -> ConfigError:
    message = "is written in a form that cannot be edited in place; write it on one line"
    return ConfigError([Problem(".".join(path), message)])


def _compose(text: str) -> Any:
    return YAML(typ="safe", pure=True).compose(text)


def _load(text: str, *, indent: int = 0) -> Any:
    """Return the values of a text; ``indent`` is the column at which its first line began.

    Raises:
        ConfigError: it is not valid YAML, or not one document.
    """
    try:
        # With its indentation, so that the first line is aligned with the others again.
        return YAML(typ="safe", pure=True).load(" " * indent + text)
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 0
        reason = getattr(error, "problem", None) or "it cannot be parsed"
        raise ConfigError([Problem("", f"not valid YAML: {reason}", "", line)]) from error
