"""Codex: ``-c`` overrides on top of its files, which it merges key by key.

Every name in the files is listed, because a server that is not listed runs as the files say. A
project's file counts for Codex only if the user trusts the folder. The servers of a folder that is
not trusted are given as disabled, so that they stay off if the user trusts the folder during the
session.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from thoughtgate.agents.config_paths import Search, codex_home, git_root, main_repository
from thoughtgate.agents.entries import Layer, ServerEntry, UngovernedServer
from thoughtgate.agents.entry_shapes import argv_of, merge_keys
from thoughtgate.agents.formats.toml_document import basic_string
from thoughtgate.agents.injection.codex_plugins import SCOPE, ungoverned_plugins
from thoughtgate.agents.injection.command_line import with_arguments
from thoughtgate.agents.injection.injection import Governed, Injection
from thoughtgate.agents.injection.merged_entries import emptied, is_off, merged_value
from thoughtgate.agents.injection.records import read_toml, table

SUBCOMMANDS: Final = frozenset({"agents", "remote-control"})
"""Subcommands that use a long-lived process, which reads the files and ignores our flags."""

OPTION: Final = "-c"
TABLE: Final = "mcp_servers"
_NOWHERE: Final = "http://127.0.0.1:9/"
"""A URL that leads nowhere, for a disabled server that has no command: Codex requires one of the two."""


def inject(given: Governed) -> Injection:
    """Return how Codex is started with every known server behind the gate."""
    trust = FolderTrust(given.plan.search)
    servers: dict[str, Mapping[str, Any]] = {}
    governed, outside, left_out = [], [], []
    for name, stack in given.stacks().items():
        trusted = [entry for entry in stack if trust.covers(entry.layer)]
        if is_off(given, trusted):
            if len(stack) > 1:
                # The user's flag is not passed on, and a folder that is trusted during the session
                # could enable the server.
                servers[name] = {"enabled": False}
            continue
        value = merged_value(given, trusted)
        if not trusted:
            left_out.append(UngovernedServer(name, "the folder is not trusted in Codex"))
            servers[name] = _disabled(given, stack)
        elif value is not None:
            governed.append(name)
            # Our entry replaces that of a plugin as a whole, so it must repeat the plugin's keys.
            kept = dict(value) if trusted[0].layer.scope == SCOPE else {}
            servers[name] = {**kept, **_flags(stack), **_command(value), **emptied(stack)}
        else:
            outside.append(given.ungoverned(trusted[-1]))
            if flags := _flags(stack):
                servers[name] = flags
    own = without_overrides(given.command)
    # One table, because a second option would replace the first, and a dotted key splits names.
    words = [OPTION, f"{TABLE}={_toml(servers)}"] if servers else []
    return Injection(
        with_arguments(own, words),
        tuple(governed),
        left_out=tuple(left_out),
        outside=(*outside, *ungoverned_plugins(given.plan.search)),
    )


class FolderTrust:
    """Which folders the user trusts, as recorded in the user's own file."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._projects = table(read_toml(codex_home(search) / "config.toml"), "projects")

    def covers(self, layer: Layer) -> bool:
        """Tell whether Codex uses a layer: all but those of a project that is not trusted."""
        if layer.scope != "project":
            return True
        folder = layer.path.parent.parent
        top = git_root(folder)
        # The trust may be recorded for the repository, or for a worktree's main repository.
        for place in (folder, folder.resolve(), top, main_repository(top)):
            said = table(self._projects, str(place)).get("trust_level")
            if said is not None:
                return bool(said == "trusted")
        return False


def without_overrides(argv: Sequence[str]) -> list[str]:
    """Return a command line without the user's own servers, which are merged into ours."""
    kept: list[str] = []
    taking = False
    for index, word in enumerate(argv):
        if word == "--":
            return [*kept, *argv[index:]]
        if taking:
            taking = False
            if not word.startswith(TABLE):
                kept += [argv[index - 1], word]
        elif word in (OPTION, "--config"):
            taking = True
        elif not word.startswith((f"{OPTION}{TABLE}", f"--config={TABLE}")):
            kept.append(word)
    return [*kept, *(argv[-1:] if taking else ())]


def _flags(stack: Sequence[ServerEntry]) -> dict[str, Any]:
    """Return what the user's own flags say about a server."""
    merged: dict[str, Any] = {}
    for entry in stack:
        if entry.layer.inline:
            merged = merge_keys(merged, entry.raw)
    return merged


def _command(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the command line of a governed entry; always whole, because keys are merged."""
    command, *args = argv_of(value)
    return {"command": command, "args": args}


def _disabled(given: Governed, stack: Sequence[ServerEntry]) -> dict[str, Any]:
    value = merged_value(given, stack)
    found = _command(value) if value is not None else {"url": _NOWHERE}
    return {**found, "enabled": False}


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{basic_string(key)}={_toml(one)}" for key, one in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return basic_string(value) if isinstance(value, str) else json.dumps(value)
