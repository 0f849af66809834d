"""The running applications of macOS, which are not descendants of the process that opened them.

On other systems, nothing is found.
"""

import sys
from pathlib import PurePath
from typing import Final

from thoughtgate.process.ancestry import run_ps

_PLATFORM: Final[str] = sys.platform


def processes_of(application: str) -> list[int]:
    """Return the main processes of an application, by the beginning of its bundle's name."""
    if _PLATFORM != "darwin" or not application:
        return []
    return find_bundle(run_ps(("ps", "-axww", "-o", "pid=,comm=")), application)


def find_bundle(table: str, application: str) -> list[int]:
    """Return the processes in the output of ``ps`` that run the main program of a bundle.

    Helpers are left out: they are bundles inside the bundle, and end with it.
    """
    found = []
    for line in table.splitlines():
        pid, _, command = line.strip().partition(" ")
        parts = PurePath(command.strip()).parts
        bundles = [at for at, part in enumerate(parts) if part.endswith(".app")]
        if not pid.isdigit() or len(bundles) != 1:
            continue
        at = bundles[0]
        is_main = parts[at + 1 : at + 3] == ("Contents", "MacOS")
        if is_main and parts[at].startswith(application):
            found.append(int(pid))
    return found
