"""The supported agents and how their config files differ.

A table of how each agent disables a server, refers to environment variables and merges entries
with the same name. The paths of the files are in ``config_paths``.
"""

from dataclasses import dataclass
from typing import Final, Literal

from thoughtgate.agents.expansion import Syntax


@dataclass(frozen=True, slots=True)
class Agent:
    """How one agent program reads its config files."""

    type: str
    name: str
    commands: tuple[str, ...] = ()
    """The names of its program."""
    application: str = ""
    """The beginning of the name of its macOS application."""
    off_switch: Literal["disabled", "enabled", "either", "ignored"] = "ignored"
    """The key that disables a server. ``ignored``: the agent starts the server regardless of such
    a key, so the entry is governed as well."""
    merge: Literal["entry", "keys"] = "entry"
    """Whether a later file replaces the whole entry of the same name, or only the keys it sets."""
    syntax: Syntax = "none"
    undefined_is_error: bool = False
    provided: frozenset[str] = frozenset()
    """Variables that the agent defines for its servers."""


_LIST: Final = (
    Agent("claude-desktop", "Claude Desktop", ("claude-desktop",), "Claude", off_switch="disabled"),
    Agent("claude-code", "Claude Code", ("claude", "claude-code"), syntax="shell", undefined_is_error=True, provided=frozenset({"CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT"})),
    Agent("cursor", "Cursor", ("cursor", "cursor-agent"), "Cursor", off_switch="disabled", syntax="env", undefined_is_error=True),
    Agent("vscode", "VS Code", ("code", "code-insiders"), "Visual Studio Code", syntax="env"),
    Agent("windsurf", "Windsurf", ("windsurf",), "Windsurf", off_switch="disabled", syntax="env", undefined_is_error=True),
    Agent("zed", "Zed", ("zed", "zeditor"), "Zed", off_switch="enabled"),
    Agent("codex", "Codex", ("codex",), off_switch="enabled", merge="keys"),
    Agent("gemini", "Gemini CLI", ("gemini",), syntax="dollar"),
    Agent("opencode", "opencode", ("opencode",), off_switch="enabled", merge="keys", syntax="brace-env"),
    Agent("custom", "the agent", off_switch="either"),
)  # fmt: skip

AGENTS: Final = {agent.type: agent for agent in _LIST}
"""The agents by type."""
