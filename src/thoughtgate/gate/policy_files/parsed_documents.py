"""Config texts that were parsed before, as JSON in the state directory.

An agent starts a gate per server, and parsing YAML takes longer than everything else that a gate
does with its config. Only the plain data of a text is kept, under a digest of the text, of its
format and of this version. Variables, Cedar files, trust and the organisation's policy are looked
at each time that a gate starts, as without a cache.

The directory is as private as the list of trusted policies: whoever can write to it is the user. A
file that is not private, is damaged, or belongs to another text is ignored and written again.
"""

import contextlib
import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from thoughtgate.config.document import MAX_BYTES, Document
from thoughtgate.config.parse import format_of, parse
from thoughtgate.gate.state_directory import read_private_file, write_private_file
from thoughtgate.version import __version__

DIRECTORY: Final = "parsed-configs"

MAX_FILES: Final = 16
"""Texts that are kept: about as many as a user has policies in force, because old ones may hold secrets."""

_MAX_READ: Final = 8 * MAX_BYTES
"""JSON escapes can make a text longer."""


class ParsedDocuments:
    """Parses config texts, or takes what an earlier gate parsed."""

    def __init__(self, state: str = "") -> None:
        """Without a state directory, every text is parsed."""
        self._directory = Path(state, DIRECTORY) if state and Path(state).is_dir() else None
        self.has_skipped = False
        """Whether a text was not parsed, so that the lines of its values are not known."""

    def parse(self, text: str, *, file: str) -> Document:
        """Return what a config text says, as ``config.parse`` does, but perhaps without lines.

        Raises:
            ConfigError: the text is empty, too large or not valid in its format.
        """
        form = format_of(file)
        if self._directory is None or form == "json":
            return parse(text, file=file)
        key = _key(form, text)
        data = _read(self._directory / f"{key}.json", key)
        if data is not None:
            self.has_skipped = True
            return Document(data, {})
        document = parse(text, file=file)
        # A gate goes on without the cache, for example on a file system that is full.
        with contextlib.suppress(OSError, ValueError):
            _write(self._directory, key, document.data)
        return document


def _key(form: str, text: str) -> str:
    told = f"{__version__}\0{form}\0{text}"
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _read(path: Path, key: str) -> dict[str, Any] | None:
    """Return the data that was kept for a text; None if there is none that can be used."""
    try:
        kept = json.loads(read_private_file(str(path), _MAX_READ))
        data = kept["data"] if kept["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _write(directory: Path, key: str, data: Any) -> None:
    text = json.dumps({"key": key, "data": data}, allow_nan=False)
    if json.loads(text)["data"] != data:  # a value that JSON does not have
        return
    write_private_file(str(directory / f"{key}.json"), text)
    files = sorted(directory.iterdir(), key=os.path.getmtime)
    for old in files[:-MAX_FILES]:
        old.unlink(missing_ok=True)
