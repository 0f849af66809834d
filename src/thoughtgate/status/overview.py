"""Overview of running gates, pending approvals and recent calls, from gates, store and record."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from thoughtgate.channels.approval_view import approval_object
from thoughtgate.errors import PeerError, PeerGone, StoreError
from thoughtgate.gate.control_socket import ask_control
from thoughtgate.gate.open_governor import RECORD_FILE
from thoughtgate.gate.running_gates import DIRECTORY, list_gates
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.status.approval_actions import open_approval_actions
from thoughtgate.status.definition_changes import waiting_definitions
from thoughtgate.status.limit_counts import shared_limits
from thoughtgate.status.recent_calls import calls_of, last_calls
from thoughtgate.status.server_logins import find_needed_logins, gather_logins
from thoughtgate.status.shared_gates import gather_shared
from thoughtgate.status.stop_actions import shown_facts, shown_orders
from thoughtgate.stores.open_database import StoreLocation

PATIENCE_S: Final = 2.0
"""How long a gate may take to report its status."""

EVENTS_PER_CALL: Final = 8
"""Events of the shared ledger that are read for each listed call."""


def gather_status(
    environ: Mapping[str, str], calls: int, location: StoreLocation | None = None
) -> dict[str, Any]:
    """Return the running gates with their servers, the pending approvals, the limits and the last calls.

    With a store that several machines share, the approvals are those of all gates, and ``store``
    has the gates of all machines. Without ``calls``, no record is read.
    """
    state = state_directory(environ)
    gates = gather_gates(state)
    told: dict[str, Any] = {"state": state, "gates": gates}
    if location is not None and location.is_shared:
        told["approvals"], told["store"] = gather_shared(location)
        can_read = calls and "problem" not in told["store"]
        shared = _shared_calls(location, calls) if can_read else []
    else:
        shared = []
        told["approvals"] = pending_approvals(state)
    own = location or StoreLocation(Path(state))
    told["limits"] = shared_limits(own)
    told["definitions"] = waiting_definitions(own)
    told["stopped"], told["facts"] = shown_orders(own), shown_facts(own)
    # Logins of agents' own entries are always in the state directory.
    stores = dict.fromkeys((own, StoreLocation(Path(state))))
    told["logins"] = [
        login for one in stores if one.may_exist for login in gather_logins(one, environ)
    ]
    told["needed_logins"] = find_needed_logins(gates)
    return {**told, "calls": shared or recent_calls(state, gates, calls)}


def gather_gates(state: str) -> list[dict[str, Any]]:
    """Return the gates that run on this machine, each with what it says about its servers."""
    return [describe_gate(state, gate) for gate in list_gates(state)]


def _shared_calls(location: StoreLocation, count: int) -> list[dict[str, Any]]:
    """Return the last calls of all gates that share a store, newest first."""
    # Imported here: it needs the optional dependency of a shared store.
    from thoughtgate.record.shared_ledger import shared_ledger
    from thoughtgate.record.shared_reader import newest_events

    with shared_ledger(location) as ledger:
        events = newest_events(ledger, lambda event: "call" in event, count * EVENTS_PER_CALL)
        return calls_of(events, count)


def describe_gate(state: str, gate: dict[str, Any]) -> dict[str, Any]:
    """Add a gate's current status to its announcement."""
    told = {key: value for key, value in gate.items() if key != "owner"}
    socket = control_path(state, gate)
    if not socket.exists():
        return told
    try:
        answer = ask_control(socket, "status", PATIENCE_S)
    except (PeerGone, PeerError) as error:
        return {**told, "problem": str(error)}
    return {**told, **answer} if isinstance(answer, dict) else told


def control_path(state: str, gate: Mapping[str, Any]) -> Path:
    """Return the path of a gate's control socket."""
    return Path(state, DIRECTORY, f"{gate['pid']}.sock")


def pending_approvals(state: str) -> list[dict[str, Any]]:
    """Return the pending approval requests, oldest first."""
    if not Path(state).is_dir():
        return []
    try:
        actions = open_approval_actions(state)
    except StoreError:
        return []
    with closing(actions):
        return [approval_object(approval) for approval in actions.pending()]


def find_records(state: str, gates: list[dict[str, Any]]) -> list[Path]:
    """Return the records of the state directory and of all running gates."""
    records = {str(Path(state, RECORD_FILE))}
    records |= {gate["record"] for gate in gates if isinstance(gate.get("record"), str)}
    return [Path(record) for record in sorted(records)]


def recent_calls(state: str, gates: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return the last calls in the records of all running gates, newest first."""
    records = find_records(state, gates) if count else []
    calls = [call for record in records for call in last_calls(record, count)]
    return sorted(calls, key=lambda call: str(call["ts"]), reverse=True)[:count]


def describe_server(server: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server with a note that says why it does not run, or else its first warnings."""
    note = server.get("reason") or "; ".join(server.get("warnings", ())[:2])
    error = server.get("error") or {}
    if error.get("cause"):
        note = f"{note} ({error['cause']})"
    return {**server, "server": server["id"], "note": note}
