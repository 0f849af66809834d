"""A parser and in-place editor for JSON with comments.

Parses a text into a tree with offsets. An edit changes the text of one value and nothing else, so
comments, order, indentation, trailing commas, line endings, a byte order mark and a missing
final newline survive.

An edit of an array inserts or removes elements at its start; other elements are not rewritten.

Files can contain megabytes of an agent's history, so the tree is built lazily: a nested value
that is plain JSON is parsed by the standard library in one step.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from thoughtgate.agents.entries import KeyPath
from thoughtgate.errors import ConfigError, Problem

MAX_DEPTH: Final = 128
"""Deeper than any agent's file, and far from Python's recursion limit."""

_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?s:.*?)\*/)*")
_BLANK = re.compile(r"[ \t\r\n]*")
# Possessive, so that an unterminated string fails in linear time.
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
# The lookahead refuses what only begins like a value, such as 01 or nullable.
_ATOM = re.compile(rf"(?:true|false|null|{_NUMBER})(?![\w.+-])")


@dataclass(slots=True)
class Node:
    """A value and its position in the text."""

    start: int
    end: int = 0
    members: "list[JsonMember] | None" = None
    items: "list[Node] | None" = None
    whole: Any = None
    """The value of an object or array that was parsed in one step; its members are parsed later."""
    is_whole: bool = False


@dataclass(slots=True)
class JsonMember:
    """A key of an object and its value."""

    key: str
    start: int
    key_end: int
    node: Node


@dataclass(slots=True)
class Tree:
    """A parsed text."""

    text: str
    root: Node
    extras: list[tuple[int, str]] = field(default_factory=list)
    """Offset and kind of everything that plain JSON does not allow, in order."""

    def find(self, path: KeyPath) -> Node:
        """Return the node at a path.

        Raises:
            ConfigError: a key of the path is duplicated.
            KeyError: there is no such path.
        """
        node = self.root
        for depth, key in enumerate(path):
            if node.is_whole and node.members is None:
                node.members = _Parser(self.text, node.start, lazy=True).value(0).members or []
            found = [member for member in node.members or () if member.key == key]
            if not found:
                raise KeyError(path)
            if len(found) > 1:
                line = line_of(self.text, found[1].start)
                message = "duplicate key; remove one of the two"
                raise ConfigError([Problem(".".join(path[: depth + 1]), message, line=line)])
            node = found[0].node
        return node

    def raw(self, node: Node) -> str:
        """Return the text of a value."""
        return self.text[node.start : node.end]

    def value(self, node: Node) -> Any:
        """Return a value as a Python object; for duplicate keys the last one, as in JavaScript."""
        if node.is_whole:
            return node.whole
        if node.members is not None:
            return {member.key: self.value(member.node) for member in node.members}
        if node.items is not None:
            return [self.value(item) for item in node.items]
        try:
            return json.loads(self.raw(node))
        except ValueError:  # Python refuses to parse integers with thousands of digits
            return float(self.raw(node))


def line_of(text: str, offset: int) -> int:
    """Return the line number of an offset, counted from 1."""
    return text.count("\n", 0, offset) + 1


def encode(value: Any) -> str:
    """Return a value as JSON text on one line."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which can only be written as an escape
        return json.dumps(value)
    return text


def parse(text: str) -> Tree:
    """Parse JSON with comments and trailing commas.

    Raises:
        ConfigError: the text is not valid; the problem names the line.
    """
    return _Parser(text, 1 if text.startswith("\ufeff") else 0, lazy=True).parse()


def _parse_fully(text: str) -> Tree:
    return _Parser(text, 0, lazy=False).parse()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_PLAIN: Final = json.JSONDecoder(parse_constant=_refuse_constant)
"""Parses plain JSON, without the constants (``NaN``, ``Infinity``) that Python adds."""


class _Parser:
    def __init__(self, text: str, at: int, *, lazy: bool) -> None:
        self.text = text
        self.at = at
        self.lazy = lazy
        self.extras: list[tuple[int, str]] = []

    def parse(self) -> Tree:
        self.skip()
        if self.at == len(self.text):
            self.fail("the file is empty; an empty config is {}")
        root = self.value(0)
        self.skip()
        if self.at != len(self.text):
            self.fail("unexpected text after the end of the value")
        return Tree(self.text, root, self.extras)

    def fail(self, message: str) -> NoReturn:
        line = line_of(self.text, self.at)
        raise ConfigError([Problem("", f"not valid JSON: {message}", line=line)])

    def skip(self) -> None:
        """Skip white space and comments."""
        blank = _end(_BLANK, self.text, self.at)
        self.at = _end(_TRIVIA, self.text, blank)
        if blank < self.at:
            self.extras.append((blank, "comment"))

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels")
        node = Node(self.at)
        opening = self.peek()
        # Not at depth 0: whoever asks for a lazy tree wants to reach the members of its root.
        if self.lazy and depth and opening in ("{", "[") and self.read_whole(node):
            return node
        if opening == "{":
            node.members = []
            self.sequence(node, "}", depth)
        elif opening == "[":
            node.items = []
            self.sequence(node, "]", depth)
        elif opening == '"':
            self.string()
        else:
            match = _ATOM.match(self.text, self.at)
            if match is None:
                self.fail(
                    f"expected a value, found {opening!r}" if opening else "unexpected end of file"
                )
            self.at = match.end()
        node.end = self.at
        return node

    def read_whole(self, node: Node) -> bool:
        """Parse an object or array in one step, if it is plain JSON."""
        try:
            node.whole, node.end = _PLAIN.raw_decode(self.text, self.at)
        except (ValueError, RecursionError):  # comments or a syntax error: parse it step by step
            return False
        node.is_whole = True
        self.at = node.end
        return True

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            self.fail("unterminated string, control character or invalid escape in a string")
        self.at = match.end()
        return match.group()

    def sequence(self, node: Node, closing: str, depth: int) -> None:
        """Parse the contents of an object or array, including the closing bracket."""
        self.at += 1
        self.skip()
        while self.peek() != closing:
            if node.members is not None:
                node.members.append(self.member(depth))
            elif node.items is not None:
                node.items.append(self.value(depth + 1))
            self.skip()
            comma = self.at
            if self.peek() == ",":
                self.at += 1
                self.skip()
                if self.peek() == closing:
                    self.extras.append((comma, "trailing comma"))
            elif self.peek() != closing:
                self.fail(f"expected a comma or {closing}")
        self.at += 1

    def member(self, depth: int) -> JsonMember:
        start = self.at
        if self.peek() != '"':
            self.fail("expected a key in double quotes")
        key = json.loads(self.string())
        key_end = self.at
        self.skip()
        if self.peek() != ":":
            self.fail("expected a colon after the key")
        self.at += 1
        self.skip()
        return JsonMember(key, start, key_end, self.value(depth + 1))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def replace(text: str, path: KeyPath, raw: str) -> str:
    """Replace the value at a path with ``raw``."""
    node = _parse_fully(text).find(path)
    return text[: node.start] + raw + text[node.end :]


def insert(text: str, path: KeyPath, raw: str, after: str | None) -> str:
    """Add a key to the object at ``path[:-1]``, after the key ``after``, or first if that is None."""
    tree = _parse_fully(text)
    parent = tree.find(path[:-1])
    members = parent.members or []
    key = encode(path[-1])
    if not members:
        at = parent.start + 1
        return f"{text[:at]}{key}: {raw}{text[at:]}"
    by_key = {member.key: member for member in members}
    anchor = members[0] if after is None else by_key.get(after, members[-1])
    # Copy the neighbour's spacing around the colon, unless it contains a comment or line break.
    colon = text[anchor.key_end : anchor.node.start]
    if colon.strip() != ":" or "\n" in colon:
        colon = ": "
    gap = _gap_before(text, anchor.start)
    if after is None:
        return f"{text[: anchor.start]}{key}{colon}{raw},{gap}{text[anchor.start :]}"
    return f"{text[: anchor.node.end]},{gap}{key}{colon}{raw}{text[anchor.node.end :]}"


def remove(text: str, path: KeyPath) -> str:
    """Remove a key and its value from their object."""
    tree = _parse_fully(text)
    members = tree.find(path[:-1]).members or []
    at = next(index for index, member in enumerate(members) if member.key == path[-1])
    if at > 0:
        return text[: members[at - 1].node.end] + text[members[at].node.end :]
    if len(members) > 1:
        return text[: members[0].start] + text[members[1].start :]
    # The only member: a trailing comma after it would be invalid in an empty object.
    return text[: members[0].start] + text[_after_comma(text, members[0].node.end) :]


def prepend(text: str, path: KeyPath, values: Sequence[Any]) -> str:
    """Insert values at the start of the array at a path, in the array's own layout."""
    node = _parse_fully(text).find(path)
    if not node.items:
        at = node.start + 1
        return text[:at] + ", ".join(map(encode, values)) + text[at:]
    first = node.items[0].start
    gap = _gap_before(text, first)
    return text[:first] + "".join(f"{encode(value)},{gap}" for value in values) + text[first:]


def remove_first(text: str, path: KeyPath, count: int) -> str:
    """Remove the first ``count`` elements of the array at a path."""
    items = _parse_fully(text).find(path).items or []
    if count < len(items):
        return text[: items[0].start] + text[items[count].start :]
    return text[: items[0].start] + text[_after_comma(text, items[-1].end) :]


def _gap_before(text: str, at: int) -> str:
    """Return the line break and indentation before an offset, or one space inside a line."""
    blank = at
    while blank and text[blank - 1] in " \t":
        blank -= 1
    if blank and text[blank - 1] == "\n":
        start = blank - 2 if text[: blank - 1].endswith("\r") else blank - 1
        return text[start:at]
    return " "


def _after_comma(text: str, at: int) -> int:
    """Return the offset after a following comma, or the same offset if there is none."""
    end = _end(_TRIVIA, text, at)
    return end + 1 if text[end : end + 1] == "," else at
