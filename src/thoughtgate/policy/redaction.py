"""Masking of secrets in approval requests, logs and the record; never in forwarded messages.

Three things are masked: values with the name of a secret, text in the format of a well-known
token, and values that the gate itself injected.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from thoughtgate.policy.call import MAX_KEPT
from thoughtgate.policy.regexes import Pattern

MASK: Final = "[REDACTED]"

_SEPARATORS: Final = dict.fromkeys(map(ord, "-_. "))

MIN_LITERAL: Final = 4
"""Shorter injected values are not masked: they would match in ordinary text."""

SECRET_NAMES: Final = (
    "password", "passwd", "passphrase", "pwd", "secret", "client_secret", "token", "access_token",
    "refresh_token", "id_token", "auth_token", "bearer_token", "session_token", "api_key", "apikey",
    "x_api_key", "access_key", "secret_key", "secret_access_key", "private_key", "authorization",
    "proxy_authorization", "cookie", "set_cookie", "credential", "credentials",
)  # fmt: skip
"""Argument names whose values are always masked; compared without case, ``-``, ``_`` and the like,
so that ``accessToken`` is ``access_token``."""

SECRET_ENDINGS: Final = (
    "password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "secretkey",
    "privatekey", "signingkey", "encryptionkey", "accountkey",
)  # fmt: skip
"""Suffixes of names that also say what the secret is for: ``db_password``, ``GITHUB_TOKEN``."""

_PLACE_TOKENS: Final = (
    "pagetoken", "nexttoken", "continuationtoken", "progresstoken", "synctoken", "resumetoken",
)  # fmt: skip
"""Names that end in "token" but are not secrets, which an approver should see."""

_SAID: Final = r"[\"'\\]{0,3}\s{0,8}[=:]\s{0,8}[\"'\\]{0,3}"
"""Separators between a name and its value, in text, in JSON and in JSON inside JSON."""

_PAIR_NAMES: Final = ("name", "key", "header")
"""Keys that name the ``value`` of the same object, as in lists of headers."""


class _Form(NamedTuple):
    """The pattern of one kind of secret; a group called ``kept`` is not masked."""

    marks: tuple[str, ...]
    """Every secret of this kind contains one of these, in lower case; allows a fast check."""
    expression: str


TOKEN_FORMS: Final = (
    _Form(("sk-",), r"sk-[A-Za-z0-9_-]{6,}"),
    _Form(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{6,}"),
    _Form(("github_pat_",), r"github_pat_[A-Za-z0-9_]{6,}"),
    _Form(("glpat-",), r"glpat-[A-Za-z0-9_-]{10,}"),
    _Form(("xox", "xapp-"), r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{6,}"),
    _Form(("k_live_", "k_test_"), r"[rs]k_(?:live|test)_[A-Za-z0-9]{6,}"),
    _Form(("npm_", "hf_"), r"\b(?:npm|hf)_[A-Za-z0-9]{20,}"),
    _Form(("pypi-",), r"pypi-[A-Za-z0-9_-]{16,}"),
    _Form(("ya29.",), r"ya29\.[A-Za-z0-9_-]{10,}"),
    _Form(("sg.",), r"\bSG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{6,}"),
    _Form(("akia", "asia"), r"(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    _Form(("aiza",), r"AIza[A-Za-z0-9_-]{20,}"),
    # Tried once per run of such characters: starting at every "eyJ" would take quadratic time.
    _Form(
        ("eyj",),
        r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]*?eyJ)[A-Za-z0-9_-]{8,}+"
        r"\.[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]*+",
    ),
    _Form(("bearer ",), r"(?P<kept>\b(?i:bearer) +)[A-Za-z0-9._~+/=-]{6,}"),
    _Form(("basic ",), r"(?P<kept>\b(?i:basic) +)[A-Za-z0-9+/=]{12,}"),
    _Form(
        ("private key",),
        r"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)"
        r"(?:-----END [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    _Form(
        ("passw", "passphrase", "pwd", "secret", "token", "key"),
        r"(?P<kept>(?i:password|passwd|passphrase|pwd|token|secret"
        r"|(?:secret|private|access|account|api)[_-]?(?:access[_-]?)?key)"
        rf"{_SAID})(?:(?<=[^\\]\")(?:[^\"\\]|\\.)+|(?<=\\\")[^\"\\]+|(?<=')[^'\\]+"
        r"|[^\s&\"'\\,;{}\[\]]{3,})",
    ),
    _Form(
        ("authorization",),
        rf"(?P<kept>(?i:authorization){_SAID}(?:[A-Za-z0-9-]{{1,20}} )?)[^\s\"'\\,;]{{6,}}",
    ),
    _Form(
        ("passw", "pwd", "secret", "token", "key"),
        r"(?P<kept>--?(?i:password|passwd|pwd|secret|token|access[_-]token|api[_-]?key)\s)[^\s-][^\s\"']{2,}",
    ),
    _Form(("@",), r"(?P<kept>://[^\s/:@]{0,256}:)[^\s/]{1,256}(?=@)"),
)
"""Patterns of secrets that are masked anywhere in a text."""


MAX_NAMES: Final = 10_000
"""Maximum number of remembered harmless names: more than all tools of an agent have."""

_FLAG: Final = '"-'
"""Matches the text of a value that contains a command line flag such as ``--token``."""

_LEAVES: Final = frozenset({str, int, float, bool, type(None)})


class Redactor:
    """Masks secrets by name, by pattern and by value."""

    __slots__ = (
        "_find_mark",
        "_find_rendered_mark",
        "_forms",
        "_names",
        "_patterns",
        "_plain_names",
    )

    def __init__(
        self, names: Iterable[str] = (), literals: Iterable[str] = (), patterns: Iterable[str] = ()
    ) -> None:
        """Add names, injected values and expressions to the built-in ones."""
        self._names = frozenset(_folded(name) for name in (*SECRET_NAMES, *names))
        values = sorted({one for one in literals if len(one) >= MIN_LITERAL}, key=len, reverse=True)
        forms = (*(_Form((value.lower(),), re.escape(value)) for value in values), *TOKEN_FORMS)
        self._forms = tuple((form.marks, re.compile(form.expression)) for form in forms)
        marks = tuple(dict.fromkeys(mark for form in forms for mark in form.marks))
        self._find_mark = _any_of(marks)
        self._patterns = tuple(Pattern(pattern) for pattern in patterns)
        quoted = (json.dumps(mark, ensure_ascii=False)[1:-1] for mark in marks)
        self._find_rendered_mark = _any_of(dict.fromkeys(quoted))
        self._plain_names: set[str] = set()

    def is_secret_name(self, name: str) -> bool:
        """Tell whether the value of this key is a secret."""
        folded = _folded(name)
        return folded in self._names or (
            folded.endswith(SECRET_ENDINGS) and not folded.endswith(_PLACE_TOKENS)
        )

    def mask_text(self, text: str) -> str:
        """Return the text with everything that looks like a secret masked."""
        for pattern in self._patterns:
            text = pattern.replace(text, MASK)
        lowered = text.lower()
        if self._find_mark(lowered) is None:
            return text  # true for almost all text, and this check is cheap
        for marks, expression in self._forms:
            if any(mark in lowered for mark in marks):
                text = expression.sub(_mask, text)
        return text

    def is_clean(self, value: Any, text: str) -> bool:
        """Check quickly that a JSON value has nothing to mask; False means that it may have.

        ``text`` is the rendered value or the beginning of it.
        """
        if self._patterns or not text or _FLAG in text:
            return False
        return self._find_rendered_mark(text.lower()) is None and self._has_plain_names(value)

    def _has_plain_names(self, value: Any) -> bool:
        if type(value) is dict:
            known = self._plain_names
            for key, one in value.items():
                if key not in known and not self._learn_name(key):
                    return False
                if type(one) not in _LEAVES and not self._has_plain_names(one):
                    return False
            return True
        return type(value) is list and all(
            type(one) in _LEAVES or self._has_plain_names(one) for one in value
        )

    def _learn_name(self, name: str) -> bool:
        """Remember a harmless name; tools use few names and repeat them."""
        if name == "value" or self.is_secret_name(name):
            return False
        if len(self._plain_names) < MAX_NAMES and len(name) <= MAX_KEPT:
            self._plain_names.add(name)
        return True

    def mask_value(self, value: Any) -> Any:
        """Return a copy of a JSON value with its secrets masked."""
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, dict):
            pair = self._names_a_secret(value)
            return {
                self.mask_text(key): MASK if pair and key == "value" else self._member(key, one)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return self._members(value)
        return value

    def _members(self, values: Iterable[Any]) -> list[Any]:
        """Mask a list; in a command line, a flag such as ``--token`` names the next word."""
        masked: list[Any] = []
        is_secret = False
        for value in values:
            masked.append(MASK if is_secret and isinstance(value, str) else self.mask_value(value))
            is_secret = (
                isinstance(value, str)
                and value.startswith("-")
                and len(value) <= MAX_KEPT
                and self.is_secret_name(value)
            )
        return masked

    def _member(self, key: str, value: Any) -> Any:
        if value is not None and not isinstance(value, bool) and self.is_secret_name(key):
            return MASK
        return self.mask_value(value)

    def _names_a_secret(self, value: dict[str, Any]) -> bool:
        """Tell whether an object is a pair such as ``{"name": "Authorization", "value": ...}``."""
        if "value" not in value:
            return False
        names = (value.get(key) for key in _PAIR_NAMES)
        return any(isinstance(name, str) and self.is_secret_name(name) for name in names)


def _any_of(marks: Iterable[str]) -> Callable[[str], re.Match[str] | None]:
    """Return a regular expression for any of several literals, grouped by first character."""
    rests: dict[str, list[str]] = {}
    for mark in marks:
        rests.setdefault(mark[0], []).append(re.escape(mark[1:]))
    parts = (f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items())
    return re.compile("|".join(parts)).search


def _mask(match: re.Match[str]) -> str:
    return f"{match.groupdict().get('kept') or ''}{MASK}"


def _folded(name: str) -> str:
    return name.lower().translate(_SEPARATORS)
