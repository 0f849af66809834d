"""Detection of the agent that a command line starts, from the words of the command alone.

Launchers before the agent's name are skipped by ``agents.launchers``.
"""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.launchers import Launch, program_name
from thoughtgate.errors import UsageError

_BY_COMMAND: Final = {name: agent.type for agent in AGENTS.values() for name in agent.commands}
_BY_PACKAGE: Final = {name: agent.type for agent in AGENTS.values() for name in agent.packages}

_SCRIPTS: Final = frozenset({".js", ".mjs", ".cjs"})


def detect_agent(argv: Sequence[str], agent_type: str | None = None, *, package: str = "") -> str:
    """Return the type of the agent that a command starts, or the type that the user specified.

    ``package`` names the package that a launcher such as ``npx`` takes the command from.

    Raises:
        UsageError: the type is unknown, or none was given and the command is not a known agent.
    """
    if agent_type is not None:
        return agent_named(agent_type)
    if not argv:
        raise UsageError(
            "no agent command given; put it after --, for example: thoughtgate wrap -- claude"
        )
    found = (
        _of_application(argv[0])
        or _BY_PACKAGE.get(_without_version(package))
        or _of_script(argv[0])
        or _BY_COMMAND.get(program_name(argv[0]))
    )
    if found is None:
        raise _unknown(
            argv[0],
            "Say which it is with --agent-type, or name its config file: --agent-type custom"
            " --config-path FILE",
        )
    return found


def agent_named(name: str) -> str:
    """Return the type of the agent that a user named by its type or by the name of its program.

    Raises:
        UsageError: there is no such agent.
    """
    found = name if name in AGENTS else _BY_COMMAND.get(program_name(name))
    if found is None:
        raise _unknown(name, "For any other agent: custom, with --config-path FILE")
    return found


def detect_launched(launch: Launch, agent_type: str | None = None) -> str:
    """Return the type of the agent behind its launchers, or the type that the user specified.

    Raises:
        UsageError: as ``detect_agent``.
    """
    return detect_agent(launch.argv, agent_type, package=launch.package)


def is_command_of(agent_type: str, launch: Launch) -> bool:
    """Tell whether a command by itself starts an agent of this type."""
    try:
        return detect_launched(launch) == agent_type
    except UsageError:
        return False


def _unknown(name: str, otherwise: str) -> UsageError:
    from difflib import get_close_matches  # only for a mistake

    near = get_close_matches(program_name(name), [*_BY_COMMAND, *AGENTS], n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    known = ", ".join(one for one in AGENTS if one != "custom")
    return UsageError(f"{name!r} is not a known agent{hint} {otherwise}\nKnown agents: {known}")


def _without_version(package: str) -> str:
    """Return the name of a package: ``@scope/name`` of ``@scope/name@1.2``."""
    at = package.find("@", 1)
    return package[:at] if at > 0 else package


def _of_script(word: str) -> str | None:
    """Return the agent type of a Node.js script: by the package around it, or by its own name."""
    path = PurePath(word.replace("\\", "/"))
    if path.suffix not in _SCRIPTS:
        return None
    parts = path.parts
    for at, part in enumerate(parts):
        if part == "node_modules":
            scoped = "/".join(parts[at + 1 : at + 3])
            found = _BY_PACKAGE.get(scoped) or _BY_PACKAGE.get(scoped.partition("/")[0])
            if found:
                return found
    return _BY_COMMAND.get(path.stem)


def _of_application(command: str) -> str | None:
    """Return the agent type of the macOS application bundle that contains the command."""
    for part in PurePath(command).parts:
        if part.endswith(".app"):
            for agent in AGENTS.values():
                if agent.application and part.startswith(agent.application):
                    return agent.type
    return None
