"""Signed decisions from webhooks: verified with the workflow's own key and counted once."""

from collections.abc import Mapping
from typing import Final

from thoughtgate.channels import webhook_decision as decisions
from thoughtgate.channels.webhook_decision import parse_decision
from thoughtgate.channels.webhook_signature import DECISION, Nonces, read_signature, signature_error
from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.status.approval_actions import ApprovalActions

MAX_BODY: Final = decisions.MAX_BODY

UNKNOWN: Final = "wrong signature"
"""The reply to every sender without the key, so that nobody can find out approval ids."""


class WebhookAnswers:
    """Accepts decisions for the workflows with the webhook channel."""

    def __init__(self, actions: ApprovalActions, keys: Mapping[str, bytes]) -> None:
        """Verify signatures with ``keys``, which maps workflows to keys."""
        self._actions = actions
        self._keys = keys
        self._nonces = Nonces()

    def decide(self, body: bytes, headers: Mapping[str, str]) -> Approval | Refusal:
        """Count a decision, if it is signed with the key of its workflow."""
        now, signed = self._actions.clock(), read_signature(headers)
        said = parse_decision(body, now)
        if isinstance(said, str):
            # Only a sender with a valid key learns what is wrong with the body.
            doubts = [
                signature_error(key, DECISION, body, signed, now) for key in self._keys.values()
            ]
            return Refusal("unsigned", UNKNOWN) if all(doubts) else Refusal("wrong", said)
        found = self._actions.get(said.approval)
        key = self._keys.get(found.workflow) if isinstance(found, Approval) else None
        if isinstance(found, Refusal) or key is None:
            return Refusal("unsigned", UNKNOWN)
        doubt = signature_error(key, DECISION, body, signed, now)
        if doubt:
            return Refusal("unsigned", doubt)
        # After the signature, so that nobody without the key can use up nonces.
        if not self._nonces.take(signed.nonce, now):
            return Refusal("refused", "replayed")
        if said.digest != found.digest:
            return Refusal("refused", "the decision is about another call")
        return self._actions.count(found.id, said.vote)
