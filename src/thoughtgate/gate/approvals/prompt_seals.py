"""Sealed prompt states, for calls whose session does not live until the prompt is answered.

A state contains a random number, an expiry and a seal (HMAC) over both, the principal, the rules
in force and the exact call. Every process with the gate's key can verify it: another worker or
replica, or the same gate after a restart. Used states are marked in the store for all of them. A
state that cannot be verified or marked as used is invalid. The expiry is on the store's clock.
"""

import base64
import binascii
import os
import struct
from collections.abc import Callable
from typing import Any, Final

from thoughtgate.core.elicitation import STATE_PREFIX, STATE_S, RequestStates
from thoughtgate.errors import StoreError
from thoughtgate.gate.keys import KeyPlace, KeyRing
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
        self, keys: Callable[[], KeyRing], used: UsedPrompts, rules: Callable[[], str]
    ) -> None:
        """Seal under the rules that ``rules`` returns; ``used`` stores the used states.

        The keys are requested once, when the first prompt needs them.
        """
        self._find_keys = keys
        self._keys: KeyRing | None = None
        self._used = used
        self._rules = rules

    def of(self, server: str, principal: str) -> RequestStates:
        """Return the states of one principal for one server."""
        return SealedRequestStates(self, server, principal)

    def seal(self, call: list[Any], until: float) -> str:
        """Return a new state for a call; empty if the call has no canonical form."""
        head = os.urandom(_NONCE_BYTES) + _END.pack(self._used.time(until))
        text = self._text(head, call)
        return "" if text is None else STATE_PREFIX + _encode(head + self._ring().seal(text))

    def use(self, state: str, call: list[Any], at: float) -> bool:
        """Tell whether a state is valid for a call, and mark it as used."""
        sealed = _decode(state.removeprefix(STATE_PREFIX))
        if sealed is None:
            return False
        head, shown = sealed[:-_MAC_BYTES], sealed[-_MAC_BYTES:]
        text = self._text(head, call)
        if text is None or not self._ring().is_sealed(text, shown):
            return False
        (until,) = _END.unpack(head[_NONCE_BYTES:])
        at = self._used.time(at)
        # If the clock was set back, a state must not live longer than its maximum.
        if not at <= until <= at + STATE_S + CLOCK_S:
            return False
        try:
            return self._used.mark(head[:_NONCE_BYTES].hex(), until, at)
        except StoreError:
            return False

    def _text(self, head: bytes, call: list[Any]) -> bytes | None:
        try:
            return head + canonical_json([self._rules(), *call]).encode()
        except ValueError:
            return None

    def _ring(self) -> KeyRing:
        if self._keys is None:
            self._keys = self._find_keys()
        return self._keys


class SealedRequestStates:
    """The states of one principal for one server."""

    __slots__ = ("_principal", "_seals", "_server")

    def __init__(self, seals: PromptSeals, server: str, principal: str) -> None:
        self._seals = seals
        self._server = server
        self._principal = principal

    def issue(self, ident: str, method: str, params: dict[str, Any], until: float) -> str:
        """Return a state for a call."""
        del ident
        return self._seals.seal([self._server, self._principal, method, params], until)

    def use(self, state: str, method: str, params: dict[str, Any], at: float) -> bool:
        """Tell whether a state stands for a call; it is used up by this."""
        return self._seals.use(state, [self._server, self._principal, method, params], at)


def open_seals(
    place: KeyPlace, gate: str, rules: Callable[[], str], database: Database
) -> PromptSeals:
    """Return the seals of a gate, with keys derived from the gate's own."""
    # Gates that share a store need not have their config at the same path.
    purpose = "prompts 2" if database.is_shared else f"prompts 2 of {gate}"

    def keys() -> KeyRing:
        return place.load().derive(purpose)

    return PromptSeals(keys, UsedPrompts(database), rules)


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
