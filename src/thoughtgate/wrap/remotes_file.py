"""Where the URLs of the remote servers of a run or an installation are kept.

Separate from what writes the file, because every ``proxy`` asks whether its config is one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from thoughtgate.gate.state_directory import state_directory

DIRECTORY: Final = "remotes"
INSTALLED: Final = "installed-"
"""With this begin the names of files that ``install`` keeps for good, one per entry."""


def remotes_path(key: str, environ: Mapping[str, str]) -> Path:
    """Return the path of the file with the URLs of a run's remote servers."""
    return Path(state_directory(environ), DIRECTORY, f"{key}.json")


def is_remotes_file(path: str, state: str) -> bool:
    """Tell whether a config is such a file in a state directory."""
    return bool(path and state) and Path(path).parent == Path(state, DIRECTORY)
