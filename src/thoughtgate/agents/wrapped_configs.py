"""Locking, rewriting and restoring an agent's config files for the time of one ``wrap``.

The steps are: lock, restore what a killed wrap left behind, read the files again, refuse files
that are already wrapped, write the journal, back up, write; at the end, restore and unlock.
Nothing is written before all locks are held and all new texts are known; if one file cannot be
written, those already written are restored.

The locks belong to the process: a killed process leaves a journal but no lock, which tells the
next process that it may restore the files.

A file that a running wrap has rewritten is shared: the next wrap copies its record into a journal
of its own, and does not write. The wrap that is the last to hold the lock restores the file. So at
every moment the journal of each wrap that uses a file says how to restore it.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from thoughtgate.agents import git_worktree
from thoughtgate.agents.atomic import digest, read_or_none, replace_file, write_private
from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.agents.entries import KeyPath
from thoughtgate.agents.entry_changes import EntryRecord
from thoughtgate.agents.journal import (
    FileRecord,
    Journal,
    find_journals,
    journal_path,
    load_journal,
    save_journal,
)
from thoughtgate.agents.left_configs import backup_of, is_shared, restore_orphan
from thoughtgate.agents.locks import LOCK_SUFFIX, FileLock, Locked, agent_lock, state_lock
from thoughtgate.agents.restoration import RestoreOutcome, original_contents, restore_files
from thoughtgate.agents.rewrite import FileRewrite, Rewrite
from thoughtgate.errors import ConfigError, Conflict, Problem

_ATTEMPTS: Final = 5
"""How often the files may change between reading and writing before a wrap gives up."""

_WAIT_S: Final = 5.0
"""How long to wait for a wrap that is writing or restoring a file, or adding new servers to it."""
_POLL_S: Final = 0.02


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
        self._joined: set[Path] = set()
        """The files that another wrap had rewritten when this one began."""
        self._holds: dict[Path, tuple[git_worktree.GitExclusion, ...]] = {}
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
            # After restoring: whoever gets a lock may take what the file contains as original.
            self.release()
        self.left = outcome.warnings
        if outcome.problems and error is None:
            raise ConfigError(outcome.problems)
        if error is not None:
            for problem in outcome.problems:
                error.add_note(str(problem))

    @property
    def runs(self) -> Mapping[Path, str]:
        """The run that the entries of each rewritten file name, by the file's real path."""
        return {record.real: _run_of(record) for record in self._journal.files}

    def acquire(self) -> None:
        """Lock the files, restore what a killed wrap left in them, and read them again.

        Raises:
            Conflict: another wrap holds a file and cannot share it, or a file is already managed.
            ConfigError: there is nothing to govern, or a file cannot be read or locked.
        """
        try:
            self._restore_predecessor()
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
        left_out = ""
        for _ in range(_ATTEMPTS):
            rewrite = make(self.plan)
            left_out = self._left_out_of_shared(rewrite)
            if left_out:
                time.sleep(_WAIT_S / _ATTEMPTS)  # the other wrap may be about to rewrite it
            elif self._write_all([one for one in rewrite.files if self._is_ours(one)]):
                with state_lock(self._state):
                    self._share()
                return rewrite
            self._reread()
        raise Conflict(
            f"another thoughtgate wrap has rewritten the config without {left_out}, which this one "
            "would put behind the gate; use the same options, or end that wrap first"
            if left_out
            else "the config files keep changing; close the agent's other windows and try again"
        )

    def rewrite_added(self, make: Callable[[Plan], Rewrite]) -> tuple[Plan, Rewrite] | None:
        """Also rewrite servers that were added after ``write``, including those in new files.

        The files are rewritten as if their servers had been there from the beginning, so that
        restoring gives exactly what they contain now, without our changes. Returns None if a file
        changes again meanwhile, so that the caller tries again later.

        Raises:
            ConfigError: a file cannot be read, edited safely, written or locked.
            Conflict: another wrap holds a file.
        """
        self._journal = self._saved()
        before = {record.real: read_or_none(record.real) for record in self._journal.files}
        plan = discover(self.plan.search, contents=original_contents([self._journal]))
        plan.require()
        self.plan = plan
        self._lock()
        with state_lock(self._state):
            try:
                return self._rewrite_added(make, before)
            finally:
                self._share()

    def _rewrite_added(
        self, make: Callable[[Plan], Rewrite], before: Mapping[Path, bytes | None]
    ) -> tuple[Plan, Rewrite] | None:
        plan, rewrite = self.plan, make(self.plan)
        self._left_out_of_shared(rewrite)
        texts = {
            one.file.real: before.get(one.file.real, one.file.content) for one in rewrite.files
        }
        if any(text is None or read_or_none(real) != text for real, text in texts.items()):
            return None
        known = {record.real: record for record in self._journal.files}
        for one in rewrite.files:
            record = _record(one, self._holds.get(one.file.real, ()))
            before_it = known.get(one.file.real, record)
            # The other fields, such as the backup, stay as the wrap that came first recorded them.
            known[one.file.real] = replace(
                before_it, original=record.original, written=record.written, entries=record.entries
            )
        try:
            self._journal = replace(self._journal, files=tuple(known.values()))
            # Journals first: if we are killed before the backup is written, its digest does not
            # match, and restoring undoes the recorded entries in the text instead.
            save_journal(self._journal)
            self._update_other_journals(known)
            for one in rewrite.files:
                if one.file.real not in before:
                    self._hide_from_git(one)
                write_private(known[one.file.real].backup, one.file.content)
            written = [_write(one, texts[one.file.real]) for one in rewrite.files]
        except OSError as error:
            name = str(error.filename or plan.files[0].path)
            problem = Problem("", f"cannot be written: {error.strerror or error}", name)
            raise ConfigError([problem]) from error
        return (plan, rewrite) if all(written) else None

    def restore(self) -> RestoreOutcome:
        """Restore the files that no other wrap uses; a second call does nothing."""
        if not self._journal.files:
            return RestoreOutcome()
        with state_lock(self._state):
            self._journal = self._saved()
            self._leave_to_others()
            alone = [record for record in self._journal.files if record.real in self._locks]
            outcome = restore_files(replace(self._journal, files=tuple(alone)))
            for journal in find_journals(self._state)[0]:  # of wraps that were killed
                if journal.key != self._journal.key and self._touches(journal):
                    restore_files(journal, self._locks)
        self._journal = replace(self._journal, files=())
        return outcome

    def release(self) -> None:
        """Release the locks."""
        if self._locks:
            with state_lock(self._state):
                self._leave_to_others()
                self._give_back(list(self._locks))
        self._holds.clear()

    def _leave_to_others(self) -> None:
        """Release the locks on files that other wraps use, and hold the remaining ones alone."""
        for real, lock in list(self._locks.items()):
            if not lock.claim(shared=is_shared(self._journal, real)):
                del self._locks[real]  # the others restore it

    def _give_back(self, files: Iterable[Path]) -> None:
        """Release locks that we hold exclusively; a file that stays rewritten stays hidden from git."""
        written = {record.real for record in self._journal.files}
        for real in files:
            for held in self._holds.pop(real, ()) if real not in written else ():
                with contextlib.suppress(OSError):
                    git_worktree.release(held)
            self._locks.pop(real).release()

    def _is_ours(self, one: FileRewrite) -> bool:
        return one.file.real not in self._joined

    def _left_out_of_shared(self, rewrite: Rewrite) -> str:
        """Return the key of an entry in a shared file that the other wrap has not rewritten, or "".

        Raises:
            Conflict: the other wrap has rewritten an entry in another way.
        """
        wanted = {one.file.real: _heads(one.records) for one in rewrite.files}
        left_out = ""
        for record in (one for one in self._journal.files if one.real in self._joined):
            there, ours = _heads(record.entries), wanted.get(record.real, {})
            for path, head in ours.items():
                if path not in there:
                    left_out = ".".join(path)
                elif there[path] != head:
                    raise Conflict(
                        f"{record.path} is rewritten by another thoughtgate wrap that starts "
                        f"{'.'.join(path)} with other options, variables or another installation "
                        "than this one; use the same, or end that wrap first"
                    )
        return left_out

    def _share(self) -> None:
        """Let other wraps use the rewritten files as well, and release the locks on all others."""
        written = {record.real for record in self._journal.files}
        for lock in [lock for real, lock in self._locks.items() if real in written]:
            lock.share()
        self._give_back([real for real in self._locks if real not in written])

    def _saved(self) -> Journal:
        """Return our journal as it is now: another wrap that uses a file may have changed it."""
        try:
            return load_journal(self._journal.file)
        except (OSError, ConfigError):
            return self._journal

    def _update_other_journals(self, records: Mapping[Path, FileRecord]) -> None:
        """Copy the new records of shared files into the journals of the other wraps."""
        for journal in find_journals(self._state)[0]:
            files = tuple(records.get(record.real, record) for record in journal.files)
            if journal.key != self._journal.key and files != journal.files:
                save_journal(replace(journal, files=files))

    def _touches(self, journal: Journal) -> bool:
        return any(record.real in self._locks for record in journal.files)

    def _reread(self) -> None:
        """Read the files again, and lock and check the files that are found now."""
        if self._joined:
            self._journal = self._saved()
        self.plan = self.plan.reread(original_contents([self._journal]))
        self._lock()
        self.plan.require()
        self._refuse_managed()

    def _lock(self) -> None:
        """Lock the files that a rewrite may change, sorted so that no two wraps deadlock."""
        entries = self.plan.with_status("governed", "shadowed", "remote", "managed")
        files = {entry.layer.real for entry in entries if entry.layer.writable}
        for real in sorted(files - self._locks.keys()):
            deadline = time.monotonic() + _WAIT_S
            try:
                while not self._lock_or_join(real):
                    if time.monotonic() > deadline:
                        FileLock(real).release()  # raises Locked, which names the holder
                    time.sleep(_POLL_S)
            except Locked as error:
                raise Locked(real, error.holder, self._agent_of(real)) from error
            except OSError as error:
                message = f"cannot be locked: {error.strerror}: {error.filename}"
                raise ConfigError([Problem("", message, str(real))]) from error

    def _lock_or_join(self, real: Path) -> bool:
        """Lock a file, or share the lock of a wrap that has rewritten it; False if it is too early.

        Raises:
            Locked: the wrap that holds it uses another state directory.
            OSError: the file cannot be locked.
        """
        with state_lock(self._state):
            try:
                # Before the lock exists, so that git never shows it.
                self._keep_out_of_commits(real)
                self._locks[real] = FileLock(real)
            except Locked as error:
                self._holds.pop(real, None)
                try:
                    lock = FileLock(real, shared=True)
                except Locked:
                    return False
                if not self._join(real):
                    lock.release()
                    raise Locked(real, error.holder) from None
                self._locks[real] = lock
        return True

    def _join(self, real: Path) -> bool:
        """Copy the record of a file that another wrap has rewritten; False if there is none."""
        for journal in find_journals(self._state)[0]:
            found = [record for record in journal.files if record.real == real]
            if found:
                files = (*self._journal.files, *found)
                self._journal = replace(self._journal, files=files)
                save_journal(self._journal)
                self._joined.add(real)
                message = (
                    f"is rewritten already by another wrap (process {journal.pid}) and shared with "
                    "it; whichever ends last restores it"
                )
                self.warnings.append(Problem("", message, str(found[0].path)))
                return True
        return False

    def _keep_out_of_commits(self, real: Path) -> None:
        """Exclude our files beside a config, and beside links to it, from commits."""
        links = {one.layer.path for one in self.plan.entries if one.layer.real == real} - {real}
        beside = [backup_of(real), real.with_name(real.name + LOCK_SUFFIX)]
        found = [git_worktree.hold(real.parent, beside, real)]
        found += [git_worktree.hold(link.parent, [backup_of(link)]) for link in sorted(links)]
        self._holds[real] = tuple(held for held in found if held is not None)

    def _agent_of(self, real: Path) -> str:
        """Return the agent whose wrap has rewritten a file; empty if no journal names it."""
        journals, _ = find_journals(self._state)
        found = (one for one in journals if any(file.real == real for file in one.files))
        journal = next(found, None)
        return AGENTS[journal.agent_type].name if journal and journal.agent_type in AGENTS else ""

    def _restore_predecessor(self) -> None:
        """Restore what is recorded under our key: no other running wrap has it, so its wrap is dead."""
        with state_lock(self._state):
            try:
                journal = load_journal(self._journal.file)
            except (FileNotFoundError, ConfigError):  # one that cannot be read is reported later
                return
            self._restore_orphan(journal)

    def _restore_orphans(self) -> None:
        """Restore what killed wraps left in the files that we hold alone."""
        alone = {real: lock for real, lock in self._locks.items() if real not in self._joined}
        with state_lock(self._state):
            journals, problems = find_journals(self._state)
            self.warnings += problems
            for journal in journals:
                if alone.keys() & {record.real for record in journal.files}:
                    self._restore_orphan(journal, alone)
                    for real in alone:  # restoring has also removed the lines that excluded them
                        self._keep_out_of_commits(real)

    def _restore_orphan(
        self, journal: Journal, held: Mapping[Path, FileLock] | None = None
    ) -> None:
        outcome = restore_orphan(journal, held=held, ended=True)
        if outcome.problems:
            raise ConfigError(outcome.problems)
        message = f"restored: the wrap that changed it (process {journal.pid}) was killed"
        self.warnings += [Problem("", message, str(path)) for path in outcome.restored]
        self.warnings += outcome.warnings

    def _refuse_managed(self) -> None:
        managed = self.plan.with_status("managed")
        if managed:
            places = "".join(f"\n  {one.layer.path}: {'.'.join(one.path)}" for one in managed)
            raise Conflict(
                f"Config already managed by ThoughtGate:{places}\n"
                "Run the agent directly or restore the original config with `thoughtgate unwrap`."
            )

    def _write_all(self, files: Sequence[FileRewrite]) -> bool:
        """Write journal, backups and files; False, with nothing changed, if a file has changed."""
        if not files:
            return True
        try:
            shared = (record for record in self._journal.files if record.real in self._joined)
            records = (_record(one, self._holds.get(one.file.real, ())) for one in files)
            self._journal = replace(self._journal, files=(*shared, *records))
            # The journal comes first, so that restoring knows of every backup that may exist.
            save_journal(self._journal)
            for one in files:
                self._hide_from_git(one)
                self._back_up(one)
            fresh = all(_write(one) for one in files)
        except BaseException as error:  # an interrupt as well: never half of the files
            problems = self._undo().problems
            if isinstance(error, OSError):
                name = str(error.filename or files[0].file.path)
                problem = Problem("", f"cannot be written: {error.strerror or error}", name)
                raise ConfigError([problem, *problems]) from error
            raise
        if not fresh:
            problems = self._undo().problems
            if problems:
                raise ConfigError(problems)
        return fresh

    def _undo(self) -> RestoreOutcome:
        """Restore what this wrap has written; files that are shared stay as they are."""
        written = {record.real for record in self._journal.files} - self._joined
        outcome = restore_files(self._journal, written)
        kept = tuple(record for record in self._journal.files if record.real in self._joined)
        self._journal = replace(self._journal, files=kept)
        return outcome

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
        backup = backup_of(one.file.path)
        stale = None
        with contextlib.suppress(OSError):  # not a regular file; it is replaced
            stale = read_or_none(backup)
        if stale is not None and stale != one.file.content:
            message = "overwrote the backup of an earlier wrap"
            self.warnings.append(Problem("", message, str(backup)))
        write_private(backup, one.file.content)


def _heads(records: Iterable[EntryRecord]) -> dict[KeyPath, tuple[str, ...]]:
    return {record.path: tuple(record.head) for record in records}


def _run_of(record: FileRecord) -> str:
    """Return the run file that the entries of a rewritten file name; all of them name the same."""
    for entry in record.entries:
        for option, value in pairwise(entry.head):
            if option == "--run":
                return value
    return ""


def _record(one: FileRewrite, holds: tuple[git_worktree.GitExclusion, ...]) -> FileRecord:
    return FileRecord(
        path=one.file.path,
        real=one.file.real,
        backup=backup_of(one.file.path),
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
