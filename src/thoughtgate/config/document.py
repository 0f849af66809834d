"""A parsed config text: plain data, and the line of each key."""

from typing import Any, Final, NamedTuple, TypeAlias

from thoughtgate.errors import ConfigError, Problem

MAX_BYTES: Final = 4 * 1024 * 1024
"""Largest config text: ten thousand rules fit several times over."""

MAX_DEPTH: Final = 32
"""Deepest nesting; the format itself needs seven levels, arguments in ``when`` a few more."""

MAX_VALUES: Final = 500_000
"""Most values in a document; an alias counts each time it is used."""

Path: TypeAlias = tuple[str | int, ...]


class Document(NamedTuple):
    """What a config text says."""

    data: Any
    """Mappings, lists, texts, numbers, booleans and None."""
    lines: dict[Path, int]
    """One-based line of each value, where the format provides it."""


def dotted(path: Path) -> str:
    """Return a path in dotted form: ``servers.search.args[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def syntax_error(message: str, file: str, line: int = 0, path: Path = ()) -> ConfigError:
    """Return the error for a text that cannot be read at all."""
    return ConfigError([Problem(dotted(path), message, file, line)])
