"""A rewrite undone in a text that others have edited since.

Pure: the text as it is now and the records of the rewrite in, the text without our words out.
Every other edit stays. What is ours is known by the words that a command line begins with, so an
entry that was renamed, moved or copied is found, and one that somebody gave another command is
theirs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from thoughtgate.agents.documents import Document, detached, parse_document, says
from thoughtgate.agents.entries import Format, KeyPath
from thoughtgate.agents.entry_changes import Change, EntryRecord
from thoughtgate.agents.entry_shapes import argv_of, is_ours, lookup, slots_of
from thoughtgate.errors import ConfigError, Problem


def revert(content: bytes, form: Format, records: Sequence[EntryRecord]) -> bytes:
    """Undo a rewrite in a text that was edited since; every other edit stays.

    An entry that is gone stays gone. One that was renamed, moved or copied is known by its head.

    Raises:
        ConfigError: the text cannot be read, or not be edited safely.
    """
    document = parse_document(content, form)
    ours = list(_ours(document.values, records))
    if not ours:
        return content
    values = detached(document.values, [path for path, _ in ours])
    for path, record in ours:
        for step in _steps_back(lookup(document.values, path), record, document):
            _take(document, values, path, step)
    text = document.render()
    if not says(text, form, values):
        raise ConfigError([Problem("", "cannot be edited in place without changing more")])
    return text.encode()


def _ours(values: Any, records: Sequence[EntryRecord]) -> Iterator[tuple[KeyPath, EntryRecord]]:
    """Return every entry that a rewrite made, wherever it stands now."""
    by_path = {record.path: record for record in records}
    for path, entry in _tables(values, ()):
        argv = argv_of(entry)
        known = by_path.get(path)
        if known and _begins(argv[1:], known.head[1:]):
            yield path, known
            continue
        for record in records:
            if _begins(argv, record.head):
                yield path, record
                break


def _begins(argv: Sequence[Any], head: Sequence[Any]) -> bool:
    return len(head) > 0 and list(argv[: len(head)]) == list(head)


def _tables(values: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Return every table below the top that has a command line, with its path."""
    if not isinstance(values, Mapping):
        return
    if path and argv_of(values):
        yield path, values
    for key, value in values.items():
        yield from _tables(value, (*path, key))


@dataclass(frozen=True, slots=True)
class _Step:
    """One edit on the way back, in text and in values."""

    op: Literal["replace", "insert", "remove", "behead"]
    keys: KeyPath
    raw: str = ""
    value: Any = None
    count: int = 0
    after: str | None = None


def _steps_back(
    entry: Mapping[str, Any], record: EntryRecord, document: Document
) -> Iterator[_Step]:
    """Return the edits that undo a record in an entry as it stands now."""
    still_ours = _begins(argv_of(entry), record.head)
    removed = [change for change in record.changes if change.op == "remove"]
    others = [change for change in record.changes if change.op != "remove"]
    # What was removed comes back in its own order: each key is put behind the one before it.
    for change in (*reversed(others), *removed):
        current = lookup(entry, change.keys)
        if isinstance(change.new, list):
            yield from _arguments_back(change, current, record, document)
        elif not still_ours:
            continue  # somebody gave the entry another command; only our arguments go
        elif change.op == "insert":
            yield _Step("remove", change.keys)
        elif change.op == "remove" and current is None:
            value = document.decode(change.old)
            yield _Step("insert", change.keys, change.old, value, after=change.after)
        elif change.op == "replace" and current == change.new:
            yield _command_back(change, entry, record, document)


def _arguments_back(
    change: Change, current: Any, record: EntryRecord, document: Document
) -> Iterator[_Step]:
    """Return the edit that takes our words out of an argument list, which may have grown since."""
    if not isinstance(current, list) or not current:
        return
    if change.op != "prepend" and current == change.new:
        if change.op == "insert":
            yield _Step("remove", change.keys)
        else:
            value = document.decode(change.old)
            yield _Step("replace", change.keys, change.old, value)
        return
    # The server's own command follows our words, except where one array holds them all.
    ours = record.head if _begins(current, record.head) else record.head[1:]
    count = len(ours) if ours is record.head else len(ours) + 1
    if _begins(current, ours):
        yield _Step("behead", change.keys, count=min(count, len(current)))


def _command_back(
    change: Change, entry: Mapping[str, Any], record: EntryRecord, document: Document
) -> _Step:
    """Return the edit that puts a command back: the words after our head say which."""
    value = document.decode(change.old)
    argv = argv_of(entry)
    follows = argv[len(record.head)] if len(argv) > len(record.head) else None
    if change.keys == slots_of(entry).command and follows is not None and follows != value:
        return _Step("replace", change.keys, document.encode(follows), follows)
    return _Step("replace", change.keys, change.old, value)


def _take(document: Document, values: Any, path: KeyPath, step: _Step) -> None:
    """Carry a step out, in the text and in the values that the text must have in the end."""
    parent = lookup(values, (*path, *step.keys[:-1]))
    key = step.keys[-1]
    if step.op == "remove":
        document.remove(path, step.keys)
        del parent[key]
    elif step.op == "behead":
        document.behead(path, step.keys, step.count)
        parent[key] = parent[key][step.count :]
    elif step.op == "insert":
        document.insert(path, step.keys, step.raw, step.after)
        parent[key] = step.value
    else:
        document.replace(path, step.keys, step.raw)
        parent[key] = step.value


def records_in(content: bytes, form: Format, own: Sequence[str] = ()) -> tuple[EntryRecord, ...]:
    """Return records for the entries that a wrap left in a text, when its journal is lost.

    Only entries that name a run are a wrap's; a shim that the user wrote there by hand is theirs.

    Raises:
        ConfigError: the text cannot be read.
    """
    document = parse_document(content, form)
    found = []
    for path, entry in _tables(document.values, ()):
        argv = argv_of(entry)
        end = argv.index("--") + 1 if "--" in argv else 0
        head = argv[:end]
        if end < len(argv) and is_ours(head, own) and "--run" in head:
            found.append(_record_for(path, entry, head, document))
    return tuple(found)


def _record_for(
    path: KeyPath, entry: Mapping[str, Any], head: list[Any], document: Document
) -> EntryRecord:
    """Return the record that a rewrite would have left for an entry."""
    slots, command = slots_of(entry), argv_of(entry)[len(head)]
    changes = [Change("prepend", slots.args, head)]
    if not slots.is_array:
        changes = [
            Change("replace", slots.command, head[0], document.encode(command)),
            Change("prepend", slots.args, [*head[1:], command]),
        ]
    return EntryRecord(path, path[-1], tuple(head), tuple(changes))
