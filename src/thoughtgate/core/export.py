"""The record in older and flatter forms, for those who already read them.

``flat_event`` gives the flat, versioned objects of seed 001's audit contract. Unlike the
record itself this form is closed: a new member needs a new version.
"""

from collections.abc import Callable, Container
from typing import Any, Final, TypeAlias

from thoughtgate.core.folding import member, number, text
from thoughtgate.core.record import (
    AGENT_AUTH_REJECTED,
    AGENT_CONNECTED,
    APPROVAL_DECIDED,
    CALL_DECISION,
    TOOLS_LIST,
)

FLAT_VERSION: Final = 1
"""Version of the flat contract."""

CSV_CALLS: Final = (
    "started_at", "run_id", "server", "kind", "tool", "decision", "gate", "rule", "reason_code",
    "enforced", "approval", "approved_by", "status", "error_kind", "latency_ms", "bytes_in",
    "bytes_out", "principal", "args_hash", "call_id",
)  # fmt: skip
"""Columns of the table of calls, in order."""

CallKey: TypeAlias = tuple[str | None, str | None]
"""A call's id and its writer: the writers of one run may count alike."""

_UINT32: Final = 2**32 - 1


def approved_call(event: dict[str, Any]) -> CallKey | None:
    """Return the call that an event says was made after it was held."""
    if event.get("type") != APPROVAL_DECIDED:
        return None
    made = member(event, "approval").get("executes") is True
    return _call_key(event) if made else None


def flat_event(
    event: dict[str, Any], approved: Container[CallKey] = frozenset()
) -> dict[str, Any] | None:
    """Return an event as a flat record; None for types that the flat contract does not know.

    ``approved`` are the calls that were made after they were held.
    """
    members = _FLAT.get(event.get("type", ""))
    if members is None:
        return None
    return {
        "version": FLAT_VERSION,
        "timestamp": text(event, "ts") or "",
        **members(event, approved),
        "session_id": text(event, "session_id") or "0",
        "upstream": text(event, "server_name") or "",
    }


def _tool_call(event: dict[str, Any], approved: Container[CallKey]) -> dict[str, Any]:
    said, call = member(event, "decision"), member(event, "call")
    action = said.get("action")
    went_on = action == "ALLOW" or said.get("enforced") is False
    if action == "HOLD":
        went_on = went_on or _call_key(event) in approved
    return {"event": "tool_call", "tool_name": text(call, "tool_name") or "", "allowed": went_on}


def _call_key(event: dict[str, Any]) -> CallKey:
    return text(member(event, "call"), "call_id"), text(member(event, "source"), "shim_id")


def _tools_list(event: dict[str, Any], _: Container[CallKey]) -> dict[str, Any]:
    said = member(event, "list")
    return {
        "event": "tools_list",
        "tools_upstream": min(number(said, "offered") or 0, _UINT32),
        "tools_returned": min(number(said, "returned") or 0, _UINT32),
    }


def _connected(event: dict[str, Any], _: Container[CallKey]) -> dict[str, Any]:
    said = member(event, "agent")
    return {
        "event": "agent_connected",
        "method": text(said, "method") or "none",
        "identity": text(said, "identity"),
    }


def _rejected(event: dict[str, Any], _: Container[CallKey]) -> dict[str, Any]:
    said = member(event, "agent")
    return {
        "event": "agent_auth_rejected",
        "method": text(said, "method") or "",
        "reason": text(said, "reason") or "",
    }


_FLAT: Final[dict[str, Callable[[dict[str, Any], Container[CallKey]], dict[str, Any]]]] = {
    CALL_DECISION: _tool_call,
    TOOLS_LIST: _tools_list,
    AGENT_CONNECTED: _connected,
    AGENT_AUTH_REJECTED: _rejected,
}
