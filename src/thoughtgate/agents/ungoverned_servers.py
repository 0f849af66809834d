"""Servers that reach an agent past every file that can be rewritten.

Owns the list of such ways that are seen to be in use: a definition on the agent's command line or
in a variable, and servers that plugins and extensions bring. They are not governed; the caller
says so, loudly.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.config_paths import Search, flag_values
from thoughtgate.agents.entries import OutsideServer

_MAX_MANIFEST: Final = 4 * 1024 * 1024
"""Bytes read of a manifest; real ones have a few kilobytes."""


def outside_servers(search: Search) -> tuple[OutsideServer, ...]:
    """Return what the agent would start from places that no rewrite reaches."""
    if search.config_path is not None:
        return ()
    finders = {
        "claude-code": _claude_code,
        "codex": _codex,
        "gemini": _gemini,
        "opencode": _opencode,
    }
    finder = finders.get(search.agent_type)
    return tuple(finder(search)) if finder else ()


def _claude_code(search: Search) -> Iterator[OutsideServer]:
    for value in flag_values(search.argv, "--mcp-config"):
        if value.lstrip().startswith("{"):
            yield OutsideServer("--mcp-config", "servers given as text; put them into a file")
    home = search.variable_path("CLAUDE_CONFIG_DIR") or search.home / ".claude"
    installed = _read(home / "plugins" / "installed_plugins.json")
    for directory in sorted(set(_install_paths(installed))):
        if (Path(directory) / ".mcp.json").is_file():
            yield OutsideServer(str(Path(directory) / ".mcp.json"), "servers of a plugin")


def _codex(search: Search) -> Iterator[OutsideServer]:
    given = [(flag, one) for flag in ("-c", "--config") for one in flag_values(search.argv, flag)]
    # The short flag may have its value joined to it.
    given += [("-c", one[2:]) for one in search.argv[1:] if one.startswith("-cmcp_servers")]
    for flag, value in given:
        if value.startswith("mcp_servers"):
            name = ".".join(value.partition("=")[0].split(".")[:2])
            yield OutsideServer(f"{flag} {name}", "a server given on the command line")


def _gemini(search: Search) -> Iterator[OutsideServer]:
    extensions = search.home / ".gemini" / "extensions"
    for manifest in sorted(extensions.glob("*/gemini-extension.json")):
        values = _read(manifest)
        if isinstance(values, dict) and values.get("mcpServers"):
            yield OutsideServer(str(manifest), "servers of an extension")


def _opencode(search: Search) -> Iterator[OutsideServer]:
    if '"mcp"' in search.env.get("OPENCODE_CONFIG_CONTENT", ""):
        yield OutsideServer("OPENCODE_CONFIG_CONTENT", "servers given in a variable")


def _read(path: Path) -> Any:
    """Return a manifest's values; a file that the agent could not read either says nothing."""
    try:
        with path.open("rb") as file:
            return json.loads(file.read(_MAX_MANIFEST))
    except (OSError, ValueError, RecursionError):
        return None


def _install_paths(values: Any) -> Iterator[str]:
    if isinstance(values, dict):
        path = values.get("installPath")
        if isinstance(path, str):
            yield path
        for item in values.values():
            yield from _install_paths(item)
    elif isinstance(values, list):
        for item in values:
            yield from _install_paths(item)
