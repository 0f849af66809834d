"""Servers as the running gates describe them, with what is known from pins and the record.

Only the gates know which servers run: a record tells what was true when it was last written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from thoughtgate.core.record_events import ERROR
from thoughtgate.core.server_lifecycle import (
    DISABLED,
    FAILED,
    HALTED,
    RUNNING,
    STARTING,
    STOPPED,
    STOPPING,
    WAITING,
)
from thoughtgate.errors import LOGIN_REQUIRED
from thoughtgate.record.call_totals import CallTotal
from thoughtgate.status.call_statistics import percentile
from thoughtgate.upstream.health import DEGRADED, DOWN, UP

IDLE: Final = "idle"
NEEDS_LOGIN: Final = "needs login"
NOT_RUNNING: Final = "not running"
"""No gate on this machine has it."""

_STATES: Final = {
    UP: RUNNING,
    STOPPED: IDLE,
    "exited": IDLE,
    WAITING: FAILED,
    DOWN: FAILED,
    "lost": FAILED,
    "failed_to_start": FAILED,
    HALTED: "stopped",
}
"""The words that people see for the states that gates report; other states keep their names."""

ORDER: Final = (
    *(FAILED, NEEDS_LOGIN, DEGRADED, RUNNING, STARTING, STOPPING, IDLE),
    *(_STATES[HALTED], DISABLED),
)
"""If a server has several gates, the first of these states that occurs is shown."""


class GateServer(NamedTuple):
    """A server as one gate describes it."""

    gate: int
    """Process id of the gate."""
    kind: str
    """The command that the gate runs."""
    state: str
    cause: str
    """The named cause of a failure; empty if there is none."""
    note: str
    tools: int | None
    calls: int | None
    can_control: bool
    """Whether the gate can start, stop and restart it, and keeps its log."""


class CallTotals(NamedTuple):
    """The calls of a server or a tool in a period."""

    calls: int = 0
    failed: int = 0
    denied: int = 0
    held: int = 0
    p50: int | None = None
    p95: int | None = None


@dataclass(slots=True)
class ServerStatus:
    """One server, at all gates of this machine."""

    name: str
    gates: list[GateServer] = field(default_factory=list)
    totals: CallTotals = field(default_factory=CallTotals)

    @property
    def worst(self) -> GateServer | None:
        """The gate with the state that needs attention most."""
        ranks = {state: rank for rank, state in enumerate(ORDER)}
        return min(self.gates, key=lambda one: ranks.get(one.state, len(ranks)), default=None)

    @property
    def state(self) -> str:
        """The state that needs attention most."""
        worst = self.worst
        return worst.state if worst is not None else NOT_RUNNING


def describe_at_gate(gate: Mapping[str, Any], server: Mapping[str, Any]) -> GateServer:
    """Return a server as a gate describes it, in the words that people see."""
    error = server.get("error")
    error = error if isinstance(error, dict) else {}
    told = str(server.get("status") or "")
    state = _STATES.get(told, told or RUNNING)
    cause = str(error.get("cause") or error.get("kind") or "")
    if told == "exited" and server.get("exit_code"):
        state, cause = FAILED, cause or f"exit code {server['exit_code']}"
    if cause == LOGIN_REQUIRED:
        state = NEEDS_LOGIN
    warnings = server.get("warnings")
    warnings = warnings if isinstance(warnings, list) else []
    return GateServer(
        int(gate.get("pid") or 0),
        str(gate.get("kind") or ""),
        state,
        cause if state in {FAILED, NEEDS_LOGIN, DEGRADED} else "",
        str(server.get("reason") or "; ".join(map(str, warnings[:2]))),
        _number(server.get("tools")),
        _number(server.get("calls")),
        # Only a hub describes whether a server is enabled, and only a hub starts and stops servers.
        "enabled" in server,
    )


def gather_servers(
    gates: Iterable[Mapping[str, Any]], known: Iterable[str], totals: Mapping[str, CallTotals]
) -> list[ServerStatus]:
    """Return all servers by name: those of the gates, and those that are only known by name."""
    found: dict[str, ServerStatus] = {}
    for gate in gates:
        servers = gate.get("servers")
        if not isinstance(servers, list):
            servers = [{"id": gate["server"]}] if isinstance(gate.get("server"), str) else []
        for server in servers:
            if isinstance(server, dict) and isinstance(server.get("id"), str):
                status = found.setdefault(server["id"], ServerStatus(server["id"]))
                status.gates.append(describe_at_gate(gate, server))
    for name in (*known, *totals):
        if name:
            found.setdefault(name, ServerStatus(name))
    for name, status in found.items():
        status.totals = totals.get(name, CallTotals())
    return sorted(found.values(), key=lambda one: one.name)


def total_calls(
    totals: Iterable[CallTotal], column: str, times: Mapping[str, list[int]]
) -> dict[str, CallTotals]:
    """Return the calls of a period by server or tool, most calls first."""
    sums: dict[str, list[int]] = {}
    for total in totals:
        each = sums.setdefault(getattr(total, column), [0, 0, 0, 0])
        # A call that was denied, or that nobody approved, did not fail at a server.
        failed = (total.decision, total.status) == ("ALLOW", ERROR)
        denied, held = total.decision == "BLOCK", total.decision == "HOLD"
        for at, is_counted in enumerate((True, failed, denied, held)):
            each[at] += total.calls * is_counted
    shares = {name: (percentile(one, 50), percentile(one, 95)) for name, one in times.items()}
    ordered = sorted(sums.items(), key=lambda pair: (-pair[1][0], pair[0]))
    return {
        name: CallTotals(calls, failed, denied, held, *shares.get(name, (None, None)))
        for name, (calls, failed, denied, held) in ordered
    }


def add_totals(several: Sequence[Mapping[str, CallTotals]]) -> dict[str, CallTotals]:
    """Add the calls of several records; percentiles are those of the record with most calls."""
    added: dict[str, CallTotals] = {}
    for totals in several:
        for name, one in totals.items():
            other = added.get(name, CallTotals())
            most = max(one, other, key=lambda each: each.calls)
            added[name] = CallTotals(
                one.calls + other.calls,
                one.failed + other.failed,
                one.denied + other.denied,
                one.held + other.held,
                most.p50,
                most.p95,
            )
    return added


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
