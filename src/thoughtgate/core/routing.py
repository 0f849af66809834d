"""Names that ``serve`` exposes, and the route from a name back to its server.

A tool or prompt of a server is exposed as ``{server}.{name}``. Gates always judge the pair of
server and name; a composed name is never matched against a rule.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any, Final, NamedTuple

MAX_NAME: Final = 128
"""Maximum length of a tool name in the specification."""

NARROW_NAME: Final = 64
"""Maximum length of a tool name that the strictest clients accept."""

MAX_PLACEHOLDERS: Final = 16
MAX_URI: Final = 4096
"""Longer URIs match no template, because a server must not control how long matching takes."""

_MANY: Final = frozenset("+#/?&;.")
"""Operators whose values may contain delimiters."""
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


class Route(NamedTuple):
    """The server and name that an exposed name stands for."""

    server: str
    name: str
    """The name as the server itself knows it."""


def compose(server: str, name: str, separator: str) -> str:
    """Return the name under which a server's tool or prompt is exposed."""
    return f"{server}{separator}{name}"


def split(exposed: str, separator: str, servers: Iterable[str]) -> Route | None:
    """Return the route for a composed name, which is split at the first separator.

    A server whose id contains the separator is found by its whole id, the longest first.
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
    """Return what is wrong with the length of a composed name; empty if nothing is."""
    if len(exposed) > MAX_NAME:
        return f"{exposed[:MAX_NAME]}… is left out: longer than {MAX_NAME} characters"
    if len(exposed) > NARROW_NAME:
        return f"{exposed} is longer than {NARROW_NAME} characters; some clients refuse it"
    return ""


def matches_template(template: str, uri: str) -> bool:
    """Tell whether a URI could have been made from a URI template (RFC 6570).

    Servers write templates, so they are not turned into regular expressions, which can be
    slow: the positions where the parts so far can end are kept as the bits of one number.
    """
    if template == uri:
        return True
    parts = _PLACEHOLDER.split(template)
    if not 1 < len(parts) <= 2 * MAX_PLACEHOLDERS + 1 or len(uri) > MAX_URI:
        return False
    inside = _bits(char not in "/?#" for char in uri)
    ends = 1
    for number, part in enumerate(parts):
        # Literal parts and placeholders alternate, and a literal comes first.
        if number % 2 == 0:
            ends = (ends & _bits(map(uri.startswith, repeat(part), range(len(uri) + 1)))) << len(
                part
            )
        elif part[:1] in _MANY or part.endswith("*"):
            # The value may have any characters, so it can end anywhere from the first position on.
            ends = -(ends & -ends) & ((2 << len(uri)) - 1)
        else:
            # Adding propagates a carry from each end through the characters that a value may have.
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
    """Return the server that a resource belongs to.

    ``listed`` maps URIs to servers, ``templates`` are (template, server) pairs, and
    ``capable`` are the servers with resources: if there is only one, it gets every URI that
    no server lists. A template must name its scheme: a server that offers ``{+any}`` must not
    answer for the resources of all others.
    """
    owner = listed.get(uri)
    if owner is not None:
        return owner
    for template, server in templates:
        if _SCHEME.match(template) and matches_template(template, uri):
            return server
    able = list(capable)
    return able[0] if len(able) == 1 else None


def as_entries(value: Any) -> list[dict[str, Any]]:
    """Return the members of a list that are objects; others can be neither named nor judged."""
    return [entry for entry in value if type(entry) is dict] if type(value) is list else []
