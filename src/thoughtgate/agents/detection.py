"""Detection of the agent that a command line starts, from the name of the command alone."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.errors import UsageError

AGENT_TYPES: Final = tuple(AGENTS)

_BY_COMMAND: Final = {name: agent.type for agent in AGENTS.values() for name in agent.commands}


def detect_agent(argv: Sequence[str], agent_type: str | None = None) -> str:
    """Return the type of the agent that a command starts, or the type that the user specified.

    Raises:
        UsageError: the type is unknown, or none was given and the command is not a known agent.
    """
    if agent_type is not None:
        if agent_type not in AGENT_TYPES:
            raise UsageError(f"unknown agent type {agent_type!r}; {_supported()}")
        return agent_type
    if not argv:
        raise UsageError(
            "no agent command given; put it after --, for example: thoughtgate wrap -- claude"
        )
    found = _of_application(argv[0]) or _BY_COMMAND.get(_name(argv[0]))
    if found is None:
        raise UsageError(
            f"{argv[0]!r} is not a known agent; specify --agent-type, or use "
            f"--agent-type custom with --config-path; {_supported()}"
        )
    return found


def _supported() -> str:
    return "supported types: " + ", ".join(AGENT_TYPES)


def _name(command: str) -> str:
    name = PurePath(command.replace("\\", "/")).name
    return name.removesuffix(".exe").removesuffix(".cmd")


def _of_application(command: str) -> str | None:
    """Return the agent type of the macOS application bundle that contains the command."""
    for part in PurePath(command).parts:
        if part.endswith(".app"):
            for agent in AGENTS.values():
                if agent.application and part.startswith(agent.application):
                    return agent.type
    return None
