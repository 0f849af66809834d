"""Reading the file with variables that an entry names in ``envFile``, as in VS Code and Cursor.

The agent would load it into the environment of the shim, and it usually lies in a repository. Its
variables therefore go to the server alone. Agents differ in how they read quotes, escapes and
comments within a line, so a line that not all of them read alike is refused.
"""

import re
from pathlib import Path
from typing import Final

KEY: Final = "envFile"
MAX_BYTES: Final = 1024 * 1024

_LINE: Final = re.compile(
    r"(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"
    r"""(?:"(?P<double>[^"'`\\$]*)"|'(?P<single>[^"'`\\$]*)'|(?P<plain>[^"'`\\$#]*))"""
)


def read_env_file(path: Path) -> tuple[dict[str, str], str]:
    """Return the variables of a file, and the reason why they cannot be known, if so."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError):
        return {}, f"the file {path} cannot be read"
    if len(text) > MAX_BYTES:
        return {}, f"the file {path} is too long"
    found = {}
    for number, line in enumerate(re.split("\r\n|\r|\n", text), 1):
        stripped = line.strip(" \t")
        if not stripped or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None or not stripped.isprintable():
            return {}, f"line {number} of {path} can be read in several ways; write NAME='VALUE'"
        value = match["double"] or match["single"] or match["plain"] or ""
        found[match["name"]] = value
    return found, ""
