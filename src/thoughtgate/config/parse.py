"""Config text to plain data, by the format that the file's name tells."""

from collections.abc import Callable, Mapping
from typing import Final

from thoughtgate.config.document import MAX_BYTES, Document, syntax_error
from thoughtgate.config.parse_json import parse_json
from thoughtgate.config.parse_toml import parse_toml
from thoughtgate.config.parse_yaml import parse_yaml

FORMATS: Final[Mapping[str, Callable[[str, str], Document]]] = {
    "yaml": parse_yaml,
    "json": parse_json,
    "toml": parse_toml,
}

BEGIN_HINT: Final = "run 'thoughtgate init' for a starting point"
"""What to do about a config that is empty."""

_SUFFIXES: Final = {".toml": "toml", ".json": "json", ".jsonc": "json"}


def format_of(file: str) -> str:
    """Return the format of a file by its name; YAML unless it says otherwise."""
    name = file.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), "yaml")


def parse(
    text: str,
    *,
    file: str,
    format_: str | None = None,
    hint: str = BEGIN_HINT,
    example: str = "schema: 1",
) -> Document:
    """Read a config text, or another of its formats.

    ``hint`` is what to do about an empty one, ``example`` how one that is not may begin.

    Raises:
        ConfigError: the text is empty, too large, or not of its format.
    """
    if len(text.encode()) > MAX_BYTES:
        raise syntax_error(f"larger than {MAX_BYTES} bytes", file)
    document = FORMATS[format_ or format_of(file)](text, file)
    if document.data is None:
        raise syntax_error(f"the file is empty; {hint}", file)
    if not isinstance(document.data, dict):
        raise syntax_error(f"must hold keys and values, such as '{example}'", file, 1)
    return document
