"""Equivalent spellings of a resource's URI that a server may treat as the same.

Rules compare URIs exactly, but servers do not: ``file:///tmp/../etc/passwd`` opens the same file
as ``file:///etc/passwd``. A call is therefore judged by each of these spellings too, and the
strictest verdict counts.
"""

import re
from typing import Final

MAX_DECODING: Final = 3
"""How many levels of percent-encoding are decoded."""

_ENCODED: Final = re.compile("%([0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_SLASHES: Final = re.compile("/{2,}")


def other_spellings(uri: str) -> tuple[str, ...]:
    """Return the other spellings of a URI; empty if it has only one."""
    spellings = {uri: None, normalised(uri): None}
    decoded = uri
    for _ in range(MAX_DECODING):
        decoded = _decoded(decoded)
        spellings |= {decoded: None, normalised(decoded): None}
    del spellings[uri]
    return tuple(spellings)


def normalised(uri: str) -> str:
    """Return a URI with scheme and host in lower case and dot segments removed."""
    match = _SCHEME.match(uri)
    scheme = match.group().lower() if match is not None else ""
    rest = uri[len(scheme) :].replace("\\", "/")
    authority = ""
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        authority, rest = "//" + authority.lower(), slash + path
    path, mark, query = _cut(rest)
    return f"{scheme}{authority}{without_dot_segments(path)}{mark}{query}"


def _cut(rest: str) -> tuple[str, str, str]:
    """Split off query and fragment: dots in them are data."""
    ends = [end for end in (rest.find("?"), rest.find("#")) if end >= 0]
    if not ends:
        return rest, "", ""
    end = min(ends)
    return rest[:end], rest[end], rest[end + 1 :]


def without_dot_segments(path: str) -> str:
    """Return a path as a file system resolves it: without ``.``, ``..`` and empty segments."""
    if "." not in path and "//" not in path:
        return path
    kept: list[str] = []
    segments = _SLASHES.sub("/", path).split("/")
    for segment in segments:
        if segment == "..":
            if kept and kept[-1]:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/".join(kept)


def _decoded(uri: str) -> str:
    """Decode every percent sign once; bytes that are not UTF-8 stay as they are."""
    if "%" not in uri:
        return uri
    raw = _ENCODED.sub(lambda match: chr(int(match.group(1), 16)), uri)
    try:
        return raw.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return raw
