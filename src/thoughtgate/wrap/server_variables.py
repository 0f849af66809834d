"""The variables of a run's entries that go through the run file to the servers alone.

``agents.entry_environment`` decides which ones. A key on the shim's command line selects those of
its entry, because entries of the same name in several files can have different ones.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.entry_environment import moved_variables

KEY_LENGTH = 16


class ServerVariables:
    """The variables of a plan's entries, for the run file."""

    def __init__(self, plan: Plan, environ: Mapping[str, str]) -> None:
        self.contents: dict[str, dict[str, Any]] = {}
        """By key: the variables, or the reason why the server must not start."""
        self.refused: list[str] = []
        """The servers that must not start, one line each."""
        last = {entry.id: entry for entry in plan.entries}
        for entry in plan.with_status("governed", "shadowed"):
            # An agent that merges its files gives a server the variables of all of them.
            source = last[entry.id] if plan.agent.merge == "keys" else entry
            moved = moved_variables(source, plan.agent, environ)
            if moved is None:
                continue
            if moved.problem:
                self.contents[_key(entry)] = {"problem": moved.problem}
                self.refused.append(f"{entry.id} ({moved.problem})")
            else:
                self.contents[_key(entry)] = {"env": dict(moved.values)}

    def key_of(self, entry: ServerEntry) -> str:
        """Return the key of an entry; empty if all of its variables stay in the entry."""
        key = _key(entry)
        return key if key in self.contents else ""


def _key(entry: ServerEntry) -> str:
    """Return a key that is the same in each run and tells nothing about the values."""
    place = "\0".join((str(entry.layer.real), *entry.path))
    return sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_LENGTH]
