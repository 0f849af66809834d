"""Keeping a rewritten config file out of commits while an agent runs.

The lock, the backup and a config that git does not track are listed in the repository's own exclude
file, which is never committed. A config that git tracks gets the index flag ``skip-worktree``: git
then treats it as unchanged, in ``git status`` and in ``git add -A``. Both are undone when the file
is restored.

Runs ``git`` without hooks and without the programs that a repository's config may name.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thoughtgate.agents.atomic import TEMPORARY, read_or_none, replace_file, write_private
from thoughtgate.agents.config_paths import git_root

_TIMEOUT_S: Final = 10.0
_ATTEMPTS: Final = 20
_PAUSE_S: Final = 0.05
"""Pause between attempts to change the index: editors and agents run ``git status`` all the time and
lock the index for some milliseconds."""

NOWHERE: Final = Path(os.devnull)
"""Stands for an exclude file that is not used."""

_SAFE: Final = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
"""A repository's own config must not make our ``git`` start a program of its choice."""
_SPECIAL: Final = "\\*?[!#"
"""Characters with a meaning in the patterns of an exclude file."""


@dataclass(frozen=True, slots=True)
class GitExclusion:
    """What keeps the files around one config out of commits."""

    exclude: Path
    """The repository's own exclude file; ``NOWHERE`` if its path leads out of the repository."""
    lines: tuple[str, ...]
    """The lines that were added to it."""
    top: Path
    tracked: str = ""
    """The config, relative to ``top``, if its index entry was flagged."""


def hold(folder: Path, others: Sequence[Path], config: Path | None = None) -> GitExclusion | None:
    """Exclude files in a folder from commits, and a config too if git does not track it.

    Returns None if the folder is in no work tree, or git does not answer.
    """
    top = git_root(folder)
    if top is None or shutil.which("git") is None:
        return None
    place = _git(top, "rev-parse", "--git-path", "info/exclude")
    name = os.path.relpath(config, top) if config is not None else ""
    listed = _git(top, "ls-files", "-v", "-z", "--", name) if name else ""
    common = _git(top, "rev-parse", "--git-common-dir")
    if place is None or listed is None or common is None:
        return None
    exclude = Path(os.path.realpath(top / place.strip()))
    if not exclude.is_relative_to(os.path.realpath(top / common.strip())):
        # A link in `.git`, made by the agent or by whoever packed the repository, would choose
        # which file is written.
        exclude = NOWHERE
    lines = [_pattern(path.relative_to(top)) for path in others]
    lines.append(f"{_pattern(folder.relative_to(top)).rstrip('/.')}/{TEMPORARY}*.tmp")
    if config is not None and not listed:
        lines.append(_pattern(config.relative_to(top)))
    # Only a plain entry (H) is flagged: flags that the user has set stay, and would otherwise be
    # removed at the end. In a sparse checkout, git itself sets and clears this flag.
    is_sparse = (_git(top, "config", "--bool", "core.sparseCheckout") or "").strip() == "true"
    flagged = listed.startswith("H ") and not is_sparse
    return GitExclusion(exclude, _add(exclude, lines), top, name if flagged else "")


def flag(held: GitExclusion) -> bool:
    """Let git treat the config as unchanged; False if that failed."""
    _add(held.exclude, held.lines)
    return _update(held, "--skip-worktree") if held.tracked else held.exclude != NOWHERE


def unflag(held: GitExclusion) -> bool:
    """Let git look at the config again; False if that failed."""
    return not held.tracked or _update(held, "--no-skip-worktree")


def release(held: GitExclusion) -> None:
    """Remove the lines that were added to the exclude file."""
    for _ in range(_ATTEMPTS if held.lines else 0):
        current = read_or_none(held.exclude)
        if current is None:
            return
        kept = current.splitlines(keepends=True)
        for line in held.lines:
            with contextlib.suppress(ValueError):
                kept.remove(line.encode() + b"\n")
        if replace_file(held.exclude, b"".join(kept), expected=current):
            return


def _add(exclude: Path, lines: Sequence[str]) -> tuple[str, ...]:
    """Add lines that the exclude file does not have; return those that were added."""
    try:
        return _append(exclude, lines)
    except OSError:  # a repository that the user may only read, or no exclude file to use
        return ()


def _append(exclude: Path, lines: Sequence[str]) -> tuple[str, ...]:
    # Other wraps in this repository may change the file between reading and writing.
    for _ in range(_ATTEMPTS):
        current = read_or_none(exclude)
        known = (current or b"").splitlines()
        added = tuple(line for line in lines if line.encode() not in known)
        if not added:
            return ()
        joint = b"" if not current or current.endswith(b"\n") else b"\n"
        content = (current or b"") + joint + "".join(f"{line}\n" for line in added).encode()
        if current is None:
            exclude.parent.mkdir(exist_ok=True)
            write_private(exclude, content)
            return added
        if replace_file(exclude, content, expected=current):
            return added
    return ()


def _pattern(path: Path) -> str:
    """Return the pattern that matches one path from the top of the work tree."""
    return "/" + "".join(f"\\{one}" if one in _SPECIAL else one for one in path.as_posix())


def _update(held: GitExclusion, option: str) -> bool:
    for _ in range(_ATTEMPTS):
        if _git(held.top, "update-index", option, "--", held.tracked) is not None:
            return True
        time.sleep(_PAUSE_S)
    return False


def _git(top: Path, *args: str) -> str | None:
    """Return what a command of git prints; None if it fails."""
    # GIT_DIR, GIT_INDEX_FILE and the like would make git work on another repository.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *_SAFE, "-C", str(top), *args],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_TIMEOUT_S,
            check=False,
            env={**environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # `git config` exits with 1 if the key is not set.
    is_answer = done.returncode == 0 or (args[0] == "config" and done.returncode == 1)
    return done.stdout if is_answer else None
