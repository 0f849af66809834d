"""Servers of agents, by agent."""

import json
from pathlib import Path

from thoughtgate.agents.installs.survey import ServerState
from thoughtgate.status.agent_servers import by_agent, ungoverned_servers


def test_servers_are_listed_by_the_name_of_their_agent() -> None:
    servers = [
        ServerState(kind, name, "/f", "not governed")
        for kind, name in (("cursor", "a"), ("codex", "b"), ("cursor", "c"))
    ]

    found = {name: [one.server for one in those] for name, those in by_agent(servers)}

    assert found == {"Cursor": ["a", "c"], "Codex": ["b"]}


def test_servers_that_an_agent_starts_without_the_gate_are_found(tmp_path: Path) -> None:
    config = Path.home() / ".cursor" / "mcp.json"
    config.parent.mkdir(parents=True)
    shim = {"command": "thoughtgate", "args": ["shim", "--server-id", "b", "--", "cat"]}
    config.write_text(json.dumps({"mcpServers": {"a": {"command": "cat"}, "b": shim}}), "utf-8")

    ((agent, server),) = ungoverned_servers(tmp_path)
    assert (agent, server.server, server.file) == ("Cursor, Grok", "a", str(config))
