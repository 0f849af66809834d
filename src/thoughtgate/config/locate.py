"""The places where config files are looked for; the caller opens them."""

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
"""The directory of the organisation's policy; no variable changes it, because agents set variables."""


class Named(NamedTuple):
    """A config file that somebody named; it must exist."""

    path: str
    by: str
    """The flag or variable that names it."""


def named_file(flag: str | None, env: Mapping[str, str], cwd: str) -> Named | None:
    """Return the file that the flag or else the variable names."""
    if flag:
        return Named(str(PurePath(cwd, flag)), "-c")
    if named := env.get("THOUGHTGATE_CONFIG"):
        return Named(str(PurePath(cwd, named)), "THOUGHTGATE_CONFIG")
    return None


def candidates(directory: str) -> list[str]:
    """Return the paths at which a directory may hold a config file, in order."""
    return [str(PurePath(directory, name)) for name in FILE_NAMES]
