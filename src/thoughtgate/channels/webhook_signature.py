"""Signatures of the messages between the gate and a webhook.

HMAC-SHA256 over the purpose, the timestamp, a nonce and the exact bytes of the body, each
preceded by its length so that no byte can move from one part into another. The purpose keeps
a request from being sent back as a response, and binds a response to one request.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

TIMESTAMP: Final = "X-ThoughtGate-Timestamp"
NONCE: Final = "X-ThoughtGate-Nonce"
SIGNATURE: Final = "X-ThoughtGate-Signature"

VERSION: Final = "v1="

WINDOW_S: Final = 300.0
"""How far the two clocks may differ; nonces are remembered for at least as long."""

MAX_NONCES: Final = 10_000
"""How many nonces are remembered; when the table is full, messages are refused."""

MIN_NONCE: Final = 16
MAX_NONCE: Final = 128

QUESTION: Final = "question"
"""Purpose of a message from the gate to the webhook; part of the protocol, so it cannot change."""
REPLY: Final = "reply:"
"""Purpose of the webhook's response, followed by the nonce of the request."""
DECISION: Final = "decision"
"""Purpose of a decision that the webhook sends in a request of its own."""


class SignatureHeaders(NamedTuple):
    """The headers that sign a message."""

    timestamp: str
    nonce: str
    signature: str

    def headers(self) -> dict[str, str]:
        """Return the headers by name."""
        return {TIMESTAMP: self.timestamp, NONCE: self.nonce, SIGNATURE: self.signature}


def sign(key: bytes, purpose: str, body: bytes, nonce: str, now: float) -> SignatureHeaders:
    """Sign a body for one purpose."""
    timestamp = str(int(now))
    return SignatureHeaders(
        timestamp, nonce, VERSION + _signature(key, purpose, timestamp, nonce, body)
    )


def read_signature(headers: Mapping[str, str]) -> SignatureHeaders:
    """Return the signature in a message's headers, whose names may have any case."""
    found = {name.lower(): value for name, value in headers.items()}
    return SignatureHeaders(
        *(found.get(name.lower(), "") for name in (TIMESTAMP, NONCE, SIGNATURE))
    )


def signature_error(
    key: bytes, purpose: str, body: bytes, signed: SignatureHeaders, now: float
) -> str:
    """Return what is wrong with a signature; empty when it is valid."""
    timestamp, nonce, given = signed
    if not given:
        return "unsigned"
    # The signature is checked first, so an unsigned message learns nothing about the clock.
    expected = VERSION + _signature(key, purpose, timestamp, nonce, body)
    if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
        return "wrong signature"
    if not MIN_NONCE <= len(nonce) <= MAX_NONCE:
        return "wrong nonce"
    # Cut before it is converted: converting a very long number takes long, or fails.
    if not timestamp.isdecimal() or abs(now - int(timestamp[:12])) > WINDOW_S:
        return "out of date"
    return ""


class Nonces:
    """The nonces seen recently, so that each signed message counts only once."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}

    def take(self, nonce: str, now: float) -> bool:
        """Remember a nonce; False if it was seen before or too many are remembered."""
        if nonce in self._seen:
            return False
        if len(self._seen) >= MAX_NONCES:
            # A timestamp may be ahead by the window, so nonces are kept for twice the window.
            oldest = now - 2 * WINDOW_S
            self._seen = {each: at for each, at in self._seen.items() if at > oldest}
        if len(self._seen) >= MAX_NONCES:
            return False
        self._seen[nonce] = now
        return True


def _signature(key: bytes, purpose: str, timestamp: str, nonce: str, body: bytes) -> str:
    total = hmac.new(key, b"thoughtgate webhook 1", hashlib.sha256)
    for part in (purpose, timestamp, nonce):
        data = part.encode("utf-8", "replace")
        total.update(len(data).to_bytes(8, "big") + data)
    total.update(len(body).to_bytes(8, "big") + body)
    return total.hexdigest()
