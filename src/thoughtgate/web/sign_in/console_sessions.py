"""Authentication of the console: one-time sign-in codes, sessions and form tokens.

All of this is kept in memory, so a restarted console has no sessions; gates that share a store
share sessions too (``shared_console_sessions``). Browsers share cookies between ports, so the
cookie's name contains the port. A form token is bound to the session, the action and its object,
and works once: an altered, replayed or forged form is rejected.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

from thoughtgate.config.console_settings import LINK_MINUTES, ConsoleSettings
from thoughtgate.gate.clock import now

CODE_BYTES: Final = 32

LINK_S: Final = LINK_MINUTES * 60.0
"""A link that nobody opened stays in terminals, logs and command lines, so it must expire."""

SESSION_S: Final = 12 * 3600.0
"""A working day; after that, the user needs a new link."""

MAX_SESSIONS: Final = 16
"""Maximum number of sessions per person; a new one ends their oldest."""

MAX_IN_ALL: Final = 1024
"""Maximum number of sessions of all people; a new one ends the oldest."""

FORM_S: Final = 3600.0
"""How long a form is valid; after that, the page must be loaded again."""

MAX_SPENT: Final = 10_000
"""Maximum number of used form tokens remembered per session, more than a person ever submits."""

_NONCE_BYTES: Final = 16


class ConsoleSession(NamedTuple):
    """The session of one signed-in browser."""

    id: str
    """Digest of the cookie's value; the value itself is not stored."""
    key: bytes
    expires_at: float
    spent: dict[bytes, float]
    """Nonces of used forms, each with its expiry time."""
    subject: str = ""
    """Who is signed in through the proxy; empty for the user of this machine."""


class ConsoleSessions:
    """All sessions of one console."""

    def __init__(self, port: int, clock: Callable[[], float], *, is_secure: bool = False) -> None:
        """Serve a console on a port; ``is_secure`` if browsers reach it over HTTPS."""
        self._port = port
        # With this prefix, browsers accept the cookie only over HTTPS and from this host.
        self.cookie = f"__Host-thoughtgate_{port}" if is_secure else f"thoughtgate_{port}"
        self.is_secure = is_secure
        self._clock = clock
        self._codes: dict[str, float] = {}
        """Digests of the codes of unused links, each with its expiry time."""
        self._sessions: dict[str, ConsoleSession] = {}

    def new_link(self) -> str:
        """Return a sign-in link that works once, within ``LINK_S``."""
        code = secrets.token_urlsafe(CODE_BYTES)
        self._codes[_digest(code)] = self._clock() + LINK_S
        return f"http://127.0.0.1:{self._port}/login/{code}"

    def sign_in(self, code: str) -> str | None:
        """Use a code and return the cookie's value; None if the code is not valid now."""
        # Removed before the session is opened, so that a code never opens two.
        until = self._codes.pop(_digest(code), 0.0)
        return self.open_session("")[0] if self._clock() < until else None

    def open_session(self, subject: str) -> tuple[str, ConsoleSession]:
        """Open a session for a subject, and return the cookie's value with it."""
        value = secrets.token_urlsafe(CODE_BYTES)
        until = self._clock() + SESSION_S
        session = ConsoleSession(_digest(value), _form_key(value), until, {}, subject)
        self._keep(session)
        return value, session

    def find(self, value: str) -> ConsoleSession | None:
        """Return the session of a cookie, or None."""
        # Looking up a digest instead of the value itself gives no timing information about it.
        return self._kept(_digest(value), _form_key(value))

    def holds(self, session: ConsoleSession) -> bool:
        """Tell whether a session still exists: neither signed out nor replaced by a newer one."""
        return session.id in self._sessions

    def sign_out(self, session: ConsoleSession) -> None:
        """End a session."""
        self._sessions.pop(session.id, None)

    def form_token(self, session: ConsoleSession, *about: str) -> str:
        """Return a token for one form; ``about`` is the form's action and object."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        until = int(self._clock() + FORM_S)
        return f"{until}.{nonce.hex()}.{_signature(session, until, nonce, about)}"

    def spend(self, session: ConsoleSession, token: str, *about: str) -> bool:
        """Use a form's token; True only once, and only for the form that it belongs to."""
        until, nonce, signature = _parts(token)
        # Computed even for a malformed token, so that timing does not reveal what is wrong with it.
        expected = _signature(session, until, nonce, about)
        is_genuine = hmac.compare_digest(signature, expected)
        return is_genuine and self._clock() < until and self._use(session, nonce, until)

    def close(self) -> None:
        """Release resources; sessions in memory have none."""

    # Where sessions and used forms are kept.

    def _keep(self, session: ConsoleSession) -> None:
        own = [each.id for each in self._sessions.values() if each.subject == session.subject]
        if len(own) >= MAX_SESSIONS:
            del self._sessions[own[0]]
        elif len(self._sessions) >= MAX_IN_ALL:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[session.id] = session

    def _kept(self, ident: str, key: bytes) -> ConsoleSession | None:
        del key  # the session has it
        session = self._sessions.get(ident)
        if session is not None and self._clock() >= session.expires_at:
            del self._sessions[ident]
            return None
        return session

    def _use(self, session: ConsoleSession, nonce: bytes, until: int) -> bool:
        """Mark a form as submitted; False if it already was."""
        now = self._clock()
        if nonce in session.spent:
            return False
        for old in [old for old, end in session.spent.items() if end <= now]:
            del session.spent[old]
        # Refused rather than forgotten: a forgotten nonce could be used again.
        if len(session.spent) >= MAX_SPENT:
            return False
        session.spent[nonce] = until
        return True


def open_sessions(settings: ConsoleSettings, port: int) -> ConsoleSessions:
    """Return the sessions of the console that a config describes, for one gate."""
    return ConsoleSessions(port, now, is_secure=is_secure(settings))


def is_secure(settings: ConsoleSettings) -> bool:
    """Tell whether browsers reach the console over HTTPS, through a proxy."""
    return settings.sign_in is not None and settings.public_url.startswith("https://")


def _parts(token: str) -> tuple[int, bytes, str]:
    until, _, rest = token.partition(".")
    nonce, _, signature = rest.partition(".")
    try:
        return int(until[:12]), bytes.fromhex(nonce[: 2 * _NONCE_BYTES]), ascii(signature)[1:-1]
    except ValueError:
        return 0, b"", ""


def _signature(session: ConsoleSession, until: int, nonce: bytes, about: tuple[str, ...]) -> str:
    total = hmac.new(session.key, b"thoughtgate form 1", hashlib.sha256)
    for part in (str(until).encode(), nonce, *(text.encode("utf-8", "replace") for text in about)):
        total.update(len(part).to_bytes(8, "big"))
        total.update(part)
    return total.hexdigest()


def _form_key(value: str) -> bytes:
    """Return the key for the forms of a session, which the digest in a table does not reveal."""
    return hmac.digest(value.encode("utf-8", "replace"), b"thoughtgate forms 1", hashlib.sha256)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
