"""Parses a config text into plain data; the name of the file decides the format."""

from collections.abc import Callable
from typing import Final

from thoughtgate.config.document import MAX_BYTES, Document, syntax_error

BEGIN_HINT: Final = "run 'thoughtgate init' for a starting point"
"""Advice for an empty config."""

_SUFFIXES: Final = {".toml": "toml", ".json": "json", ".jsonc": "json"}


def format_of(file: str) -> str:
    """Return the format that the name of a file indicates; YAML by default."""
    name = file.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), "yaml")


def _parser(format_: str) -> Callable[[str, str], Document]:
    """Return the parser of a format; the others are not loaded, so that a gate starts sooner."""
    if format_ == "json":
        from thoughtgate.config.parse_json import parse_json

        return parse_json
    if format_ == "toml":
        from thoughtgate.config.parse_toml import parse_toml

        return parse_toml
    from thoughtgate.config.parse_yaml import parse_yaml

    return parse_yaml


def parse(
    text: str,
    *,
    file: str,
    hint: str = BEGIN_HINT,
    example: str = "schema: 1",
) -> Document:
    """Parse a config text, or another file in one of the same formats.

    For the messages, ``hint`` says what to do about an empty file, ``example`` is a valid line.

    Raises:
        ConfigError: the text is empty, too large or not valid in its format.
    """
    if len(text.encode()) > MAX_BYTES:
        raise syntax_error(f"larger than {MAX_BYTES} bytes", file)
    document = _parser(format_of(file))(text, file)
    if document.data is None:
        raise syntax_error(f"the file is empty; {hint}", file)
    if not isinstance(document.data, dict):
        raise syntax_error(f"must hold keys and values, such as '{example}'", file, 1)
    return document
