"""Detects whether a governed agent started this process: then it must not decide on approvals.

Commands of a wrapped agent have a marker in their environment. Because a marker is easy to
remove, the parent processes are checked as well, where ``/proc`` exists. This does not stop a
process of the same user that hides its ancestry on purpose.
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
