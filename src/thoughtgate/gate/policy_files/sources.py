"""Which policy files are in force, and why."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.config.locate import SYSTEM_DIRECTORY, Named, candidates, named_file
from thoughtgate.errors import ConfigError, Problem
from thoughtgate.gate.policy_files.agent_started import config_directory

USER: Final = "user"
PROJECT: Final = "project"
ORGANISATION: Final = "organisation"
STARTER: Final = "starter"


@dataclass(frozen=True, slots=True)
class PolicySource:
    """One policy that is in force."""

    role: str
    """``user``, ``project``, ``organisation`` or ``starter``."""
    path: str = ""
    """Its file; empty for the built-in starter policy."""
    digest: str = ""
    """SHA-256 over the bytes of the file and of the policy files that it names."""
    trusted: bool = True
    """False for a project's policy that can only tighten."""
    named_by: str = ""
    """The flag or variable that names the file; empty if it was found."""
    ignored: tuple[str, ...] = ()
    """The keys that do not count because the project is not trusted."""
    files: tuple[str, ...] = ()
    """The file and the policy files that it names, as absolute paths."""

    @property
    def words(self) -> str:
        """The source in words, for a line that lists all of them."""
        if self.role == STARTER:
            return "built-in starter policy"
        if self.role == PROJECT:
            untrusted = "not trusted: only tightens; thoughtgate trust"
            return f"{self.path} (project, {'trusted' if self.trusted else untrusted})"
        if self.role == USER:
            return f"{self.path} ({self.named_by or 'yours'})"
        return f"{self.path} ({self.role})"

    def as_json(self) -> dict[str, Any]:
        """Return the source as commands print it."""
        return {
            "path": self.path or None,
            "role": self.role,
            "trusted": self.trusted,
            "digest": self.digest or None,
            "ignored": list(self.ignored),
        }

    def as_recorded(self) -> dict[str, str]:
        """Return the source as the record names it."""
        told = {"role": self.role, "path": self.path, "digest": self.digest}
        return {key: value for key, value in told.items() if value}


def describe_sources(sources: tuple[PolicySource, ...]) -> str:
    """Return one line that says which files are in force and why."""
    return " + ".join(source.words for source in sources)


class Places(NamedTuple):
    """The config files that exist, by whose they are; a named file replaces user and project."""

    named: Named | None
    user: str
    project: str
    organisation: str


def find_places(
    flag: str | None, environ: Mapping[str, str], cwd: str, config_home: str = ""
) -> Places:
    """Find the config files. ``config_home`` is used instead of what the environment says.

    Raises:
        ConfigError: a flag or variable names a file that does not exist.
    """
    organisation = find_in(SYSTEM_DIRECTORY)
    named = named_file(flag, environ, cwd)
    if named is not None:
        _require(named)
        # The organisation's file, named on the command line, is one policy and not two.
        if _is_same(named.path, organisation):
            organisation = ""
        return Places(named, "", "", organisation)
    user = find_in(str(Path(config_home or config_directory(environ), "thoughtgate")))
    project = find_in(cwd)
    if _is_same(project, user) or _is_same(project, organisation):
        project = ""
    return Places(None, user, project, organisation)


def find_in(directory: str) -> str:
    """Return the config file in a directory; empty if there is none.

    Raises:
        ConfigError: there are several. A new one must not put another out of force.
    """
    # A dangling link counts as well: it is reported when it is read, and not passed over.
    found = [path for path in candidates(directory) if os.path.lexists(path)]
    if len(found) > 1:
        others = ", ".join(Path(path).name for path in found[1:])
        message = f"is not the only config file in this directory; keep one (also: {others})"
        raise ConfigError([Problem("", message, found[0])])
    return found[0] if found else ""


def _is_same(one: str, other: str) -> bool:
    return bool(one and other) and os.path.realpath(one) == os.path.realpath(other)


def _require(named: Named) -> None:
    if not os.path.lexists(named.path):
        words = "" if named.by == "-c" else f"named by {named.by}, but "
        message = f"{words}there is no such file; 'thoughtgate init' writes one"
        raise ConfigError([Problem("", message, named.path)])
