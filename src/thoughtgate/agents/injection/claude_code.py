"""Claude Code: one private config file, and the flag that makes it the only one.

``--strict-mcp-config`` drops every server of every file and plugin, so all servers that may run are
in the private file. Claude Code expands ``${V}`` in it as in its own files.
"""

from collections.abc import Iterator
from typing import Final

from thoughtgate.agents.config_paths import Search, claude_settings_directory
from thoughtgate.agents.injection.claude_approvals import ClaudeApprovals
from thoughtgate.agents.injection.command_line import with_arguments, without_flag
from thoughtgate.agents.injection.injection import Governed, Injection
from thoughtgate.agents.injection.whole_entries import whole_entries
from thoughtgate.agents.ungoverned_servers import subagents

CONFIG: Final = "--mcp-config"
STRICT: Final = "--strict-mcp-config"
SUBCOMMANDS: Final = frozenset(
    {
        *("agents", "attach", "auth", "auto-mode", "config", "doctor", "gateway", "import"),
        *("install", "kill", "logs", "mcp", "migrate-installer", "plugin", "plugins", "purge"),
        *("respawn", "rm", "setup-token", "stop", "ultrareview", "update", "upgrade"),
    }
)
"""Subcommands that use the servers in the files, or none, whatever the flags say."""


def managed_file(search: Search) -> str:
    """Return the administrator's file that is Claude Code's only source of servers; or empty."""
    path = search.system_wide("claude-code", "ClaudeCode") / "managed-mcp.json"
    return str(path) if path.exists() else ""


def inject(given: Governed) -> Injection:
    """Return how Claude Code is started with the governed servers and no others."""
    approvals = ClaudeApprovals(given.plan.search)
    found = whole_entries(given, approvals.refusal)
    file = found.private_file(given)
    own = without_flag(without_flag(given.command, CONFIG), STRICT, values=False)
    # Written with "=", and followed by another option: otherwise the flag, which takes several
    # values, would also take the user's prompt.
    added = (f"{CONFIG}={file.path}", STRICT)
    return Injection(
        with_arguments(own, added),
        found.governed,
        files=(file,),
        left_out=found.left_out,
        outside=found.outside,
        warnings=tuple(_warnings(given)),
    )


def _warnings(given: Governed) -> Iterator[str]:
    """Return what the user may not expect."""
    if not {"--bg", "--background"}.isdisjoint(given.command):
        yield "a session in the background loses its servers when the command above ends"
    search = given.plan.search
    for one in subagents(claude_settings_directory(search), search.cwd / ".claude"):
        yield f"{one.place}: the servers that it defines are not started in this run"
