"""Where to look for a config file; the caller opens it."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final, NamedTuple

FILE_NAME: Final = "thoughtgate.yaml"
FILE_NAMES: Final = (
    FILE_NAME,
    "thoughtgate.yml",
    "thoughtgate.toml",
    "thoughtgate.json",
    "thoughtgate.jsonc",
)
"""File names to look for in a directory, in this order."""

SYSTEM_DIRECTORY: Final = "/etc/thoughtgate"


class Candidate(NamedTuple):
    """A place where a config file may be."""

    path: str
    required_by: str
    """The flag or variable that names the file, which must then exist; empty for a default location."""


def candidate_paths(
    flag: str | None, env: Mapping[str, str], cwd: str, config_dir: str
) -> list[Candidate]:
    """Return the locations to check, in order; a named file is the only one."""
    if flag:
        return [Candidate(str(PurePath(cwd, flag)), "-c")]
    if named := env.get("THOUGHTGATE_CONFIG"):
        return [Candidate(str(PurePath(cwd, named)), "THOUGHTGATE_CONFIG")]
    directories = (cwd, str(PurePath(config_dir, "thoughtgate")), SYSTEM_DIRECTORY)
    return [Candidate(str(PurePath(one, name)), "") for one in directories for name in FILE_NAMES]
