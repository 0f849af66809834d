"""Restoring config files after a wrap.

A file that nobody else has changed gets its original bytes back; in any other file only our entries
are undone. Each file is restored independently; one that fails is reported with the command that
restores it by hand, and stays in the journal. The caller holds the locks.
"""

import contextlib
import os
import shlex
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from thoughtgate.agents import git_worktree
from thoughtgate.agents.atomic import digest, read_or_none, remove_temporaries, replace_file
from thoughtgate.agents.journal import FileRecord, Journal, remove_journal, save_journal
from thoughtgate.agents.locks import agent_lock
from thoughtgate.agents.revert import revert
from thoughtgate.errors import ConfigError, Problem

_ATTEMPTS: Final = 5
"""How often restoring is tried while another program keeps changing the file."""


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """The result of restoring files."""

    restored: tuple[Path, ...] = ()
    warnings: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Files that could not be restored, each with the command that restores it by hand."""


def restore_files(journal: Journal, among: Container[Path] | None = None) -> RestoreOutcome:
    """Restore the files of a journal, then remove the backups and records of those that succeeded.

    Args:
        journal: what was changed.
        among: the real paths of the files to restore, if not all; the others stay in the journal.
    """
    restored, warnings, problems, left = [], [], [], []
    for record in journal.files:
        if among is not None and record.real not in among:
            left.append(record)
            continue
        try:
            warning = _restore(record)
        except (OSError, ConfigError) as error:
            left.append(record)
            problems.append(_problem(record, error))
            continue
        restored.append(record.path)
        warnings += [one for held in record.git for one in _show_to_git(held, record.path)]
        if warning:
            warnings.append(warning)
        else:
            with contextlib.suppress(OSError):
                record.backup.unlink()
        for directory in {record.path.parent, record.real.parent}:
            remove_temporaries(directory, journal.pid)
    remove_temporaries(journal.file.parent, journal.pid)
    # If the journal cannot be updated, it lists too many files. That is harmless: a restored
    # file is recognised by its digest.
    with contextlib.suppress(OSError):
        if left:
            save_journal(replace(journal, files=tuple(left)))
        else:
            remove_journal(journal)
    return RestoreOutcome(tuple(restored), tuple(warnings), tuple(problems))


def _show_to_git(held: git_worktree.GitExclusion, path: Path) -> list[Problem]:
    """Let git see a restored file again; return a warning with the command if it does not."""
    with contextlib.suppress(OSError):
        git_worktree.release(held)
    if git_worktree.unflag(held):
        return []
    command = f"git update-index --no-skip-worktree {shlex.quote(str(path))}"
    return [Problem("", f"git does not look at it yet; run: {command}", str(path))]


def original_contents(journals: Iterable[Journal]) -> dict[Path, bytes]:
    """Return what wrapped files would contain if they were restored now, by their real paths."""
    found: dict[Path, bytes] = {}
    for record in (record for journal in journals for record in journal.files):
        # A file that cannot be read or restored is reported by whoever restores it.
        with contextlib.suppress(OSError, ConfigError):
            current = read_or_none(record.real)
            if current is not None:
                found[record.real] = original_of(current, record)
    return found


def _restore(record: FileRecord) -> Problem | None:
    """Restore one file; return a warning if its backup should be kept."""
    found = [place for place in _places(record) if read_or_none(place) is not None]
    if not found:
        message = f"was removed while it was wrapped; its backup is {record.backup}"
        return Problem("", message, str(record.path))
    for place in found:
        with agent_lock(place, wanted=record.lock_directory):
            # Restore even without the agent's lock: a config that stays wrapped is worse than the
            # risk of losing one write, and `replace_file` detects most of those.
            _restore_place(place, record)
    return None


def _places(record: FileRecord) -> list[Path]:
    """Return where the file is now.

    An agent may have replaced a link with a file; then both contain our entries. A link that has
    replaced the file or one of its directories is never followed: whoever made the link would
    choose the file that gets the entries of this one.

    Raises:
        OSError: there is such a link.
    """
    now = Path(os.path.realpath(record.real))
    if now != record.real:
        raise OSError(f"a link to {now} is in its place, which is not followed")
    beside = record.directory / record.path.name
    replaced = beside != now and Path(os.path.realpath(record.path)) == beside
    return [now, beside] if replaced else [now]


def _restore_place(place: Path, record: FileRecord) -> None:
    for _ in range(_ATTEMPTS):
        current = read_or_none(place)
        if current is None:
            return
        wanted = original_of(current, record)
        if wanted == current or replace_file(place, wanted, expected=current):
            return
    raise OSError(f"{place} keeps changing")


def original_of(current: bytes, record: FileRecord) -> bytes:
    """Return a file's content without our entries, given its current content.

    Raises:
        ConfigError: it cannot be parsed or safely edited.
    """
    now = digest(current)
    if now == record.original:
        return current
    if now in (record.written, record.superseded):
        backup = None
        with contextlib.suppress(OSError):  # the agent can replace it with anything
            backup = read_or_none(record.backup)
        if backup is not None and digest(backup) == record.original:
            return backup
    return revert(current, record.format, record.entries)


def _problem(record: FileRecord, error: OSError | ConfigError) -> Problem:
    command = f"cp {shlex.quote(str(record.backup))} {shlex.quote(str(record.path))}"
    if record.path == record.real and record.path.is_symlink():
        # cp would follow the link that has replaced the file.
        command = f"rm {shlex.quote(str(record.path))} && {command}"
    message = f"could not be restored ({error}); restore the backup with: {command}"
    return Problem("", message, str(record.path))
