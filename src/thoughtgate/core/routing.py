"""Names as ``serve`` shows them, and the way back from a name to its server.

A tool or prompt of a server is shown as ``{server}.{name}``. The identity that gates
judge is always the pair behind it; a composed name never reaches a rule.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, Final, NamedTuple

MAX_NAME: Final = 128
"""Characters of a tool's name that the specification allows."""

NARROW_NAME: Final = 64
"""Characters of a tool's name that the narrowest clients accept."""

MAX_PLACEHOLDERS: Final = 16
MAX_URI: Final = 4096
"""Beyond these a URI is made from no template: a server must not choose how long looking takes."""

_MANY: Final = frozenset("+#/?&;.")
"""Operators whose values may hold delimiters."""
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


class Route(NamedTuple):
    """Where a name leads."""

    server: str
    name: str
    """The name as the server itself knows it."""


def compose(server: str, name: str, separator: str) -> str:
    """Return the name under which something of a server is shown."""
    return f"{server}{separator}{name}"


def split(exposed: str, separator: str, servers: Iterable[str]) -> Route | None:
    """Return where a composed name leads: it is split at the first separator.

    A server whose own id holds the separator is found by its whole id, the longest first.
    """
    server, found, name = exposed.partition(separator)
    known = frozenset(servers)
    if found and server in known and name:
        return Route(server, name)
    for one in sorted(known, key=len, reverse=True):
        prefix = one + separator
        if separator in one and exposed.startswith(prefix) and len(exposed) > len(prefix):
            return Route(one, exposed[len(prefix) :])
    return None


def length_warning(exposed: str) -> str:
    """Say what is wrong with the length of a composed name; empty when nothing is."""
    if len(exposed) > MAX_NAME:
        return f"{exposed[:MAX_NAME]}… is left out: longer than {MAX_NAME} characters"
    if len(exposed) > NARROW_NAME:
        return f"{exposed} is longer than {NARROW_NAME} characters; some clients refuse it"
    return ""


def matches_template(template: str, uri: str) -> bool:
    """Tell whether a URI could have been made from a URI template (RFC 6570).

    Servers write templates, so no regular expression is made of one: all places that the
    parts so far can end at are carried along as the bits of one number.
    """
    if template == uri:
        return True
    parts = _PLACEHOLDER.split(template)
    if not 1 < len(parts) <= 2 * MAX_PLACEHOLDERS + 1 or len(uri) > MAX_URI:
        return False
    inside = _bits(char not in "/?#" for char in uri)
    ends = 1
    for number, part in enumerate(parts):
        if number % 2 == 0:
            ends = (ends & _bits(map(uri.startswith, repeat(part), range(len(uri) + 1)))) << len(
                part
            )
        elif part[:1] in _MANY or part.endswith("*"):
            ends = -(ends & -ends) & ((2 << len(uri)) - 1)
        else:
            # A carry runs from each end through the characters that a value may have.
            ends |= ((ends & inside) + inside) ^ inside
        if not ends:
            return False
    return bool(ends >> len(uri) & 1)


def _bits(flags: Iterable[bool]) -> int:
    """Return a number whose lowest bit is the first flag."""
    return int("".join("1" if flag else "0" for flag in flags)[::-1] or "0", 2)


def find_owner(
    uri: str,
    listed: Mapping[str, str],
    templates: Iterable[tuple[str, str]],
    capable: Iterable[str],
) -> str | None:
    """Return the server a resource belongs to.

    ``listed`` leads from URI to server, ``templates`` are (template, server) pairs, and
    ``capable`` are the servers that have resources at all: the only one of these is asked
    for what nobody lists.
    """
    owner = listed.get(uri)
    if owner is not None:
        return owner
    for template, server in templates:
        if matches_template(template, uri):
            return server
    able = list(capable)
    return able[0] if len(able) == 1 else None


def as_entries(value: Any) -> list[dict[str, Any]]:
    """Return the members of a list that are objects; anything else cannot be named or judged."""
    return [entry for entry in value if type(entry) is dict] if type(value) is list else []
