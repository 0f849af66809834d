"""The last calls on record, read from the end of the file without reading the rest."""

from pathlib import Path
from typing import Any, Final

from thoughtgate.core.record_events import APPROVAL_DECIDED, CALL_DECISION, CALL_END, CALL_START
from thoughtgate.record.reader import read_entry
from thoughtgate.record.verification import RecordLine

TAIL_BYTES: Final = 512 * 1024
"""How much of the record's end is read: hundreds of calls with typical previews."""


def last_calls(record: Path, count: int) -> list[dict[str, Any]]:
    """Return the last calls of a record, newest first; none if there is no record."""
    calls: dict[str, dict[str, Any]] = {}
    for event in _tail(record):
        call = event.get("call")
        ident = call.get("call_id") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(ident, str):
            continue
        facts = calls.pop(ident, None) or {
            "call_id": ident,
            "ts": event.get("ts"),
            "server": call.get("server_name"),
            "tool": call.get("tool_name"),
            "decision": None,
            "status": None,
            "latency_ms": None,
        }
        calls[ident] = facts
        _follow(facts, event)
    return list(reversed(calls.values()))[:count]


def _follow(facts: dict[str, Any], event: dict[str, Any]) -> None:
    kind = event["type"]
    if kind == CALL_DECISION:
        facts["decision"] = (event.get("decision") or {}).get("action")
        facts["status"] = facts["status"] or "OPEN"
    elif kind == APPROVAL_DECIDED:
        facts["decision"] = str((event.get("approval") or {}).get("outcome", "")).upper()
    elif kind == CALL_END:
        facts["status"] = event.get("status")
        facts["latency_ms"] = event.get("latency_ms")
        error = event.get("error")
        if isinstance(error, dict):
            facts["error"] = error.get("kind") or error.get("class")
    elif kind == CALL_START:
        facts["status"] = "OPEN"


def _tail(record: Path) -> list[dict[str, Any]]:
    try:
        with record.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            data = file.read(TAIL_BYTES)
    except OSError:
        return []
    lines = data.split(b"\n")
    if size > TAIL_BYTES:
        lines = lines[1:]  # The first line is incomplete, because the read began within it.
    entries = (read_entry(RecordLine(str(record), 0, line)) for line in lines if line)
    return [entry.event for entry in entries if not entry.fault]
