"""Masking of secrets in approval requests, logs and the record; never in forwarded messages.

A secret is masked by its exact run of characters, and the mask says its kind and its length:
``[token, 40 characters]``. Text before and after the run is always shown. There are two views:

* ``mask_text`` and ``mask_value``, for the record, logs and results: nobody decides by them, so
  the whole value of a key such as ``password`` is masked.
* ``review_value``, for a person who approves a call: reviewers must see what runs, so a value is
  masked only if it is a single word without any meaning to a shell. A value with spaces, quotes
  or ``$(...)`` is shown, whatever its key is called.
"""

import json
import re
from collections.abc import Callable, Iterable
from copy import copy
from functools import lru_cache
from typing import Any, Final, NamedTuple

from thoughtgate.policy.call import MAX_KEPT
from thoughtgate.policy.regexes import Pattern

TOKEN: Final = "token"  # noqa: S105 - a kind of secret
"""Text in the format of a well-known token."""
PRIVATE_KEY: Final = "private key"
NAMED: Final = "secret"
"""The value of a key, variable or option whose name says that it is secret."""
INJECTED: Final = "injected secret"
"""A value that the gate itself got from its environment."""
CONFIGURED: Final = "text matched by redact.patterns"

_MASK: Final = re.compile(
    r"\[REDACTED\]"  # the mask of earlier versions, which stored records still contain
    rf"|\[(?:{'|'.join(map(re.escape, (TOKEN, PRIVATE_KEY, NAMED, INJECTED, CONFIGURED)))})"
    r", [0-9]+ characters?\]"
)

MAX_RUN: Final = 8192
"""Maximum characters that a reviewer does not see at one place; no token is longer."""

MAX_NESTED: Final = 3
"""How often a value is searched again that is shown although its name says that it is secret;
bounds the time."""

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

_WORD: Final = r"[^\s\"'\\,;&|<>()`${}\[\]]"
"""A character of a value without quotes: whatever a shell interprets ends the value."""

_START: Final = r"(?<![A-Za-z0-9])"
"""A token does not begin inside a word: ``sk-`` is no token in ``task-``."""

_BREAK: Final = r"(?:\r?\n|(?:\\r)?\\n| )[ \t]{0,32}"
"""The end of a line of a key, in text, in JSON inside JSON, or joined with spaces."""

_PAIR_NAMES: Final = ("name", "key", "header")
"""Keys that name the ``value`` of the same object, as in lists of headers."""


class _Form(NamedTuple):
    """The pattern of one kind of secret; a group called ``kept`` is not masked."""

    marks: tuple[str, ...]
    """Every secret of this kind contains one of these, in lower case; allows a fast check."""
    expression: str
    kind: str = TOKEN


TOKEN_FORMS: Final = (
    # The digit tells a key from a word; looking for it far away would take quadratic time.
    _Form(("sk-",), _START + r"sk-(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{6,}"),
    _Form(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _START + r"gh[pousr]_[A-Za-z0-9]{6,}"),
    _Form(("github_pat_",), _START + r"github_pat_[A-Za-z0-9_]{6,}"),
    _Form(("glpat-",), _START + r"glpat-[A-Za-z0-9_-]{10,}"),
    _Form(("xox", "xapp-"), _START + r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{6,}"),
    _Form(("k_live_", "k_test_"), _START + r"[rs]k_(?:live|test)_[A-Za-z0-9]{6,}"),
    _Form(("npm_", "hf_"), r"\b(?:npm|hf)_[A-Za-z0-9]{20,}"),
    _Form(("pypi-",), _START + r"pypi-[A-Za-z0-9_-]{16,}"),
    _Form(("ya29.",), _START + r"ya29\.[A-Za-z0-9_-]{10,}"),
    _Form(("sg.",), r"\bSG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{6,}"),
    _Form(("akia", "asia"), _START + r"(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    _Form(("aiza",), _START + r"AIza[A-Za-z0-9_-]{20,}"),
    # Tried once per run of such characters: starting at every "eyJ" would take quadratic time.
    _Form(
        ("eyj",),
        r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]*?eyJ)[A-Za-z0-9_-]{8,}+"
        r"\.[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]*+",
    ),
    _Form(("bearer ",), r"(?P<kept>\b(?i:bearer) +)[A-Za-z0-9._~+/=-]{6,}"),
    _Form(("basic ",), r"(?P<kept>\b(?i:basic) +)[A-Za-z0-9+/=]{12,}"),
    # Only lines of base64 are masked, not what follows them, whether an END line is there or not.
    _Form(
        ("private key",),
        r"(?P<kept>-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:{_BREAK}[A-Za-z-]{{1,32}}: [^\r\n\\]{{0,200}}){{0,8}}+(?:{_BREAK}){{0,3}}+)"
        rf"[A-Za-z0-9+/]++={{0,2}}(?:{_BREAK}[A-Za-z0-9+/]++={{0,2}})*+",
        PRIVATE_KEY,
    ),
    _Form(
        ("passw", "passphrase", "pwd", "secret", "token", "key"),
        r"(?P<kept>(?i:password|passwd|passphrase|pwd|token|secret"
        r"|(?:secret|private|access|account|api)[_-]?(?:access[_-]?)?key)"
        rf"{_SAID})(?:(?<=[^\\]\")(?:[^\"\\]|\\.)+|(?<=\\\")[^\"\\]+|(?<=')[^'\\]+"
        rf"|{_WORD}{{3,}})",
        NAMED,
    ),
    _Form(
        ("authorization",),
        # The scheme alone is not the secret: what follows it is already masked.
        rf"(?P<kept>(?i:authorization){_SAID}(?:[A-Za-z0-9-]{{1,20}} )?){_WORD}{{6,}}+(?! \[)",
        NAMED,
    ),
    _Form(
        ("passw", "pwd", "secret", "token", "key"),
        r"(?P<kept>--?(?i:password|passwd|pwd|secret|token|access[_-]token|api[_-]?key)\s)"
        rf"(?!-){_WORD}{{3,}}",
        NAMED,
    ),
    _Form(("@",), r"(?P<kept>://[^\s/:@]{0,256}:)(?!\[)[^\s/]{1,256}(?=@)", NAMED),
)
"""Patterns of secrets that are masked anywhere in a text."""


CHEAP_STEPS: Final = 64
"""Steps per character that a configured expression may always take; words take fewer."""

MAX_STEPS: Final = 100_000_000
"""Further steps of the configured expressions on one value: a second or two. A text that would
take more is masked as a whole."""

MAX_NAMES: Final = 10_000
"""Maximum number of remembered harmless names: more than all tools of an agent have."""

_FLAG: Final = '"-'
"""Matches the text of a value that contains a command line flag such as ``--token``."""

_LEAVES: Final = frozenset({str, int, float, bool, type(None)})

_ONE_WORD: Final = re.compile(
    r"(?![/.~@-]|[A-Za-z]:/)"  # the path of a file, an option
    r"(?!.*(?:[=:@,][/.~]|\.\.))"  # a URL, a path behind a name or through parents
    r"[A-Za-z0-9+/=_.~:@!#,-]+"
    r"|[0-9][0-9 -]{0,62}"  # the number of a card or an account
)
"""What may be hidden from a reviewer: nothing that a shell would run, expand or open."""

_SUBSTITUTION: Final = re.compile(r"\$\(|`")

_LINE: Final = re.compile(_BREAK)
_MIN_KEY: Final = 48
"""Characters of the shortest private key, one of Ed25519, are 64; its beginning is masked too."""


def mask_of(kind: str, hidden: str) -> str:
    """Return the text that stands for a secret: its kind and its length."""
    ending = "" if len(hidden) == 1 else "s"
    return f"[{kind}, {len(hidden)} character{ending}]"


def holds_mask(text: str) -> bool:
    """Tell whether a text contains the mask of a secret."""
    return _MASK.search(text) is not None


def is_mask(text: str) -> bool:
    """Tell whether a text is the mask of a secret and nothing else."""
    return _MASK.fullmatch(text) is not None


class _View:
    """What is masked for one kind of reader."""

    __slots__ = ("_forms", "_left", "_may_hide", "_patterns", "masks_any_value")

    def __init__(
        self,
        forms: Iterable[_Form],
        patterns: Iterable[Pattern],
        may_hide: Callable[[str], bool],
        *,
        masks_any_value: bool,
    ) -> None:
        self._forms = tuple(forms)
        self._patterns = tuple(patterns)
        self._may_hide = may_hide
        self.masks_any_value = masks_any_value
        """Whether a value with a secret name, or a configured match, is masked whatever it is."""
        self._left = MAX_STEPS
        """Steps that searching for the configured expressions may still take."""

    def for_one_value(self) -> "_View":
        """Return a view whose steps are for one value and all that is in it."""
        return copy(self)

    def match_patterns(self, text: str) -> str:
        """Mask what the configured expressions match, or all of a text that is too costly."""
        for pattern in self._patterns:
            steps = pattern.steps(text)
            # Ordinary text is always searched, whatever costly text comes before it.
            if steps > CHEAP_STEPS * len(text):
                if steps > self._left:
                    return self._configured(text)
                self._left -= steps
            text = pattern.replace(text, self._configured)
        return text

    def mask(self, text: str, lowered: str) -> str:
        """Mask what has the form of a secret; ``lowered`` is the text in lower case."""
        for marks, expression, kind in self._forms:
            if any(mark in lowered for mark in marks):
                text = self._masked(_compiled(expression), kind, text)
        return text

    def value(self, value: Any) -> str | None:
        """Return the mask of a named secret; None if the value must be shown."""
        text = value if isinstance(value, str) else json.dumps(value)
        if is_mask(text):
            return text
        hides = self.masks_any_value or self._may_hide(text)
        return mask_of(NAMED, text) if hides and text else None

    def _masked(
        self, expression: re.Pattern[str], kind: str, text: str, depth: int = MAX_NESTED
    ) -> str:
        def hide(match: re.Match[str]) -> str:
            kept = match.groupdict().get("kept") or ""
            hidden = match.group()[len(kept) :]
            if is_mask(hidden):
                return match.group()
            if self._hides(kind, hidden):
                return kept + mask_of(kind, hidden)
            if not kept or not depth:
                return match.group()
            # A shown value may itself contain a secret of this form.
            return kept + self._masked(expression, kind, hidden, depth - 1)

        return expression.sub(hide, text)

    def _hides(self, kind: str, hidden: str) -> bool:
        if kind == PRIVATE_KEY:
            return _is_key(hidden)
        return kind == INJECTED or self._may_hide(hidden)

    def _configured(self, matched: str) -> str:
        hides = self.masks_any_value or self._may_hide(matched)
        return mask_of(CONFIGURED, matched) if hides else matched


class Redactor:
    """Masks secrets by name, by pattern and by value."""

    __slots__ = (
        "_find_mark",
        "_find_rendered_mark",
        "_has_patterns",
        "_names",
        "_plain_names",
        "_record",
        "_review",
    )

    def __init__(
        self, names: Iterable[str] = (), literals: Iterable[str] = (), patterns: Iterable[str] = ()
    ) -> None:
        """Add names, injected values and expressions to the built-in ones."""
        self._names = frozenset(_folded(name) for name in (*SECRET_NAMES, *names))
        # The longest first: otherwise a shorter value inside it would leave the rest visible.
        values = sorted({one for one in literals if len(one) >= MIN_LITERAL}, key=len, reverse=True)
        injected = (_Form((value.lower(),), re.escape(value), INJECTED) for value in values)
        forms = (*injected, *TOKEN_FORMS)
        compiled = tuple(Pattern(pattern) for pattern in patterns)
        self._has_patterns = bool(compiled)
        self._record = _View(forms, compiled, _substitutes_nothing, masks_any_value=True)
        self._review = _View(forms, compiled, _is_one_word, masks_any_value=False)
        marks = tuple(dict.fromkeys(mark for form in forms for mark in form.marks))
        self._find_mark = _any_of(marks)
        # In rendered JSON, quotes and backslashes of an injected value are escaped.
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
        """Return a text for the record, with everything that looks like a secret masked."""
        return self._text(text, self._view(self._record))

    def mask_value(self, value: Any) -> Any:
        """Return a copy of a JSON value for the record, with its secrets masked."""
        return self._value(value, self._view(self._record))

    def review_value(self, value: Any) -> Any:
        """Return a copy of a JSON value for a person who approves: only what cannot run is masked."""
        return self._value(value, self._view(self._review))

    def is_clean(self, value: Any, text: str) -> bool:
        """Check quickly that a JSON value has nothing to mask; False means that it may have.

        ``text`` is the rendered value or the beginning of it.
        """
        if self._has_patterns or not text or _FLAG in text:
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

    def _view(self, view: _View) -> _View:
        return view.for_one_value() if self._has_patterns else view

    def _learn_name(self, name: str) -> bool:
        """Remember a harmless name; tools use few names and repeat them."""
        # ``value`` may be secret because of another member (``_PAIR_NAMES``).
        if name == "value" or self.is_secret_name(name):
            return False
        if len(self._plain_names) < MAX_NAMES and len(name) <= MAX_KEPT:
            self._plain_names.add(name)
        return True

    def _text(self, text: str, view: _View) -> str:
        if self._has_patterns:
            text = view.match_patterns(text)
        lowered = text.lower()
        if self._find_mark(lowered) is None:
            return text  # true for almost all text, and this check is cheap
        return view.mask(text, lowered)

    def _value(self, value: Any, view: _View, *, named: bool = False) -> Any:
        """Mask a JSON value; ``named`` if its name says that it is a secret."""
        if isinstance(value, dict):
            return self._object(value, view, named=named)
        if isinstance(value, list | tuple):
            return self._items(value, view, named=named)
        if value is None or isinstance(value, bool):
            return value
        masked = view.value(value) if named else None
        if masked is not None:
            return masked
        return self._text(value, view) if isinstance(value, str) else value

    def _object(self, value: dict[str, Any], view: _View, *, named: bool) -> dict[str, Any]:
        pair = self._names_a_secret(value)
        masked: dict[str, Any] = {}
        for key, one in value.items():
            shown = self._text(key, view)
            # Two keys whose masks are equal are two members: neither may replace the other.
            while shown in masked:
                shown = f"{shown} (member {len(masked) + 1})"
            is_secret = named or (pair and key == "value") or self.is_secret_name(key)
            masked[shown] = self._value(one, view, named=is_secret)
        return masked

    def _items(self, values: Iterable[Any], view: _View, *, named: bool) -> list[Any]:
        """Mask a list; in a command line, a flag such as ``--token`` names the next word."""
        masked: list[Any] = []
        is_secret = False
        for value in values:
            is_word = isinstance(value, str)
            masked.append(self._value(value, view, named=named or (is_secret and is_word)))
            is_secret = (
                is_word
                and value.startswith("-")
                and len(value) <= MAX_KEPT
                and self.is_secret_name(value)
            )
        return masked

    def _names_a_secret(self, value: dict[str, Any]) -> bool:
        """Tell whether an object is a pair such as ``{"name": "Authorization", "value": ...}``."""
        if "value" not in value:
            return False
        names = (value.get(key) for key in _PAIR_NAMES)
        return any(isinstance(name, str) and self.is_secret_name(name) for name in names)


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> re.Pattern[str]:
    """Compile the expression of a form when its mark is first found: most are never needed."""
    return re.compile(expression)


def _any_of(marks: Iterable[str]) -> Callable[[str], re.Match[str] | None]:
    """Return a regular expression for any of several literals, grouped by first character."""
    rests: dict[str, list[str]] = {}
    for mark in marks:
        rests.setdefault(mark[0], []).append(re.escape(mark[1:]))
    parts = (f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items())
    return re.compile("|".join(parts)).search


def _is_one_word(run: str) -> bool:
    """Tell whether a reviewer loses nothing that could run if this is masked."""
    return len(run) <= MAX_RUN and _ONE_WORD.fullmatch(run) is not None


def _substitutes_nothing(run: str) -> bool:
    """Tell whether a text is a literal value, not a command whose output would be the value."""
    return _SUBSTITUTION.search(run) is None


def _is_key(body: str) -> bool:
    """Tell whether lines of base64 are those of a key: many, and of one length but for the last."""
    lines = _LINE.split(body)
    length = len(lines[0])
    return (
        sum(map(len, lines)) >= _MIN_KEY
        and all(len(line) == length for line in lines[:-1])
        and len(lines[-1]) <= length
    )


def _folded(name: str) -> str:
    return name.lower().translate(_SEPARATORS)
