"""Find secrets in a server entry before it is written to a config, and move them to variables.

People paste entries from web pages and from agents' configs, often with a token in them. A config
is shared and committed; a variable is not. The secrets are found by the checks that inspect the
arguments of calls.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.errors import Conflict
from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.inspect import inspect_arguments

FILE: Final = "variables.env"
"""The file in the state directory for the values, with one line ``NAME='VALUE'`` per variable."""

_CHECKS: Final = frozenset(
    {checks.SECRET_TOKEN, checks.SECRET_KEY, checks.SECRET_URL, checks.SECRET_VALUE}
)


class PastedSecret(NamedTuple):
    """A secret in an entry."""

    path: tuple[str, ...]
    """Where it is, such as ``("env", "GITHUB_TOKEN")``."""
    start: int
    end: int
    """Its span in the text at that place."""
    what: str

    @property
    def where(self) -> str:
        """The place as people write it, such as ``env.GITHUB_TOKEN``."""
        return ".".join(self.path)


def find_secrets(entry: Mapping[str, Any]) -> list[PastedSecret]:
    """Return the secrets in an entry; references such as ``${TOKEN}`` are not secrets."""
    found = []
    # A check that knows the kind of secret says more than one that only knows its name.
    for one in sorted(inspect_arguments(entry), key=lambda one: one.check == checks.SECRET_VALUE):
        path = tuple(_unescaped(part) for part in one.pointer.split("/")[1:])
        text = _at(entry, path)
        if one.check in _CHECKS and isinstance(text, str) and "${" not in text:
            found.append(PastedSecret(path, one.start, one.end or len(text), one.what))
    found.sort(key=lambda one: (one.path, one.start, -one.end))
    # Several checks may find the same secret, or a part of it.
    return [
        one
        for at, one in enumerate(found)
        if not any(one.path == other.path and one.start < other.end for other in found[:at])
    ]


def move_secrets(
    ident: str, entry: dict[str, Any], secrets: list[PastedSecret], taken: Mapping[str, str]
) -> dict[str, str]:
    """Replace the secrets of an entry by references; return the variables with their values.

    ``taken`` has the variables that already exist: a name is reused only for the same value.
    """
    moved: dict[str, str] = {}
    for one in reversed(secrets):  # from the end of a text, so that earlier spans stay valid
        text = _at(entry, one.path)
        value = text[one.start : one.end]
        name = next(
            name for name in _names(ident, one) if {**taken, **moved}.get(name, value) == value
        )
        moved[name] = value
        _put(entry, one.path, f"{text[: one.start]}${{{name}}}{text[one.end :]}")
    return moved


def save_variables(path: Path, variables: Mapping[str, str]) -> None:
    """Add variables to a file that only its owner can read.

    Raises:
        Conflict: the file cannot be written.
    """
    lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(variables.items()))
    try:
        # O_NOFOLLOW: a link in place of the file must not receive the secrets.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(lines)
    except OSError as error:
        raise Conflict(f"cannot write {path}: {error.strerror or error}") from None


def saved_variables(path: Path) -> dict[str, str]:
    """Return the variables that the file already has."""
    try:
        words = shlex.split(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(word.split("=", 1) for word in words if "=" in word)


def _names(ident: str, secret: PastedSecret) -> Iterator[str]:
    """Yield names for a variable, the plainest first."""
    first, last = secret.path[0], secret.path[-1]
    words = last if first == "env" else f"{ident}_{last if first == 'headers' else 'SECRET'}"
    base = re.sub(r"[^A-Z0-9]+", "_", words.upper()).strip("_")
    base = base if base[:1].isalpha() else f"SERVER_{base}"
    yield base
    yield from (f"{base}_{number}" for number in range(2, 1000))


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _put(entry: Any, path: tuple[str, ...], text: str) -> None:
    holder = _at(entry, path[:-1])
    holder[int(path[-1]) if isinstance(holder, list) else path[-1]] = text
