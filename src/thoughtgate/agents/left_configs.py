"""Restoring config files that a killed wrap left rewritten.

With the wrap's journal, a file is restored as the wrap would have done it. Without one, its entries
are recognised by their command lines. Callers that use journals hold the ``state_lock``.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from thoughtgate.agents.atomic import read_or_none, replace_file
from thoughtgate.agents.entries import format_of
from thoughtgate.agents.entry_changes import EntryRecord
from thoughtgate.agents.entry_environment import ENTRY_OPTION
from thoughtgate.agents.journal import Journal, find_journals
from thoughtgate.agents.locks import FileLock, Locked
from thoughtgate.agents.restoration import RestoreOutcome, restore_files
from thoughtgate.agents.revert import find_wrapped_entries, revert
from thoughtgate.errors import Conflict, Problem, UsageError

BACKUP_SUFFIX: Final = ".thoughtgate-backup"

_ATTEMPTS: Final = 5
"""How often restoring is tried while another program keeps changing the file."""


def backup_of(config: Path) -> Path:
    """Return the path of the backup of a config."""
    return config.with_name(config.name + BACKUP_SUFFIX)


def restore_orphan(
    journal: Journal, *, held: Mapping[Path, FileLock] | None = None, ended: bool = False
) -> RestoreOutcome:
    """Restore the files that a killed wrap left behind. The caller holds the ``state_lock``.

    Args:
        journal: the journal of that wrap.
        held: locks that the caller already holds.
        ended: whether it is known that the wrap has ended. A file that is still locked may then be
            in use by another wrap, which restores it.

    Raises:
        Conflict: the wrap still runs and holds its locks.
    """
    taken: list[FileLock] = []
    in_use: set[Path] = set()
    try:
        for record in journal.files:
            if record.real not in (held or {}):
                try:
                    taken.append(FileLock(record.real))
                except Locked:
                    if not ended:
                        raise
                    if is_shared(journal, record.real):
                        in_use.add(record.real)
                except OSError:  # its directory was deleted; restoring reports that
                    continue
        alone = tuple(record for record in journal.files if record.real not in in_use)
        return restore_files(replace(journal, files=alone))
    finally:
        for lock in taken:
            lock.release()


def is_shared(journal: Journal, real: Path) -> bool:
    """Tell whether another running wrap has recorded a file of a journal.

    That the file is locked proves nothing: an agent can hold the lock as well.
    """
    return any(
        other.key != journal.key and _runs(other.pid)
        for other in find_journals(journal.file.parent.parent)[0]
        if any(record.real == real for record in other.files)
    )


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it exists, or that cannot be told
        return True
    return True


def is_live(journal: Journal) -> bool:
    """Tell whether a wrap uses a file of a journal, and therefore holds its lock.

    This need not be the wrap of the journal: if that has ended, another one shares the file. The
    caller holds the ``state_lock``.
    """
    for record in journal.files:
        try:
            FileLock(record.real).release()
        except Conflict:
            return True
        except OSError:
            continue
    return False


def remove_entries(config: Path) -> RestoreOutcome:
    """Unwrap the entries of a file whose journal is lost.

    Raises:
        Conflict: a wrap still runs and holds the file.
        ConfigError: the file cannot be read or safely edited.
        UsageError: there is no such file.
    """
    real = Path(os.path.realpath(config))
    form = format_of(config)
    try:
        lock = FileLock(real)
    except OSError as error:
        raise UsageError(f"{config}: cannot be locked: {error.strerror}") from error
    try:
        for _ in range(_ATTEMPTS):
            current = read_or_none(real)
            if current is None:
                raise UsageError(f"{config}: there is no such file")
            records = find_wrapped_entries(current, form)
            if not records:
                return RestoreOutcome()
            if replace_file(real, revert(current, form, records), expected=current):
                return RestoreOutcome((config,), _lost_variables(config, records))
        raise Conflict(f"{config} keeps changing; close the agent and try again")
    finally:
        lock.release()


def _lost_variables(config: Path, records: Iterable[EntryRecord]) -> tuple[Problem, ...]:
    """Return a warning for each entry whose variables only the lost journal could restore."""
    message = f"has variables that the wrap emptied; look for their values in {backup_of(config)}"
    return tuple(
        Problem(".".join(record.path), message, str(config))
        for record in records
        if ENTRY_OPTION in record.head
    )
