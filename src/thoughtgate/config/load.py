"""Loads settings from a config text, or reports every problem in it.

The caller provides the environment and a function that reads the files that the config names;
this module opens no files.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from thoughtgate.config.checks import check
from thoughtgate.config.document import Document, Path, dotted
from thoughtgate.config.environment import apply_environment
from thoughtgate.config.parse import parse
from thoughtgate.config.project_policy import restrict
from thoughtgate.config.read_keys import read_settings
from thoughtgate.config.settings import Settings
from thoughtgate.config.substitution import references, substitute
from thoughtgate.errors import ConfigError, Problem
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.cedar_text import CedarSource

SERVERS_ALIAS = "mcpServers"

_QUOTED = re.compile(r" \(got .*\)\Z", re.DOTALL)
"""The end of a message, which quotes the value."""


def load_settings(
    text: str,
    *,
    file: str,
    env: Mapping[str, str],
    read_text: Callable[[str], str],
    channels: Callable[[], Collection[str]] = tuple,
    overrides: bool = True,
) -> Settings:
    """Return the settings that a config text describes.

    ``read_text`` gets the path of a Cedar file as it is written in the config, and raises
    OSError or UnicodeError when it cannot be read. ``channels`` returns the names of the channels
    that packages provide; it is only called if a workflow names a channel that is not built in.
    Without ``overrides``, variables do not override keys; references to variables are resolved.

    Raises:
        ConfigError: with every problem, each with its key and, where known, its line.
    """
    return settings_of(
        parse(text, file=file),
        file=file,
        env=env,
        read_text=read_text,
        channels=channels,
        overrides=overrides,
    )


def settings_of(
    document: Document,
    *,
    file: str,
    env: Mapping[str, str],
    read_text: Callable[[str], str],
    channels: Callable[[], Collection[str]] = tuple,
    overrides: bool = True,
) -> Settings:
    """Return the settings that a parsed config describes, as ``load_settings`` does for a text.

    Raises:
        ConfigError: with every problem, each with its key and, where known, its line.
    """
    report = _Report(document, file)
    data = _named_servers(document, report)
    # Found before they are replaced: afterwards, nothing shows where a value came from.
    report.hidden = tuple(references(data))
    data, unfilled = substitute(data, env)
    report.add(unfilled)
    if overrides:
        data, wrong = apply_environment(data, env)
        report.problems += wrong
    settings, unread = read_settings(data)
    report.add(unread)
    report.add(check(data, channels))
    cedar = _read_cedar(data, read_text, report)
    if report.problems or settings is None:
        raise ConfigError(sorted(report.problems, key=lambda problem: problem.line))
    return replace(settings, cedar=cedar)


def load_project_settings(document: Document, *, file: str) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings that count in an untrusted project's config, and the ignored keys.

    References to variables are taken literally: a value that the project chooses must not carry
    the user's secrets. No file that the config names is read.

    Raises:
        ConfigError: with every problem of the part that counts.
    """
    report = _Report(document, file)
    data, ignored = restrict(_named_servers(document, report))
    settings, unread = read_settings(data)
    report.add(unread)
    report.add(check(data))
    if report.problems or settings is None:
        raise ConfigError(sorted(report.problems, key=lambda problem: problem.line))
    return settings, ignored


def cedar_files(document: Document, *, env: Mapping[str, str]) -> list[str]:
    """Return the Cedar files that a config names, as written; the config may otherwise be invalid."""
    section = document.data.get("cedar")
    paths = section.get("policies") if isinstance(section, dict) else None
    filled, _ = substitute(paths if isinstance(paths, list) else [], env)
    return [path for path in filled if isinstance(path, str) and path]


class _Report:
    """Collects problems; only the first one about a key is kept."""

    def __init__(self, document: Document, file: str) -> None:
        self.problems: list[Problem] = []
        self.hidden: tuple[Path, ...] = ()
        """Values that are never quoted: they come from the environment and may be secrets."""
        self._lines = document.lines
        self._file = file
        self._seen: set[Path] = set()

    def add(self, found: Iterable[tuple[Path, str]]) -> None:
        for path, message in found:
            if path not in self._seen:
                self._seen.add(path)
                words = self._without_secrets(path, message)
                self.problems.append(Problem(dotted(path), words, self._file, self._line(path)))

    def _without_secrets(self, path: Path, message: str) -> str:
        if any(one[: len(path)] == path for one in self.hidden):
            return _QUOTED.sub(" (got a value that is not shown)", message)
        return message

    def _line(self, path: Path) -> int:
        """Return the line of the value, or of the nearest section around it."""
        for length in range(len(path), 0, -1):
            if line := self._lines.get(path[:length]):
                return line
        return 0


def _named_servers(document: Document, report: _Report) -> dict[str, Any]:
    """Return the data with ``mcpServers`` renamed, so that entries of agents can be pasted."""
    data: dict[str, Any] = dict(document.data)
    if SERVERS_ALIAS not in data:
        return data
    if "servers" in data:
        report.add([((SERVERS_ALIAS,), "servers is set too; keep one of them")])
    for path, line in list(document.lines.items()):
        if path[:1] == (SERVERS_ALIAS,):
            document.lines.setdefault(("servers", *path[1:]), line)
    data.setdefault("servers", data.pop(SERVERS_ALIAS))
    data.pop(SERVERS_ALIAS, None)
    return data


def _read_cedar(
    data: Mapping[str, Any], read_text: Callable[[str], str], report: _Report
) -> tuple[CedarSource, ...]:
    """Read and parse the Cedar files, and check the workflows they name."""
    sources = []
    section = data.get("cedar")
    paths = section.get("policies") if isinstance(section, dict) else None
    for at, path in enumerate(paths if isinstance(paths, list) else []):
        if isinstance(path, str) and path:
            try:
                sources.append(CedarSource(path, read_text(path)))
            except (OSError, ValueError) as error:  # not UTF-8, or a name that no file can have
                unreadable = "not UTF-8 text" if isinstance(error, UnicodeError) else str(error)
                words = getattr(error, "strerror", None) or unreadable
                report.add([(("cedar", "policies", at), f"cannot read {path}: {words}")])
    if not sources:
        return ()
    try:
        engine = CedarEngine(sources)
    except ConfigError as error:
        report.problems += error.problems
        return ()
    approval = data.get("approval")
    known = {"", "default", *(approval if isinstance(approval, dict) else ())}
    for workflow in sorted(engine.workflows - known):
        words = "a Cedar policy uses this workflow, but it does not exist"
        report.add([(("approval", workflow), words)])
    return tuple(sources)
