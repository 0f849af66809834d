"""A wrap's hold on the config files of an agent.

Owns the order of things: lock, mend what an earlier wrap left behind, look again, refuse what is
already ours, journal, back up, write; and on the way out put everything back and let go. Nothing
is written before all locks are held and all new texts are known; if one file fails, those already
written are put back.

The locks belong to the process: one that is killed leaves a journal and no lock, and that is how
the next process knows that it may mend.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from thoughtgate.agents.atomic import digest, read_or_none, replace_file, write_private
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import Format
from thoughtgate.agents.journal import (
    FileRecord,
    Journal,
    find_journals,
    journal_path,
    save_journal,
)
from thoughtgate.agents.locks import FileLock, agent_lock
from thoughtgate.agents.restoration import Outcome, restore_files
from thoughtgate.agents.revert import records_in, revert
from thoughtgate.agents.rewrite import FileRewrite, Rewrite
from thoughtgate.errors import ConfigError, Conflict, Problem, UsageError

BACKUP_SUFFIX: Final = ".thoughtgate-backup"

_ATTEMPTS: Final = 5
"""How often the files may change between reading and writing before a wrap gives up."""


class Guard:
    """The files of one plan, locked, rewritten and put back."""

    def __init__(
        self,
        plan: Plan,
        *,
        state: Path,
        key: str,
        started_at: str,
        restore_on_exit: bool = True,
    ) -> None:
        """Prepare; nothing is touched yet.

        Args:
            plan: what was discovered; ``acquire`` discovers again under the locks.
            state: the state directory.
            key: names the run and its journal; the same from run to run.
            started_at: the time, for people who read the journal.
            restore_on_exit: False leaves the files wrapped when the context ends; the journal
                stays, so that ``unwrap`` can put them back.
        """
        self.plan = plan
        self.warnings: list[Problem] = []
        self._state = state
        self._journal = Journal(
            key, plan.agent.type, os.getpid(), started_at, (), journal_path(state, key)
        )
        self._locks: dict[Path, FileLock] = {}
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
            outcome = self.restore() if self._restore_on_exit else Outcome()
        finally:
            self.release()
        if outcome.problems and error is None:
            raise ConfigError(outcome.problems)
        if error is not None:
            for problem in outcome.problems:
                error.add_note(str(problem))

    def acquire(self) -> None:
        """Lock the files, mend what a killed wrap left in them, and look at them again.

        Raises:
            Conflict: another wrap holds a file, or a file is already managed.
            ConfigError: there is nothing to govern, or a file cannot be read or locked.
        """
        try:
            self._lock(self._targets())
            self._mend_orphans()
            self.plan = self.plan.again()
            self._lock(self._targets())
            self.plan.require()
            self._refuse_managed()
        except BaseException:  # an interrupt as well: no lock outlives a start that failed
            self.release()
            raise

    def write(self, make: Callable[[Plan], Rewrite]) -> Rewrite:
        """Rewrite the files; either all of them change or none.

        Args:
            make: turns the plan into new texts; asked again if a file changes meanwhile.

        Raises:
            ConfigError: a file could not be written; everything is as it was.
            Conflict: a file kept changing; everything is as it was.
        """
        for _ in range(_ATTEMPTS):
            rewrite = make(self.plan)
            if self._write_all(rewrite.files):
                return rewrite
            self.plan = self.plan.again()
            self._lock(self._targets())
            self.plan.require()
            self._refuse_managed()
        raise Conflict(
            "the config files keep changing; close the agent's other windows and try again"
        )

    def restore(self) -> Outcome:
        """Put the files back; a second call does nothing."""
        if not self._journal.files:
            return Outcome()
        outcome = restore_files(self._journal)
        self._journal = self._journal_of(())
        return outcome

    def release(self) -> None:
        """Let the locks go."""
        _release(self._locks.values())
        self._locks.clear()

    def _targets(self) -> list[Path]:
        """Return the files that a rewrite may change, in an order that all processes share."""
        entries = self.plan.having("governed", "shadowed", "remote", "managed")
        return sorted({entry.layer.real for entry in entries if entry.layer.writable})

    def _lock(self, files: Iterable[Path]) -> None:
        for real in files:
            if real not in self._locks:
                try:
                    self._locks[real] = FileLock(real)
                except OSError as error:
                    message = f"cannot be locked: {error.strerror}: {error.filename}"
                    raise ConfigError([Problem("", message, str(real))]) from error

    def _mend_orphans(self) -> None:
        """Put back what killed wraps left in our files, or under our key."""
        journals, problems = find_journals(self._state)
        self.warnings += problems
        for journal in journals:
            touched = {record.real for record in journal.files}
            if journal.key == self._journal.key or touched & self._locks.keys():
                outcome = mend(journal, held=self._locks)
                if outcome.problems:
                    raise ConfigError(outcome.problems)
                message = f"put back as a wrap of process {journal.pid} had found it; it was killed"
                self.warnings += [Problem("", message, str(path)) for path in outcome.restored]
                self.warnings += outcome.warnings

    def _refuse_managed(self) -> None:
        managed = self.plan.having("managed")
        if managed:
            places = "".join(f"\n  {one.layer.path}: {'.'.join(one.path)}" for one in managed)
            raise Conflict(
                f"Config already managed by ThoughtGate:{places}\n"
                "Run the agent directly or restore the original config with `thoughtgate unwrap`."
            )

    def _write_all(self, files: tuple[FileRewrite, ...]) -> bool:
        """Journal, back up and write; False, with everything as it was, if a file is stale."""
        if not files:
            return True
        try:
            self._journal = self._journal_of(tuple(_record(one) for one in files))
            # The journal goes first: whoever mends learns from it of every backup, even a lone one.
            save_journal(self._journal)
            for one in files:
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

    def _back_up(self, one: FileRewrite) -> None:
        """Save the original; it is pristine, since no managed file gets here."""
        backup = _backup_of(one.file.path)
        stale = read_or_none(backup)
        if stale is not None and stale != one.file.content:
            message = "a stale backup of an earlier wrap is overwritten"
            self.warnings.append(Problem("", message, str(backup)))
        write_private(backup, one.file.content)

    def _journal_of(self, files: tuple[FileRecord, ...]) -> Journal:
        old = self._journal
        return Journal(old.key, old.agent_type, old.pid, old.started_at, files, old.file)


def mend(journal: Journal, *, held: dict[Path, FileLock] | None = None) -> Outcome:
    """Put back what a wrap that is gone has left behind.

    Args:
        journal: its journal.
        held: locks that the caller holds already.

    Raises:
        Conflict: the wrap is alive; its files are locked.
    """
    taken: list[FileLock] = []
    try:
        for record in journal.files:
            if record.real not in (held or {}):
                # A directory that is gone has no config to protect; restoring says what is wrong.
                with contextlib.suppress(OSError):
                    taken.append(FileLock(record.real))
        return restore_files(journal)
    finally:
        _release(taken)


def is_live(journal: Journal) -> bool:
    """Whether the wrap that wrote a journal still holds its files."""
    for record in journal.files:
        try:
            FileLock(record.real).release()
        except Conflict:
            return True
        except OSError:
            continue
    return False


def salvage(config: Path, own: tuple[str, ...] = ()) -> Outcome:
    """Take a wrap's entries out of a file whose journal is lost.

    Raises:
        Conflict: a wrap is alive and holds the file.
        ConfigError: the file cannot be read, or not be edited safely.
        UsageError: there is no such file.
    """
    real = Path(os.path.realpath(config))
    form: Format = "toml" if config.suffix == ".toml" else "json"
    try:
        lock = FileLock(real)
    except OSError as error:
        raise UsageError(f"{config}: cannot be locked: {error.strerror}") from error
    try:
        for _ in range(_ATTEMPTS):
            current = read_or_none(real)
            if current is None:
                raise UsageError(f"{config}: there is no such file")
            records = records_in(current, form, own)
            if not records:
                return Outcome()
            if replace_file(real, revert(current, form, records), expected=current):
                return Outcome((config,))
        raise Conflict(f"{config} keeps changing; close the agent and try again")
    finally:
        lock.release()


def _release(locks: Iterable[FileLock]) -> None:
    for lock in locks:
        lock.release()


def _backup_of(config: Path) -> Path:
    return config.with_name(config.name + BACKUP_SUFFIX)


def _record(one: FileRewrite) -> FileRecord:
    return FileRecord(
        path=one.file.path,
        real=one.file.real,
        backup=_backup_of(one.file.path),
        format=one.file.format,
        original=digest(one.file.content),
        written=digest(one.content),
        lock_directory=one.file.lock_directory,
        entries=one.records,
    )


def _write(one: FileRewrite) -> bool:
    with agent_lock(one.file.real, wanted=one.file.lock_directory) as held:
        if not held:
            raise Conflict(f"{one.file.path} is being written by the agent; try again")
        return replace_file(one.file.real, one.content, expected=one.file.content)
