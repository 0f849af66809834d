"""Votes as text, readable for the gates of earlier versions that share a store."""

import json

from tests.support.approvals import NOW, a_no, a_yes

from thoughtgate.core.approval import Vote
from thoughtgate.stores.vote_text import votes_from_text, votes_to_text


def test_votes_are_read_as_they_were_written() -> None:
    signed = Vote("console:ann", approve=True, at=NOW, groups=("sre", "ops"), issuer="https://i")
    votes = (a_yes(), a_no(reason="no"), signed, signed._replace(groups=()))

    assert votes_from_text(votes_to_text(votes)) == votes
    assert votes_from_text("[]") == ()


def test_a_vote_without_a_token_looks_as_it_always_did() -> None:
    assert json.loads(votes_to_text([a_yes(reason="fine")])) == [
        ["terminal:ann", True, NOW + 1, "fine"]
    ]
