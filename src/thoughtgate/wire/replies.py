"""Rendering of the gate's own messages: error responses and notifications, one line each.

Only this module turns an error kind into a JSON-RPC error.
"""

import json
from typing import Any, Final, TypedDict, Unpack

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
    "upstream_tls_failed": "no secure connection to the server can be made",
    "upstream_unauthorized": "the server refused the gate's credentials",
    "upstream_bad_response": "the server gave no usable answer",
    "server_start_failed": "the server could not be started",
    "upstream_timeout": "the server did not answer in time",
    "tool_call_timeout": "the server did not answer in time",
    "policy_denied": "denied by policy",
    "content_blocked": "blocked because of what the content checks found in it",
    "task_expired": "the task has expired",
    "task_cancelled": "the task was cancelled",
    "approval_rejected": "a person refused this call",
    "approval_timeout": "nobody answered the approval request in time; the call was not made and may be tried again",
    "approval_withdrawn": "the approval request was withdrawn; the call was not made",
    "rate_limited": "too many calls; try again later",
    "budget": "the budget for this call is used up",
    "duplicate": "the same call was made just now",
    "breaker": "this call failed too often and is paused",
    "definition_held": "what the server says about this has changed or looks harmful; a person must accept it first",
    "policy_drift": "the policy changed after the approval; the call was not made",
    "insufficient_scope": "the agent's token does not have the scopes that this needs",
    "service_unavailable": "the gate cannot take this call now",
    "server_not_running": "the server is not running",
    "governance_denied": "denied by a rule",
    "not_exposed": "there is nothing by that name here",
}
"""The message to the caller for each kind; never rule text, URLs, arguments or traces."""

GATE_MESSAGES: Final = {"stop": "stopped by an operator; the call was not made"}
"""The message for each gate that does not use the one of its kind."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def render(body: dict[str, Any]) -> bytes:
    """Render a message as one line of JSON, without line end."""
    return escape_separators(_encode(body).encode("utf-8", "surrogatepass"))


class ErrorFacts(TypedDict, total=False):
    """What an error says besides its kind."""

    modern: bool
    """Whether the caller uses MCP 2026-07-28 or later, where errors have other codes."""
    message: str
    """Replaces the usual message of the kind."""
    gate: str
    tool: str
    correlation_id: str
    details: dict[str, Any] | None
    code: int
    """Replaces the usual code of the kind."""


def render_error(ident: RequestId | None, kind: str, **facts: Unpack[ErrorFacts]) -> bytes:
    """Render the refusal of a request."""
    return render({"jsonrpc": "2.0", "id": ident, "error": error_object(kind, **facts)})


def error_object(kind: str, **facts: Unpack[ErrorFacts]) -> dict[str, Any]:
    """Build the ``error`` member for a kind; empty facts are left out."""
    data: dict[str, Any] = {"kind": kind}
    for name in ("gate", "tool", "correlation_id"):
        if facts.get(name):
            data[name] = facts[name]
    data.update(facts.get("details") or {})
    text = facts.get("message") or MESSAGES[kind]
    code = facts.get("code") or code_of(kind, modern=facts.get("modern", False))
    return {"code": code, "message": text, "data": data}


def render_progress(token: RequestId, progress: int, message: str) -> bytes:
    """Render a progress notification with the caller's own token."""
    params = {"progressToken": token, "progress": progress, "message": message}
    return _notification("notifications/progress", params)


def render_cancelled(ident: RequestId, reason: str) -> bytes:
    """Render the cancellation of a request that was forwarded."""
    return _notification("notifications/cancelled", {"requestId": ident, "reason": reason})


def _notification(method: str, params: dict[str, Any]) -> bytes:
    return render({"jsonrpc": "2.0", "method": method, "params": params})
