"""Who is let in to the console: one-time codes, sessions and the tokens of forms.

Nothing here is written down: a console that is started again knows nobody. Cookies do
not tell ports apart, so the cookie's name does. A form's token binds the session, what the
form does and to what, and is good for one use: a form that was altered, replayed or made
by another page is none of ours.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

CODE_BYTES: Final = 32

SESSION_S: Final = 12 * 3600.0
"""A working day; then a new link is needed."""

MAX_SESSIONS: Final = 16
"""Browsers at once; the oldest session ends for a newer one."""

FORM_S: Final = 3600.0
"""A page left open for longer has to be loaded again before it can decide anything."""

MAX_SPENT: Final = 10_000
"""Used form tokens remembered for one session; a person does not press so many buttons."""

_NONCE_BYTES: Final = 16


class Session(NamedTuple):
    """One browser that is signed in."""

    id: str
    """Digest of the cookie's value; the value itself is not kept."""
    key: bytes
    expires_at: float
    spent: dict[bytes, float]
    """Nonces of forms that were used, with the time until which they matter."""


class Sessions:
    """Every session of one console."""

    def __init__(self, port: int, clock: Callable[[], float]) -> None:
        self.cookie = f"thoughtgate_{port}"
        self._clock = clock
        self._codes: set[str] = set()
        self._sessions: dict[str, Session] = {}

    def new_code(self) -> str:
        """Return a code that signs one browser in, once."""
        code = secrets.token_urlsafe(CODE_BYTES)
        self._codes.add(_digest(code))
        return code

    def sign_in(self, code: str) -> str | None:
        """Spend a code and return the value of the cookie; None when the code is not one of ours."""
        given = _digest(code)
        if given not in self._codes:
            return None
        self._codes.discard(given)
        value = secrets.token_urlsafe(CODE_BYTES)
        ident = _digest(value)
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        key = secrets.token_bytes(CODE_BYTES)
        self._sessions[ident] = Session(ident, key, self._clock() + SESSION_S, {})
        return value

    def find(self, value: str) -> Session | None:
        """Return the session of a cookie; looking up a digest tells nothing by its time."""
        session = self._sessions.get(_digest(value))
        if session is None:
            return None
        if self._clock() >= session.expires_at:
            del self._sessions[session.id]
            return None
        return session

    def holds(self, session: Session) -> bool:
        """Tell whether a session is still known: not ended, nor given up for a newer one."""
        return session.id in self._sessions

    def sign_out(self, session: Session) -> None:
        """End a session."""
        self._sessions.pop(session.id, None)

    def form_token(self, session: Session, *about: str) -> str:
        """Return a token for one form: what it does, and to what."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        until = int(self._clock() + FORM_S)
        return f"{until}.{nonce.hex()}.{_seal(session, until, nonce, about)}"

    def spend(self, session: Session, token: str, *about: str) -> bool:
        """Take a form's token; True once, for the form that it was made for."""
        until, nonce, seal = _parts(token)
        # Sealed before anything is looked at: what is wrong about a token is nobody's business.
        is_ours = hmac.compare_digest(seal, _seal(session, until, nonce, about))
        now = self._clock()
        if not is_ours or now >= until or nonce in session.spent:
            return False
        for old in [old for old, end in session.spent.items() if end <= now]:
            del session.spent[old]
        if len(session.spent) >= MAX_SPENT:
            return False
        session.spent[nonce] = until
        return True


def sign_in_link(sessions: Sessions, port: int) -> str:
    """Return a link that signs one browser in, once."""
    return f"http://127.0.0.1:{port}/login/{sessions.new_code()}"


def _parts(token: str) -> tuple[int, bytes, str]:
    until, _, rest = token.partition(".")
    nonce, _, seal = rest.partition(".")
    try:
        return int(until[:12]), bytes.fromhex(nonce[: 2 * _NONCE_BYTES]), ascii(seal)[1:-1]
    except ValueError:
        return 0, b"", ""


def _seal(session: Session, until: int, nonce: bytes, about: tuple[str, ...]) -> str:
    total = hmac.new(session.key, b"thoughtgate form 1", hashlib.sha256)
    for part in (str(until).encode(), nonce, *(text.encode("utf-8", "replace") for text in about)):
        total.update(len(part).to_bytes(8, "big"))
        total.update(part)
    return total.hexdigest()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
