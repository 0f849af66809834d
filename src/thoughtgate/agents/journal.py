"""The journal: what a wrap or an installation changed, so that any later process can undo it.

The journal is ``<state>/wraps/<key>.json``, or ``installs`` in place of ``wraps``. It is written
before the first config file and removed after the last one is restored. Its contents are checked
against the files: a backup is used only if its digest matches the one recorded here.
"""

import contextlib
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.atomic import MAX_READ, read_regular, write_private
from thoughtgate.agents.entries import Format
from thoughtgate.agents.entry_changes import EntryChange, EntryRecord
from thoughtgate.agents.git_worktree import GitExclusion
from thoughtgate.errors import ConfigError, Problem, UsageError

VERSION: Final = 1
_FORMATS: Final = ("json", "toml", "yaml")
WRAPS: Final = "wraps"
INSTALLS: Final = "installs"
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One config file of a wrap or an installation."""

    path: Path
    """The path that the agent uses."""
    real: Path
    backup: Path
    format: Format
    original: str
    """Digest of the original content."""
    written: str
    """Digest of the content that the wrap wrote."""
    lock_directory: bool
    entries: tuple[EntryRecord, ...]
    git: tuple[GitExclusion, ...] = ()
    """What keeps the file out of commits."""
    superseded: str = ""
    """Digest of content with earlier entries of ours, which ``written`` replaces and the backup
    undoes as well."""
    directory: Path = Path()
    """The real directory of ``path`` when the file was written."""


@dataclass(frozen=True, slots=True)
class Journal:
    """Everything that one wrap, or the installation in one file, changed."""

    key: str
    agent_type: str
    """For an installation, the types of all agents that use the file, separated by commas."""
    pid: int
    started_at: str
    """When the wrap or installation began, for people who read the journal."""
    files: tuple[FileRecord, ...]
    file: Path
    """The path of the journal itself."""


def journal_path(state: Path, key: str, kind: str = WRAPS) -> Path:
    """Return the path of the journal of a run or an installed file.

    Raises:
        UsageError: the key cannot be a file name.
    """
    if not _KEY.fullmatch(key):
        raise UsageError(
            f"{key!r} is not a valid run name: use letters, digits, dots, dashes and underscores"
        )
    return state / kind / f"{key}.json"


def save_journal(journal: Journal) -> None:
    """Write a journal, readable by its owner alone."""
    journal.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    body = {"version": VERSION, **asdict(journal)}
    write_private(journal.file, json.dumps(body, default=os.fspath, indent=1).encode())


def remove_journal(journal: Journal) -> None:
    """Remove a journal after all its files are restored."""
    journal.file.unlink(missing_ok=True)


def find_journals(
    state: Path, kind: str = WRAPS
) -> tuple[tuple[Journal, ...], tuple[Problem, ...]]:
    """Return the journals of a state directory, and a problem for each that cannot be read."""
    journals: list[Journal] = []
    problems: list[Problem] = []
    for file in sorted((state / kind).glob("*.json")):
        try:
            with contextlib.suppress(FileNotFoundError):  # its wrap has just ended
                journals.append(load_journal(file))
        except ConfigError as error:
            problems += error.problems
    return tuple(journals), tuple(problems)


def load_journal(file: Path) -> Journal:
    """Read one journal.

    Raises:
        ConfigError: it is not a journal of this version.
        FileNotFoundError: there is none.
    """
    try:
        # Whoever writes a journal chooses which files are restored, and to what.
        body = json.loads(read_regular(file, MAX_READ, is_own=True))
        if body["version"] != VERSION:
            message = "written by a different version of ThoughtGate; run unwrap with that version"
            raise ConfigError([Problem("version", message, str(file))])
        return Journal(
            key=str(body["key"]),
            agent_type=str(body["agent_type"]),
            pid=int(body["pid"]),
            started_at=str(body["started_at"]),
            files=tuple(_file_record(one) for one in body["files"]),
            file=file,
        )
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = (
            f"cannot be read as a journal ({error}); compare the backups by hand, then remove it"
        )
        raise ConfigError([Problem("", message, str(file))]) from error


def _file_record(body: Any) -> FileRecord:
    form: Format = body["format"] if body["format"] in _FORMATS else "json"
    return FileRecord(
        path=Path(body["path"]),
        real=Path(body["real"]),
        backup=Path(body["backup"]),
        format=form,
        original=str(body["original"]),
        written=str(body["written"]),
        lock_directory=bool(body["lock_directory"]),
        entries=tuple(_entry_record(one) for one in body["entries"]),
        git=tuple(_git_hold(one) for one in body.get("git", ())),
        superseded=str(body.get("superseded", "")),
        directory=Path(body.get("directory", "")),
    )


def _git_hold(body: Any) -> GitExclusion:
    lines = tuple(map(str, body["lines"]))
    return GitExclusion(Path(body["exclude"]), lines, Path(body["top"]), str(body["tracked"]))


def _entry_record(body: Any) -> EntryRecord:
    return EntryRecord(
        path=tuple(body["path"]),
        server_id=str(body["server_id"]),
        head=tuple(body["head"]),
        changes=tuple(
            EntryChange(one["op"], tuple(one["keys"]), one["new"], str(one["old"]), one["after"])
            for one in body["changes"]
        ),
    )
