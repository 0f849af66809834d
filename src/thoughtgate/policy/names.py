"""Names as the record, logs and reviewers see them: tool and prompt names and URIs without secrets.

The gates judge a name as it was sent. What is kept or shown of it has its secrets masked, and ends
with a short hash if something was masked, so that two different names stay different in queries
and charts.
"""

import re
from hashlib import sha256
from typing import Final
from urllib.parse import unquote

from thoughtgate.policy.redaction import NAMED, TOKEN, Redactor, holds_mask, mask_of

MAX_SECRET: Final = 16_384
"""Characters after the kept part of a name that are also searched: a secret that the cut splits may
be recognisable only by its end."""

_HASH: Final = 8
"""Hex digits of the hash: enough to tell names apart."""

_MASKED: Final = re.compile(rf" #[0-9a-f]{{{_HASH}}}\Z")

_PARAMETER: Final = re.compile(
    r"(?P<named>[?&#;](?P<key>[^?&#;=]{1,256})=)"
    r"(?P<value>(?:[A-Za-z0-9._~+/=:@*-]|%2[BbFf]|%3[Dd])+)"
)
"""A parameter of a URI. Its value ends at the first character that tokens do not have, so that
nothing else can hide behind the name of a secret."""

_USER: Final = re.compile(r"(?<=://)[A-Za-z0-9._~%+=-]{16,256}(?=@)")
"""A user part without a password that is too long for a login name: many services accept a token
there."""


def shown_name(name: str, redactor: Redactor) -> str:
    """Return a whole name with its secrets masked."""
    masked = _masked(name, redactor)
    return f"{masked}{_hash(name)}" if masked != name or is_masked(name) else name


def recorded_name(name: str, redactor: Redactor, limit: int) -> str:
    """Return a name with its secrets masked, in at most ``limit`` characters."""
    near = name[: limit + MAX_SECRET]
    masked = _masked(near, redactor)
    # A name that looks like a masked one gets a hash too, or it could pass for that one.
    if masked == near and not is_masked(name):
        return name[:limit]
    suffix = _hash(name)
    return masked[: limit - len(suffix)] + suffix


def is_masked(name: str) -> bool:
    """Tell whether a shown name stands for another one, whose secrets it does not show."""
    return _MASKED.search(name) is not None


def _masked(text: str, redactor: Redactor) -> str:
    text = redactor.mask_text(text)
    if "=" in text:
        text = _PARAMETER.sub(lambda found: _parameter(found, redactor), text)
    return _USER.sub(lambda found: mask_of(TOKEN, found.group()), text) if "@" in text else text


def _parameter(found: re.Match[str], redactor: Redactor) -> str:
    value = found["value"]
    if redactor.is_secret_name(unquote(found["key"])) and not holds_mask(value):
        value = mask_of(NAMED, value)
    return found["named"] + value


def _hash(name: str) -> str:
    return f" #{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:_HASH]}"
