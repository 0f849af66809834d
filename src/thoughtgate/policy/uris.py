"""The other spellings of a resource's URI that a server may read the same way.

Rules compare URIs byte for byte, and servers do not: ``file:///tmp/../etc/passwd`` opens
what ``file:///etc/passwd`` opens. A call is therefore judged by every spelling listed
here as well, and the strictest verdict counts.
"""

import re
from typing import Final

MAX_DECODING: Final = 3
"""How often a percent sign may itself be encoded before a spelling is left as it is."""

_ENCODED: Final = re.compile("%([0-9A-Fa-f]{2})")
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
_SLASHES: Final = re.compile("/{2,}")


def other_spellings(uri: str) -> tuple[str, ...]:
    """Return what a URI may be read as, beside itself; nothing for one with a single spelling."""
    spellings = {uri: None, normalised(uri): None}
    decoded = uri
    for _ in range(MAX_DECODING):
        decoded = _decoded(decoded)
        spellings |= {decoded: None, normalised(decoded): None}
    del spellings[uri]
    return tuple(spellings)


def normalised(uri: str) -> str:
    """Return a URI with its scheme and host in lower case and its dot segments taken out."""
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
    """Return a path as a file system walks it: no ``.``, no ``..``, no empty segments."""
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
