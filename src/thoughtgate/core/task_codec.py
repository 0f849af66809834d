"""Wire format of tasks: MCP 2025-11-25 and the 2026-07-28 extension.

Pure functions from a task to the body of a response (an object with ``result`` or ``error``);
access control is not done here.
"""

import json
from collections.abc import Iterable
from typing import Final

from thoughtgate.core.envelope import render_time
from thoughtgate.core.task import (
    CANCELLED,
    COMPLETED,
    EXTENSION,
    FAILED,
    HELD,
    RUNNING,
    TASK_METHOD,
    Task,
    poll_interval,
)
from thoughtgate.wire.message import Json
from thoughtgate.wire.replies import error_object
from thoughtgate.wire.revisions import META, meta_of

RELATED: Final = "io.modelcontextprotocol/related-task"

MISSING_CAPABILITY: Final = -32021
"""2026-07-28, errors: MissingRequiredClientCapability."""

_STATUS: Final = {
    HELD: "working",
    RUNNING: "working",
    COMPLETED: "completed",
    FAILED: "failed",
    CANCELLED: "cancelled",
}
"""A held task is ``working``: ``input_required`` would mean the caller, not the reviewer."""

Body = dict[str, Json]
"""A response without its JSON-RPC envelope."""


def created(task: Task) -> Body:
    """Reply to the request that became a task."""
    if task.modern:
        return {"result": {"resultType": "task", **_modern(task)}}
    return {"result": {"task": _legacy(task)}}


def got(task: Task, *, modern: bool) -> Body:
    """Reply to ``tasks/get``; in the extension the reply includes the outcome."""
    if not modern:
        return {"result": _legacy(task)}
    ended = task.phase in {COMPLETED, FAILED} and task.outcome
    outcome = json.loads(task.outcome) if ended else {}
    return {"result": {"resultType": "complete", **_modern(task), **outcome}}


def result_of(task: Task) -> Body:
    """Reply to ``tasks/result`` for an ended task, exactly as the call would have."""
    if task.phase == CANCELLED:
        return refused("task_cancelled", modern=task.modern, task=task)
    body: Body = json.loads(task.outcome)
    result = body.get("result")
    if type(result) is dict:
        # MCP 2025-11-25, tasks: the result must name its task.
        result[META] = {**meta_of(result), RELATED: {"taskId": task.id}}
    return body


def listed(tasks: Iterable[Task], next_cursor: str) -> Body:
    """Reply to ``tasks/list``, which only 2025-11-25 has."""
    result: dict[str, Json] = {"tasks": [_legacy(task) for task in tasks]}
    if next_cursor:
        result["nextCursor"] = next_cursor
    return {"result": result}


def merged_list(body: Body, own: Iterable[Task]) -> Body:
    """Put the gate's tasks before those on the first page of the server's list."""
    result = body.get("result")
    theirs = result.get("tasks") if type(result) is dict else None
    if type(result) is not dict or type(theirs) is not list:
        return listed(own, "")
    return {**body, "result": {**result, "tasks": [*map(_legacy, own), *theirs]}}


def changed(task: Task) -> Body:
    """Return the params of ``notifications/tasks/status``: the task, without its result."""
    return _legacy(task)


def cancelled(task: Task, *, modern: bool) -> Body:
    """Reply to ``tasks/cancel``."""
    return acknowledged() if modern else {"result": _legacy(task)}


def acknowledged() -> Body:
    """Reply to an extension request with an empty result."""
    return {"result": {"resultType": "complete"}}


def refused(kind: str, *, modern: bool, text: str = "", task: Task | None = None) -> Body:
    """Reply with one of ThoughtGate's kinds of error."""
    tool, call_id = (task.tool, task.call_id) if task is not None else ("", "")
    error = error_object(kind, modern=modern, message=text, tool=tool, correlation_id=call_id)
    return {"error": error}


def missing_extension() -> Body:
    """Reply to a modern request about a task that does not declare the extension."""
    data: dict[str, Json] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    text = "this request must declare the tasks extension"
    return {"error": {"code": MISSING_CAPABILITY, "message": text, "data": data}}


def forwarded(task: Task, ident: str) -> dict[str, Json]:
    """Return the request to send to the server once the call is approved."""
    params = json.loads(task.request)
    return {"jsonrpc": "2.0", "id": ident, "method": TASK_METHOD, "params": params}


def _legacy(task: Task) -> dict[str, Json]:
    status = "failed" if task.phase == COMPLETED and task.is_error else _STATUS[task.phase]
    return _shown(task, status, ttl="ttl", interval="pollInterval")


def _modern(task: Task) -> dict[str, Json]:
    return _shown(task, _STATUS[task.phase], ttl="ttlMs", interval="pollIntervalMs")


def _shown(task: Task, status: str, *, ttl: str, interval: str) -> dict[str, Json]:
    """Return what both revisions show of a task; they name the two times differently."""
    body: dict[str, Json] = {
        "taskId": task.id,
        "status": status,
        "createdAt": render_time(task.created_at),
        "lastUpdatedAt": render_time(task.updated_at),
        ttl: round(task.ttl_s * 1000),
    }
    if task.note:
        body["statusMessage"] = task.note
    if not task.is_over:
        body[interval] = round(poll_interval(task.ttl_s) * 1000)
    return body
