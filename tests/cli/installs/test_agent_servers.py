"""Servers of agents, by agent."""

from thoughtgate.agents.installs.survey import ServerState
from thoughtgate.cli.installs.agent_servers import by_agent


def test_servers_are_listed_by_the_name_of_their_agent() -> None:
    servers = [
        ServerState(kind, name, "/f", "not governed")
        for kind, name in (("cursor", "a"), ("codex", "b"), ("cursor", "c"))
    ]

    found = {name: [one.server for one in those] for name, those in by_agent(servers)}

    assert found == {"Cursor": ["a", "c"], "Codex": ["b"]}
