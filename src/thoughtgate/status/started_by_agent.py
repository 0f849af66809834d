"""Whether this process was started by a governed agent, which may not answer for people.

A wrapped agent's commands carry a variable that says so. A variable is soon taken off, so
the line of ancestors is looked at as well, as far as ``/proc`` tells. Whoever runs as the
same user and hides its descent on purpose is not stopped here.
"""

from collections.abc import Mapping
from typing import Final

from thoughtgate.gate.running_gates import list_gates
from thoughtgate.process.process_tree import ancestors

MARKS: Final = ("THOUGHTGATE_ACTIVE", "THOUGHTGATE_WRAPPED")
"""Set in the environment of a wrapped agent."""

WRAP: Final = "wrap"


def is_inside_agent(environ: Mapping[str, str], state: str) -> bool:
    """Tell whether a governed agent started this process."""
    if any(environ.get(name) for name in MARKS):
        return True
    wraps = {gate["pid"] for gate in list_gates(state) if gate.get("kind") == WRAP}
    return not wraps.isdisjoint(ancestors())
