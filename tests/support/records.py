"""Records as the gate makes them, for tests of what becomes of them."""

from pathlib import Path
from typing import Any

from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.core.record_events import (
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    CALL_DECISION,
    CALL_START,
    Record,
    call_ended,
)
from thoughtgate.core.run_summary import SUCCEEDED, RunSummary, run_ended, run_started
from thoughtgate.policy.policy import Policy
from thoughtgate.record.writer import RecordWriter

T0 = 1_760_000_000.0
"""A time in October 2025."""

RUN = Run("run-1", agent_id="tester", host_id="host", proc_id="1", shim_id="shim")


def short(call_id: str, server: str = "files", tool: str = "read_file") -> dict[str, Any]:
    return {"call_id": call_id, "server_name": server, "tool_name": tool, "args_hash": "ab" * 32}


def started(
    call_id: str,
    at: float = T0,
    *,
    server: str = "files",
    tool: str = "read_file",
    preview: str = '{"path":"/tmp/a"}',
    truncated: bool = False,
    kind: str = "tool",
    method: str = "tools/call",
) -> Record:
    call = {
        **short(call_id, server, tool),
        "kind": kind,
        "method": method,
        "transport": "mcp_stdio",
        "principal": "local",
        "bytes_in": 120,
        "preview": {"truncated": truncated, "args_preview": preview},
        "seq": 1,
    }
    return Record(CALL_START, at, server, "1", {"call": call})


def decided(
    call_id: str,
    at: float = T0,
    *,
    server: str = "files",
    tool: str = "read_file",
    action: str = "ALLOW",
    gate: str = "rules",
    rule: str = "rules[0]",
    enforced: bool = True,
    kind: str = "FORWARD",
) -> Record:
    decision = {
        "action": action,
        "gate": gate,
        "rule_id": rule,
        "severity": "info" if action == "ALLOW" else "warn",
        "explain": {"summary": "because", "reason_code": kind},
        "policy": {"policy_id": "config", "policy_version": "v1", "policy_hash": "v1"},
        "enforced": enforced,
    }
    return Record(
        CALL_DECISION,
        at,
        server,
        "1",
        {"call": short(call_id, server, tool), "decision": decision},
    )


def ended(
    call_id: str,
    at: float = T0 + 0.02,
    *,
    server: str = "files",
    tool: str = "read_file",
    status: str = "OK",
    latency_ms: int = 20,
    error: dict[str, Any] | None = None,
    is_error: bool = False,
) -> Record:
    record = call_ended(
        at,
        server,
        "1",
        call_id=call_id,
        tool=tool,
        status=status,
        latency_ms=latency_ms,
        size=64,
        error=error,
        is_error=is_error,
    )
    # As the judge completes it.
    record.body["call"]["args_hash"] = "ab" * 32
    return record


def blocked(kind: str = "governance_denied") -> dict[str, Any]:
    return {"class": "policy_block", "kind": kind, "message": "no"}


def asked(call_id: str, at: float = T0, *, tool: str = "read_file") -> Record:
    body = {
        "call": short(call_id, tool=tool),
        "approval": {"workflow": "ops", "rule_id": "rules[0]", "approval_id": f"a-{call_id}"},
    }
    return Record(APPROVAL_REQUESTED, at, "files", "1", body)


def answered(
    call_id: str,
    at: float = T0 + 5,
    *,
    tool: str = "read_file",
    outcome: str = "approved",
    executes: bool = True,
) -> Record:
    approval = {
        "workflow": "ops",
        "outcome": outcome,
        "decided_by": "kim",
        "channel": "console",
        "reason": "fine",
        "auto_approved": False,
        "executes": executes,
        "kind": None if executes else f"approval_{outcome}",
    }
    return Record(
        APPROVAL_DECIDED,
        at,
        "files",
        "1",
        {"call": short(call_id, tool=tool), "approval": approval},
    )


def call(number: int, run: str = "run-1", **changes: Any) -> list[Record]:
    """A call that is allowed and answered."""
    call_id, at = f"{run}.{number}", T0 + number
    shared = {name: value for name, value in changes.items() if name in {"server", "tool"}}
    return [
        started(call_id, at, **changes),
        decided(call_id, at, **shared),
        ended(call_id, at + 0.02, **shared),
    ]


def write_run(path: Path, calls: int, *, run: Run = RUN, **options: Any) -> None:
    """Write a whole run to a record."""
    writer = RecordWriter(path, Envelope(run), **options)
    tally = RunSummary()
    writer.write([run_started(T0, Policy())])
    for number in range(1, calls + 1):
        records = call(number, run.run_id)
        for record in records:
            tally.count(record)
        writer.write(records)
    writer.write([run_ended(T0 + calls + 1, T0, SUCCEEDED, tally)])
    writer.close()
