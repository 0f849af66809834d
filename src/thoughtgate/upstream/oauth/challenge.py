"""Reading the ``WWW-Authenticate`` header of a server's 401 or 403."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

MAX_CHALLENGE: Final = 8192
"""Longest header value that is read."""

_SCHEME: Final = re.compile(r"[ \t,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?=[ \t]|,|$)")
_PARAMETER: Final = re.compile(
    r"[ \t,]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*"
    r'(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))[ \t]*(?=,|$)'
)
_ESCAPED: Final = re.compile(r"\\(.)")


class Challenge(NamedTuple):
    """What a Bearer challenge says."""

    resource_metadata: str = ""
    """URL of the protected resource's metadata (RFC 9728)."""
    scopes: tuple[str, ...] = ()
    """The scopes that the request needs."""
    error: str = ""

    @property
    def wants_more_scopes(self) -> bool:
        """Whether the token lacks scopes."""
        return self.error == "insufficient_scope"


def read_challenge(headers: Iterable[tuple[bytes, bytes]]) -> Challenge | None:
    """Return the first Bearer challenge among the headers of a response; None if there is none."""
    for name, value in headers:
        if name == b"www-authenticate" and len(value) <= MAX_CHALLENGE:
            found = _bearer(value.decode("latin-1"))
            if found is not None:
                return found
    return None


def _bearer(text: str) -> Challenge | None:
    """Return the Bearer challenge of a value, which may hold several challenges."""
    at, scheme, parameters = 0, "", {}  # type: int, str, dict[str, str]
    while at < len(text):
        parameter = _PARAMETER.match(text, at)
        if parameter is not None:
            name, quoted, plain = parameter.groups()
            value = _ESCAPED.sub(r"\1", quoted) if quoted is not None else plain
            parameters.setdefault(name.lower(), value)
            at = parameter.end()
            continue
        named = _SCHEME.match(text, at)
        if scheme == "bearer" or named is None:
            break
        scheme, parameters, at = named[1].lower(), {}, named.end()
    if scheme != "bearer":
        return None
    scopes = tuple(dict.fromkeys(parameters.get("scope", "").split()))
    return Challenge(parameters.get("resource_metadata", ""), scopes, parameters.get("error", ""))
