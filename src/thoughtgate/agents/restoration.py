"""Config files put back as their owner left them.

Owns the decision what a file should hold after a wrap: the original bytes if nobody else touched
it, else its present text with only our entries undone. Each file is dealt with alone; one that
fails is reported with the command that mends it by hand, and stays in the journal. The caller
holds the locks.
"""

import contextlib
import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from thoughtgate.agents.atomic import digest, read_or_none, replace_file, sweep
from thoughtgate.agents.journal import FileRecord, Journal, remove_journal, save_journal
from thoughtgate.agents.locks import agent_lock
from thoughtgate.agents.revert import revert
from thoughtgate.errors import ConfigError, Problem

_ATTEMPTS: Final = 5
"""How often a file may change under our hands before it is given up: agents write rarely."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How putting files back went."""

    restored: tuple[Path, ...] = ()
    warnings: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Files that could not be put back, each with the command that does it by hand."""


def restore_files(journal: Journal) -> Outcome:
    """Put back every file of a journal, then remove backups and journal as far as that went well."""
    restored, warnings, problems, failed = [], [], [], []
    for record in journal.files:
        try:
            warning = _restore(record)
        except (OSError, ConfigError) as error:
            failed.append(record)
            problems.append(_problem(record, error))
            continue
        restored.append(record.path)
        if warning:
            warnings.append(warning)
        else:
            with contextlib.suppress(OSError):
                record.backup.unlink()
        for directory in {record.path.parent, record.real.parent}:
            sweep(directory, journal.pid)
    sweep(journal.file.parent, journal.pid)
    # A journal that cannot be changed says too much, which is harmless: files that are back are
    # known by their digest.
    with contextlib.suppress(OSError):
        if failed:
            save_journal(replace(journal, files=tuple(failed)))
        else:
            remove_journal(journal)
    return Outcome(tuple(restored), tuple(warnings), tuple(problems))


def _restore(record: FileRecord) -> Problem | None:
    """Put one file back; a warning if its backup is worth keeping."""
    # An agent may have replaced a link by a file: then both hold our entries.
    places = dict.fromkeys([Path(os.path.realpath(record.path)), _real(record)])
    found = [place for place in places if read_or_none(place) is not None]
    if not found:
        message = f"was removed meanwhile and stays removed; its backup is {record.backup}"
        return Problem("", message, str(record.path))
    for place in found:
        with agent_lock(place, wanted=record.lock_directory):
            # Without the agent's lock it is done all the same: a config left wrapped is worse than
            # the risk of one lost write, and `replace_file` sees most of those.
            _restore_place(place, record)
    return None


def _real(record: FileRecord) -> Path:
    return Path(os.path.realpath(record.real))


def _restore_place(place: Path, record: FileRecord) -> None:
    for _ in range(_ATTEMPTS):
        current = read_or_none(place)
        if current is None:
            return
        wanted = _wanted(current, record)
        if wanted == current or replace_file(place, wanted, expected=current):
            return
    raise OSError(f"{place} keeps changing")


def _wanted(current: bytes, record: FileRecord) -> bytes:
    """Return what a file should hold, by what it holds now."""
    now = digest(current)
    if now == record.original:
        return current
    if now == record.written:
        backup = read_or_none(record.backup)
        if backup is not None and digest(backup) == record.original:
            return backup
    return revert(current, record.format, record.entries)


def _problem(record: FileRecord, error: OSError | ConfigError) -> Problem:
    command = f"cp {shlex.quote(str(record.backup))} {shlex.quote(str(record.path))}"
    message = f"could not be restored ({error}); put the backup back with: {command}"
    return Problem("", message, str(record.path))
