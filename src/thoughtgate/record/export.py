"""Export of the record to flat JSON objects and to objects per call.

``flat_event`` returns the flat, versioned objects of the audit export contract. Unlike the
record itself, this format is closed: a new member needs a new version. ``call_object`` returns
a call as ``audit query`` and ``audit show`` print it.
"""

import csv
import io
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from thoughtgate.core.envelope import render_time
from thoughtgate.core.record_events import (
    AGENT_AUTH_REJECTED,
    AGENT_CONNECTED,
    APPROVAL_DECIDED,
    CALL_DECISION,
    TOOLS_LIST,
)
from thoughtgate.record.call_rows import CALL_COLUMNS, member, number, text

FLAT_VERSION: Final = 1
"""Version of the flat contract."""

CSV_CALLS: Final = (
    "started_at", "run_id", "server", "kind", "tool", "decision", "gate", "rule", "reason_code",
    "enforced", "approval", "approved_by", "status", "error_kind", "latency_ms", "bytes_in",
    "bytes_out", "principal", "args_hash", "call_id",
)  # fmt: skip
"""Columns of the CSV export, in order."""

CallKey: TypeAlias = tuple[str | None, str | None]
"""A call's id and its writer: several writers of one run may use the same id."""

_UINT32: Final = 2**32 - 1


def written_time(at: float | None) -> str | None:
    """Return a time in the record's format; None when it is not known."""
    # Milliseconds are not exact as floating-point seconds, so round to the nearest one.
    return render_time(at + 0.0005) if at is not None and at > 0 else None


def call_object(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call of the ledger with times and booleans in the record's format."""
    return {column.name: _value(column.type, call[column.name]) for column in CALL_COLUMNS}


def _value(kind: str, value: Any) -> Any:
    if kind == "time":
        return written_time(value)
    return bool(value) if kind == "boolean" and value is not None else value


def csv_lines(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a heading and rows as lines of CSV that is safe to open in a spreadsheet."""
    names = list(columns)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        yield _taken(buffer)
        writer.writerow([_cell(name, row.get(name)) for name in names])
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


_FORMULAS: Final = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What begins a formula; some spreadsheets also take the wide forms."""


def _cell(name: str, value: Any) -> Any:
    if name.endswith("_at") and isinstance(value, float):
        return render_time(value)
    if isinstance(value, str) and value[:1] in _FORMULAS:
        # A spreadsheet would execute it as a formula, and servers choose tool names.
        return f"'{value}"
    return value


def approved_call(event: dict[str, Any]) -> CallKey | None:
    """Return the call that an approval event released; None for any other event."""
    if event.get("type") != APPROVAL_DECIDED:
        return None
    approval = member(event, "approval")
    # A result that is released belongs to a call that was made before.
    made = approval.get("executes") is True and "about" not in approval
    return call_key(event) if made else None


def flat_event(
    event: dict[str, Any], approved: Container[CallKey] = frozenset()
) -> dict[str, Any] | None:
    """Return an event as a flat object; None for types that the flat contract does not include.

    ``approved`` contains the held calls that were approved and made.
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
    # If the verdict was not enforced, the development profile forwarded the call all the same.
    went_on = action == "ALLOW" or said.get("enforced") is False
    if action == "HOLD":
        went_on = went_on or call_key(event) in approved
    return {"event": "tool_call", "tool_name": text(call, "tool_name") or "", "allowed": went_on}


def call_key(event: dict[str, Any]) -> CallKey:
    """Return the key of the call that an event belongs to."""
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
