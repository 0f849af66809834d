"""The wording of problems: what is wrong and what would be right, but never a secret."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from thoughtgate.config.document import Path
from thoughtgate.policy.redaction import Redactor, holds_mask

MAX_SHOWN: Final = 60
"""How many characters of a wrong value are quoted."""

EMPTY: Final = "is empty; give it a value or remove the key"
MISSING: Final = "required, but missing"

_HINTS: Final = {
    "token": "do not write a secret in the file: put it in an environment variable and name the variable in token_env",
    "secret": "do not write a secret in the file: put it in an environment variable and name the variable in secret_env",
}


@cache
def _redactor() -> Redactor:
    """Build the redactor when the first problem is found, because most configs have none."""
    return Redactor()


def shown(path: Path, value: Any) -> str:
    """Return a value as a problem may quote it: short, and never a secret."""
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    # Masked together with its name, which may say that the value is a secret.
    masked = _redactor().mask_value({name: value})
    text = json.dumps(next(iter(masked.values())), ensure_ascii=False, default=str)
    if holds_mask(text):
        return "a value that is not shown"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message about a key that its section does not have."""
    if key in _HINTS:
        return _HINTS[key]
    import difflib  # a config without a mistake loads sooner without it

    names = sorted(known)
    close = difflib.get_close_matches(key, names, n=1)
    if close:
        return f"unknown key; did you mean {close[0]}?"
    return f"unknown key; the keys here are {', '.join(names)}"
