"""Masking secrets in what people, logs and the record see; never in what is forwarded.

Three things are masked: values whose name says that they are secret, text that has the
form of a well-known token, and literal values that the gate itself injected.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

MASK: Final = "[REDACTED]"

SECRET_NAMES: Final = (
    "password", "passwd", "passphrase", "pwd", "secret", "client_secret", "token", "access_token",
    "refresh_token", "id_token", "auth_token", "bearer_token", "api_key", "apikey", "access_key",
    "secret_key", "private_key", "authorization", "proxy_authorization", "cookie", "set_cookie",
    "credential", "credentials", "session_token",
)  # fmt: skip
"""Argument names whose values are always masked; compared without case, ``-`` read as ``_``."""

TOKEN_FORMS: Final = (
    r"sk-[A-Za-z0-9_-]{6,}",
    r"(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{6,}",
    r"github_pat_[A-Za-z0-9_]{6,}",
    r"glpat-[A-Za-z0-9_-]{10,}",
    r"xox[a-z]-[A-Za-z0-9-]{6,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
    r"AIza[A-Za-z0-9_-]{20,}",
    r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*",
    r"(?i:\bbearer )\s*[A-Za-z0-9._~+/=-]{6,}",
    r"(?i:\bbasic )\s*[A-Za-z0-9+/=]{12,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    r"(?i:(?:password|passwd|pwd|secret|token|api_?key)\s?[=:]\s?)[^\s&\"',;]{3,}",
    r"(?<=://)[^\s/:@]{1,256}:[^\s/@]{1,256}(?=@)",
)
"""Text that looks like a secret wherever it stands."""

MIN_LITERAL: Final = 4
"""Shorter injected values are not masked: they would blacken ordinary text."""


class Redactor:
    """Masks secrets by name, by form and by value."""

    __slots__ = ("_anything", "_names")

    def __init__(
        self,
        names: Iterable[str] = (),
        literals: Iterable[str] = (),
        patterns: Iterable[str] = (),
    ) -> None:
        """Add names, injected values and expressions to the built-in ones."""
        self._names = frozenset(_folded(name) for name in (*SECRET_NAMES, *names))
        values = sorted(
            {value for value in literals if len(value) >= MIN_LITERAL}, key=len, reverse=True
        )
        forms = [*map(re.escape, values), *patterns, *TOKEN_FORMS]
        self._anything = re.compile("|".join(f"(?:{form})" for form in forms))

    def is_secret_name(self, name: str) -> bool:
        """Tell whether a key of this name holds a secret."""
        return _folded(name) in self._names

    def mask_text(self, text: str) -> str:
        """Return the text with everything that looks like a secret masked."""
        return self._anything.sub(MASK, text)

    def mask_value(self, value: Any) -> Any:
        """Return a JSON value with its secrets masked; the value itself is left alone."""
        if isinstance(value, str):
            return self._anything.sub(MASK, value)
        if isinstance(value, dict):
            return {
                self._anything.sub(MASK, key): MASK
                if _folded(key) in self._names and member is not None
                else self.mask_value(member)
                for key, member in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.mask_value(member) for member in value]
        return value


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")
