"""Gemini CLI: a system settings file, whose servers replace those of the same name everywhere.

Names, folder trust and the lists of allowed and excluded servers keep their effect. Gemini accepts
such a file only if nobody but root can change it, so this is for sessions that run as root, as in
containers; for other users the files are rewritten.
"""

import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from thoughtgate.agents.atomic import read_regular
from thoughtgate.agents.config_paths import Search, gemini_home, gemini_system_settings
from thoughtgate.agents.documents import parse_document
from thoughtgate.agents.injection.command_line import first_word_of
from thoughtgate.agents.injection.injection import Governed, Injection, PrivateFile
from thoughtgate.agents.injection.records import MAX_RECORD
from thoughtgate.agents.injection.whole_entries import whole_entries
from thoughtgate.agents.ungoverned_servers import extensions

VARIABLE: Final = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
FILE: Final = "settings.json"
_SANDBOX: Final = frozenset({"-s", "--sandbox"})


def obstacle(search: Search, state: Path) -> str:
    """Return why servers cannot be given to this command; empty if they can.

    Args:
        search: where Gemini would look.
        state: the directory below which private files are written.
    """
    if first_word_of(search.argv, _SANDBOX):
        return "a sandbox of Gemini CLI does not see what it is given at its start"
    if not _only_root_writes(state):
        return f"Gemini CLI accepts settings at its start only if root alone can change {state}"
    system = gemini_system_settings(search)
    if system.exists() and not _only_root_writes(system):
        return f"Gemini CLI ignores {system}, which not only root can change"
    return ""


def inject(given: Governed) -> Injection:
    """Return how Gemini CLI is started with every known server behind the gate."""
    search = given.plan.search
    # Without a refusal: Gemini itself checks folder trust and applies its lists to these servers.
    found = whole_entries(given)
    values = {**_system_values(search), "mcpServers": found.servers}
    file = PrivateFile(given.folder / FILE, json.dumps(values, indent=1).encode())
    return Injection(
        given.command,
        found.governed,
        variables={VARIABLE: str(file.path)},
        files=(file,),
        outside=(*found.outside, *extensions(gemini_home(search), "gemini-extension.json")),
    )


def _system_values(search: Search) -> dict[str, object]:
    """Return the administrator's settings, which our file replaces and therefore includes.

    Raises:
        ConfigError: the file cannot be parsed.
    """
    path = gemini_system_settings(search)
    try:
        content = read_regular(path, MAX_RECORD)
    except OSError:
        return {}
    values = parse_document(content, "json", file=str(path)).values
    return dict(values) if isinstance(values, dict) else {}


def _only_root_writes(path: Path) -> bool:
    """Tell whether a path and every directory above it belong to root and only root can write."""
    return all(map(is_roots, _with_parents(path)))


def _with_parents(path: Path) -> Sequence[Path]:
    real = path.resolve()
    # Also the directories of the path as written: whoever can write one can replace a link in it.
    return tuple(dict.fromkeys([real, *real.parents, *path.absolute().parents]))


def is_roots(path: Path) -> bool:
    """Tell whether a path belongs to root and nobody else can write to it."""
    try:
        status = path.stat()
    except FileNotFoundError:  # it will be created by the user who runs this
        return os.geteuid() == 0
    except OSError:
        return False
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
