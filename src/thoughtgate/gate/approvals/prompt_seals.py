"""Sealed prompt states, for calls whose session does not live until the prompt is answered.

A state contains a random number, an expiry and a seal (HMAC) over both, the principal, the rules
in force and the exact call. Every process with the gate's key can verify it: another worker, or
the same gate after a restart. Used states are marked in the state directory for all of them. A
state that cannot be verified or marked as used is invalid.
"""

import base64
import binascii
import contextlib
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from thoughtgate.core.elicitation import PROMISE_S, STATE_PREFIX, Promises
from thoughtgate.gate.keys import KeyPlace, KeyRing
from thoughtgate.wire.canonical import canonical_json

DIRECTORY: Final = "used-prompts"

MAX_USED: Final = 10_000
"""Used states remembered at once: people do not answer more prompts in ten minutes."""

SKEW_S: Final = 60.0
"""How far the clocks of two machines may differ."""

_NONCE_BYTES: Final = 16
_END: Final = struct.Struct(">d")
_MAC_BYTES: Final = 32
_LENGTH: Final = _NONCE_BYTES + _END.size + _MAC_BYTES
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class PromptSeals:
    """Seals the states of one gate, and remembers which were used."""

    def __init__(
        self,
        keys: Callable[[], KeyRing],
        directory: Path,
        rules: Callable[[], str],
        *,
        skew_s: float = 0.0,
    ) -> None:
        """Seal under the rules that ``rules`` returns; ``directory`` stores the used states.

        The keys are requested once, when the first prompt needs them. The clocks of two gates with
        the same keys may differ by ``skew_s``.
        """
        self._find_keys = keys
        self._keys: KeyRing | None = None
        self._directory = directory
        self._rules = rules
        self._skew_s = skew_s

    def of(self, server: str, principal: str) -> Promises:
        """Return the states of one principal for one server."""
        return SealedPromises(self, server, principal)

    def seal(self, call: list[Any], until: float) -> str:
        """Return a new state for a call; empty if the call has no canonical form."""
        head = os.urandom(_NONCE_BYTES) + _END.pack(until)
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
        # If the clock was set back, a state must not live longer than its maximum.
        if not at <= until <= at + PROMISE_S + self._skew_s:
            return False
        return self._mark(head[:_NONCE_BYTES].hex(), until, at)

    def _text(self, head: bytes, call: list[Any]) -> bytes | None:
        try:
            return head + canonical_json([self._rules(), *call]).encode()
        except ValueError:
            return None

    def _ring(self) -> KeyRing:
        if self._keys is None:
            self._keys = self._find_keys()
        return self._keys

    def _mark(self, nonce: str, until: float, at: float) -> bool:
        """Mark a state as used for all processes; False if it was used, or if that is unknown."""
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            names = [each.name for each in self._directory.iterdir()]
            if len(names) >= MAX_USED and self._purge(names, at) >= MAX_USED:
                return False
            os.close(os.open(self._directory / f"{int(until) + 1}-{nonce}", _NEW_FILE, 0o600))
        except OSError:
            return False
        if len(names) % 100 == 0:
            self._purge(names, at)
        return True

    def _purge(self, names: list[str], at: float) -> int:
        """Remove expired entries; return how many are left."""
        left = len(names)
        for name in names:
            end = name.partition("-")[0]
            if end.isdecimal() and int(end) < at:
                with contextlib.suppress(OSError):
                    (self._directory / name).unlink()
                left -= 1
        return left


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


def open_seals(
    place: KeyPlace, gate: str, rules: Callable[[], str], *, is_shared: bool = False
) -> PromptSeals:
    """Return the seals of a gate, with keys derived from the gate's own.

    With ``is_shared``, gates on other machines verify them too.
    """
    # Gates that share a store need not have their config at the same path.
    purpose = "prompts" if is_shared else f"prompts of {gate}"

    def keys() -> KeyRing:
        return place.load().derive(purpose)

    skew_s = SKEW_S if is_shared else 0.0
    return PromptSeals(keys, Path(place.state, DIRECTORY), rules, skew_s=skew_s)


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
