"""The servers in agents' configs, and whether they are behind the gate, for several commands."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.installs.survey import ServerState, survey
from thoughtgate.process.own_command import own_command


def agent_servers(state: Path) -> list[ServerState]:
    """Return the servers of all agents of this user, in the working directory."""
    around = Search("custom", os.environ, Path.cwd(), Path.home(), platform=sys.platform)
    return survey(state, around, own_command())


def by_agent(servers: Sequence[ServerState]) -> Iterator[tuple[str, list[ServerState]]]:
    """Yield the name of each agent with its servers."""
    for kind in dict.fromkeys(one.agent for one in servers):
        yield AGENTS[kind].name, [one for one in servers if one.agent == kind]
