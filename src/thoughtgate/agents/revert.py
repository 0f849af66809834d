"""Undoing a rewrite in a text that may have been edited since.

Takes the current text and the records of the rewrite, and returns the text without our changes;
all other edits stay. An entry is recognised by the first words of its command line, so one that
was renamed, moved or copied is found, and one that was given a different command is left alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from thoughtgate.agents.documents import (
    ConfigDocument,
    Edit,
    apply_edit,
    copy_entries,
    parse_document,
    reads_back_as,
)
from thoughtgate.agents.entries import Format, KeyPath
from thoughtgate.agents.entry_changes import EntryChange, EntryRecord
from thoughtgate.agents.entry_shapes import ENV_KEYS, argv_of, command_keys, is_left_by_wrap, lookup
from thoughtgate.errors import ConfigError, Problem


def revert(content: bytes, form: Format, records: Sequence[EntryRecord]) -> bytes:
    """Undo a rewrite in a text; all other edits stay.

    A deleted entry stays deleted. One that was renamed, moved or copied is found by its ``head``.

    Raises:
        ConfigError: the text cannot be parsed or safely edited.
    """
    document = parse_document(content, form)
    ours = list(_ours(document.values, records))
    if not ours:
        return content
    values = copy_entries(document.values, [path for path, _ in ours])
    for path, record in ours:
        for edit in _edits_back(lookup(document.values, path), record, document):
            apply_edit(document, values, path, edit)
    text = document.render()
    if not reads_back_as(text, form, values):
        raise ConfigError([Problem("", "cannot be unwrapped without changing other settings")])
    return text.encode()


def _ours(values: Any, records: Sequence[EntryRecord]) -> Iterator[tuple[KeyPath, EntryRecord]]:
    """Return every entry that a rewrite changed, wherever it is now."""
    by_path: dict[KeyPath, list[EntryRecord]] = {}
    for record in records:
        by_path.setdefault(record.path, []).append(record)
    for path, entry in _tables(values, ()):
        argv = argv_of(entry)
        here = by_path.get(path, [])
        # An installation that was interrupted has two records of an entry: before and after it.
        found = next((one for one in here if _begins(argv, one.head)), None)
        # Somebody may have replaced the program, such as the interpreter, and kept our arguments.
        found = found or next((one for one in here if _begins(argv[1:], one.head[1:])), None)
        # The entry may have been renamed, moved or copied.
        found = found or next((one for one in records if _begins(argv, one.head)), None)
        known = here[0] if here else None
        if found is None and known is not None:
            # The entry was given a different command, but its variables are still emptied.
            found = replace(known, changes=tuple(filter(_is_variable, known.changes)))
        if found is not None:
            yield path, found


def _is_variable(change: EntryChange) -> bool:
    return change.keys[:-1] in ENV_KEYS


def _begins(argv: Sequence[Any], head: Sequence[Any]) -> bool:
    return len(head) > 0 and list(argv[: len(head)]) == list(head)


def _tables(values: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Return every table below the root that contains a command line, with its path."""
    if not isinstance(values, Mapping):
        return
    is_entry = bool(path and argv_of(values))
    if is_entry:
        yield path, values
    for key, value in values.items():
        if not (is_entry and key == "transport"):  # it contains the same command line
            yield from _tables(value, (*path, key))


def _edits_back(
    entry: Mapping[str, Any], record: EntryRecord, document: ConfigDocument
) -> Iterator[Edit]:
    """Return the edits that undo a record in the entry's current state."""
    still_ours = _begins(argv_of(entry), record.head)
    removed = [change for change in record.changes if change.op == "remove"]
    others = [change for change in record.changes if change.op != "remove"]
    # The others are undone in reverse order, since each was made on the result of those before.
    # Removed keys return in their original order, because each is inserted after its predecessor.
    for change in (*reversed(others), *removed):
        current = lookup(entry, change.keys)
        if isinstance(change.new, list):
            yield from _arguments_back(change, current, record, document)
        elif not still_ours and not _is_variable(change):
            continue  # the entry was given a different command; only our arguments are removed
        elif change.op == "insert":
            yield Edit("remove", change.keys)
        elif change.op == "remove" and current is None:
            value = document.decode(change.old)
            yield Edit("insert", change.keys, value, change.old, after=change.after)
        elif change.op == "replace" and current == change.new:
            yield _command_back(change, entry, record, document)


def _arguments_back(
    change: EntryChange, current: Any, record: EntryRecord, document: ConfigDocument
) -> Iterator[Edit]:
    """Return the edit that removes our words from an argument list, which may have grown since."""
    if not isinstance(current, list) or not current:
        return
    if change.op != "prepend" and current == change.new:
        if change.op == "insert":
            yield Edit("remove", change.keys)
        else:
            value = document.decode(change.old)
            yield Edit("replace", change.keys, value, change.old)
        return
    # The server's command follows our words and is removed with them, since it moves back to its
    # own key. In a single array it stays.
    ours = record.head if _begins(current, record.head) else record.head[1:]
    count = len(ours) if ours is record.head else len(ours) + 1
    if _begins(current, ours):
        yield Edit("remove_first", change.keys, count=min(count, len(current)))


def _command_back(
    change: EntryChange, entry: Mapping[str, Any], record: EntryRecord, document: ConfigDocument
) -> Edit:
    """Return the edit that restores a command: the word after our ``head``, if it was changed."""
    value = document.decode(change.old)
    argv = argv_of(entry)
    follows = argv[len(record.head)] if len(argv) > len(record.head) else None
    if change.keys == command_keys(entry).command and follows is not None and follows != value:
        return Edit("replace", change.keys, follows)
    return Edit("replace", change.keys, value, change.old)


def find_wrapped_entries(content: bytes, form: Format) -> tuple[EntryRecord, ...]:
    """Return records for the entries that a wrap left in a text, for when its journal is lost.

    Only entries with ``--run`` come from a wrap; a shim that the user configured is left alone.

    Raises:
        ConfigError: the text cannot be parsed.
    """
    document = parse_document(content, form)
    found = []
    for path, entry in _tables(document.values, ()):
        argv = argv_of(entry)
        if is_left_by_wrap(argv):
            head = argv[: argv.index("--") + 1]
            found.append(_record_for(path, entry, head, document))
    return tuple(found)


def _record_for(
    path: KeyPath, entry: Mapping[str, Any], head: list[Any], document: ConfigDocument
) -> EntryRecord:
    """Return the record that the rewrite of an entry would have produced."""
    found, command = command_keys(entry), argv_of(entry)[len(head)]
    changes = [EntryChange("prepend", found.args, head)]
    if not found.is_array:
        changes = [
            EntryChange("replace", found.command, head[0], document.encode(command)),
            EntryChange("prepend", found.args, [*head[1:], command]),
        ]
    return EntryRecord(path, path[-1], tuple(head), tuple(changes))
