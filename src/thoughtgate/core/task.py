"""State machine of a task that the gate creates for a held call.

A caller that accepts a task gets its reply at once; the call runs once it is approved. Pure and
small: no codec, no store, no clock. ``core.task_codec`` renders a task in each revision,
``core.task_table`` decides who may access it.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.wire.methods import TASK_METHODS
from thoughtgate.wire.revisions import CAPABILITIES_KEY, meta_of

HELD: Final = "held"
"""The approval is pending."""
RUNNING: Final = "running"
"""The call was approved and sent to the server."""
COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"

TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    HELD: frozenset({RUNNING, FAILED, CANCELLED}),
    RUNNING: frozenset({COMPLETED, FAILED, CANCELLED}),
    COMPLETED: frozenset(),
    FAILED: frozenset(),
    CANCELLED: frozenset(),
}
"""All allowed transitions of a task. The diagram in the docs is generated from this table."""

MIN_TTL_S: Final = 60.0
"""Minimum time to live: no person answers faster."""
MAX_TTL_S: Final = 86_400.0
DEFAULT_TTL_S: Final = 600.0

_POLL_STEPS: Final = ((60.0, 1.0), (300.0, 2.0), (900.0, 5.0))
"""Poll interval by time to live: a longer task is polled less often."""
_POLL_MAX_S: Final = 10.0

ID_PREFIX: Final = "tg_"
EXTENSION: Final = "io.modelcontextprotocol/tasks"
TASK_REVISION: Final = "2025-11-25"
"""The only revision in which a handshake and the entries of tools declare tasks; see ``EXTENSION``."""
TASK_METHOD: Final = "tools/call"
"""The only method that may become a task."""


_REFUSAL_KINDS: Final[dict[Any, str]] = {
    -32601: "method_not_found",
    -32602: "invalid_params",
    -32021: "invalid_request",
}
"""Kinds of error for which MCP 2026-07-28 requires an HTTP status, by their codes."""


class Task(NamedTuple):
    """One call whose caller polls for the result."""

    id: str
    """``tg_`` and at least 120 random bits: without authentication, the id is the only protection."""
    principal: str
    session: str
    server: str
    tool: str
    call_id: str
    """Assigned by the judge; a new one after a restart."""
    request: str
    """The call's params as JSON text, without ``task``: what is sent once approved."""
    created_at: float
    updated_at: float
    ttl_s: float
    modern: bool
    """True if it was created for MCP 2026-07-28 or later."""
    phase: str = HELD
    note: str = ""
    """The status message for people."""
    outcome: str = ""
    """Once ended: JSON text of an object with ``result`` or ``error``."""
    is_error: bool = False
    """The result has ``isError``: "failed" in one revision, "completed" in the other."""

    @property
    def is_over(self) -> bool:
        """Tell whether the task has ended."""
        return not TRANSITIONS[self.phase]

    @property
    def expires_at(self) -> float:
        """When the task is deleted, whatever its state."""
        return self.created_at + self.ttl_s


def move(task: Task, phase: str, at: float, note: str = "") -> Task | None:
    """Change the phase of a task; None if the table does not allow it."""
    if phase not in TRANSITIONS[task.phase]:
        return None
    return task._replace(phase=phase, updated_at=at, note=note)


def wants_task(method: str, params: dict[str, Any], *, modern: bool) -> bool:
    """Tell whether a held request may be answered with a task.

    Until 2025-11-25 the caller requests it with ``task``; from 2026-07-28 on the server
    decides, for callers that declare the extension.
    """
    if method != TASK_METHOD:
        return False
    return has_extension(params) if modern else type(params.get("task")) is dict


def has_extension(params: dict[str, Any]) -> bool:
    """Tell whether a modern request declares the tasks extension."""
    declared = meta_of(params).get(CAPABILITIES_KEY)
    extensions = declared.get("extensions") if type(declared) is dict else None
    return type(extensions) is dict and type(extensions.get(EXTENSION)) is dict


def advertise(capabilities: dict[str, Any], *, modern: bool, lists: bool = False) -> dict[str, Any]:
    """Return a server's capabilities with tasks added: the gate turns held calls into tasks.

    ``lists`` says that ``tasks/list`` is offered, too. MCP 2025-11-25, tasks: not if callers cannot
    be told apart.
    """
    # What the server itself declares is never replaced, only completed.
    if modern:
        return {
            **capabilities,
            "extensions": {EXTENSION: {}, **_object(capabilities, "extensions")},
        }
    tasks = _object(capabilities, "tasks")
    requests = _object(tasks, "requests")
    asked = {**requests, "tools": {"call": {}, **_object(requests, "tools")}}
    own: dict[str, Any] = {"list": {}, "cancel": {}} if lists else {"cancel": {}}
    return {**capabilities, "tasks": {**own, **tasks, "requests": asked}}


def advertise_tool(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a tool's entry with support for tasks declared (2025-11-25)."""
    if declares_tasks(entry):
        return entry
    return {**entry, "execution": {**_object(entry, "execution"), "taskSupport": "optional"}}


def declares_tasks(entry: dict[str, Any]) -> bool:
    """Tell whether a server makes tasks of calls to a tool itself, by its entry in the list."""
    return _object(entry, "execution").get("taskSupport") in {"optional", "required"}


def advertise_in_handshake(result: dict[str, Any], method: str) -> dict[str, Any]:
    """Return a server's answer to a handshake with tasks added; itself if there is nothing to add.

    A revision without tasks is left alone, and so is a server without tools.
    """
    capabilities = result.get("capabilities")
    if type(capabilities) is not dict or "tools" not in capabilities:
        return result
    modern = method == "server/discover"
    if not modern and result.get("protocolVersion") != TASK_REVISION:
        return result
    return {**result, "capabilities": advertise(capabilities, modern=modern)}


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if type(found) is dict else {}


def requested_ttl(params: dict[str, Any]) -> float | None:
    """Return the requested time to live in seconds; None if none was requested.

    Raises:
        ValueError: ``task.ttl`` is not a whole number of milliseconds.
    """
    task = params.get("task")
    ttl = task.get("ttl") if type(task) is dict else None
    if ttl is None:
        return None
    if type(ttl) is not int or ttl < 0:
        raise ValueError("params.task.ttl must be a whole number of milliseconds")
    return ttl / 1000


def clamp_ttl(
    seconds: float | None, default_s: float = DEFAULT_TTL_S, max_s: float = MAX_TTL_S
) -> float:
    """Return the actual time to live of a task."""
    # The maximum is applied last: the config may set it below ``MIN_TTL_S``.
    return min(max(seconds if seconds is not None else default_s, MIN_TTL_S), max_s)


def poll_interval(ttl_s: float) -> float:
    """Return how often a caller should poll a task, in seconds."""
    return next((every for upto, every in _POLL_STEPS if ttl_s <= upto), _POLL_MAX_S)


def without_task(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params for the server: without ``task``, because the task is the gate's."""
    return {key: value for key, value in params.items() if key != "task"}


def names_our_task(method: str, params: dict[str, Any]) -> bool:
    """Tell whether a request names a task of the gate; other tasks are the server's."""
    task_id = params.get("taskId")
    ours = type(task_id) is str and task_id.startswith(ID_PREFIX)
    return ours and method in TASK_METHODS


def lacks_correlation(body: Mapping[str, Any]) -> str:
    """Return the kind of error in an answer about a task that has no id yet; empty for others."""
    error = body.get("error")
    if type(error) is not dict:
        return ""
    data = error.get("data")
    known = data if type(data) is dict else {}
    return "" if "correlation_id" in known else str(known.get("kind", "invalid_request"))


def with_correlation(body: Mapping[str, Any], ident: str) -> dict[str, Any]:
    """Return an answer about a task whose error has an id that the record can be searched for."""
    error = body["error"]
    data = {**(error.get("data") or {}), "correlation_id": ident}
    return {**body, "error": {**error, "data": data}}


def refusal_kind(body: Mapping[str, Any] | None) -> str:
    """Return the kind of error in an answer about a task, if it determines the HTTP status."""
    error = body.get("error") if body is not None else None
    return _REFUSAL_KINDS.get(error.get("code"), "") if type(error) is dict else ""
