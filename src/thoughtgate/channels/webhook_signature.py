"""Signatures between the gate and a webhook: who said it, when, once, and about what.

HMAC-SHA256 over the purpose, the time, a nonce and the body's exact bytes, each with its
length, so that no part can be moved into another. The purpose keeps a question from being
sent back as an answer, and binds a reply to the one question that it replies to.
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
"""How far the clocks of both sides may be apart; nonces are remembered for as long."""

MAX_NONCES: Final = 10_000
"""Nonces remembered; a flood beyond it is refused, not let through."""

MIN_NONCE: Final = 16
MAX_NONCE: Final = 128

QUESTION: Final = "question"
"""The gate tells the webhook something."""
REPLY: Final = "reply:"
"""The webhook's answer, followed by the nonce of the request that it answers."""
DECISION: Final = "decision"
"""A decision that comes by itself."""


class Signed(NamedTuple):
    """What stands in the headers."""

    timestamp: str
    nonce: str
    signature: str

    def headers(self) -> dict[str, str]:
        """Return the headers that carry it."""
        return {TIMESTAMP: self.timestamp, NONCE: self.nonce, SIGNATURE: self.signature}


def sign(key: bytes, purpose: str, body: bytes, nonce: str, now: float) -> Signed:
    """Sign a body."""
    timestamp = str(int(now))
    return Signed(timestamp, nonce, VERSION + _seal(key, purpose, timestamp, nonce, body))


def signed_by(headers: Mapping[str, str]) -> Signed:
    """Return what the headers of a message say, whatever their case."""
    found = {name.lower(): value for name, value in headers.items()}
    return Signed(*(found.get(name.lower(), "") for name in (TIMESTAMP, NONCE, SIGNATURE)))


def why_not(key: bytes, purpose: str, body: bytes, signed: Signed, now: float) -> str:
    """Say what is wrong with a signature; empty when nothing is."""
    timestamp, nonce, given = signed
    if not given:
        return "unsigned"
    expected = VERSION + _seal(key, purpose, timestamp, nonce, body)
    if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
        return "wrong signature"
    if not MIN_NONCE <= len(nonce) <= MAX_NONCE:
        return "wrong nonce"
    if not timestamp.isdecimal() or abs(now - int(timestamp[:12])) > WINDOW_S:
        return "out of date"
    return ""


class Nonces:
    """Nonces that were seen: each signed message counts once."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}

    def take(self, nonce: str, now: float) -> bool:
        """Remember a nonce; False when it was seen before, or when too many are remembered."""
        if nonce in self._seen:
            return False
        if len(self._seen) >= MAX_NONCES:
            # A timestamp may lie in the future by the window, so twice the window is kept.
            oldest = now - 2 * WINDOW_S
            self._seen = {each: at for each, at in self._seen.items() if at > oldest}
        if len(self._seen) >= MAX_NONCES:
            return False
        self._seen[nonce] = now
        return True


def _seal(key: bytes, purpose: str, timestamp: str, nonce: str, body: bytes) -> str:
    total = hmac.new(key, b"thoughtgate webhook 1", hashlib.sha256)
    for part in (purpose, timestamp, nonce):
        data = part.encode("utf-8", "replace")
        total.update(len(data).to_bytes(8, "big") + data)
    total.update(len(body).to_bytes(8, "big") + body)
    return total.hexdigest()
