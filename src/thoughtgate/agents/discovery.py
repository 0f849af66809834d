"""From an agent to a plan: its files, its servers, and what is wrong with them.

Owns the reading of config files and the judgement of every entry in them. Writes nothing. What it
finds wrong is returned with the plan, all of it at once; ``Plan.require`` turns it into an error.

A file with comments is read even where the agent wants plain JSON: governing an entry that the
agent ignores costs nothing, missing one that it reads would.
"""

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.catalog import AGENTS, Agent
from thoughtgate.agents.config_paths import Search, layers_of
from thoughtgate.agents.documents import Document, in_file, parse_document
from thoughtgate.agents.entries import ConfigFile, Layer, OutsideServer, ServerEntry, Status
from thoughtgate.agents.entry_shapes import (
    argv_of,
    is_ours,
    is_switched_off,
    lookup,
    merge_keys,
    slots_of,
    transport_of,
    url_of,
    will_start,
)
from thoughtgate.agents.expansion import undefined_variables
from thoughtgate.agents.ungoverned_servers import outside_servers
from thoughtgate.errors import ConfigError, Problem

MAX_FILE: Final = 64 * 1024 * 1024
"""Bytes of a config file; Claude Code's grow to a few megabytes of history."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known about an agent's servers before anything is changed."""

    search: Search
    agent: Agent
    own: tuple[str, ...]
    files: tuple[ConfigFile, ...]
    entries: tuple[ServerEntry, ...]
    """Every entry of every layer, the weakest layer first."""
    problems: tuple[Problem, ...]
    """Reasons not to start."""
    warnings: tuple[Problem, ...]
    outside: tuple[OutsideServer, ...]
    """Servers that no rewrite can reach."""

    def having(self, *statuses: Status) -> tuple[ServerEntry, ...]:
        """Return the entries of these statuses."""
        return tuple(entry for entry in self.entries if entry.status in statuses)

    def require(self) -> None:
        """Raise ConfigError with every problem, if there is one."""
        if self.problems:
            raise ConfigError(self.problems)

    def again(self) -> "Plan":
        """Return the plan for the files as they are now."""
        return discover_by(self.search, self.own)


@dataclass(slots=True)
class _Reading:
    """What is collected while the files are read."""

    problems: list[Problem]
    warnings: list[Problem]
    files: dict[Path, ConfigFile]
    documents: dict[Path, Document]


def discover(
    agent_type: str,
    *,
    env: Mapping[str, str],
    cwd: Path,
    home: Path,
    config_path: Path | None = None,
    argv: Sequence[str] = (),
    own: Sequence[str] = (),
    platform: str = sys.platform,
) -> Plan:
    """Find an agent's config files and judge every server in them.

    Args:
        agent_type: as ``detect_agent`` returns it.
        env: the environment that the agent will get.
        cwd: where the agent will run; absolute.
        home: the user's home directory.
        config_path: the one file to govern, in place of every other.
        argv: the agent's command line.
        own: paths of this program, beside any that is named thoughtgate.
        platform: decides between the paths of Linux and macOS.
    """
    search = Search(agent_type, env, cwd, home, config_path, tuple(argv), platform)
    return discover_by(search, tuple(own))


def discover_by(search: Search, own: tuple[str, ...]) -> Plan:
    """Find and judge by everything that a search holds."""
    agent = AGENTS[search.agent_type]
    reading = _Reading([], [], {}, {})
    try:
        layers = layers_of(search)
    except ConfigError as error:
        return Plan(search, agent, own, (), (), error.problems, (), ())
    for layer in layers:
        _read(layer, reading)
    entries = _judge(agent, own, layers, reading)
    outside = outside_servers(search)
    _complain(agent, layers, entries, reading)
    if not reading.problems:
        _complain_of_variables(agent, search, entries, reading)
    return Plan(
        search=search,
        agent=agent,
        own=own,
        files=tuple(reading.files.values()),
        entries=tuple(entries),
        problems=tuple(reading.problems),
        warnings=tuple(reading.warnings),
        outside=outside,
    )


def _read(layer: Layer, reading: _Reading) -> None:
    """Read and parse a layer's file, once for all layers in it."""
    if layer.real in reading.files:
        return
    name = str(layer.path)
    try:
        content, names = _content(layer.real)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:  # the agent runs as the same user and cannot read it either
        reading.warnings.append(Problem("", f"cannot be read: {error.strerror}", name))
        return
    except ConfigError as error:
        reading.problems += in_file(error, name).problems
        return
    if names > 1 and layer.writable:
        message = f"has {names} names (hard links); writing it gives this name a file of its own"
        reading.warnings.append(Problem("", message, name))
    found = ConfigFile(layer.path, layer.real, layer.format, content, layer.lock_directory)
    reading.files[layer.real] = found
    if len(content) > MAX_FILE:
        reading.problems.append(Problem("", f"larger than {MAX_FILE >> 20} MiB", name))
        return
    try:
        document = parse_document(content, layer.format, file=name)
    except ConfigError as error:
        reading.problems += error.problems
        return
    reading.documents[layer.real] = document
    if layer.strict and document.extra:
        _complain_of_comment(layer, document.extra, reading)


def _content(path: Path) -> tuple[bytes, int]:
    """Return what a file holds and how many names it has.

    Raises:
        ConfigError: it is a pipe or a device: reading it would wait, or take it from the agent.
        OSError: it cannot be read.
    """
    # Without waiting: the writer of a pipe may never come.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            message = "is not a regular file; put the servers into one"
            raise ConfigError([Problem("", message, str(path))])
        return file.read(MAX_FILE + 1), status.st_nlink


def _complain_of_comment(layer: Layer, extra: tuple[int, str], reading: _Reading) -> None:
    """Say what the agent makes of a file that is not plain JSON."""
    line, what = extra
    if layer.scope == "project":
        message = f"a {what}: the agent reads plain JSON here and ignores the whole file"
        reading.warnings.append(Problem("", message, str(layer.path), line))
    else:
        message = f"a {what}: the agent reads plain JSON here and refuses to start; remove it"
        reading.problems.append(Problem("", message, str(layer.path), line))


def _judge(
    agent: Agent, own: tuple[str, ...], layers: Sequence[Layer], reading: _Reading
) -> list[ServerEntry]:
    """Return the entries of all layers with what becomes of each."""
    stacks: dict[str, list[tuple[Layer, Any]]] = {}
    for layer in layers:
        for name, raw in _entries_in(layer, reading).items():
            stacks.setdefault(name, []).append((layer, raw))
    return [entry for name, stack in stacks.items() for entry in _resolve(agent, own, name, stack)]


def _entries_in(layer: Layer, reading: _Reading) -> Mapping[str, Any]:
    """Return the raw entries of a layer, when each of them has one reading."""
    document = reading.documents.get(layer.real)
    if document is None:
        return {}
    table = lookup(document.values, layer.key)
    if layer.format == "json" and _stands_twice(layer, document, reading):
        return {}
    if table is None and isinstance(document.values, Mapping):
        return {}
    if not isinstance(table, Mapping):
        message = "must be a table of servers by name"
        reading.problems.append(Problem(".".join(layer.key), message, str(layer.path)))
        return {}
    if layer.format == "json":
        _refuse_duplicates(layer, document, table, reading)
    return table


def _stands_twice(layer: Layer, document: Document, reading: _Reading) -> bool:
    """Complain of a second table of servers: one reader takes the last, another joins the two."""
    try:
        document.raw(layer.key)
    except KeyError:
        return False
    except ConfigError as error:
        reading.problems += in_file(error, str(layer.path)).problems
        return True
    return False


def _refuse_duplicates(
    layer: Layer, document: Document, table: Mapping[str, Any], reading: _Reading
) -> None:
    """Complain of keys that stand twice on the way to a command: readers differ on which counts."""
    for name, raw in table.items():
        try:
            document.raw((*layer.key, name))
            if isinstance(raw, Mapping):
                for keys in set(slots_of(raw)):
                    if lookup(raw, keys) is not None:
                        document.raw((*layer.key, name, *keys))
        except ConfigError as error:
            reading.problems += in_file(error, str(layer.path)).problems


def _resolve(
    agent: Agent, own: tuple[str, ...], name: str, stack: Sequence[tuple[Layer, Any]]
) -> list[ServerEntry]:
    """Judge all entries of one name, from the weakest to the one in force."""
    merged: dict[str, Any] = {}
    prefixes = []
    for _, raw in stack:
        table = raw if isinstance(raw, Mapping) else {}
        merged = merge_keys(merged, table) if agent.merge == "keys" else dict(table)
        prefixes.append(merged)
    entries = []
    for index, (layer, raw) in enumerate(stack):
        # A stronger file may switch on what a weaker one switched off, so an entry is left alone
        # only if it is off under every file that may be in force.
        above = prefixes[index:] if agent.merge == "keys" else prefixes[index : index + 1]
        starts = any(will_start(prefix, agent) for prefix in above)
        entry = _entry(name, layer, raw, prefixes[index])
        status, note = _status(entry, starts=starts, own=own)
        if status == "governed" and index < len(stack) - 1:
            status = "shadowed"
        entries.append(replace(entry, status=status, note=note))
    return entries


def _entry(name: str, layer: Layer, raw: Any, merged: Mapping[str, Any]) -> ServerEntry:
    """Return an entry's facts; its status is judged by the caller."""
    argv = argv_of(merged)
    env = lookup(merged, ("command", "env")) or merged.get("env") or merged.get("environment")
    headers = merged.get("headers") or merged.get("http_headers")
    return ServerEntry(
        id=name,
        layer=layer,
        status="unsupported",
        transport=transport_of(merged) or "stdio",
        command=str(argv[0]) if argv else "",
        args=tuple(argv[1:]),
        env=env if isinstance(env, Mapping) else {},
        url=url_of(merged),
        headers=headers if isinstance(headers, Mapping) else {},
        cwd=str(merged.get("cwd") or ""),
        enabled=not is_switched_off(merged),
        raw=raw if isinstance(raw, Mapping) else {},
    )


def _status(entry: ServerEntry, *, starts: bool, own: tuple[str, ...]) -> tuple[Status, str]:
    """Return what becomes of an entry, and why if it cannot be governed."""
    if is_ours([entry.command, *entry.args], own):
        return "managed", ""
    if not starts:
        return "disabled", ""
    if not entry.layer.writable:
        return "unsupported", "stands in a file that only an administrator may change"
    if entry.transport != "stdio":
        return "remote", ""
    if not entry.command:
        return "unsupported", "has neither a command nor a URL"
    return "governed", ""


def _complain(
    agent: Agent, layers: Sequence[Layer], entries: Sequence[ServerEntry], reading: _Reading
) -> None:
    """Add the reasons why there is nothing to govern."""
    if not reading.files:
        searched = dict.fromkeys(str(layer.path) for layer in layers if layer.writable)
        listed = "".join(f"\n  {path}" for path in searched)
        message = (
            f"No config file of {agent.name} found. Looked for:{listed}\n"
            "Name another file with --config-path"
        )
        reading.problems.append(Problem("", message))
    elif reading.problems:
        return
    elif not entries:
        names = ", ".join(str(file.path) for file in reading.files.values())
        reading.problems.append(Problem("", "No MCP servers found in config", names))
    elif not any(entry.enabled or entry.status == "managed" for entry in entries):
        names = ", ".join(dict.fromkeys(str(entry.layer.path) for entry in entries))
        hint = ""
        if agent.off_switch == "ignored":
            hint = f"; {agent.name} would start them all the same: remove the key or the entries"
        message = f"All MCP servers are disabled{hint}"
        reading.problems.append(Problem("", message, names))


def _complain_of_variables(
    agent: Agent, search: Search, entries: Sequence[ServerEntry], reading: _Reading
) -> None:
    """Report references that cannot be resolved."""
    for entry in entries:
        if entry.status not in ("governed", "shadowed", "remote"):
            continue
        # `env` of the file is for the agent to expand as well; defaults make a reference whole.
        for name in undefined_variables(entry.raw, agent.syntax, search.env, agent.provided):
            message = f"refers to the variable {name}, which is not set and has no default"
            problem = Problem(".".join(entry.path), message, str(entry.layer.path))
            in_force = entry.status == "governed" and agent.undefined_is_error
            (reading.problems if in_force else reading.warnings).append(problem)
