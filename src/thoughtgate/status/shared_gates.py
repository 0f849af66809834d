"""The gates on any machine that share a store: what each holds, and which differ or died."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from thoughtgate.channels.approval_view import approval_object
from thoughtgate.core.approval import PENDING, Approval
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import StoreError
from thoughtgate.gate.clock import now
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.gates import GateStore, RunningGate
from thoughtgate.stores.open_database import StoreLocation, open_database

RUNNING: Final = "running"
GONE: Final = "gone"
"""The gate's row has expired: the gate died, or it cannot reach the store."""

_COMPARED: Final = (("policy_version", "policy"), ("version", "version"))


def gather_shared(location: StoreLocation) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the pending approval requests of all gates, and the gates that share the store."""
    try:
        with closing(open_database(location)) as database:
            approvals = ApprovalStore(database)
            if approvals.has_due(now()):
                approvals.settle_due(now())
            pending = approvals.listed(PENDING)
            ahead_s = database.time(0.0)
            gates = describe_gates(GateStore(database).listed(), pending, now(), ahead_s)
    except StoreError as error:
        return [], {"problem": str(error), "gates": []}
    names = {gate.pop("owner"): f"{gate.get('host')}:{gate.get('pid')}" for gate in gates}
    told = [{**approval_object(each), "gate": names.get(each.owner)} for each in pending]
    return told, {"gates": gates}


def describe_gates(
    gates: Iterable[RunningGate], pending: Iterable[Approval], at: float, ahead_s: float = 0.0
) -> list[dict[str, Any]]:
    """Return the gates with what they hold; their rows have times that are ``ahead_s`` ahead."""
    held: dict[str, list[str]] = defaultdict(list)
    for each in pending:
        held[each.owner].append(each.id)
    told = [
        {
            **gate.facts,
            "owner": gate.owner,
            "status": RUNNING if gate.expires_at - ahead_s > at else GONE,
            "started_at": render_time(gate.started_at - ahead_s),
            "expires_at": render_time(gate.expires_at - ahead_s),
            "holds": held[gate.owner],
        }
        for gate in gates
    ]
    for gate in told:
        gate["differs"] = _differences(gate, told)
    return told


def _differences(gate: Mapping[str, Any], gates: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return in what a running gate differs from most of those that do the same job."""
    if gate["status"] != RUNNING:
        return []
    peers = [one for one in gates if one["status"] == RUNNING and _job(one) == _job(gate)]
    return [word for name, word in _COMPARED if gate.get(name) != _usual(peers, name)]


def _job(gate: Mapping[str, Any]) -> tuple[Any, ...]:
    return gate.get("kind"), gate.get("server"), gate.get("namespace")


def _usual(peers: list[Mapping[str, Any]], name: str) -> Any:
    """Return the most frequent value; if several are, that of the gate that started last."""
    counts = Counter(one.get(name) for one in peers)
    most = max(counts.values())
    latest = sorted(peers, key=lambda one: str(one["started_at"]))
    return next(one.get(name) for one in reversed(latest) if counts[one.get(name)] == most)


def describe_shared(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a gate that shares the store, with a note on what it holds and how it differs."""
    notes = []
    if gate["status"] != RUNNING:
        notes.append(f"died or cannot reach the store, since {gate['expires_at']}")
    if gate.get("degraded"):
        notes.append(f"degraded: {', '.join(map(str, gate['degraded']))}")
    if gate.get("needs_restart"):
        notes.append(f"after a restart: {', '.join(map(str, gate['needs_restart']))}")
    notes += [f"another {what} than the others" for what in gate["differs"]]
    if gate["holds"]:
        notes.append(f"holds {', '.join(gate['holds'])}")
    name = " ".join(str(gate[part]) for part in ("kind", "server") if gate.get(part))
    return {**gate, "gate": name, "address": gate.get("url"), "note": "; ".join(notes)}
