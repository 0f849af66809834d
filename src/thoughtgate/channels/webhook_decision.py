"""Parsing of a webhook's decision: from JSON to a vote, or to an error message."""

import json
from typing import Any, Final, NamedTuple

from thoughtgate.core.approval import Vote

NAME: Final = "webhook"

MAX_BODY: Final = 64 * 1024
"""Maximum bytes of a decision."""
MAX_NAME: Final = 200
"""Maximum characters of the reviewer's name."""

_CHOICES: Final = {"approve": True, "deny": False}


class WebhookDecision(NamedTuple):
    """A decision that a webhook sent."""

    approval: str
    digest: str
    """Digest of the call that the webhook saw; a decision for a different call is ignored."""
    vote: Vote


def parse_decision(body: bytes, now: float) -> WebhookDecision | str:
    """Parse a decision; a string result says what is wrong with it."""
    try:
        data = json.loads(body) if len(body) <= MAX_BODY else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        return "the decision is not a JSON object"
    choice = _text(data, "decision")
    if choice not in _CHOICES:
        return '"decision" must be "approve" or "deny"'
    ident, digest, by, reason = (_text(data, name) for name in ("id", "digest", "by", "reason"))
    if not ident or not digest:
        return '"id" and "digest" are required'
    # The name is recorded and shown to operators, so it must be short and printable.
    if not by or len(by) > MAX_NAME or not by.isprintable():
        return f'"by" must name the reviewer, in at most {MAX_NAME} printable characters'
    return WebhookDecision(ident, digest, Vote(f"{NAME}:{by}", _CHOICES[choice], now, reason))


def _text(data: dict[str, Any], name: str) -> str:
    found = data.get(name)
    return found if isinstance(found, str) else ""
