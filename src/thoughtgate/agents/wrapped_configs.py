"""Locking, rewriting and restoring an agent's config files for the time of one ``wrap``.

The steps are: lock, restore what a killed wrap left behind, read the files again, refuse files
that are already wrapped, write the journal, back up, write; at the end, restore and unlock.
Nothing is written before all locks are held and all new texts are known; if one file cannot be
written, those already written are restored.

The locks belong to the process: a killed process leaves a journal but no lock, which tells the
next process that it may restore the files.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from thoughtgate.agents import git_worktree
from thoughtgate.agents.atomic import digest, read_or_none, replace_file, write_private
from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.agents.entries import format_of
from thoughtgate.agents.entry_changes import EntryRecord
from thoughtgate.agents.entry_environment import ENTRY_OPTION
from thoughtgate.agents.journal import (
    FileRecord,
    Journal,
    find_journals,
    journal_path,
    save_journal,
)
from thoughtgate.agents.locks import LOCK_SUFFIX, FileLock, Locked, agent_lock
from thoughtgate.agents.restoration import RestoreOutcome, original_contents, restore_files
from thoughtgate.agents.revert import find_wrapped_entries, revert
from thoughtgate.agents.rewrite import FileRewrite, Rewrite
from thoughtgate.errors import ConfigError, Conflict, Problem, UsageError

BACKUP_SUFFIX: Final = ".thoughtgate-backup"

_ATTEMPTS: Final = 5
"""How often the files may change between reading and writing before a wrap gives up."""


class WrappedConfigs:
    """A context manager that wraps the config files of one plan and restores them."""

    def __init__(
        self,
        plan: Plan,
        *,
        state: Path,
        key: str,
        started_at: str,
        restore_on_exit: bool = True,
    ) -> None:
        """Prepare; no file is changed yet.

        Args:
            plan: what was discovered; ``acquire`` repeats the discovery under the locks.
            state: the state directory.
            key: names the journal; the same for each run with the same agent and files.
            started_at: the time, for people who read the journal.
            restore_on_exit: False leaves the files wrapped when the context ends; the journal
                stays, so that ``unwrap`` can restore them.
        """
        self.plan = plan
        self.warnings: list[Problem] = []
        self.left: tuple[Problem, ...] = ()
        """What the user should know about the restored files."""
        self._state = state
        self._journal = Journal(
            key, plan.agent.type, os.getpid(), started_at, (), journal_path(state, key)
        )
        self._locks: dict[Path, FileLock] = {}
        self._holds: dict[Path, tuple[git_worktree.GitHold, ...]] = {}
        self._restore_on_exit = restore_on_exit

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            outcome = self.restore() if self._restore_on_exit else RestoreOutcome()
        finally:
            self.release()
        self.left = outcome.warnings
        if outcome.problems and error is None:
            raise ConfigError(outcome.problems)
        if error is not None:
            for problem in outcome.problems:
                error.add_note(str(problem))

    def acquire(self) -> None:
        """Lock the files, restore what a killed wrap left in them, and read them again.

        Raises:
            Conflict: another wrap holds a file, or a file is already managed.
            ConfigError: there is nothing to govern, or a file cannot be read or locked.
        """
        try:
            self._lock()
            self._restore_orphans()
            # Restoring may have brought back files and entries that the first plan lacked.
            self._reread()
        except BaseException:  # an interrupt as well: no lock outlives a start that failed
            self.release()
            raise

    def write(self, make: Callable[[Plan], Rewrite]) -> Rewrite:
        """Rewrite the files; either all of them change or none.

        Args:
            make: turns the plan into new texts; called again if a file changes meanwhile.

        Raises:
            ConfigError: a file could not be written; all files are unchanged.
            Conflict: a file kept changing; all files are unchanged.
        """
        for _ in range(_ATTEMPTS):
            rewrite = make(self.plan)
            if self._write_all(rewrite.files):
                return rewrite
            self._reread()
        raise Conflict(
            "the config files keep changing; close the agent's other windows and try again"
        )

    def take_in(self, make: Callable[[Plan], Rewrite]) -> tuple[Plan, Rewrite] | None:
        """Also rewrite servers that were added since ``write``, also in files that are new.

        The files are rewritten as if their servers had been there from the beginning, so that
        restoring gives exactly what they contain now, without our changes. Returns None if a file
        changes again meanwhile: then the caller tries again later.

        Raises:
            ConfigError: a file cannot be read, edited safely, written or locked.
            Conflict: another wrap holds a file.
        """
        before = {record.real: read_or_none(record.real) for record in self._journal.files}
        plan = discover(self.plan.search, contents=original_contents([self._journal]))
        plan.require()
        self.plan = plan
        self._lock()
        rewrite = make(plan)
        texts = {
            one.file.real: before.get(one.file.real, one.file.content) for one in rewrite.files
        }
        if any(text is None or read_or_none(real) != text for real, text in texts.items()):
            return None
        known = {record.real: record for record in self._journal.files}
        holds = self._holds
        known |= {
            one.file.real: _record(one, holds.get(one.file.real, ())) for one in rewrite.files
        }
        try:
            self._journal = replace(self._journal, files=tuple(known.values()))
            save_journal(self._journal)
            for one in rewrite.files:
                if one.file.real not in before:
                    self._hide_from_git(one)
                write_private(_backup_of(one.file.path), one.file.content)
            written = [_write(one, texts[one.file.real]) for one in rewrite.files]
        except OSError as error:
            name = str(error.filename or plan.files[0].path)
            problem = Problem("", f"cannot be written: {error.strerror or error}", name)
            raise ConfigError([problem]) from error
        return (plan, rewrite) if all(written) else None

    def restore(self) -> RestoreOutcome:
        """Restore the files; a second call does nothing."""
        if not self._journal.files:
            return RestoreOutcome()
        outcome = restore_files(self._journal)
        self._journal = replace(self._journal, files=())
        return outcome

    def release(self) -> None:
        """Release the locks."""
        _release(self._locks.values())
        self._locks.clear()
        if not self._journal.files:  # otherwise a later process restores the files
            for held in (one for holds in self._holds.values() for one in holds):
                with contextlib.suppress(OSError):
                    git_worktree.release(held)
        self._holds.clear()

    def _reread(self) -> None:
        """Read the files again, and lock and check what is found now."""
        self.plan = self.plan.reread()
        self._lock()
        self.plan.require()
        self._refuse_managed()

    def _lock(self) -> None:
        """Lock the files that a rewrite may change, sorted so that no two wraps deadlock."""
        entries = self.plan.with_status("governed", "shadowed", "remote", "managed")
        files = {entry.layer.real for entry in entries if entry.layer.writable}
        for real in sorted(files - self._locks.keys()):
            try:
                # Before the lock exists, so that git never shows it.
                self._keep_out_of_commits(real)
                self._locks[real] = FileLock(real)
            except Locked as error:
                raise Locked(real, error.holder, self._agent_of(real)) from error
            except OSError as error:
                message = f"cannot be locked: {error.strerror}: {error.filename}"
                raise ConfigError([Problem("", message, str(real))]) from error

    def _keep_out_of_commits(self, real: Path) -> None:
        """Exclude what lies beside a config, and beside links to it."""
        links = {one.layer.path for one in self.plan.entries if one.layer.real == real} - {real}
        beside = [_backup_of(real), real.with_name(real.name + LOCK_SUFFIX)]
        found = [git_worktree.hold(real.parent, beside, real)]
        found += [git_worktree.hold(link.parent, [_backup_of(link)]) for link in sorted(links)]
        self._holds[real] = tuple(held for held in found if held is not None)

    def _agent_of(self, real: Path) -> str:
        """Return the agent whose wrap has rewritten a file; empty if no journal names it."""
        journals, _ = find_journals(self._state)
        found = (one for one in journals if any(file.real == real for file in one.files))
        journal = next(found, None)
        return AGENTS[journal.agent_type].name if journal and journal.agent_type in AGENTS else ""

    def _restore_orphans(self) -> None:
        """Restore what killed wraps left in our files or recorded under our key."""
        journals, problems = find_journals(self._state)
        self.warnings += problems
        for journal in journals:
            touched = {record.real for record in journal.files}
            if journal.key == self._journal.key or touched & self._locks.keys():
                outcome = restore_orphan(journal, held=self._locks)
                if outcome.problems:
                    raise ConfigError(outcome.problems)
                message = f"restored: the wrap that changed it (process {journal.pid}) was killed"
                self.warnings += [Problem("", message, str(path)) for path in outcome.restored]
                self.warnings += outcome.warnings
                for real in self._locks:  # restoring has also removed what kept them out
                    self._keep_out_of_commits(real)

    def _refuse_managed(self) -> None:
        managed = self.plan.with_status("managed")
        if managed:
            places = "".join(f"\n  {one.layer.path}: {'.'.join(one.path)}" for one in managed)
            raise Conflict(
                f"Config already managed by ThoughtGate:{places}\n"
                "Run the agent directly or restore the original config with `thoughtgate unwrap`."
            )

    def _write_all(self, files: tuple[FileRewrite, ...]) -> bool:
        """Write journal, backups and files; False, with nothing changed, if a file has changed."""
        if not files:
            return True
        try:
            records = tuple(_record(one, self._holds.get(one.file.real, ())) for one in files)
            self._journal = replace(self._journal, files=records)
            # The journal comes first, so that restoring knows of every backup that may exist.
            save_journal(self._journal)
            for one in files:
                self._hide_from_git(one)
                self._back_up(one)
            fresh = all(_write(one) for one in files)
        except BaseException as error:  # an interrupt as well: never half of the files
            problems = self.restore().problems
            if isinstance(error, OSError):
                name = str(error.filename or files[0].file.path)
                problem = Problem("", f"cannot be written: {error.strerror or error}", name)
                raise ConfigError([problem, *problems]) from error
            raise
        if not fresh:
            problems = self.restore().problems
            if problems:
                raise ConfigError(problems)
        return fresh

    def _hide_from_git(self, one: FileRewrite) -> None:
        holds = self._holds.get(one.file.real, ())
        if not holds:
            return
        message = "git ignores this change until it is restored"
        flagged = [git_worktree.flag(held) for held in holds]
        if not all(flagged):
            message = "is rewritten, and git could not be told to ignore that: do not commit it"
        self.warnings.append(Problem("", message, str(one.file.path)))

    def _back_up(self, one: FileRewrite) -> None:
        """Save the original text. It is unwrapped: ``_refuse_managed`` has checked that."""
        backup = _backup_of(one.file.path)
        stale = None
        with contextlib.suppress(OSError):  # a pipe or the like, which is replaced
            stale = read_or_none(backup)
        if stale is not None and stale != one.file.content:
            message = "overwrote the backup of an earlier wrap"
            self.warnings.append(Problem("", message, str(backup)))
        write_private(backup, one.file.content)


def restore_orphan(journal: Journal, *, held: dict[Path, FileLock] | None = None) -> RestoreOutcome:
    """Restore the files that a killed wrap left behind.

    Args:
        journal: the journal of that wrap.
        held: locks that the caller already holds.

    Raises:
        Conflict: the wrap still runs and holds its locks.
    """
    taken: list[FileLock] = []
    try:
        for record in journal.files:
            if record.real not in (held or {}):
                # If the directory was deleted, there is nothing to lock; restoring reports that.
                with contextlib.suppress(OSError):
                    taken.append(FileLock(record.real))
        return restore_files(journal)
    finally:
        _release(taken)


def is_live(journal: Journal) -> bool:
    """Tell whether the wrap that wrote a journal still runs: then it holds its locks."""
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
    message = f"has variables that the wrap emptied; look for their values in {_backup_of(config)}"
    return tuple(
        Problem(".".join(record.path), message, str(config))
        for record in records
        if ENTRY_OPTION in record.head
    )


def _release(locks: Iterable[FileLock]) -> None:
    for lock in locks:
        lock.release()


def _backup_of(config: Path) -> Path:
    return config.with_name(config.name + BACKUP_SUFFIX)


def _record(one: FileRewrite, holds: tuple[git_worktree.GitHold, ...]) -> FileRecord:
    return FileRecord(
        path=one.file.path,
        real=one.file.real,
        backup=_backup_of(one.file.path),
        format=one.file.format,
        original=digest(one.file.content),
        written=digest(one.content),
        lock_directory=one.file.lock_directory,
        entries=one.records,
        git=holds,
        directory=Path(os.path.realpath(one.file.path.parent)),
    )


def _write(one: FileRewrite, expected: bytes | None = None) -> bool:
    """Write a file that still has the expected content, by default that which was read."""
    with agent_lock(one.file.real, wanted=one.file.lock_directory) as held:
        if not held:
            raise Conflict(f"{one.file.path} is being written by the agent; try again")
        expected = one.file.content if expected is None else expected
        if one.content == expected:
            return True
        return replace_file(one.file.real, one.content, expected=expected)
