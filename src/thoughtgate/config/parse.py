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

_SUFFIXES: Final = {".toml": "toml", ".json": "json", ".jsonc": "json"}


def format_of(file: str) -> str:
    """Return the format of a file by its name; YAML unless it says otherwise."""
    name = file.lower()
    return next((kind for suffix, kind in _SUFFIXES.items() if name.endswith(suffix)), "yaml")


def parse(text: str, *, file: str, format_: str | None = None) -> Document:
    """Read a config text.

    Raises:
        ConfigError: the text is empty, too large, or not of its format.
    """
    if len(text.encode()) > MAX_BYTES:
        raise syntax_error(f"larger than {MAX_BYTES} bytes", file)
    document = FORMATS[format_ or format_of(file)](text, file)
    if document.data is None:
        raise syntax_error("the file is empty; run 'thoughtgate init' for a starting point", file)
    if not isinstance(document.data, dict):
        raise syntax_error("must hold keys and values, such as 'schema: 1'", file, 1)
    return document
