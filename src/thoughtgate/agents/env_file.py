"""Reading the file of variables that an entry names in ``envFile``, as in VS Code and Cursor.

The agent would load the file into the environment of the shim, and the file is usually part of a
repository. Its variables therefore go to the server alone. Agents differ in how they read quotes,
escapes and comments within a line, so a line that they would read differently is refused.
"""

import errno
import re
from pathlib import Path
from typing import Final

from thoughtgate.agents.atomic import read_regular

KEY: Final = "envFile"
MAX_BYTES: Final = 1024 * 1024

_LINE: Final = re.compile(
    r"(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"
    r"""(?:"(?P<double>[^"'`\\$]*)"|'(?P<single>[^"'`\\$]*)'|(?P<plain>[^"'`\\$#]*))"""
)


def read_env_file(path: Path) -> tuple[dict[str, str], str]:
    """Return the variables of a file, or no variables and the reason why they are unknown."""
    try:
        # A repository chooses the file. Reading a terminal or a pipe would block the wrap.
        text = read_regular(path, MAX_BYTES).decode()
    except (OSError, ValueError) as error:  # not UTF-8, or a name that no file can have
        is_long = isinstance(error, OSError) and error.errno == errno.EFBIG
        return {}, f"the file {path} {'is too long' if is_long else 'cannot be read'}"
    found = {}
    for number, line in enumerate(re.split("\r\n|\r|\n", text), 1):
        stripped = line.strip(" \t")
        if not stripped or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        # Whether a character such as a vertical tab ends a line differs between agents, too.
        if match is None or not stripped.isprintable():
            return {}, f"line {number} of {path} can be read in several ways; write NAME='VALUE'"
        value = match["double"] or match["single"] or match["plain"] or ""
        found[match["name"]] = value
    return found, ""
