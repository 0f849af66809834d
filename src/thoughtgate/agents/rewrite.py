"""Rewriting server entries so that their servers run behind the gate.

Takes texts and entries, and returns new texts and records of the changes; writes no file. A
rewrite changes only the keys that contain an entry's command line and the variables that would
reach the gate, and records what it changed so that ``revert`` can undo it even if the text has been
edited since. Every returned text has been parsed again and compared with the intended values.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thoughtgate.agents import env_file
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.documents import (
    ConfigDocument,
    Edit,
    apply_edit,
    copy_entries,
    parse_document,
    reads_back_as,
)
from thoughtgate.agents.entries import ConfigFile, KeyPath, ServerEntry
from thoughtgate.agents.entry_changes import EntryChange, EntryRecord
from thoughtgate.agents.entry_environment import moved_keys, sets_environment
from thoughtgate.agents.entry_shapes import (
    DEBUG_KEY,
    REMOTE_KEYS,
    URL_KEYS,
    argv_of,
    command_keys,
    lookup,
)
from thoughtgate.errors import ConfigError, Problem

ShimArgs = Callable[[ServerEntry], Sequence[str]]
"""Returns the words between our command and the server's, including the closing ``--``."""

RemoteCommand = Callable[[ServerEntry], tuple[str, Sequence[str]] | None]
"""Returns the command and arguments of a proxy for a URL entry; None leaves it ungoverned."""


@dataclass(frozen=True, slots=True)
class FileRewrite:
    """A file, its new content, and how to undo it."""

    file: ConfigFile
    content: bytes
    records: tuple[EntryRecord, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The result of rewriting a plan."""

    files: tuple[FileRewrite, ...]
    """The files that change; the others are left alone."""
    governed: tuple[ServerEntry, ...]
    ungoverned: tuple[ServerEntry, ...]
    """Entries that the agent may start without the gate."""


def rewrite(
    plan: Plan,
    shim_command: Sequence[str],
    shim_args: ShimArgs,
    remote_command: RemoteCommand | None = None,
) -> Rewrite:
    """Return texts in which every entry of a plan is behind the gate; no file is written.

    Args:
        plan: what was discovered.
        shim_command: the absolute path of our program, preceded by its interpreter if any.
        shim_args: the arguments for one entry; the same in each run.
        remote_command: returns a command for an entry with a URL.

    Raises:
        ConfigError: a file cannot be edited safely; then none should be written.
    """
    documents = {
        file.real: parse_document(file.content, file.format, file=str(file.path))
        for file in plan.files
        if any(entry.layer.real == file.real for entry in plan.entries)
    }
    records: dict[Any, list[EntryRecord]] = {real: [] for real in documents}
    governed, ungoverned = [], list(plan.with_status("unsupported"))
    for entry in plan.with_status("governed", "shadowed", "remote"):
        head = _head(entry, shim_command, shim_args, remote_command)
        if head is None:
            ungoverned.append(entry)
            continue
        governed.append(entry)
        document = documents[entry.layer.real]
        changes = _changes(plan, entry, document, head)
        if changes:
            record = EntryRecord(entry.path, entry.id, tuple(head), tuple(changes))
            records[entry.layer.real].append(record)
    _refuse_stray_variables(plan, governed)
    files = tuple(
        _finish(file, documents[file.real], records[file.real])
        for file in plan.files
        if records.get(file.real)
    )
    return Rewrite(files, tuple(governed), tuple(ungoverned))


def _head(
    entry: ServerEntry,
    shim_command: Sequence[str],
    shim_args: ShimArgs,
    remote_command: RemoteCommand | None,
) -> list[str] | None:
    """Return the first words of an entry's new command line, or None to leave it ungoverned."""
    if entry.status != "remote":
        return [*shim_command, *shim_args(entry)]
    offer = remote_command(entry) if remote_command else None
    return [offer[0], *offer[1]] if offer else None


def _changes(
    plan: Plan, entry: ServerEntry, document: ConfigDocument, head: list[str]
) -> list[EntryChange]:
    """Return the changes that an entry needs; none if those of a lower layer suffice."""
    if entry.status == "remote":
        return _remote_changes(entry, document, head)
    if _inherits_command(plan, entry):
        return []
    return _stdio_changes(entry, document, head)


def _refuse_stray_variables(plan: Plan, governed: Collection[ServerEntry]) -> None:
    """Refuse variables that another file adds to a governed entry and that are not emptied there.

    Raises:
        ConfigError: there are such variables.
    """
    names = {entry.id for entry in governed} if plan.agent.merge == "keys" else set()
    problems = [
        Problem(
            ".".join((*entry.path, *keys)),
            "would reach the gate's own process; set it where the server's command is",
            str(entry.layer.path),
        )
        for entry in plan.entries
        # A file that only an administrator may change cannot come from an agent or a repository.
        if entry.id in names and entry.layer.writable and entry not in governed
        for keys in moved_keys(entry.raw)
    ]
    if problems:
        raise ConfigError(problems)


def _inherits_command(plan: Plan, entry: ServerEntry) -> bool:
    """Tell whether an entry inherits its whole command line from a lower, rewritten layer."""
    found = command_keys(entry.raw)
    if any(lookup(entry.raw, keys) is not None for keys in found) or sets_environment(entry.raw):
        return False
    weaker = (other for other in plan.with_status("shadowed") if other.id == entry.id)
    return any(other is not entry and argv_of(other.raw) for other in weaker)


def _stdio_changes(
    entry: ServerEntry, document: ConfigDocument, head: list[str]
) -> list[EntryChange]:
    """Return the changes that put a command line behind ``head``."""
    found = command_keys(entry.raw)
    # If an entry has both a URL and a command, some agents use the URL and bypass the gate.
    bypasses = (*URL_KEYS, env_file.KEY, DEBUG_KEY)
    others = [*_removals(entry, document, bypasses), *_emptied(entry, document)]
    if found.is_array:
        return [EntryChange("prepend", found.args, head), *others]
    changes = [_put(entry, document, found.command, head[0])]
    own_args = lookup(entry.raw, found.args)
    before = [*head[1:], entry.command]
    if isinstance(own_args, list):
        changes.append(EntryChange("prepend", found.args, before))
    else:
        changes.append(_put(entry, document, found.args, [*before, *entry.args]))
    return [*changes, *others]


def _emptied(entry: ServerEntry, document: ConfigDocument) -> list[EntryChange]:
    """Return the changes that keep variables from the gate.

    They are emptied and not removed, so that the order and the comments of the file stay.
    """
    return [
        EntryChange("replace", keys, "", old=document.raw((*entry.path, *keys)))
        for keys in moved_keys(entry.raw)
    ]


def _put(entry: ServerEntry, document: ConfigDocument, keys: KeyPath, value: Any) -> EntryChange:
    """Return the change that sets a key of an entry, whether the key exists or not."""
    parent = lookup(entry.raw, keys[:-1])
    if isinstance(parent, Mapping) and keys[-1] in parent:
        return EntryChange("replace", keys, value, old=document.raw((*entry.path, *keys)))
    beside = {"command": "path", "args": "cmd" if "cmd" in entry.raw else "command"}
    return EntryChange("insert", keys, value, after=beside.get(keys[0], "command"))


def _remote_changes(
    entry: ServerEntry, document: ConfigDocument, head: list[str]
) -> list[EntryChange]:
    """Return the changes that turn a URL entry into a command entry."""
    changes = _removals(entry, document, REMOTE_KEYS)
    kind = entry.raw.get("type")
    if kind is not None:
        stdio = "local" if kind == "remote" else "stdio"
        changes.insert(0, _put(entry, document, ("type",), stdio))
    # opencode, where "remote" and "local" are the types, has the command line in one array.
    if kind == "remote":
        return [*changes, _put(entry, document, ("command",), head)]
    command = _put(entry, document, ("command",), head[0])
    return [*changes, command, _put(entry, document, ("args",), head[1:])]


def _removals(
    entry: ServerEntry, document: ConfigDocument, keys: Collection[str]
) -> list[EntryChange]:
    """Return the changes that remove keys from an entry, each with the preceding key."""
    changes, previous = [], None
    for key in entry.raw:
        if key in keys:
            old = document.raw((*entry.path, key))
            changes.append(EntryChange("remove", (key,), old=old, after=previous))
        previous = key
    return changes


def _finish(file: ConfigFile, document: ConfigDocument, records: list[EntryRecord]) -> FileRewrite:
    """Make the changes, and check that the new text differs in them and nothing else."""
    expected = copy_entries(document.values, [record.path for record in records])
    for record in records:
        for change in record.changes:
            edit = Edit(change.op, change.keys, change.new, after=change.after)
            apply_edit(document, expected, record.path, edit)
    text = document.render()
    if not reads_back_as(text, file.format, expected):
        message = (
            "cannot be wrapped without changing other settings; please report the file's layout"
        )
        raise ConfigError([Problem("", message, str(file.path))])
    return FileRewrite(file, text.encode(), tuple(records))
