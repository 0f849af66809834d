"""A machine whose organisation has a policy: the system's place for it, in a mount namespace.

Nothing that a gate reads, no flag and no variable, can point it at another place. So these tests
change what is mounted there, for the processes of the test alone. Root may do so, and others in a
user namespace of their own, where the system allows these.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from thoughtgate.config.locate import FILE_NAME, SYSTEM_DIRECTORY

FILE: Final = f"{SYSTEM_DIRECTORY}/{FILE_NAME}"
"""The organisation's file, as processes in the namespace see it."""

_MOUNT: Final = (
    'mount -t overlay overlay -o lowerdir="$1":/etc /etc &&'
    f' mount --bind "$2" {SYSTEM_DIRECTORY} && shift 2 && exec "$@"'
)
"""``/etc`` with the organisation's directory in it, then the directory of the test over that."""


class OrganisationPolicy:
    """The organisation's file, and commands that run where it is in force."""

    def __init__(self, folder: Path, text: str) -> None:
        self._place = folder / "place"
        (self._place / Path(SYSTEM_DIRECTORY).name).mkdir(parents=True)
        self._directory = folder / "organisation"
        self._directory.mkdir()
        self.write(text)
        if not _has_namespaces(str(self._place), str(self._directory)):
            pytest.skip("the system allows no mount namespaces")

    def write(self, text: str) -> None:
        """Change the file; processes in the namespace see it at once."""
        (self._directory / FILE_NAME).write_text(text, "utf-8")

    def command(self, command: list[str]) -> list[str]:
        """Return the command as it runs on this machine."""
        return [*_unshare(str(self._place), str(self._directory)), *command]


def _unshare(place: str, directory: str) -> list[str]:
    flags = "-m" if os.geteuid() == 0 else "-rm"
    return ["unshare", flags, "sh", "-c", _MOUNT, "sh", place, directory]


def _has_namespaces(place: str, directory: str) -> bool:
    try:
        done = subprocess.run(
            [*_unshare(place, directory), "true"], capture_output=True, timeout=20, check=False
        )
    except OSError:
        return False
    return done.returncode == 0
