"""A parsed config text: plain data, and the line of each key."""

from typing import Any, Final, NamedTuple, TypeAlias

from thoughtgate.errors import ConfigError, Problem

MAX_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of a config text, several times that of one with ten thousand rules."""

MAX_DEPTH: Final = 32
"""Maximum nesting; the format itself needs seven levels, arguments in ``when`` a few more."""

MAX_VALUES: Final = 500_000
"""Maximum number of values; an alias counts each time it is used, so that it cannot expand."""

Path: TypeAlias = tuple[str | int, ...]


class Document(NamedTuple):
    """The data of a config text, and where each value is."""

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
