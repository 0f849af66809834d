"""The command that starts another process of this program, isolated from its environment.

Processes of the gate are started by agents, in directories and with variables that others chose.
Python would run code from them before the first line of ours: a ``sitecustomize`` module on
``PYTHONPATH``, or a module in the working directory that is named like one that we import.
"""

import site
import sys
from pathlib import Path
from typing import Final

_ISOLATED: Final = "-I"
_WITH_USER_SITE: Final = "-EP"
"""Like ``-I``, but with the user's own packages, for an installation with ``pip install --user``."""

_CACHE_TAG: Final = "CACHEDIR.TAG"


def own_command() -> list[str]:
    """Return the command as an absolute path and arguments; the same in each run.

    Links in the path are resolved, except for the last: Python recognises a virtual environment by
    the directory in which that link is.
    """
    python = Path(sys.executable)
    program = str(python.parent.resolve() / python.name)
    if getattr(sys, "frozen", False):  # the self-contained folder; its interpreter is isolated
        return [program]
    flags = _WITH_USER_SITE if _is_in(Path(__file__), site.getusersitepackages()) else _ISOLATED
    return [program, flags, "-m", "thoughtgate"]


def runs_from_cache() -> bool:
    """Tell whether this installation may vanish: ``uvx`` and ``pipx run`` keep theirs in a cache.

    Both mark the cache with the file ``CACHEDIR.TAG``. The environment's own directory does not
    count, because ``uv venv`` marks every environment.
    """
    folder = Path(sys.executable).parent if getattr(sys, "frozen", False) else Path(sys.prefix)
    return any((parent / _CACHE_TAG).is_file() for parent in folder.resolve().parents)


def _is_in(file: Path, folder: str) -> bool:
    return file.resolve().is_relative_to(Path(folder).resolve())
