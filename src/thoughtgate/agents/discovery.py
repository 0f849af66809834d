"""Discovery of an agent's config files and MCP servers.

Reads the config files and decides for every entry whether it can be governed. Writes nothing.
All problems are returned together with the plan; ``Plan.require`` raises them as one error.

A file with comments is read even if the agent accepts only plain JSON: governing an entry that
the agent ignores does no harm, but missing one that it uses would.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.atomic import foreign_link
from thoughtgate.agents.catalog import AGENTS, Agent
from thoughtgate.agents.config_paths import Search, config_layers
from thoughtgate.agents.documents import (
    ConfigDocument,
    parse_document,
    references_change_more_than_values,
    with_file,
)
from thoughtgate.agents.entries import (
    ConfigFile,
    KeyPath,
    Layer,
    ServerEntry,
    Status,
    UngovernedServer,
)
from thoughtgate.agents.entry_environment import moved_keys
from thoughtgate.agents.entry_shapes import (
    ENV_KEYS,
    argv_of,
    command_keys,
    env_of,
    has_odd_url,
    is_left_by_wrap,
    is_switched_off,
    lookup,
    merge_keys,
    shim_words,
    transport_of,
    url_of,
    will_start,
)
from thoughtgate.agents.expansion import has_reference, undefined_variables
from thoughtgate.agents.ungoverned_servers import find_ungoverned_servers
from thoughtgate.errors import ConfigError, Problem

_INSIDE: Final = frozenset({"builtin", "platform", "frontend", "inline_python"})
"""The types of goose's extensions that are not servers."""

MAX_FILE: Final = 64 * 1024 * 1024
"""Maximum bytes of a config file; Claude Code's contain a few megabytes of history."""

NO_SERVERS: Final = "No MCP servers found in config"
ALL_DISABLED: Final = "All MCP servers are disabled"
NOTHING: Final = (NO_SERVERS, ALL_DISABLED)
"""How the problem of a config begins that is valid, but has nothing to govern."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known about an agent's servers before anything is changed."""

    search: Search
    agent: Agent
    files: tuple[ConfigFile, ...]
    entries: tuple[ServerEntry, ...]
    """Every entry of every layer, lowest precedence first."""
    problems: tuple[Problem, ...]
    """Reasons not to start."""
    warnings: tuple[Problem, ...]
    outside: tuple[UngovernedServer, ...]
    """Servers that rewriting config files cannot govern."""

    def with_status(self, *statuses: Status) -> tuple[ServerEntry, ...]:
        """Return the entries that have one of these statuses."""
        return tuple(entry for entry in self.entries if entry.status in statuses)

    def require(self) -> None:
        """Raise ConfigError with every problem, if there is one."""
        if self.problems:
            raise ConfigError(self.problems)

    def reread(self, contents: Mapping[Path, bytes] | None = None) -> "Plan":
        """Return the plan for the files as they are now, some with other contents."""
        return discover(self.search, contents=contents)


@dataclass(slots=True)
class _Reading:
    """Results collected while the files are read."""

    problems: list[Problem]
    warnings: list[Problem]
    files: dict[Path, ConfigFile]
    documents: dict[Path, ConfigDocument]
    contents: Mapping[Path, bytes]
    """Contents to use in place of what some files contain."""


def discover(
    search: Search, *, contents: Mapping[Path, bytes] | None = None, lasting: bool = False
) -> Plan:
    """Find an agent's config files and the servers in them.

    Args:
        search: the agent and its surroundings, which determine the files.
        contents: contents to use in place of what some files contain.
        lasting: whether the plan is for more than one run. It then includes disabled entries and
            all projects, and neither undefined variables nor missing files are problems.
    """
    agent = AGENTS[search.agent_type]
    reading = _Reading([], [], {}, {}, contents or {})
    try:
        layers = config_layers(search)
    except ConfigError as error:
        return Plan(search, agent, (), (), error.problems, (), ())
    for layer in layers:
        _read(layer, reading)
    if agent.syntax == "brace-env":
        _refuse_references_in_text(search, reading)
    if lasting:
        layers = (*layers, *_other_projects(layers, reading))
    entries = _judge(agent, layers, reading, injects=search.injects, lasting=lasting)
    outside = find_ungoverned_servers(search)
    if not lasting:
        _report_nothing_to_govern(agent, layers, entries, reading)
    if not reading.problems:
        _report_variables(agent, search, entries, reading, lasting=lasting)
    return Plan(
        search=search,
        agent=agent,
        files=tuple(reading.files.values()),
        entries=tuple(entries),
        problems=tuple(reading.problems),
        warnings=tuple(reading.warnings),
        outside=outside,
    )


def _read(layer: Layer, reading: _Reading) -> None:
    """Read and parse a layer's file, once for all layers in that file."""
    if layer.real in reading.files:
        return
    name = str(layer.path)
    try:
        content, links = (layer.inline.encode(), 1) if layer.inline else _content(layer)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:  # the agent runs as the same user and cannot read it either
        problem = Problem("", f"cannot be read: {error.strerror}", name)
        if problem not in reading.warnings:  # several layers may be in the same file
            reading.warnings.append(problem)
        return
    except ConfigError as error:
        reading.problems += with_file(error, name).problems
        return
    if links > 1 and layer.writable:
        # The file is replaced by a rename, which leaves the other names with the old content.
        message = f"has {links} hard links; wrapping it will detach this name from the others"
        reading.warnings.append(Problem("", message, name))
    content = reading.contents.get(layer.real, content)
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
        _report_comment(layer, document.extra, reading)


def _refuse_references_in_text(search: Search, reading: _Reading) -> None:
    """Report references whose replacement could add a server or change a command.

    The agent replaces them in the text before it parses it, so the gate would not see the result.
    """
    for real, document in reading.documents.items():
        file = reading.files[real]
        if references_change_more_than_values(file.content.decode(), document.values, search.env):
            message = (
                "has a {env:…} or {file:…} outside a single value; write it only inside values"
            )
            reading.problems.append(Problem("", message, str(file.path)))


def _content(layer: Layer) -> tuple[bytes, int]:
    """Return the content of a file and the number of its hard links.

    Raises:
        ConfigError: it is not a regular file. Reading a pipe could block, or consume data that
            is meant for the agent. Or a link of another user leads to a file to be written.
        OSError: it cannot be read.
    """
    # Non-blocking, because opening a pipe without a writer would wait forever.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(layer.real, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            message = "is not a regular file; move the servers to a regular file"
            raise ConfigError([Problem("", message, str(layer.real))])
        if layer.writable and (link := foreign_link(layer.path)):
            message = f"the link {link} belongs to another user; name the file itself"
            raise ConfigError([Problem("", message, str(layer.path))])
        return file.read(MAX_FILE + 1), status.st_nlink


def _report_comment(layer: Layer, extra: tuple[int, str], reading: _Reading) -> None:
    """Report how the agent treats a file that is not plain JSON."""
    line, what = extra
    ignored = layer.scope == "project"
    outcome = "ignores this file" if ignored else "will not start; remove it"
    message = f"contains a {what}; the agent accepts only plain JSON and {outcome}"
    found = reading.warnings if ignored else reading.problems
    found.append(Problem("", message, str(layer.path), line))


def _other_projects(layers: Sequence[Layer], reading: _Reading) -> list[Layer]:
    """Return the layers of all projects in a file that keeps them under their directories."""
    known = {(layer.real, layer.key) for layer in layers}
    found: dict[tuple[Path, KeyPath], Layer] = {}
    for layer in layers:
        document = reading.documents.get(layer.real)
        if layer.scope == "local" and document is not None:
            top, _, last = layer.key
            projects = lookup(document.values, (top,))
            for directory in projects if isinstance(projects, Mapping) else ():
                key = (top, directory, last)
                if (layer.real, key) not in known:
                    found[layer.real, key] = replace(layer, key=key)
    return list(found.values())


def _judge(
    agent: Agent, layers: Sequence[Layer], reading: _Reading, *, injects: bool, lasting: bool
) -> list[ServerEntry]:
    """Return the entries of all layers, each with its status."""
    stacks: dict[str, list[tuple[Layer, Any]]] = {}
    for layer in layers:
        for name, raw in _entries_in(layer, reading).items():
            stacks.setdefault(name, []).append((layer, raw))
    return [
        entry
        for name, stack in stacks.items()
        for entry in _resolve(agent, name, stack, injects=injects, lasting=lasting)
    ]


def _entries_in(layer: Layer, reading: _Reading) -> Mapping[str, Any]:
    """Return the raw entries of a layer, unless duplicate keys make them ambiguous."""
    document = reading.documents.get(layer.real)
    if document is None:
        return {}
    table = lookup(document.values, layer.key)
    if layer.format == "json" and _is_duplicated(layer, document, reading):
        return {}
    if table is None and isinstance(document.values, Mapping):
        return {}
    if not isinstance(table, Mapping):
        message = "must be an object that maps server names to servers"
        reading.problems.append(Problem(".".join(layer.key), message, str(layer.path)))
        return {}
    if layer.format == "json":
        _refuse_duplicates(layer, document, table, reading)
    return table


def _is_duplicated(layer: Layer, document: ConfigDocument, reading: _Reading) -> bool:
    """Report a second table of servers: some parsers use the last one, others merge the two."""
    try:
        document.raw(layer.key)
    except KeyError:
        return False
    except ConfigError as error:
        reading.problems += with_file(error, str(layer.path)).problems
        return True
    return False


def _refuse_duplicates(
    layer: Layer, document: ConfigDocument, table: Mapping[str, Any], reading: _Reading
) -> None:
    """Report duplicate keys on the path to a command or variable: parsers differ on them."""
    for name, raw in table.items():
        try:
            document.raw((*layer.key, name))
            if isinstance(raw, Mapping):
                for keys in {*command_keys(raw), *ENV_KEYS, *moved_keys(raw)}:
                    if lookup(raw, keys) is not None:
                        document.raw((*layer.key, name, *keys))
        except ConfigError as error:
            reading.problems += with_file(error, str(layer.path)).problems


def _resolve(
    agent: Agent,
    name: str,
    stack: Sequence[tuple[Layer, Any]],
    *,
    injects: bool,
    lasting: bool,
) -> list[ServerEntry]:
    """Return all entries of one name with their status, from lowest to highest precedence."""
    merged: dict[str, Any] = {}
    prefixes = []
    for _, raw in stack:
        table = raw if isinstance(raw, Mapping) else {}
        merged = merge_keys(merged, table) if agent.merge == "keys" else dict(table)
        prefixes.append(merged)
    entries = []
    for index, (layer, raw) in enumerate(stack):
        # A file of higher precedence may enable a server that this one disables, so an entry is
        # skipped only if it stays disabled whichever of these files apply.
        above = prefixes[index:] if agent.merge == "keys" else prefixes[index : index + 1]
        starts = lasting or any(will_start(prefix, agent) for prefix in above)
        entry = _entry(name, layer, raw, prefixes[index])
        status, note = _status(entry, starts=starts, injects=injects)
        if status == "governed" and index < len(stack) - 1:
            status = "shadowed"
        entries.append(replace(entry, status=status, note=note))
    return entries


def _entry(name: str, layer: Layer, raw: Any, merged: Mapping[str, Any]) -> ServerEntry:
    """Return an entry's settings; the caller determines its status."""
    argv = argv_of(merged)
    headers = merged.get("headers") or merged.get("http_headers")
    return ServerEntry(
        id=name,
        layer=layer,
        status="unsupported",
        transport=transport_of(merged) or "stdio",
        command=str(argv[0]) if argv else "",
        args=tuple(argv[1:]),
        env=env_of(merged),
        url=url_of(merged),
        headers=headers if isinstance(headers, Mapping) else {},
        cwd=str(merged.get("cwd") or ""),
        enabled=not is_switched_off(merged),
        skipped=shim_words(argv),
        raw=raw if isinstance(raw, Mapping) else {},
    )


def _status(entry: ServerEntry, *, starts: bool, injects: bool) -> tuple[Status, str]:
    """Return an entry's status, with the reason if it cannot be governed."""
    # An injected entry is built from the server behind the shim, so an old shim is no obstacle.
    if not injects and is_left_by_wrap([entry.command, *entry.args]):
        return "managed", ""
    if not starts:
        return "disabled", ""
    if not entry.layer.writable and not injects:
        return "unsupported", "is in a file that only an administrator may change"
    note = _obstacle(entry)
    if note:
        return "unsupported", note
    return "governed" if entry.transport == "stdio" else "remote", ""


def _obstacle(entry: ServerEntry) -> str:
    """Return why an entry cannot be put behind the gate as it is written; empty if it can."""
    kind = entry.raw.get("type")
    if entry.transport != "stdio":
        odd = has_odd_url(entry.raw)
        return "has its URL where the gate cannot replace it" if odd else ""
    if entry.command:
        return ""
    if isinstance(kind, str) and kind in _INSIDE:
        return f"of type {kind}: it runs inside the agent"
    return "has neither a command nor a URL"


def _report_nothing_to_govern(
    agent: Agent, layers: Sequence[Layer], entries: Sequence[ServerEntry], reading: _Reading
) -> None:
    """Report why there is nothing to govern, if that is the case."""
    if not reading.files and reading.warnings:
        # "No config file found" would be wrong: there are files, and they cannot be read.
        reading.problems += reading.warnings
    elif not reading.files:
        searched = dict.fromkeys(str(layer.path) for layer in layers if layer.writable)
        listed = "".join(f"\n  {path}" for path in searched)
        message = (
            f"No config file of {agent.name} found. Looked for:{listed}\n"
            "Specify another file with --config-path"
        )
        reading.problems.append(Problem("", message))
    elif reading.problems:
        return
    elif not entries:
        names = ", ".join(str(file.path) for file in reading.files.values())
        reading.problems.append(Problem("", NO_SERVERS, names))
    elif not any(entry.enabled or entry.status == "managed" for entry in entries):
        names = ", ".join(dict.fromkeys(str(entry.layer.path) for entry in entries))
        hint = ""
        if agent.off_switch == "ignored":
            hint = f"; {agent.name} ignores that key and would start them: remove it or the entries"
        message = f"{ALL_DISABLED}{hint}"
        reading.problems.append(Problem("", message, names))


def unset_variable(plan: Plan, entry: ServerEntry) -> str:
    """Return why an entry's server must not start, or an empty string if it may.

    Some agents pass a reference to an undefined variable on as literal text.
    """
    if not plan.agent.undefined_is_error:
        return ""
    missing = undefined_variables(
        entry.raw, plan.agent.syntax, plan.search.env, plan.agent.provided
    )
    return f"its entry refers to the variable {missing[0]}, which is not set" if missing else ""


def _report_variables(
    agent: Agent,
    search: Search,
    entries: Sequence[ServerEntry],
    reading: _Reading,
    *,
    lasting: bool,
) -> None:
    """Report references to variables that cannot be resolved, or that are in a server's name."""
    for entry in entries:
        if entry.status not in ("governed", "shadowed", "remote"):
            continue
        if has_reference(entry.id, agent.syntax):
            # The name becomes an argument of the shim, where the agent would expand it: into
            # another server's name, or a secret on the command line and in the record.
            message = "a server's name must not refer to a variable; rename the server"
            problem = Problem(".".join(entry.path), message, str(entry.layer.path))
            reading.problems.append(problem)
        if lasting:  # the agent will be started with other variables than this process
            continue
        # The agent expands references in an entry's own `env` too, so all of the entry is checked.
        # Where an undefined one is an error, the server is not started: `unset_variable`.
        for name in undefined_variables(entry.raw, agent.syntax, search.env, agent.provided):
            message = f"refers to the variable {name}, which is not set and has no default"
            problem = Problem(".".join(entry.path), message, str(entry.layer.path))
            if entry.status != "governed" or not agent.undefined_is_error:
                reading.warnings.append(problem)
