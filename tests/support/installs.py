"""Config files of every supported agent with one server each, for tests of ``install``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.wraps import Machine

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import discover

COMMENTED: Final = """{
  // kept as it is
  "mcpServers": {
    "sample": {"command": %s, "args": %s,},
  },
}
"""

FILES: Final = {
    "claude-desktop": ".config/Claude/claude_desktop_config.json",
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "windsurf": ".codeium/windsurf/mcp_config.json",
    "zed": ".config/zed/settings.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
}
"""The user's config file of each agent, below the home directory."""


def agent_config(kind: str, command: Sequence[str]) -> str:
    """Return the text of an agent's config with one server, in the agent's own shape."""
    program, *args = command
    entry: dict[str, Any] = {"command": program, "args": args}
    if kind == "cursor":
        return COMMENTED % (json.dumps(program), json.dumps(args))
    if kind == "codex":
        return f"# mine\n[mcp_servers.sample]\ncommand = {json.dumps(program)}\nargs = {json.dumps(args)} # these\n"
    if kind == "opencode":
        entry = {"type": "local", "command": list(command)}
        return json.dumps({"mcp": {"sample": entry}}, indent=4)
    if kind == "zed":
        older = {"command": {"path": program, "args": args, "env": {}}}
        return json.dumps({"theme": "One", "context_servers": {"sample": older}}, indent=2) + "\n"
    if kind == "vscode":
        return json.dumps({"servers": {"sample": entry}}, indent="\t") + "\n"
    return json.dumps({"mcpServers": {"sample": entry}}, indent=2) + "\n"


def write_agent(machine: Machine, kind: str, command: Sequence[str]) -> tuple[Path, bytes]:
    """Write the user's config file of an agent; return its path and content."""
    path = machine.home / FILES[kind]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(agent_config(kind, command), "utf-8")
    return path, path.read_bytes()


def commands_of(machine: Machine, kind: str) -> dict[str, list[str]]:
    """Return the command line of each server, as the agent starts it."""
    search = Search(kind, machine.env, machine.project, machine.home)
    entries = discover(search, lasting=True).entries
    return {one.id: [one.command, *one.args] for one in entries}
