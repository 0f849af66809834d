"""A stand-in for an agent that is given servers at its start: it finds them as the real program does.

What the real programs do was observed; ``tests/interop/test_agent_sessions.py`` repeats it with them.
"""

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.support.obedient_agent import ObedientAgent, take_orders

from thoughtgate.agents.entry_shapes import merge_keys


class StandIn(ObedientAgent):
    """An obedient agent with the servers of a real one."""

    def __init__(self, name: str, words: list[str]) -> None:
        super().__init__(Path(os.devnull), "")
        self._name = name
        self._words = words

    def obey(self, order: dict[str, Any]) -> Any:
        """Carry out one order; besides those of every obedient agent, say how it was started."""
        if order["do"] == "words":
            return self._words
        if order["do"] == "servers":
            return self.servers()
        return super().obey(order)

    def servers(self) -> dict[str, Any]:
        """Return the entries that are in force."""
        return _SERVERS[self._name](self._words)


def _claude(words: list[str]) -> dict[str, Any]:
    """Strict: only what the flags name. Otherwise the user's file, then the project's."""
    given = [word.partition("=")[2] for word in words if word.startswith("--mcp-config=")]
    files = [Path(one) for one in given]
    if "--strict-mcp-config" not in words:
        files = [Path.home() / ".claude.json", Path(".mcp.json"), *files]
    found: dict[str, Any] = {}
    for file in files:
        if file.exists():
            found |= json.loads(file.read_text("utf-8")).get("mcpServers", {})
    return found


def _codex(words: list[str]) -> dict[str, Any]:
    """The user's file, with the overrides merged in key by key; of two for one key, the last counts."""
    values = tomllib.loads((Path.home() / ".codex" / "config.toml").read_text("utf-8"))
    given: dict[str, Any] = {}
    for at, word in enumerate(words):
        if word == "-c":
            given |= tomllib.loads(words[at + 1])
    values = merge_keys(values, given)
    servers = values["mcp_servers"]
    return {name: one for name, one in servers.items() if one.get("enabled", True)}


def _opencode(_: list[str]) -> dict[str, Any]:
    """The project's file, with the variable merged in key by key."""
    values = json.loads(Path("opencode.json").read_text("utf-8"))
    values = merge_keys(values, json.loads(os.environ.get("OPENCODE_CONFIG_CONTENT", "{}")))
    return {
        name: {"command": one["command"][0], "args": one["command"][1:]}
        for name, one in values["mcp"].items()
        if one["type"] == "local"
    }


_SERVERS = {"claude": _claude, "codex": _codex, "opencode": _opencode}

if __name__ == "__main__":
    sys.exit(take_orders(StandIn(sys.argv[1], sys.argv[2:])))
