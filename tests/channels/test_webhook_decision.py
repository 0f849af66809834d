"""Decisions as a webhook writes them."""

import json

import pytest
from hypothesis import given, settings
from tests.support.json_values import json_values

from thoughtgate.channels.webhook_decision import WebhookDecision, parse_decision

GOOD = {"id": "k3f9ab", "digest": "d", "decision": "deny", "by": "ann", "reason": "no"}


def test_a_decision_becomes_a_vote_of_a_person() -> None:
    decision = parse_decision(json.dumps(GOOD).encode(), 5.0)

    assert isinstance(decision, WebhookDecision)
    assert (decision.approval, decision.digest) == ("k3f9ab", "d")
    assert (decision.vote.by, decision.vote.approve, decision.vote.reason) == (
        "webhook:ann",
        False,
        "no",
    )


def test_a_reason_is_not_needed() -> None:
    body = json.dumps({**GOOD, "reason": None}).encode()
    decision = parse_decision(body, 5.0)

    assert isinstance(decision, WebhookDecision)
    assert not decision.vote.reason


@pytest.mark.parametrize("name", ["id", "digest", "decision", "by"])
def test_everything_else_is(name: str) -> None:
    assert isinstance(parse_decision(json.dumps({**GOOD, name: None}).encode(), 5.0), str)


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"[" * 60_000, b" " * 70_000])
def test_what_is_no_object_is_no_decision(body: bytes) -> None:
    assert parse_decision(body, 5.0) == "the decision is not a JSON object"


@settings(max_examples=100, deadline=None)
@given(json_values())
def test_no_json_makes_it_stumble(value: object) -> None:
    parse_decision(json.dumps(value).encode(), 5.0)
    parse_decision(json.dumps({**GOOD, "decision": value}).encode(), 5.0)
