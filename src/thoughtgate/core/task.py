"""The life of a task that the gate itself minted for a held call.

A caller that asked for a task is answered at once; the call runs when the approval
lands. Pure and small: no codec, no store, no clock. ``core.task_codec`` knows how a
task looks in each revision, ``core.task_table`` who may ask about it.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.wire.methods import TASK_METHODS
from thoughtgate.wire.revisions import CAPABILITIES_KEY, META

HELD: Final = "held"
"""A person is asked."""
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
"""Every move a task can make. The diagram in the docs is drawn from this table."""

MIN_TTL_S: Final = 60.0
"""Shorter lives are lengthened: no person answers in less."""
MAX_TTL_S: Final = 86_400.0
DEFAULT_TTL_S: Final = 600.0

_POLL_STEPS: Final = ((60.0, 1.0), (300.0, 2.0), (900.0, 5.0))
"""A task that may live longer is asked about less often."""
_POLL_MAX_S: Final = 10.0

ID_PREFIX: Final = "tg_"
EXTENSION: Final = "io.modelcontextprotocol/tasks"
TASK_METHOD: Final = "tools/call"
"""The one method that may become a task."""


_REFUSAL_KINDS: Final[dict[Any, str]] = {
    -32601: "method_not_found",
    -32602: "invalid_params",
    -32021: "invalid_request",
}
"""Kinds of refusals that 2026-07-28 gives an HTTP status of their own, by their codes."""


class Task(NamedTuple):
    """One call that its caller does not wait for."""

    id: str
    """``tg_`` and at least 120 random bits: on a line without authentication, the id is the key."""
    principal: str
    session: str
    server: str
    tool: str
    call_id: str
    """Of the judge; a new one after a restart."""
    request: str
    """The call's params as JSON text, without the wish for a task: what is sent when approved."""
    created_at: float
    updated_at: float
    ttl_s: float
    modern: bool
    """True when it was asked for at 2026-07-28 or later."""
    phase: str = HELD
    note: str = ""
    """For people: how it stands."""
    outcome: str = ""
    """When ended: JSON text of an object with ``result`` or ``error``."""
    is_error: bool = False
    """The server's result says ``isError``: failed in one revision, completed in the other."""

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more will happen to it."""
        return not TRANSITIONS[self.phase]

    @property
    def expires_at(self) -> float:
        """When it is forgotten, whatever became of it."""
        return self.created_at + self.ttl_s


def move(task: Task, phase: str, at: float, note: str = "") -> Task | None:
    """Take a task to another phase; None when the table does not allow it."""
    if phase not in TRANSITIONS[task.phase]:
        return None
    return task._replace(phase=phase, updated_at=at, note=note)


def wants_task(method: str, params: dict[str, Any], *, modern: bool) -> bool:
    """Tell whether a request that must wait may be answered with a task.

    Until 2025-11-25 the caller asks with ``task``; from 2026-07-28 on the server decides,
    and may for a caller that declares the extension.
    """
    if method != TASK_METHOD:
        return False
    return has_extension(params) if modern else type(params.get("task")) is dict


def has_extension(params: dict[str, Any]) -> bool:
    """Tell whether a modern request declares the tasks extension."""
    meta = params.get(META)
    declared = meta.get(CAPABILITIES_KEY) if type(meta) is dict else None
    extensions = declared.get("extensions") if type(declared) is dict else None
    return type(extensions) is dict and type(extensions.get(EXTENSION)) is dict


def requested_ttl(params: dict[str, Any]) -> float | None:
    """Return the life a caller asked for, in seconds; None when it asked for none.

    Raises:
        ValueError: ``task.ttl`` is not a whole number of milliseconds.
    """
    wish = params.get("task")
    ttl = wish.get("ttl") if type(wish) is dict else None
    if ttl is None:
        return None
    if type(ttl) is not int or ttl < 0:
        raise ValueError("params.task.ttl must be a whole number of milliseconds")
    return ttl / 1000


def clamp_ttl(
    seconds: float | None, default_s: float = DEFAULT_TTL_S, max_s: float = MAX_TTL_S
) -> float:
    """Return the life a task really gets."""
    return min(max(seconds if seconds is not None else default_s, MIN_TTL_S), max_s)


def poll_interval(ttl_s: float) -> float:
    """Return how often a caller should ask about a task, in seconds."""
    return next((every for upto, every in _POLL_STEPS if ttl_s <= upto), _POLL_MAX_S)


def without_task(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params as the server gets them once approved: the task is ours, not its."""
    return {key: value for key, value in params.items() if key != "task"}


def names_our_task(method: str, params: dict[str, Any]) -> bool:
    """Tell whether a request names a task that the gate minted; others are the server's."""
    task_id = params.get("taskId")
    ours = type(task_id) is str and task_id.startswith(ID_PREFIX)
    return ours and method in TASK_METHODS


def refusal_kind(body: Mapping[str, Any] | None) -> str:
    """Return the kind of error that an answer about a task is, as far as a status depends on it."""
    error = body.get("error") if body is not None else None
    return _REFUSAL_KINDS.get(error.get("code"), "") if type(error) is dict else ""
