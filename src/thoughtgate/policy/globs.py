"""Glob patterns for names: compiled once, matched exactly, in linear time.

``*`` matches any number of characters, including ``/``; ``?`` matches one character;
``[abc]``, ``[a-z]`` and ``[!abc]`` are sets. A pattern without any of ``* ? [`` is an exact
name. Names are not case-folded, trimmed or normalised.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

MAX_PATTERN: Final = 1024
"""Maximum length of a pattern: names usually have at most 128 characters, URIs at most 1,000."""

_WILDCARDS: Final = frozenset("*?[")


class Glob:
    """One compiled pattern."""

    __slots__ = ("exact", "matches", "pattern", "prefix", "suffix")

    pattern: str
    """The pattern as written."""
    exact: bool
    """Whether the pattern is an exact name."""
    prefix: str
    """The literal characters before the first wildcard."""
    suffix: str
    """The literal characters after the last wildcard."""
    matches: Callable[[str], bool]
    """Tell whether a whole name matches."""

    def __init__(self, pattern: str) -> None:
        """Compile a pattern.

        Raises:
            ValueError: the pattern is empty, too long, or has a broken ``[`` set.
        """
        if not pattern:
            raise ValueError("an empty pattern matches nothing; write a name or '*'")
        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"a pattern has at most {MAX_PATTERN} characters")
        self.pattern = pattern
        self.exact = not is_glob(pattern)
        self.prefix = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        self.suffix = re.split(r"[*?\]]", pattern)[-1]
        self.matches = pattern.__eq__ if self.exact else _matcher(pattern, self.prefix)

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r})"


def is_glob(pattern: str) -> bool:
    """Tell whether a pattern contains a wildcard; without one it is an exact name."""
    return bool(_WILDCARDS.intersection(pattern))


def compile_globs(patterns: Iterable[str]) -> tuple[Glob, ...]:
    """Compile several patterns, in order."""
    return tuple(map(Glob, patterns))


def any_matches(globs: Iterable[Glob], name: str) -> bool:
    """Tell whether one of the globs matches the name."""
    return any(glob.matches(name) for glob in globs)


def _matcher(pattern: str, prefix: str) -> Callable[[str], bool]:
    """Return the fastest function that matches a pattern with wildcards."""
    rest = pattern[len(prefix) :]
    if not rest.strip("*"):
        return lambda name: name.startswith(prefix)
    if not prefix and not is_glob(suffix := rest.lstrip("*")):
        return lambda name: name.endswith(suffix)
    search = re.compile(_translate(pattern), re.DOTALL).fullmatch
    return lambda name: search(name) is not None


def _translate(pattern: str) -> str:
    """Return a regular expression that never backtracks into a ``*``.

    After a ``*``, the first place where the next fixed part matches is as good as any later
    one, so every such step is an atomic group; only the last part is anchored at the end.
    """
    parts = _fixed_parts(pattern)
    if len(parts) == 1:
        return parts[0]
    middle = "".join(f"(?>.*?{part})" for part in parts[1:-1] if part)
    return f"{parts[0]}{middle}.*{parts[-1]}"


def _fixed_parts(pattern: str) -> list[str]:
    """Split at runs of ``*`` and translate the parts between them."""
    parts = [""]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            parts.append("")
        elif char == "?":
            parts[-1] += "."
        elif char == "[":
            translated, at = _set(pattern, at)
            parts[-1] += translated
        else:
            parts[-1] += re.escape(char)
    # Several stars in a row are one star. The first and the last part stay, even if empty: they
    # are anchored at the ends.
    return [parts[0], *(part for part in parts[1:-1] if part), *parts[1:][-1:]]


def _set(pattern: str, start: int) -> tuple[str, int]:
    """Translate a bracket set whose ``[`` is just before ``start``; return it and its end."""
    first = start + (pattern[start : start + 1] == "!")
    end = pattern.find("]", first + 1)  # a "]" in first place is a literal
    if end < 0:
        raise ValueError(f"'[' without ']' in pattern {pattern!r}; write [[] for a bracket itself")
    members = pattern[first:end]
    translated = ""
    at = 0
    while at < len(members):
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            low, high = members[at], members[at + 2]
            if low > high:
                raise ValueError(
                    f"range {low}-{high} in pattern {pattern!r} is empty; turn it round"
                )
            translated += f"{re.escape(low)}-{re.escape(high)}"
            at += 3
        else:
            translated += re.escape(members[at])
            at += 1
    return f"[{'^' if first > start else ''}{translated}]", end + 1
