"""Conversion of recorded events to ledger rows: one per call, one per run, and totals.

The order of events does not matter, and repeated events do no harm: each event fills its own
columns, and rows are later merged column by column. Events are read from files, so no member
is trusted to have the right type.
"""

import json
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from thoughtgate.core.record_events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    CALL_DECISION,
    CALL_END,
    CALL_START,
    FRAME_REFUSED,
    MESSAGE,
    RUN_END,
    RUN_START,
    TOOLS_LIST,
)

CALL_COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("call_id", "TEXT NOT NULL"), ("writer", "TEXT NOT NULL"), ("run_id", "TEXT"),
    ("session", "TEXT"), ("server", "TEXT"), ("kind", "TEXT"), ("tool", "TEXT"),
    ("method", "TEXT"), ("transport", "TEXT"), ("principal", "TEXT"), ("profile", "TEXT"),
    ("args_hash", "TEXT"), ("preview", "TEXT"), ("truncated", "INTEGER"), ("bytes_in", "INTEGER"),
    ("number", "INTEGER"), ("started_at", "REAL"), ("decision", "TEXT"), ("gate", "TEXT"),
    ("rule", "TEXT"), ("reason_code", "TEXT"), ("reason", "TEXT"), ("enforced", "INTEGER"),
    ("workflow", "TEXT"), ("policy", "TEXT"), ("decided_at", "REAL"), ("asked_at", "REAL"),
    ("approval_id", "TEXT"), ("approval", "TEXT"), ("approved_by", "TEXT"),
    ("approval_channel", "TEXT"), ("approval_reason", "TEXT"), ("approval_at", "REAL"),
    ("executes", "INTEGER"), ("votes", "TEXT"), ("status", "TEXT"), ("latency_ms", "INTEGER"),
    ("bytes_out", "INTEGER"), ("error_class", "TEXT"), ("error_kind", "TEXT"),
    ("error_code", "INTEGER"), ("error_message", "TEXT"), ("is_error", "INTEGER"),
    ("result_preview", "TEXT"), ("ended_at", "REAL"), ("start_event", "INTEGER"),
    ("approval_event", "INTEGER"), ("end_event", "INTEGER"),
)  # fmt: skip
"""The columns of a call's row, with their SQLite types."""

RUN_COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("run_id", "TEXT NOT NULL"), ("writer", "TEXT NOT NULL"), ("agent_id", "TEXT"),
    ("client", "TEXT"), ("env", "TEXT"), ("principal", "TEXT"), ("profile", "TEXT"),
    ("mode", "TEXT"), ("policy_id", "TEXT"), ("policy", "TEXT"), ("started_at", "REAL"),
    ("ended_at", "REAL"), ("status", "TEXT"), ("calls_total", "INTEGER"),
    ("calls_allowed", "INTEGER"), ("calls_blocked", "INTEGER"), ("calls_throttled", "INTEGER"),
    ("errors_total", "INTEGER"), ("duration_ms", "INTEGER"),
)  # fmt: skip
"""The columns of a run's row."""

_SUMS: Final = (
    "calls_total",
    "calls_allowed",
    "calls_blocked",
    "calls_throttled",
    "errors_total",
    "duration_ms",
)

MAX_INTEGER: Final = 2**63 - 1
"""The largest integer in SQLite; the gate never writes a larger one."""

Row = dict[str, Any]
Key = tuple[str, str]


class RecordRows:
    """The rows of a batch of events."""

    def __init__(self) -> None:
        self.calls: dict[Key, Row] = {}
        self.runs: dict[Key, Row] = {}
        self.traffic: dict[tuple[str, str, int, str, str, str], list[int]] = {}
        """Count and bytes by run, server, minute, type, direction and detail."""
        self.events = 0

    def add(self, event: dict[str, Any]) -> None:
        """Add one event."""
        self.events += 1
        handler = _HANDLERS.get(event.get("type", ""))
        if handler is not None:
            handler(self, event)

    def call(self, event: dict[str, Any]) -> Row:
        """Return the row of the call that an event belongs to."""
        call, writer = member(event, "call"), _writer(event)
        key = (str(call.get("call_id"))[:512], writer)
        row = self.calls.get(key)
        if row is None:
            row = self.calls[key] = {
                "call_id": key[0],
                "writer": writer,
                "run_id": text(event, "run_id"),
                "session": text(event, "session_id"),
                "profile": text(event, "profile"),
            }
        row["server"] = text(call, "server_name")
        row["tool"] = text(call, "tool_name")
        digest = text(call, "args_hash")
        if digest:
            row["args_hash"] = digest
        return row

    def run(self, event: dict[str, Any]) -> Row:
        """Return the row of the run that an event belongs to."""
        key = (str(event.get("run_id"))[:512], _writer(event))
        row = self.runs.get(key)
        if row is None:
            row = self.runs[key] = {"run_id": key[0], "writer": key[1]}
            for name in ("agent_id", "client", "env", "principal", "profile"):
                row[name] = text(event, name)
        return row


def _start(rows: RecordRows, event: dict[str, Any]) -> None:
    call, row = member(event, "call"), rows.call(event)
    preview = member(call, "preview")
    row["kind"] = text(call, "kind")
    row["method"] = text(call, "method")
    row["transport"] = text(call, "transport")
    row["principal"] = text(call, "principal")
    row["preview"] = text(preview, "args_preview") or ""
    row["truncated"] = int(preview.get("truncated") is True)
    row["bytes_in"] = number(call, "bytes_in")
    row["number"] = number(call, "seq")
    row["started_at"] = event_time(event)
    row["start_event"] = number(event, "seq")


def _decision(rows: RecordRows, event: dict[str, Any]) -> None:
    said, row = member(event, "decision"), rows.call(event)
    explain = member(said, "explain")
    row["decision"] = text(said, "action")
    row["gate"] = text(said, "gate")
    row["rule"] = text(said, "rule_id")
    row["reason_code"] = text(explain, "reason_code")
    row["reason"] = text(explain, "summary")
    row["enforced"] = int(said.get("enforced") is not False)
    row["workflow"] = text(said, "workflow")
    row["policy"] = text(member(said, "policy"), "policy_version")
    row["decided_at"] = event_time(event)


def _asked(rows: RecordRows, event: dict[str, Any]) -> None:
    said, row = member(event, "approval"), rows.call(event)
    row["asked_at"] = event_time(event)
    row["approval_id"] = text(said, "approval_id") or text(said, "id")
    row["workflow"] = text(said, "workflow")


def _answered(rows: RecordRows, event: dict[str, Any]) -> None:
    said, row = member(event, "approval"), rows.call(event)
    row["approval"] = text(said, "outcome")
    row["approved_by"] = text(said, "decided_by")
    row["approval_channel"] = text(said, "channel")
    row["approval_reason"] = text(said, "reason")
    row["approval_at"] = event_time(event)
    row["approval_event"] = number(event, "seq")
    row["executes"] = int(said.get("executes") is True)
    row["votes"] = _votes(said)


def _votes(said: Row) -> str | None:
    """Return the votes as JSON text, or None when the event has none."""
    given = said.get("votes")
    if type(given) is not list or not given:
        return None
    votes = [
        {name: text(vote, name) or "" for name in ("by", "channel", "at", "reason")}
        | {"approve": vote.get("approve") is True}
        for vote in given
        if type(vote) is dict
    ]
    return json.dumps(votes, ensure_ascii=False)


def _end(rows: RecordRows, event: dict[str, Any]) -> None:
    row, error = rows.call(event), member(event, "error")
    row["status"] = text(event, "status")
    row["latency_ms"] = number(event, "latency_ms")
    row["bytes_out"] = number(event, "bytes_out")
    row["is_error"] = int(event.get("is_error") is True)
    row["result_preview"] = text(member(event, "preview"), "result_preview")
    row["ended_at"] = event_time(event)
    row["end_event"] = number(event, "seq")
    if error:
        row["error_class"] = text(error, "class")
        row["error_kind"] = text(error, "kind")
        row["error_code"] = number(error, "code")
        row["error_message"] = text(error, "message")


def _run_start(rows: RecordRows, event: dict[str, Any]) -> None:
    said, row = member(event, "run"), rows.run(event)
    policy = member(said, "policy")
    row["started_at"] = event_time(event)
    row["mode"] = text(said, "mode")
    row["policy_id"] = text(policy, "policy_id")
    row["policy"] = text(policy, "policy_version")


def _run_end(rows: RecordRows, event: dict[str, Any]) -> None:
    said, row = member(event, "run"), rows.run(event)
    row["ended_at"] = event_time(event)
    row["status"] = text(said, "status")
    summary = member(said, "summary")
    for name in _SUMS:
        row[name] = number(summary, name)


def _message(rows: RecordRows, event: dict[str, Any]) -> None:
    said = member(event, "message")
    _count(rows, event, said, text(said, "method") or "")


def _frame(rows: RecordRows, event: dict[str, Any]) -> None:
    said = member(event, "frame")
    _count(rows, event, said, text(said, "check") or "")


def _list(rows: RecordRows, event: dict[str, Any]) -> None:
    said = member(event, "list")
    _count(rows, event, {"direction": "server_to_agent"}, text(said, "method") or "")


def _count(rows: RecordRows, event: dict[str, Any], said: Row, detail: str) -> None:
    key = (
        text(event, "run_id") or "",
        text(event, "server_name") or "",
        int(event_time(event) // 60),
        str(event["type"]),
        text(said, "direction") or "",
        detail[:128],
    )
    sums = rows.traffic.setdefault(key, [0, 0])
    sums[0] += number(said, "repeated") or 1
    sums[1] += number(said, "bytes") or 0


_HANDLERS: Final = {
    CALL_START: _start,
    CALL_DECISION: _decision,
    APPROVAL_REQUESTED: _asked,
    APPROVAL_DECIDED: _answered,
    CALL_END: _end,
    RUN_START: _run_start,
    RUN_END: _run_end,
    MESSAGE: _message,
    FRAME_REFUSED: _frame,
    TOOLS_LIST: _list,
}


def member(said: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a member if it is an object, or else an empty one."""
    found = said.get(name)
    return found if type(found) is dict else {}


def text(said: dict[str, Any], name: str) -> str | None:
    """Return a member if it is a string, with lone surrogates escaped, or else None."""
    found = said.get(name)
    if type(found) is not str:
        return None
    return found if found.isascii() else found.encode("utf-8", "backslashreplace").decode()


def number(said: dict[str, Any], name: str) -> int | None:
    """Return a member if it is an integer that SQLite can store, or else None."""
    found = said.get(name)
    return found if type(found) is int and abs(found) <= MAX_INTEGER else None


def event_time(event: dict[str, Any]) -> float:
    """Return an event's time in seconds since the epoch; 0 if it has none."""
    stamp = event.get("ts")
    return parse_time(stamp) or 0.0 if type(stamp) is str else 0.0


def parse_time(stamp: str) -> float | None:
    """Parse a time in the record's own format, or in ISO 8601 with any precision or zone."""
    if len(stamp) == 24 and stamp[19] == "." and stamp[23] == "Z" and stamp[20:23].isdecimal():  # noqa: PLR2004 - the record's own form
        second = _second(stamp[:19] + "+00:00")
        return None if second is None else second + int(stamp[20:23]) / 1000
    return _second(stamp)


@lru_cache(maxsize=256)
def _second(stamp: str) -> float | None:
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return None if when.tzinfo is None else when.timestamp()


def _writer(event: dict[str, Any]) -> str:
    return (text(member(event, "source"), "shim_id") or "")[:512]
