"""All texts of a JSON value as one text, so that one pass of a check covers the whole value.

The texts are joined by blank lines. A place in the joined text is translated back to the JSON
pointer of the string and the span within it, only for findings.
"""

from bisect import bisect_right
from typing import Any, Final, NamedTuple

MAX_DEPTH: Final = 100
"""Levels of a value; the frame of a message allows 128, and no schema needs as many."""

MAX_CHARACTERS: Final = 8_000_000
"""Characters of a value that are inspected: as many as the largest message that is forwarded."""

MAX_STRINGS: Final = 500_000
"""Strings of a value that are inspected; bounds the memory for their places."""

SEPARATOR: Final = "\n\n"
_MIN_NUMBER: Final = 10**11
"""Shorter numbers cannot be those of a card."""

_NAME: Final = "\0"
"""Stands in ``keys`` for a text that is itself the name of a member."""


class Texts(NamedTuple):
    """The texts of a value, joined, with their places."""

    joined: str
    starts: list[int]
    """Where each text begins in the joined one, ascending."""
    paths: list[Any]
    """Where each text is in the value; the same order."""
    keys: list[str]
    """The member that each text is the value of; empty if there is none."""
    problems: tuple[str, ...]
    """Why a part of the value is not in the joined text."""

    def index_at(self, position: int) -> int:
        """Return the index of the text that contains a position."""
        return bisect_right(self.starts, position) - 1

    def span(self, index: int) -> tuple[int, int]:
        """Return where a text begins and ends in the joined one."""
        following = index + 1
        if following < len(self.starts):
            return self.starts[index], self.starts[following] - len(SEPARATOR)
        return self.starts[index], len(self.joined)

    def place(self, start: int, end: int) -> tuple[str, int, int]:
        """Return the pointer of the text at a span, and the span within that text."""
        index = self.index_at(start)
        if self.keys[index] == _NAME:
            # A name cannot be replaced alone: the finding concerns the whole object.
            return render_pointer(self.paths[index]), 0, 0
        first, last = self.span(index)
        return render_pointer(self.paths[index]), start - first, min(end, last) - first


def render_pointer(path: Any) -> str:
    """Return a path as a JSON pointer (RFC 6901)."""
    parts = []
    while path is not None:
        path, key = path
        parts.append(str(key).replace("~", "~0").replace("/", "~1"))
    return "".join(f"/{part}" for part in reversed(parts))


def gather(value: Any) -> Texts:
    """Collect the texts of a value: strings, names of members, and numbers of many digits."""
    pieces: list[str] = []
    starts: list[int] = []
    paths: list[Any] = []
    keys: list[str] = []
    problems: list[str] = []
    size = 0
    stack: list[tuple[Any, Any, str, int]] = [(value, None, "", 0)]
    while stack:
        one, path, key, depth = stack.pop()
        if isinstance(one, str):
            text = one
        elif isinstance(one, dict | list | tuple):
            if depth >= MAX_DEPTH:
                problems.append(f"nested deeper than {MAX_DEPTH} levels")
                continue
            stack.extend(reversed(_members(one, path, key, depth + 1)))
            continue
        elif type(one) is int and abs(one) >= _MIN_NUMBER:
            text = _digits(one)
        else:
            continue
        if size + len(text) > MAX_CHARACTERS or len(pieces) >= MAX_STRINGS:
            problems.append(f"longer than {MAX_CHARACTERS:,} characters")
            text = text[: max(0, MAX_CHARACTERS - size)]
            stack.clear()
        pieces.append(text)
        starts.append(size)
        paths.append(path)
        keys.append(key)
        size += len(text) + len(SEPARATOR)
    return Texts(SEPARATOR.join(pieces), starts, paths, keys, tuple(dict.fromkeys(problems)))


_Entry = tuple[Any, Any, str, int]


def _members(container: Any, path: Any, key: str, depth: int) -> list[_Entry]:
    if not isinstance(container, dict):
        # The name of a list is also the name of its items: {"tokens": ["..."]}.
        return [(item, (path, index), key, depth) for index, item in enumerate(container)]
    members: list[_Entry] = []
    for name, item in container.items():
        label = name if isinstance(name, str) else str(name)
        at = (path, label)
        if not _is_plain_name(label):
            members.append((label, path, _NAME, depth))
        members.append((item, at, label, depth))
    return members


def _is_plain_name(name: str) -> bool:
    """Tell whether a name is too short to carry a message; most names are."""
    return len(name) < 24 and name.isascii() and name.isidentifier()


def _digits(number: int) -> str:
    # Python refuses to render integers of more than 4,300 digits; no card is as long.
    return str(number) if abs(number) < 10**40 else ""
