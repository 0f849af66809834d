"""Which servers in agents' configs are behind the gate, for ``status`` and ``doctor``. Writes nothing.

Files that a wrap changes while it runs count as wrapped. A server that only ``wrap`` would govern
counts as not governed, because the agent can be started without it.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import discover
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.entry_environment import sets_environment
from thoughtgate.agents.installs.installed_configs import InstalledConfigs

INSTALLED: Final = "installed"
SHIM: Final = "shim"
WRAPPED: Final = "wrapped"
NOT_GOVERNED: Final = "not governed"
BROKEN: Final = "broken"


@dataclass(frozen=True, slots=True)
class ServerState:
    """One server in a config file of an agent."""

    agent: str
    server: str
    file: str
    status: str
    """``installed``, ``shim`` if a shim was added by hand, ``wrapped`` if a wrap is running,
    ``not governed``, or ``broken`` if its shim cannot start."""
    note: str = ""
    has_installation: bool = False
    """Whether other servers of this agent are installed."""

    def as_json(self) -> dict[str, Any]:
        """Return the state as ``status --json`` prints it."""
        return {key: value for key, value in asdict(self).items() if key != "has_installation"}


def survey(state: Path, around: Search, own: Sequence[str]) -> list[ServerState]:
    """Return the servers in the configs of all known agents, and in all files that are installed.

    Args:
        state: the state directory.
        around: the surroundings of the agents; its agent type does not matter.
        own: the command that starts this program.
    """
    configs = InstalledConfigs(state)
    heads = list(configs.heads())
    installed = {agent for one in configs.journals.values() for agent in one.agent_type.split(",")}
    found = []
    searches = [replace(around, agent_type=kind) for kind in AGENTS if kind != "custom"]
    seen: set[Path] = set()
    for search in (*searches, *_installed_files(configs, around)):
        kind = search.agent_type
        if search.config_path in seen:
            continue
        plan = discover(search, lasting=True)
        seen |= {file.path for file in plan.files}
        for entry in plan.entries:
            status, note = _state_of(entry, heads, own)
            place = str(entry.layer.path)
            found.append(ServerState(kind, entry.id, place, status, note, kind in installed))
    return list(dict.fromkeys(found))


def _installed_files(configs: InstalledConfigs, around: Search) -> Iterator[Search]:
    """Yield a search for each installed file; it may belong to another directory's project."""
    for journal in configs.journals.values():
        kind = journal.agent_type.split(",")[0]
        if kind in AGENTS:
            yield replace(around, agent_type=kind, config_path=journal.files[0].path)


def _state_of(
    entry: ServerEntry, heads: Sequence[tuple[str, ...]], own: Sequence[str]
) -> tuple[str, str]:
    argv = [entry.command, *entry.args]
    if entry.status == "managed":
        return WRAPPED, ""
    head = next((one for one in heads if tuple(argv[: len(one)]) == one), None)
    if head is not None:
        missing = next(iter(_missing(head)), "")
        if missing:
            return BROKEN, f"{missing} does not exist any more"
        return INSTALLED, _note(entry, head, own)
    if entry.skipped:
        return SHIM, ""
    return NOT_GOVERNED, entry.note


def _missing(head: Sequence[str]) -> Iterator[str]:
    """Yield the files without which a shim does not start."""
    if not os.access(head[0], os.X_OK):
        yield head[0]
    shim = head[: head.index("--")]
    named = [two for one, two in pairwise(shim) if one == "-c"]
    yield from (path for path in named if not Path(path).exists())


def _note(entry: ServerEntry, head: Sequence[str], own: Sequence[str]) -> str:
    if list(head[: len(own)]) != list(own):
        return "starts another installation of ThoughtGate"
    if sets_environment(entry.raw, filled=True):
        return "sets variables that can replace or redirect its shim"
    return ""
