"""The variables of entries that reach only the servers, through a private file.

``agents.entry_environment`` decides which ones. A key on the shim's command line selects those of
its entry, because entries of the same name in several files can have different ones. ``wrap`` keeps
them in its run file, ``install`` in one file per entry.
"""

from collections.abc import Collection, Mapping
from hashlib import sha256
from itertools import pairwise
from typing import Any

from thoughtgate.agents.discovery import Plan, unset_variable
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.entry_environment import ENTRY_OPTION, MovedVariables, moved_variables
from thoughtgate.agents.injection.injection import place_of
from thoughtgate.errors import UsageError
from thoughtgate.gate.installs.entry_variables import read_entry
from thoughtgate.gate.run_file import variables_of
from thoughtgate.gate.state_directory import state_directory

KEY_LENGTH = 16


class ServerVariables:
    """The variables of a plan's entries."""

    def __init__(self, plan: Plan, environ: Mapping[str, str], *, one_run: bool = True) -> None:
        """``one_run`` is False for an installation: each start may merge other files into an entry."""
        self.contents: dict[str, dict[str, Any]] = {}
        """By key: the variables, or the reason why the server must not start."""
        self.refused: list[str] = []
        """The servers that must not start, one line each."""
        last = {entry.id: entry for entry in plan.entries}
        for entry in plan.with_status("governed", "shadowed"):
            # An agent that merges its files gives a server the variables of all of them.
            merges = one_run and plan.agent.merge == "keys"
            source = last[entry.id] if merges else entry
            moved = moved_variables(source, plan.agent, environ)
            if entry.skipped:
                names = {key_of_entry(one) for one in plan.entries if one.id == entry.id}
                moved = _with_installed(entry, moved, names, state_directory(environ))
            # An installed shim gets the environment of each start, where the variable may be set.
            unset = unset_variable(plan, entry) if one_run else ""
            problem = unset or (moved.problem if moved is not None else "")
            if problem:
                self.contents[key_of_entry(entry)] = {"problem": problem}
                self.refused.append(f"{entry.id} ({problem})")
            elif moved is not None:
                self.contents[key_of_entry(entry)] = {"env": dict(moved.values)}

    def key_of(self, entry: ServerEntry) -> str:
        """Return the key of an entry; empty if all of its variables stay in the entry."""
        key = key_of_entry(entry)
        return key if key in self.contents else ""


def _with_installed(
    entry: ServerEntry, moved: MovedVariables | None, keys: Collection[str], state: str
) -> MovedVariables | None:
    """Add the variables that ``install`` keeps for the shim in an entry.

    ``keys`` are those of this server's entries. A shim with any other key, which whoever wrote the
    entry could choose, would get another server's variables.
    """
    words = [entry.command, *entry.args][: entry.skipped]
    key = next((two for one, two in pairwise(words) if one == ENTRY_OPTION and two in keys), "")
    if not key:
        return moved
    now = moved or MovedVariables()
    try:
        kept = variables_of(read_entry(state, key))
    except UsageError as error:
        return now if now.problem else MovedVariables(problem=str(error))
    # Installing has emptied the variables; one that has a value was written again after that.
    values = kept | {name: text for name, text in now.values.items() if text or name not in kept}
    return MovedVariables(values, now.problem)


def key_of_entry(entry: ServerEntry) -> str:
    """Return a key that is the same in each run and reveals nothing about the values."""
    place = "\0".join(place_of(entry))
    return sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_LENGTH]
