"""The servers of Codex's plugins, which are in no config file.

A server of the same name on the command line replaces that of a plugin, with all its keys. A server
that needs variables or headers can therefore not be given there, where other users of the machine
can read them, and neither can a remote one; those are reported as ungoverned.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.config_paths import Search, codex_home, config_layers, flag_values
from thoughtgate.agents.entries import Layer, UngovernedServer
from thoughtgate.agents.entry_shapes import argv_of
from thoughtgate.agents.injection.records import listed_servers, read_json, read_toml, table

SCOPE: Final = "plugin"
_MANIFEST: Final = Path(".codex-plugin", "plugin.json")
_TABLE: Final = "mcp_servers"
_KEYS: Final = frozenset(
    {
        *("command", "args", "cwd", "enabled", "required", "enabled_tools", "disabled_tools"),
        *("startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec"),
    }
)
"""The keys that are copied to the command line. Codex knows all of them, and none holds a secret."""


def plugin_layers(search: Search) -> tuple[Layer, ...]:
    """Return the plugins' servers that can be injected, as text in place of a file."""
    return tuple(
        Layer(place, place, SCOPE, (_TABLE,), "json", writable=False, inline=_text(servers))
        for place, servers in _by_plugin(search, governed=True)
    )


def ungoverned_plugins(search: Search) -> Iterator[UngovernedServer]:
    """Return the plugins' servers that run without the gate if servers are injected."""
    for place, servers in _by_plugin(search, governed=False):
        for name in servers:
            reason = f"a server of the plugin {place}, remote or with variables of its own"
            yield UngovernedServer(name, reason)
    for value in (one for flag in ("-c", "--config") for one in flag_values(search.argv, flag)):
        if value.startswith("plugins"):
            yield UngovernedServer(f"-c {value.partition('=')[0]}", "plugins may have servers")


def plugins_with_servers(search: Search) -> Iterator[UngovernedServer]:
    """Return the plugins that have servers; rewriting config files governs none of them."""
    for place, servers in _plugins(search):
        names = ", ".join(servers)
        yield UngovernedServer(str(place), f"servers of a plugin: {names}")


def _by_plugin(search: Search, *, governed: bool) -> Iterator[tuple[Path, dict[str, Any]]]:
    taken = _names_in_files(search)
    for place, servers in _plugins(search):
        chosen = {
            name: _with_directory(entry, place) if governed else entry
            for name, entry in servers.items()
            if name not in taken and _can_be_given(entry) is governed
        }
        if chosen:
            yield place, chosen


def _can_be_given(entry: Any) -> bool:
    if not isinstance(entry, Mapping) or not argv_of(entry):
        return False
    return not any(entry.get(key) for key in ("env", "env_vars", "url", "headers"))


def _with_directory(entry: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """Return the keys of an entry to inject; its directory is relative to the plugin."""
    kept = {key: value for key, value in entry.items() if key in _KEYS}
    if isinstance(kept.get("cwd"), str):
        kept["cwd"] = str(place / kept["cwd"])
    return kept


def _plugins(search: Search) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Return the directory and the servers of every plugin that is enabled."""
    home = codex_home(search)
    settings = read_toml(home / "config.toml")
    if table(settings, "features").get("plugins") is False:
        return
    for full, said in table(settings, "plugins").items():
        name, _, market = full.partition("@")
        if isinstance(said, Mapping) and said.get("enabled") is False:
            continue
        place = _newest(home / "plugins" / "cache" / market / name) if market else None
        servers = _servers(place) if place is not None else {}
        if place is not None and servers:
            yield place, servers


def _newest(directory: Path) -> Path | None:
    """Return the directory of a plugin's highest version, which is the one that Codex uses."""
    try:
        found = [one for one in directory.iterdir() if one.is_dir()]
    except OSError:
        return None
    return max(found, key=_version, default=None)


def _version(directory: Path) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts 10.0 after 9.0."""
    words = directory.name.split(".")
    return tuple((int(word), "") if word.isdecimal() else (-1, word) for word in words)


def _servers(directory: Path) -> Mapping[str, Any]:
    """Return the servers of a plugin: in its manifest, or in the file named there."""
    said = read_json(directory / _MANIFEST).get("mcpServers")
    if isinstance(said, Mapping):
        return listed_servers(said)
    named = said if isinstance(said, str) else ".mcp.json"
    return listed_servers(read_json(directory / named))


def _names_in_files(search: Search) -> frozenset[str]:
    """Return the names in Codex's own files and flags, which take precedence over plugins."""
    found: set[str] = set()
    for layer in config_layers(search):
        inline = json.loads(layer.inline) if layer.inline else read_toml(layer.path)
        found |= table(inline, _TABLE).keys()
    return frozenset(found)


def _text(servers: Mapping[str, Any]) -> str:
    return json.dumps({_TABLE: servers})
