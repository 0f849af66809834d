"""The servers in agents' configs, and whether they are behind the gate."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.installs.survey import NOT_GOVERNED, ServerState, survey
from thoughtgate.process.own_command import own_command


def agent_servers(state: Path) -> list[ServerState]:
    """Return the servers of all agents of this user, in the working directory."""
    around = Search("custom", os.environ, Path.cwd(), Path.home(), platform=sys.platform)
    return survey(state, around, own_command())


def ungoverned_servers(state: Path) -> list[tuple[str, ServerState]]:
    """Return the servers that agents start without the gate, each with the names of its agents."""
    found: dict[tuple[str, str], tuple[list[str], ServerState]] = {}
    for name, servers in by_agent(agent_servers(state)):
        for one in servers:
            if one.status == NOT_GOVERNED:
                # Several agents may read the same file.
                found.setdefault((one.file, one.server), ([], one))[0].append(name)
    return [(", ".join(names), one) for names, one in found.values()]


def by_agent(servers: Sequence[ServerState]) -> Iterator[tuple[str, list[ServerState]]]:
    """Yield the name of each agent with its servers."""
    for kind in dict.fromkeys(one.agent for one in servers):
        yield AGENTS[kind].name, [one for one in servers if one.agent == kind]
