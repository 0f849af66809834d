"""Entries put behind the gate.

Pure: texts and entries in, new texts and records out. A rewrite changes the keys that hold an
entry's command line and nothing else; what it did is recorded, so that ``revert`` can undo it in
a text that somebody has edited since. Every text that is returned has been read back and compared
with what the change was meant to be.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.documents import Document, detached, parse_document, says
from thoughtgate.agents.entries import ConfigFile, KeyPath, ServerEntry
from thoughtgate.agents.entry_changes import Change, EntryRecord
from thoughtgate.agents.entry_shapes import REMOTE_KEYS, URL_KEYS, argv_of, lookup, slots_of
from thoughtgate.errors import ConfigError, Problem

ShimArgs = Callable[[ServerEntry], Sequence[str]]
"""An entry to what stands between our command and the server's, the closing ``--`` included."""

RemoteCommand = Callable[[ServerEntry], tuple[str, Sequence[str]] | None]
"""A URL entry to the command and arguments that front it; None leaves it ungoverned."""


@dataclass(frozen=True, slots=True)
class FileRewrite:
    """A file, its new content, and how to undo it."""

    file: ConfigFile
    content: bytes
    records: tuple[EntryRecord, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The outcome of rewriting a plan."""

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
    """Put every entry of a plan behind the gate, in texts; nothing is written.

    Args:
        plan: what was discovered.
        shim_command: our program, by its absolute path, with its own leading words if any.
        shim_args: what follows for one entry; the same from run to run.
        remote_command: offers a command for an entry with a URL.

    Raises:
        ConfigError: a file cannot be edited safely; none should be written then.
    """
    documents = {
        file.real: parse_document(file.content, file.format, file=str(file.path))
        for file in plan.files
        if any(entry.layer.real == file.real for entry in plan.entries)
    }
    records: dict[Any, list[EntryRecord]] = {real: [] for real in documents}
    governed, ungoverned = [], list(plan.having("unsupported"))
    for entry in plan.having("governed", "shadowed", "remote"):
        head = _head(entry, shim_command, shim_args, remote_command)
        if head is None:
            ungoverned.append(entry)
            continue
        governed.append(entry)
        document = documents[entry.layer.real]
        changes = _changes(plan, entry, document, head)
        if changes:
            record = EntryRecord(entry.path, entry.id, tuple(head), tuple(changes))
            _apply(document, record)
            records[entry.layer.real].append(record)
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
    """Return the words that an entry's command line will begin with; None: it stays ungoverned."""
    if entry.status != "remote":
        return [*shim_command, *shim_args(entry)]
    offer = remote_command(entry) if remote_command else None
    return [offer[0], *offer[1]] if offer else None


def _changes(plan: Plan, entry: ServerEntry, document: Document, head: list[str]) -> list[Change]:
    """Return the changes that an entry needs; none if a weaker layer's are enough."""
    if entry.status == "remote":
        return _remote_changes(entry, document, head)
    if _is_carried_below(plan, entry):
        return []
    return _stdio_changes(entry, document, head)


def _is_carried_below(plan: Plan, entry: ServerEntry) -> bool:
    """Whether an entry adds nothing to a command line that a weaker, rewritten layer gives it."""
    slots = slots_of(entry.raw)
    if any(lookup(entry.raw, keys) is not None for keys in slots):
        return False
    weaker = (other for other in plan.having("shadowed") if other.id == entry.id)
    return any(other is not entry and argv_of(other.raw) for other in weaker)


def _stdio_changes(entry: ServerEntry, document: Document, head: list[str]) -> list[Change]:
    """Return the changes that put a command line behind ``head``."""
    slots = slots_of(entry.raw)
    # Some agents go by a URL beside a command, whatever else the entry says.
    bypasses = _removals(entry, document, URL_KEYS)
    if slots.is_array:
        return [Change("prepend", slots.args, head), *bypasses]
    changes = [_put(entry, document, slots.command, head[0])]
    own_args = lookup(entry.raw, slots.args)
    before = [*head[1:], entry.command]
    if isinstance(own_args, list):
        changes.append(Change("prepend", slots.args, before))
    else:
        changes.append(_put(entry, document, slots.args, [*before, *entry.args]))
    return [*changes, *bypasses]


def _put(entry: ServerEntry, document: Document, keys: KeyPath, value: Any) -> Change:
    """Return the change that gives a key of an entry a value, whether it is there or not."""
    parent = lookup(entry.raw, keys[:-1])
    if isinstance(parent, Mapping) and keys[-1] in parent:
        return Change("replace", keys, value, old=document.raw((*entry.path, *keys)))
    beside = "path" if len(keys) > 1 else "command"
    return Change("insert", keys, value, after=beside)


def _remote_changes(entry: ServerEntry, document: Document, head: list[str]) -> list[Change]:
    """Return the changes that turn a URL entry into one with a command."""
    changes = _removals(entry, document, REMOTE_KEYS)
    kind = entry.raw.get("type")
    if kind is not None:
        stdio = "local" if kind == "remote" else "stdio"
        changes.insert(0, _put(entry, document, ("type",), stdio))
    if kind == "remote":
        return [*changes, _put(entry, document, ("command",), head)]
    command = _put(entry, document, ("command",), head[0])
    return [*changes, command, _put(entry, document, ("args",), head[1:])]


def _removals(entry: ServerEntry, document: Document, keys: Collection[str]) -> list[Change]:
    """Return the changes that take keys out of an entry, each with the key that stands before it."""
    changes, previous = [], None
    for key in entry.raw:
        if key in keys:
            old = document.raw((*entry.path, key))
            changes.append(Change("remove", (key,), old=old, after=previous))
        previous = key
    return changes


def _apply(document: Document, record: EntryRecord) -> None:
    for change in record.changes:
        if change.op == "prepend":
            document.prepend(record.path, change.keys, change.new)
        elif change.op == "remove":
            document.remove(record.path, change.keys)
        elif change.op == "replace":
            document.replace(record.path, change.keys, document.encode(change.new))
        else:
            raw = document.encode(change.new)
            document.insert(record.path, change.keys, raw, change.after)


def _finish(file: ConfigFile, document: Document, records: list[EntryRecord]) -> FileRewrite:
    """Render a document and make sure that it says what was meant, and nothing else."""
    expected = detached(document.values, [record.path for record in records])
    for record in records:
        entry = lookup(expected, record.path)
        for change in record.changes:
            _apply_to_values(entry, change)
    text = document.render()
    if not says(text, file.format, expected):
        message = (
            "cannot be edited in place without changing more; please report this file's layout"
        )
        raise ConfigError([Problem("", message, str(file.path))])
    return FileRewrite(file, text.encode(), tuple(records))


def _apply_to_values(entry: Any, change: Change) -> None:
    parent = lookup(entry, change.keys[:-1])
    key = change.keys[-1]
    if change.op == "remove":
        del parent[key]
    elif change.op == "prepend":
        parent[key] = [*change.new, *parent[key]]
    else:
        parent[key] = change.new
