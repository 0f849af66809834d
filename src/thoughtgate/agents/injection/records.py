"""Reading the files in which agents keep what their users have approved.

A file that is missing or unreadable approves nothing.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.atomic import read_regular

MAX_RECORD: Final = 64 * 1024 * 1024
"""Maximum bytes of such a file; Claude Code's contain a few megabytes of history."""


def read_json(path: Path) -> Mapping[str, Any]:
    """Return the object in a JSON file; empty if there is none."""
    try:
        found = json.loads(read_regular(path, MAX_RECORD))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_toml(path: Path) -> Mapping[str, Any]:
    """Return the table in a TOML file; empty if there is none."""
    try:
        return tomllib.loads(read_regular(path, MAX_RECORD).decode())
    except (OSError, ValueError, RecursionError):
        return {}


def table(values: Any, *keys: str) -> Mapping[str, Any]:
    """Return a table inside a value; empty if there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values if isinstance(values, Mapping) else {}


def listed_servers(values: Any) -> Mapping[str, Any]:
    """Return the servers in a plugin's file, with or without the key around them."""
    if not isinstance(values, Mapping):
        return {}
    return table(values, "mcpServers") if "mcpServers" in values else values


def texts(value: Any) -> frozenset[str]:
    """Return the strings of a list; empty for anything else."""
    if not isinstance(value, list):
        return frozenset()
    return frozenset(one for one in value if isinstance(one, str))
