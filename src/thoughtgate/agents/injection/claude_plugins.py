"""The servers of Claude Code's plugins, which its strict mode would drop.

They get the names that Claude Code gives them, ``plugin:PLUGIN:SERVER``, so that the names of their
tools stay the same. References to the plugin's own directory are resolved here, because Claude Code
resolves them only for plugins.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.config_paths import Search, claude_settings_directory, flag_values
from thoughtgate.agents.entries import Layer
from thoughtgate.agents.injection.claude_approvals import is_trusted_folder
from thoughtgate.agents.injection.records import listed_servers, read_json, table

ROOT: Final = "${CLAUDE_PLUGIN_ROOT}"
_MANIFEST: Final = Path(".claude-plugin", "plugin.json")


def plugin_layers(search: Search) -> tuple[Layer, ...]:
    """Return the servers of every plugin that is in use, as text in place of a file."""
    if "--strict-mcp-config" in search.argv:
        return ()
    layers = []
    for name, directory in _plugins(search):
        servers = {f"plugin:{name}:{key}": one for key, one in _servers(directory).items()}
        if servers:
            text = json.dumps({"mcpServers": _with_root(servers, str(directory))})
            place = directory / ".mcp.json"
            layers.append(
                Layer(place, place, "plugin", ("mcpServers",), writable=False, inline=text)
            )
    return tuple(layers)


def _plugins(search: Search) -> Iterator[tuple[str, Path]]:
    """Return the name and directory of every plugin that is enabled or given on the command line."""
    home = claude_settings_directory(search)
    enabled = dict(table(read_json(home / "settings.json"), "enabledPlugins"))
    is_trusted = is_trusted_folder(search)
    for name in ("settings.json", "settings.local.json"):
        said = table(read_json(search.cwd / ".claude" / name), "enabledPlugins")
        # A repository can contain these files, so without trust they can only disable plugins.
        enabled.update({key: one for key, one in said.items() if is_trusted or one is not True})
    installed = table(read_json(home / "plugins" / "installed_plugins.json"), "plugins")
    for full, places in installed.items():
        if enabled.get(full) is True and isinstance(places, list):
            # A plugin can be installed for one project; the last one that applies here counts.
            found = [one for one in places if isinstance(one, Mapping) and _applies(one, search)]
            if found:
                yield full.partition("@")[0], Path(str(found[-1].get("installPath")))
    for value in flag_values(search.argv, "--plugin-dir"):
        directory = search.cwd / value
        named = read_json(directory / _MANIFEST).get("name")
        yield str(named or directory.name), directory


def _applies(place: Mapping[str, Any], search: Search) -> bool:
    project = place.get("projectPath")
    if not isinstance(project, str):
        return True
    return Path(project) in (search.cwd, search.cwd.resolve(), *search.cwd.parents)


def _servers(directory: Path) -> Mapping[str, Any]:
    """Return the servers of a plugin: in its own file, and in its manifest or a file named there."""
    said = read_json(directory / _MANIFEST).get("mcpServers")
    named = said if isinstance(said, list) else [said]
    found: dict[str, Any] = dict(listed_servers(read_json(directory / ".mcp.json")))
    for one in named:
        found.update(listed_servers(read_json(directory / one) if isinstance(one, str) else one))
    return found


def _with_root(value: Any, directory: str) -> Any:
    if isinstance(value, str):
        return value.replace(ROOT, directory)
    if isinstance(value, Mapping):
        return {key: _with_root(one, directory) for key, one in value.items()}
    return [_with_root(one, directory) for one in value] if isinstance(value, list) else value
