"""A decision as a webhook writes it: JSON text to a vote, or why it is none."""

import json
from typing import Any, Final, NamedTuple

from thoughtgate.core.approval import Vote

NAME: Final = "webhook"

MAX_BODY: Final = 64 * 1024
"""Bytes of a decision."""
MAX_NAME: Final = 200
"""Characters of the name of whoever decided."""

_CHOICES: Final = {"approve": True, "deny": False}


class RemoteDecision(NamedTuple):
    """What a webhook decided."""

    approval: str
    digest: str
    """Of the call as the webhook was told it: a decision about another call is none."""
    vote: Vote


def parse_decision(body: bytes, now: float) -> RemoteDecision | str:
    """Read a decision; a text says what is wrong with it."""
    try:
        said = json.loads(body) if len(body) <= MAX_BODY else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return "the decision is not a JSON object"
    choice = _text(said, "decision")
    if choice not in _CHOICES:
        return "decision is approve or deny"
    ident, digest, by, reason = (_text(said, name) for name in ("id", "digest", "by", "reason"))
    if not ident or not digest:
        return "id and digest say what is decided"
    if not by or len(by) > MAX_NAME or not by.isprintable():
        return "by names the person who decided"
    return RemoteDecision(ident, digest, Vote(f"{NAME}:{by}", _CHOICES[choice], now, reason))


def _text(said: dict[str, Any], name: str) -> str:
    found = said.get(name)
    return found if isinstance(found, str) else ""
