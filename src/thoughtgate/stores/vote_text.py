"""Votes as JSON text in the row of their approval."""

import json
from collections.abc import Iterable
from typing import Final

from thoughtgate.core.approval import Vote

_PLAIN: Final = 4
"""Number of fields of a vote whose reviewer is not signed in; earlier versions read only these."""


def votes_to_text(votes: Iterable[Vote]) -> str:
    """Return the votes as JSON text."""
    return json.dumps([vote if vote.issuer else vote[:_PLAIN] for vote in votes])


def votes_from_text(text: str) -> tuple[Vote, ...]:
    """Return the votes that a row has."""
    votes = (Vote(*fields) for fields in json.loads(text))
    return tuple(vote._replace(groups=tuple(vote.groups)) for vote in votes)
