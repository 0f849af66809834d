"""Where ``install`` keeps the variables that an installed entry's server alone gets.

One private file per entry in the state directory. The key is on the shim's command line, and a wrap
of an agent that is installed reads the same file.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from thoughtgate.gate.run_file import MAX_BYTES
from thoughtgate.gate.state_directory import read_private_file, write_private_file

DIRECTORY: Final = "installs/entries"
_KEY: Final = re.compile(r"[0-9a-f]{16}")


def entry_path(state: str, key: str) -> str:
    """Return the path of the file with the variables of an entry."""
    return str(Path(state, DIRECTORY, f"{key}.json"))


def write_entry(state: str, key: str, told: Mapping[str, Any]) -> None:
    """Keep ``env``, or ``problem`` with the reason why the server must not start."""
    write_private_file(entry_path(state, key), json.dumps(told))


def read_entry(state: str, key: str) -> dict[str, Any]:
    """Return what was kept for an entry; a ``problem`` if that cannot be read."""
    if not _KEY.fullmatch(key):
        return {"problem": f"--entry {key!r} is not the key of an entry"}
    path = entry_path(state, key)
    try:
        told = json.loads(read_private_file(path, MAX_BYTES))
    except OSError as error:
        reason = error.strerror or str(error)
        return {"problem": f"{path}: {reason}; run thoughtgate install again"}
    except ValueError:
        told = None
    if not isinstance(told, dict):
        return {"problem": f"{path} is damaged; run thoughtgate install again"}
    return told
