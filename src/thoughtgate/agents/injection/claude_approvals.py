"""What the user of Claude Code has approved and refused, read from its own records.

A server of a project's ``.mcp.json`` needs an approval by name. Approvals in the user's settings
always count. Those in the project's settings, or in the project's part of ``~/.claude.json``, count
only after the user has trusted the folder, because a repository can contain such settings. A refusal
counts wherever it is found.
"""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from thoughtgate.agents.config_paths import (
    Search,
    claude_code_state,
    claude_project_keys,
    claude_settings_directory,
)
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.injection.records import read_json, table, texts

_ALL: Final = "enableAllProjectMcpServers"
_APPROVED: Final = "enabledMcpjsonServers"
_REFUSED: Final = "disabledMcpjsonServers"


class ClaudeApprovals:
    """The approvals and refusals that apply in one directory."""

    def __init__(self, search: Search) -> None:
        own = _own_records(search)
        folder = search.cwd / ".claude"
        shared = [read_json(folder / name) for name in ("settings.json", "settings.local.json")]
        users = read_json(claude_settings_directory(search) / "settings.json")
        managed = list(_managed(search))
        always = [users, *managed]
        approving = [*always, *((*shared, *own) if _has_trust(own) else ())]
        everything = [*always, *shared, *own]
        self._all = any(one.get(_ALL) is True for one in approving)
        # Approvals from fewer places than refusals: a repository can refuse, but not approve.
        self._approved = frozenset[str]().union(*(texts(one.get(_APPROVED)) for one in approving))
        self._refused = frozenset[str]().union(*(texts(one.get(_REFUSED)) for one in everything))
        self._denied = [one for settings in everything for one in _denials(settings)]

    def refusal(self, entry: ServerEntry) -> str:
        """Return why an entry must not be given to Claude Code; empty if it may be."""
        if any(_matches(denial, entry) for denial in self._denied):
            return "denied by deniedMcpServers in Claude Code's settings"
        if entry.layer.scope != "project":
            return ""
        if entry.id in self._refused:
            return "you rejected this project server in Claude Code"
        if self._all or entry.id in self._approved:
            return ""
        return (
            "a project server that you have not approved in Claude Code; "
            "with 'thoughtgate wrap --rewrite', Claude Code asks you about it"
        )


def is_trusted_folder(search: Search) -> bool:
    """Tell whether the user trusts the folder; only then do approvals in its settings count."""
    return _has_trust(_own_records(search))


def _own_records(search: Search) -> list[Mapping[str, Any]]:
    """Return what Claude Code's own file says about the project."""
    projects = table(read_json(claude_code_state(search)), "projects")
    return [table(projects, key) for key in claude_project_keys(search.cwd)]


def _has_trust(own: Iterable[Mapping[str, Any]]) -> bool:
    return any(one.get("hasTrustDialogAccepted") is True for one in own)


def _managed(search: Search) -> Iterator[Mapping[str, Any]]:
    """Return the settings that an administrator manages."""
    directory = search.system_wide("claude-code", "ClaudeCode")
    yield read_json(directory / "managed-settings.json")
    yield from map(read_json, sorted((directory / "managed-settings.d").glob("*.json")))


def _denials(settings: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    listed = settings.get("deniedMcpServers")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping):
            yield one


def _matches(denial: Mapping[str, Any], entry: ServerEntry) -> bool:
    """Tell whether a denial applies to an entry.

    Claude Code sees only the shim's command line, so it could not apply the denial itself.
    """
    words = [entry.command, *entry.args][entry.skipped :]
    url = denial.get("serverUrl")
    return (
        denial.get("serverName") == entry.id
        or (bool(entry.command) and denial.get("serverCommand") == words)
        or (isinstance(url, str) and bool(entry.url) and fnmatchcase(entry.url, url))
    )
