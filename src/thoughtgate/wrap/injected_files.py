"""The keys and private files of runs that touch no file of an agent.

Any number of such runs are possible at once, even of the same agent in the same directory. Each
takes the first free key, so that command lines stay the same from day to day: agents identify a
server, and the trust that was given to it, by its command line. A lock on the key belongs to the
process; files of a key that nobody holds are left over from a run that was killed.
"""

import shutil
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final

from thoughtgate.agents.atomic import write_private
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.injection.injection import PrivateFile
from thoughtgate.agents.locks import LOCK_SUFFIX, FileLock
from thoughtgate.errors import Conflict, StoreError
from thoughtgate.gate.run_file import run_path, runs_directory
from thoughtgate.gate.state_directory import ensure_directory, state_directory

DIRECTORY: Final = "injected"
TOLD: Final = "told"
KEY_LENGTH: Final = 16


def base_key(plan: Plan) -> str:
    """Return the key of the first run of an agent in a directory; a rewrite never has the same."""
    where = "\0".join(["inject", plan.agent.type, str(plan.search.cwd)])
    return sha256(where.encode("utf-8", "surrogateescape")).hexdigest()[:KEY_LENGTH]


class RunKey:
    """A key that belongs to this process until it is released."""

    def __init__(self, base: str, environ: Mapping[str, str]) -> None:
        """Take the first free key: BASE, BASE-2, BASE-3 and so on."""
        ensure_directory(runs_directory(environ))
        for number in count(1):
            key = base if number == 1 else f"{base}-{number}"
            try:
                self._lock = FileLock(Path(run_path(key, environ)))
            except Conflict:
                continue
            except OSError as error:
                raise StoreError(f"{error.filename}: cannot be locked: {error.strerror}") from error
            self.key = key
            return

    def release(self) -> None:
        """Release the key; a second call does nothing."""
        self._lock.release()


def folder_of(key: str, environ: Mapping[str, str]) -> Path:
    """Return the directory of a run's private files."""
    return Path(state_directory(environ), DIRECTORY, key)


def write_files(folder: Path, files: Iterable[PrivateFile]) -> None:
    """Write the private files of a run."""
    for file in files:
        ensure_directory(str(folder.parent))
        ensure_directory(str(folder))
        write_private(file.path, file.content)


def remove_files(folder: Path) -> None:
    """Remove the private files of a run."""
    shutil.rmtree(folder, ignore_errors=True)


def stale_folders(environ: Mapping[str, str]) -> list[Path]:
    """Return the directories of runs that were killed."""
    return [one for one in _folders(environ) if _lock_if_stale(one, environ, remove=False)]


def remove_stale_files(environ: Mapping[str, str]) -> None:
    """Remove the private files of runs that were killed, and the locks on their keys."""
    suffix = f".json{LOCK_SUFFIX}"
    locks = Path(runs_directory(environ)).glob(f"*{suffix}")
    keys = {one.name.removesuffix(suffix) for one in locks}
    for folder in {*_folders(environ), *(folder_of(key, environ) for key in keys)}:
        _lock_if_stale(folder, environ, remove=True)


def _folders(environ: Mapping[str, str]) -> list[Path]:
    return sorted(Path(state_directory(environ), DIRECTORY).glob("*"))


def _lock_if_stale(folder: Path, environ: Mapping[str, str], *, remove: bool) -> bool:
    """Tell whether no process holds a key; with ``remove``, also remove its files.

    The files are removed under the lock, so that no new run takes the key meanwhile.
    """
    try:
        lock = FileLock(Path(run_path(folder.name, environ)))
    except (Conflict, OSError):
        return False
    try:
        if remove:
            remove_files(folder)
    finally:
        lock.release()
    return True


def is_first_time(topic: str, environ: Mapping[str, str]) -> bool:
    """Tell whether the user has not been told about a topic before, and remember that they are now."""
    folder = Path(state_directory(environ), TOLD)
    try:
        ensure_directory(str(folder))
        (folder / topic).touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    except (OSError, StoreError):  # better twice than never
        return True
    return True
