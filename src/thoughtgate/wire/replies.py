"""Rendering of the gate's own messages: error responses and notifications, one line each.

Only ``render_error`` turns a kind of error into a JSON-RPC response.
"""

import json
from typing import Any, Final

from thoughtgate.errors import code_of
from thoughtgate.wire.frame import escape_separators
from thoughtgate.wire.message import RequestId

MESSAGES: Final[dict[str, str]] = {
    "parse_error": "the message could not be read",
    "invalid_request": "the message is not a valid request",
    "method_not_found": "the method does not exist",
    "invalid_params": "the parameters are not valid",
    "task_not_found": "there is no such task",
    "internal_error": "the gate failed while judging this; nothing was forwarded",
    "upstream_connection_failed": "the server cannot be reached",
    "server_start_failed": "the server could not be started",
    "upstream_timeout": "the server did not answer in time",
    "tool_call_timeout": "the server did not answer in time",
    "policy_denied": "denied by policy",
    "task_expired": "the task has expired",
    "task_cancelled": "the task was cancelled",
    "approval_rejected": "a person refused this call",
    "approval_timeout": "nobody answered the approval request in time; the call was not made and may be tried again",
    "approval_withdrawn": "the approval request was withdrawn; the call was not made",
    "rate_limited": "too many calls; try again later",
    "budget": "the budget for this call is used up",
    "duplicate": "the same call was made just now",
    "breaker": "this call failed too often and is paused",
    "policy_drift": "the policy changed after the approval; the call was not made",
    "service_unavailable": "the gate cannot take this call now",
    "server_not_running": "the server is not running",
    "governance_denied": "denied by a rule",
    "not_exposed": "there is nothing by that name here",
}
"""The message to the caller for each kind; never rule text, URLs, arguments or traces."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def render(body: dict[str, Any]) -> bytes:
    """Render a message as one line of JSON, without line end."""
    return escape_separators(_encode(body).encode("utf-8", "surrogatepass"))


def render_error(
    ident: RequestId | None,
    kind: str,
    *,
    modern: bool = False,
    message: str = "",
    gate: str = "",
    tool: str = "",
    correlation_id: str = "",
    details: dict[str, Any] | None = None,
) -> bytes:
    """Render the refusal of a request."""
    return render(
        {
            "jsonrpc": "2.0",
            "id": ident,
            "error": error_object(
                kind,
                modern=modern,
                message=message,
                gate=gate,
                tool=tool,
                correlation_id=correlation_id,
                details=details,
            ),
        }
    )


def error_object(
    kind: str,
    *,
    modern: bool = False,
    message: str = "",
    gate: str = "",
    tool: str = "",
    correlation_id: str = "",
    details: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Build the ``error`` member for a kind; empty facts are left out."""
    facts = {"gate": gate, "tool": tool, "correlation_id": correlation_id}
    data: dict[str, Any] = {"kind": kind, **{name: fact for name, fact in facts.items() if fact}}
    if details:
        data.update(details)
    text = message or MESSAGES[kind]
    return {"code": code_of(kind, modern=modern), "message": text, "data": data}


def render_progress(token: RequestId, progress: int, message: str) -> bytes:
    """Render a progress notification with the caller's own token."""
    return render(
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": progress, "message": message},
        }
    )


def render_cancelled(ident: RequestId, reason: str) -> bytes:
    """Render the cancellation of a request that was forwarded."""
    return render(
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": ident, "reason": reason},
        }
    )
