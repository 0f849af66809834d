"""The path of the private file with the URLs of the remote servers of a run or an installation.

Separate from ``remote_servers``, which writes the file, because every ``proxy`` process checks
whether its config is such a file and should not load the rest.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from thoughtgate.gate.state_directory import state_directory

DIRECTORY: Final = "remotes"
INSTALLED: Final = "installed-"
"""The beginning of the names of the files of ``install``, one per entry, which outlive all runs."""


def remotes_path(key: str, environ: Mapping[str, str]) -> Path:
    """Return the path of the file with the URLs of a run's remote servers."""
    return Path(state_directory(environ), DIRECTORY, f"{key}.json")


def is_remotes_file(path: str, state: str) -> bool:
    """Tell whether a config is such a file in a state directory."""
    return bool(path and state) and Path(path).parent == Path(state, DIRECTORY)
