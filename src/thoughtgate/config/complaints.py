"""The words for a wrong key or value: what is wrong, what would be right, and never a secret."""

import json
from collections.abc import Iterable
from typing import Any, Final

from thoughtgate.config.document import Path
from thoughtgate.policy.redaction import MASK, Redactor

MAX_SHOWN: Final = 60
"""Characters of a wrong value that are quoted."""

EMPTY: Final = "is empty; give it a value or remove the key"
MISSING: Final = "required, and missing"

_REDACTOR: Final = Redactor()

_HINTS: Final = {
    "token": "never write a secret into the file: put it into an environment variable and name that in token_env",
    "secret": "never write a secret into the file: put it into an environment variable and name that in secret_env",
}


def shown(path: Path, value: Any) -> str:
    """Return a value as it may be quoted in a complaint: short, and never a secret."""
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    masked = _REDACTOR.mask_value({name: value})
    text = json.dumps(next(iter(masked.values())), ensure_ascii=False, default=str)
    if MASK in text:
        return "a value that is not shown"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return what to say about a key that its section does not have."""
    if key in _HINTS:
        return _HINTS[key]
    import difflib  # a config without a mistake loads sooner without it

    names = sorted(known)
    close = difflib.get_close_matches(key, names, n=1)
    if close:
        return f"unknown key; did you mean {close[0]}?"
    return f"unknown key; known here are {', '.join(names)}"
