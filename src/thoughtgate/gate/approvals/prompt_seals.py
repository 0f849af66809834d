"""Sealed prompt states, for calls whose session does not live until the prompt is answered.

A state contains a random number, an expiry and a seal (HMAC) over both, the principal, the rules
in force and the exact call. Every process with the gate's key can verify it: another worker or
replica, or the same gate after a restart. Used states are marked in the store for all of them. A
state that cannot be verified or marked as used is invalid. The expiry is on the store's clock.
"""

import base64
import binascii
import hashlib
import hmac
import os
import struct
from collections.abc import Callable
from typing import Any, Final

from thoughtgate.core.elicitation import PROMISE_S, STATE_PREFIX, Promises
from thoughtgate.errors import StoreError
from thoughtgate.gate.keys import load_key
from thoughtgate.stores.database import Database
from thoughtgate.stores.used_prompts import UsedPrompts
from thoughtgate.wire.canonical import canonical_json

CLOCK_S: Final = 1.0
"""By how much two gates may differ about the store's time."""

_NONCE_BYTES: Final = 16
_END: Final = struct.Struct(">d")
_MAC_BYTES: Final = 32
_LENGTH: Final = _NONCE_BYTES + _END.size + _MAC_BYTES


class PromptSeals:
    """Seals the states of one gate, and remembers which were used."""

    def __init__(
        self, key: Callable[[], bytes], used: UsedPrompts, rules: Callable[[], str]
    ) -> None:
        """Seal under the rules that ``rules`` returns; ``used`` stores the used states.

        The key is requested once, when the first prompt needs it.
        """
        self._find_key = key
        self._key = b""
        self._used = used
        self._rules = rules

    def of(self, server: str, principal: str) -> Promises:
        """Return the states of one principal for one server."""
        return SealedPromises(self, server, principal)

    def seal(self, call: list[Any], until: float) -> str:
        """Return a new state for a call; empty if the call has no canonical form."""
        head = os.urandom(_NONCE_BYTES) + _END.pack(self._used.time(until))
        mac = self._mac(head, call)
        return "" if mac is None else STATE_PREFIX + _encode(head + mac)

    def use(self, state: str, call: list[Any], at: float) -> bool:
        """Tell whether a state is valid for a call, and mark it as used."""
        sealed = _decode(state.removeprefix(STATE_PREFIX))
        if sealed is None:
            return False
        head, shown = sealed[:-_MAC_BYTES], sealed[-_MAC_BYTES:]
        mac = self._mac(head, call)
        if mac is None or not hmac.compare_digest(mac, shown):
            return False
        (until,) = _END.unpack(head[_NONCE_BYTES:])
        at = self._used.time(at)
        # If the clock was set back, a state must not live longer than its maximum.
        if not at <= until <= at + PROMISE_S + CLOCK_S:
            return False
        try:
            return self._used.mark(head[:_NONCE_BYTES].hex(), until, at)
        except StoreError:
            return False

    def _mac(self, head: bytes, call: list[Any]) -> bytes | None:
        try:
            text = canonical_json([self._rules(), *call])
        except ValueError:
            return None
        self._key = self._key or self._find_key()
        return hmac.digest(self._key, head + text.encode(), hashlib.sha256)


class SealedPromises:
    """The states of one principal for one server."""

    __slots__ = ("_principal", "_seals", "_server")

    def __init__(self, seals: PromptSeals, server: str, principal: str) -> None:
        self._seals = seals
        self._server = server
        self._principal = principal

    def give(self, ident: str, method: str, params: dict[str, Any], until: float) -> str:
        """Return a state for a call."""
        del ident
        return self._seals.seal([self._server, self._principal, method, params], until)

    def spend(self, state: str, method: str, params: dict[str, Any], at: float) -> bool:
        """Tell whether a state stands for a call; it is used up by this."""
        return self._seals.use(state, [self._server, self._principal, method, params], at)


def open_seals(state: str, gate: str, rules: Callable[[], str], database: Database) -> PromptSeals:
    """Return the seals of a gate, with a key derived from the state directory's key."""

    def key() -> bytes:
        return hmac.digest(load_key(state), f"prompts 2 of {gate}".encode(), hashlib.sha256)

    return PromptSeals(key, UsedPrompts(database), rules)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes | None:
    """Decode a state; None unless it is exactly as we would encode it."""
    try:
        data = base64.b64decode(
            text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True
        )
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == _LENGTH and _encode(data) == text else None
