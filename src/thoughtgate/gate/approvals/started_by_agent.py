"""Detects whether a governed agent started this process: then it must not decide on approvals.

Every gate that an agent started announces that agent. A process is inside if the agent is one of
its ancestors. A process whose parents have exited has lost its ancestors; it is refused if it may
once have been a descendant of the agent:

- it, or the ancestor that became a child of the system's first process, is younger than the agent,
- runs in the control group of the agent, as all its descendants do,
- as the same user,
- and has no terminal, or only the agent's.

``wrap`` adopts the orphans of its agent, so they still have ``wrap`` among their ancestors.

This does not stop a program of the same user that hides on purpose: it can open a terminal of its
own, ask a service manager or a terminal multiplexer to start something, or write to the store.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from thoughtgate.errors import StoreError, UsageError
from thoughtgate.gate.running_gates import ADOPTS, GOVERNED, list_gates
from thoughtgate.gate.state_directory import account_home, state_directory
from thoughtgate.process.ancestry import (
    Process,
    cgroup_of,
    environment_of,
    lineage,
    sees_namespace,
)
from thoughtgate.stores.process_owner import other_namespace

MARKS: Final = ("THOUGHTGATE_ACTIVE", "THOUGHTGATE_WRAPPED")
"""Set in the environment of a wrapped agent."""

STARTED: Final = "a governed agent started this process"
DETACHED: Final = (
    "this process has no terminal of its own and may have been started by a governed agent"
)
HIDDEN: Final = "the processes that started this one cannot be seen"


def require_person(command: str, environ: Mapping[str, str], state: str) -> None:
    """Refuse a command that only a person may run, if an agent started this process.

    Raises:
        UsageError: an agent started this process, or may have started it.
    """
    reason = find_agent_reason(environ, state)
    if reason:
        raise UsageError(
            f"{reason}, which cannot approve its own calls or loosen its own rules; "
            f"run 'thoughtgate {command}' in another terminal, "
            "or answer in a console that you opened there"
            if reason == STARTED
            else f"{reason}; run 'thoughtgate {command}' in a terminal outside the agent"
        )


def is_inside_agent(environ: Mapping[str, str], state: str, *, wrapped_only: bool = False) -> bool:
    """Tell whether a governed agent started this process, or may have started it.

    With ``wrapped_only`` only if ``wrap`` governs that agent: a gate that an agent itself starts
    as its own has an agent around it in any case.
    """
    return bool(find_agent_reason(environ, state, wrapped_only=wrapped_only))


def find_agent_reason(environ: Mapping[str, str], state: str, *, wrapped_only: bool = False) -> str:
    """Return why this process may not decide; empty if it may."""
    if any(environ.get(name) for name in MARKS):
        return STARTED
    line = lineage(os.getpid())
    around = [environment_of(one.pid) for one in line[1:]]
    if any(one.get(name) for one in around for name in MARKS):
        return STARTED
    gates = [
        gate
        for place in _state_directories(state, around)
        for gate in list_gates(place)
        if isinstance(gate.get(GOVERNED), dict) and (gate[GOVERNED].get(ADOPTS) or not wrapped_only)
    ]
    if not gates:
        return ""
    if not line:
        return HIDDEN
    reasons = [_reason(gate, line) for gate in gates]
    return next((reason for reason in reasons if reason), "")


def runs_around(state: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the gates whose agent started this process, nearest first, with their directories."""
    line = lineage(os.getpid())
    around = [environment_of(one.pid) for one in line[1:]]
    places = {(one.pid, one.started): at for at, one in enumerate(line)}
    found = []
    for place in _state_directories(state, around):
        for gate in list_gates(place):
            agent = gate.get(GOVERNED)
            if isinstance(agent, dict) and not other_namespace(gate["owner"]):
                at = places.get((agent["pid"], agent["started"]))
                if at is not None:
                    found.append((at, place, gate))
    found.sort(key=lambda one: one[0])
    return [(place, gate) for _, place, gate in found]


def _state_directories(state: str, around: Sequence[Mapping[str, str]]) -> list[str]:
    """Return where a gate may have announced the agent that started this process.

    The agent chooses the environment of what it starts, and so the directory that this process
    uses. It does not choose that of the processes that started it, nor its account.
    """
    found = [state, *(state_directory(one) for one in around if one)]
    with contextlib.suppress(StoreError):
        found.append(state_directory({"HOME": account_home()}))
    return list(dict.fromkeys(map(os.path.realpath, found)))


def _reason(gate: Mapping[str, Any], line: Sequence[Process]) -> str:
    namespace = other_namespace(gate["owner"])
    if namespace:
        # A descendant is in the namespace of its ancestors or in one below, where it does not
        # see them. Whoever sees them is in a namespace above.
        return "" if sees_namespace(namespace) else HIDDEN
    agent = gate[GOVERNED]
    # ``wrap`` stands for its agent, and its own console is for people.
    is_wrap = gate.get("kind") == "wrap" and gate.get("pid") == agent["pid"] == line[0].pid
    ancestors = line[1:] if is_wrap else line
    if any(one.pid == agent["pid"] and one.started == agent["started"] for one in ancestors):
        return STARTED
    return DETACHED if not agent.get(ADOPTS) and _may_be_orphan(line, agent) else ""


def _may_be_orphan(line: Sequence[Process], agent: Mapping[str, Any]) -> bool:
    """Tell whether an ancestor may have been a descendant of the agent that lost its parent."""
    # The name of this process is no evidence: it may be that of a link to the interpreter.
    ends = [at for at, one in enumerate(line) if at and one.is_reaper]
    if not ends:
        # The topmost process that we see has another parent than the one that adopts orphans: it
        # was started from outside this container, or by another user whose processes are hidden.
        return False
    below = line[: ends[0]]
    top = below[-1]
    if top.started < agent["started"] or any(one.pid == top.pid for one in lineage(agent["pid"])):
        return False
    if any(one.user != line[0].user for one in below):
        return False
    if cgroup_of(top.pid) != agent["cgroup"]:
        return False
    return not any(one.terminal and one.terminal != agent["terminal"] for one in below)
