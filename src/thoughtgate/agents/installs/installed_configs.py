"""Writing and restoring the config files whose servers are permanently behind the gate.

Each file has its own journal and a copy of its text without our entries, both in
``<state>/installs``, for as long as it is installed. Only entries in that journal are ours. A new
installation starts from the text without our entries, so that it can be repeated after any change.

The journal is written before the file. While a file with earlier entries of ours is replaced, the
journal lists the earlier and the new entries, so that a process that is killed at any step leaves a
file that another process can restore or install again.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from thoughtgate.agents.atomic import (
    MAX_READ,
    digest,
    read_or_none,
    read_regular,
    remove_temporaries,
    replace_file,
    write_private,
)
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.agents.documents import with_file
from thoughtgate.agents.entry_changes import EntryRecord
from thoughtgate.agents.journal import (
    INSTALLS,
    FileRecord,
    Journal,
    find_journals,
    journal_path,
    remove_journal,
    save_journal,
)
from thoughtgate.agents.left_configs import restore_orphan
from thoughtgate.agents.locks import FileLock, agent_lock, state_lock, waiting_lock
from thoughtgate.agents.restoration import RestoreOutcome, original_of, restore_files
from thoughtgate.agents.rewrite import FileRewrite
from thoughtgate.errors import ConfigError, Conflict, Problem

_KEY_LENGTH: Final = 16

_CHANGING: Final = "changing"
"""The name of the file that lists the config files that are locked now, and the process that did."""


class InstalledConfigs:
    """The installed config files of a state directory."""

    def __init__(self, state: Path) -> None:
        """Read the journals. To change files, use ``changing``."""
        self._state = state
        self._locks: dict[Path, FileLock] = {}
        self._seen: dict[Path, bytes] = {}
        """The content of each file when it was planned."""
        journals, self.problems = find_journals(state, INSTALLS)
        self.journals = {journal.files[0].real: journal for journal in journals if journal.files}
        """By the file that each is about."""

    @classmethod
    @contextlib.contextmanager
    def changing(cls, state: Path) -> Iterator[Self]:
        """Wait until no other process installs, and keep others from installing during the block.

        Raises:
            Conflict: another process does not end.
        """
        directory = state / INSTALLS
        busy = "another thoughtgate install or uninstall is running; try again"
        with waiting_lock(directory / "lock", busy):
            _clean_up(directory)
            found = cls(state)
            try:
                yield found
            finally:
                found.unlock()

    def unlock(self) -> None:
        """Let others change the files that ``lock`` has locked."""
        for one in self._locks.values():
            one.release()
        self._locks.clear()
        (self._state / INSTALLS / _CHANGING).unlink(missing_ok=True)

    def plan(self, search: Search) -> Plan:
        """Return what an agent's files would contain without our entries.

        A file is a problem of the plan if our entries in it are not known or cannot be undone:
        installing it again would lose its original text.
        """
        originals: dict[Path, bytes] = {}
        failed: dict[str, tuple[Problem, ...]] = {
            Path(one.file).stem: (one,) for one in self.problems
        }
        for real, journal in self.journals.items():
            try:
                current = read_or_none(real)
                if current is not None:
                    self._seen[real] = current
                    originals[real] = original_of(current, journal.files[0])
            except OSError:
                continue  # discovery reports it
            except ConfigError as error:
                failed[file_key(real)] = with_file(error, str(real)).problems
        plan = discover(search, contents=originals, lasting=True)
        for file in plan.files:
            if file.real not in originals:
                self._seen[file.real] = file.content
        found = [one for file in plan.files for one in failed.get(file_key(file.real), ())]
        return replace(plan, problems=tuple(dict.fromkeys((*plan.problems, *found))))

    def lock(self, files: Iterable[Path]) -> list[Problem]:
        """Lock files and restore what killed wraps left in them; return what was restored.

        Raises:
            Conflict: an agent whose config contains one of the files is wrapped now.
            ConfigError: a file cannot be locked or restored.
        """
        more = sorted(set(files) - self._locks.keys())
        if more:
            # Before the locks exist, so that the next process can remove those of a killed one.
            locked = {"pid": os.getpid(), "files": [*map(str, self._locks), *map(str, more)]}
            write_private(self._state / INSTALLS / _CHANGING, json.dumps(locked).encode())
        with state_lock(self._state):
            return self._lock(more)

    def _lock(self, more: Iterable[Path]) -> list[Problem]:
        for real in more:
            try:
                self._locks[real] = FileLock(real)
            except OSError as error:
                message = f"cannot be locked: {error.strerror}: {error.filename}"
                raise ConfigError([Problem("", message, str(real))]) from error
        warnings: list[Problem] = []
        for journal in find_journals(self._state)[0]:
            if self._locks.keys() & {record.real for record in journal.files}:
                outcome = restore_orphan(journal, held=self._locks, ended=True)
                if outcome.problems:
                    raise ConfigError(outcome.problems)
                message = f"restored: the wrap that changed it (process {journal.pid}) was killed"
                warnings += [Problem("", message, str(path)) for path in outcome.restored]
        return warnings

    def current(self, one: FileRewrite) -> FileRewrite:
        """Return a rewrite of a plan as a change of the file's present content, for the report."""
        return replace(one, file=replace(one.file, content=self._seen[one.file.real]))

    def write(self, one: FileRewrite, agent_type: str, started_at: str) -> bool:
        """Write a rewrite of a plan; False if the file has changed and must be planned again.

        Raises:
            Conflict: the agent is writing the file.
            OSError: the file or its journal cannot be written; the file is unchanged.
        """
        real, current = one.file.real, self._seen[one.file.real]
        before = self.journals.get(real)
        after = self._journal(one, agent_type, started_at, before)
        if one.content != current:
            if not self._replace(one, current, before, after):
                return False
        elif before is not None and _facts(before) == _facts(after):
            return True
        save_journal(after)
        self.journals[real] = after
        return True

    def remove(self, journal: Journal) -> RestoreOutcome:
        """Restore an installed file.

        Raises:
            Conflict: an agent whose config contains the file is wrapped now.
        """
        record = journal.files[0]
        warnings: list[Problem] = []
        try:
            # If its directory was deleted, there is nothing to lock; restoring reports that.
            if record.real.parent.is_dir():
                warnings = self.lock([record.real])
            outcome = restore_files(journal)
        except ConfigError as error:
            return RestoreOutcome(problems=error.problems)
        finally:
            self.unlock()
        if not outcome.problems:
            del self.journals[record.real]
        return replace(outcome, warnings=(*warnings, *outcome.warnings))

    def keep_for(self, journal: Journal, agents: Iterable[str]) -> None:
        """Note that an installed file is now for these agents only."""
        left = replace(journal, agent_type=",".join(sorted(agents)))
        save_journal(left)
        self.journals[journal.files[0].real] = left

    def drop_empty(self, plan: Plan, written: Iterable[FileRewrite]) -> None:
        """Forget the files of a plan that have no servers any more."""
        kept = {one.file.real for one in written}
        for file in plan.files:
            journal = self.journals.get(file.real)
            if journal and file.real not in kept and self._seen[file.real] == file.content:
                self._forget(journal)
                del self.journals[file.real]

    def heads(self) -> Iterator[tuple[str, ...]]:
        """Yield the first words of every command line that is ours."""
        for journal in self.journals.values():
            for record in journal.files:
                yield from (entry.head for entry in record.entries)

    def _journal(
        self, one: FileRewrite, agent_type: str, started_at: str, before: Journal | None
    ) -> Journal:
        agents = {agent_type, *(before.agent_type.split(",") if before else ())}
        key = file_key(one.file.real)
        record = FileRecord(
            path=one.file.path,
            real=one.file.real,
            backup=self._state / INSTALLS / f"{key}.original",
            format=one.file.format,
            original=digest(one.file.content),
            written=digest(one.content),
            lock_directory=one.file.lock_directory,
            entries=one.records,
            directory=Path(os.path.realpath(one.file.path.parent)),
        )
        path = journal_path(self._state, key, INSTALLS)
        return Journal(key, ",".join(sorted(agents)), os.getpid(), started_at, (record,), path)

    def _replace(
        self, one: FileRewrite, current: bytes, before: Journal | None, after: Journal
    ) -> bool:
        """Write journal, copy and file; False, with the old journal in place, if the file changed."""
        real, record = one.file.real, after.files[0]
        earlier: tuple[EntryRecord, ...] = before.files[0].entries if before else ()
        both = replace(record, entries=(*record.entries, *earlier), superseded=digest(current))
        is_written = False
        try:
            save_journal(replace(after, files=(both,)))
            write_private(record.backup, one.file.content)
            with agent_lock(real, wanted=one.file.lock_directory) as held:
                if not held:
                    raise Conflict(f"{one.file.path} is being written by the agent; try again")
                is_written = replace_file(real, one.content, expected=current)
        finally:
            # An interrupt can come after the file was written.
            with contextlib.suppress(OSError):
                if not is_written and read_or_none(real) != one.content:
                    if before is not None:
                        save_journal(before)
                    else:
                        self._forget(after)
        return is_written

    @staticmethod
    def _forget(journal: Journal) -> None:
        journal.files[0].backup.unlink(missing_ok=True)
        remove_journal(journal)


def file_key(real: Path) -> str:
    """Return the name of the journal of a file."""
    return sha256(os.fsencode(real)).hexdigest()[:_KEY_LENGTH]


def _facts(journal: Journal) -> tuple[str, tuple[FileRecord, ...]]:
    return journal.agent_type, journal.files


def _clean_up(directory: Path) -> None:
    """Remove what a killed process left beside its files and the config files that it had locked."""
    for left in directory.glob(".thoughtgate-*.tmp"):
        left.unlink(missing_ok=True)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        locked = json.loads(read_regular(directory / _CHANGING, MAX_READ))
        for name in locked["files"]:
            with contextlib.suppress(OSError, Conflict):
                # Releasing removes the lock file; the lock itself ended with the killed process.
                FileLock(Path(name)).release()
        folders = {Path(name).parent for name in locked["files"]}
        for folder in (*folders, *filter(Path.is_dir, directory.parent.iterdir())):
            remove_temporaries(folder, int(locked["pid"]))
    (directory / _CHANGING).unlink(missing_ok=True)
