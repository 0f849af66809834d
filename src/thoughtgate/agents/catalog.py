"""What is peculiar about each supported agent.

A table and nothing else: how an agent marks a server as off, how it writes references to
variables, how it joins entries of one name. Where its files lie is in ``places``.
"""

from dataclasses import dataclass
from typing import Final, Literal

from thoughtgate.agents.expansion import Syntax


@dataclass(frozen=True, slots=True)
class Agent:
    """The habits of one agent program."""

    type: str
    name: str
    off_switch: Literal["disabled", "enabled", "either", "ignored"] = "ignored"
    """The key that switches a server off. ``ignored``: the agent starts the server whatever such a
    key says, so the entry is governed all the same."""
    merge: Literal["entry", "keys"] = "entry"
    """Whether a later file replaces a whole entry of the same name or only the keys it has."""
    syntax: Syntax = "none"
    undefined_is_error: bool = False
    provided: frozenset[str] = frozenset()
    """Variables that the agent defines for its servers."""


AGENTS: Final[dict[str, Agent]] = {
    agent.type: agent
    for agent in (
        Agent("claude-desktop", "Claude Desktop", off_switch="disabled"),
        Agent(
            "claude-code",
            "Claude Code",
            syntax="shell",
            undefined_is_error=True,
            provided=frozenset({"CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT"}),
        ),
        Agent("cursor", "Cursor", off_switch="disabled", syntax="env", undefined_is_error=True),
        Agent("vscode", "VS Code", syntax="env"),
        Agent("windsurf", "Windsurf", off_switch="disabled", syntax="env", undefined_is_error=True),
        Agent("zed", "Zed", off_switch="enabled"),
        Agent("codex", "Codex", off_switch="enabled", merge="keys"),
        Agent("gemini", "Gemini CLI", syntax="dollar"),
        Agent("opencode", "opencode", off_switch="enabled", merge="keys", syntax="brace-env"),
        Agent("custom", "the agent", off_switch="either"),
    )
}
