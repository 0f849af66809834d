"""States that stand for calls where no session lives between a prompt and its answer.

A state names nothing: it is a random number, an end and a seal over them, the principal,
the rules in force and the exact call. Whoever has the gate's key can check it, another
worker or the same gate after a restart; that it was used is kept in the state directory
for all of them. What cannot be checked or marked as used stands for nothing.
"""

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from thoughtgate.core.elicitation import PROMISE_S, STATE_PREFIX, Promises
from thoughtgate.gate.keys import load_key
from thoughtgate.wire.canonical import canonical_json

DIRECTORY: Final = "used-prompts"

MAX_USED: Final = 10_000
"""Used states that are remembered at once: people do not answer faster in ten minutes."""

_NONCE_BYTES: Final = 16
_END: Final = struct.Struct(">d")
_MAC_BYTES: Final = 32
_LENGTH: Final = _NONCE_BYTES + _END.size + _MAC_BYTES
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class PromptSeals:
    """Seals the states of one gate, and remembers which were used."""

    def __init__(self, key: Callable[[], bytes], directory: Path, rules: Callable[[], str]) -> None:
        """Seal for the rules that ``rules`` names now; ``directory`` keeps what was used.

        The key is asked for once, when the first prompt needs it.
        """
        self._find_key = key
        self._key = b""
        self._directory = directory
        self._rules = rules

    def of(self, server: str, principal: str) -> Promises:
        """Return the states of one principal before one server."""
        return SealedPromises(self, server, principal)

    def seal(self, call: list[Any], until: float) -> str:
        """Return a new state for a call; empty when the call has no canonical form."""
        head = os.urandom(_NONCE_BYTES) + _END.pack(until)
        mac = self._mac(head, call)
        return "" if mac is None else STATE_PREFIX + _encode(head + mac)

    def use(self, state: str, call: list[Any], at: float) -> bool:
        """Tell whether a state stands for a call now; from then on it does not."""
        sealed = _decode(state.removeprefix(STATE_PREFIX))
        if sealed is None:
            return False
        head, shown = sealed[:-_MAC_BYTES], sealed[-_MAC_BYTES:]
        mac = self._mac(head, call)
        if mac is None or not hmac.compare_digest(mac, shown):
            return False
        (until,) = _END.unpack(head[_NONCE_BYTES:])
        # A clock that was set back must not make a state live longer than it may.
        if not at <= until <= at + PROMISE_S:
            return False
        return self._mark(head[:_NONCE_BYTES].hex(), until, at)

    def _mac(self, head: bytes, call: list[Any]) -> bytes | None:
        try:
            text = canonical_json([self._rules(), *call])
        except ValueError:
            return None
        self._key = self._key or self._find_key()
        return hmac.digest(self._key, head + text.encode(), hashlib.sha256)

    def _mark(self, nonce: str, until: float, at: float) -> bool:
        """Take a state out of use for every process; False when it was, or nobody can tell."""
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
        """Forget what is too old to be shown again; return how many are left."""
        left = len(names)
        for name in names:
            end = name.partition("-")[0]
            if end.isdecimal() and int(end) < at:
                with contextlib.suppress(OSError):
                    (self._directory / name).unlink()
                left -= 1
        return left


class SealedPromises:
    """The states of one principal before one server."""

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
        """Tell whether a state stands for a call; it does so no second time."""
        return self._seals.use(state, [self._server, self._principal, method, params], at)


def open_seals(state: str, gate: str, rules: Callable[[], str]) -> PromptSeals:
    """Return the seals of a gate: its own key, made of the state directory's."""

    def key() -> bytes:
        return hmac.digest(load_key(state), f"prompts of {gate}".encode(), hashlib.sha256)

    return PromptSeals(key, Path(state, DIRECTORY), rules)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes | None:
    """Read a state; None unless it is exactly as we would write it."""
    try:
        data = base64.b64decode(
            text.encode("ascii") + b"=" * (-len(text) % 4), b"-_", validate=True
        )
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == _LENGTH and _encode(data) == text else None
