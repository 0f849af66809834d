"""Events of the record as values, created by the packages that observe them.

``core.envelope`` renders them as lines, and ``record.writer`` writes the lines. Every shim loads
this module, so it stays small.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from thoughtgate.wire.unchecked import unchecked

RUN_START: Final = "run_start"
RUN_END: Final = "run_end"
TOOLS_LIST: Final = "tools_list"
CALL_START: Final = "tool_call_start"
CALL_DECISION: Final = "tool_call_decision"
CALL_END: Final = "tool_call_end"
APPROVAL_REQUESTED: Final = "approval_requested"
APPROVAL_DECIDED: Final = "approval_decided"
AGENT_CONNECTED: Final = "agent_connected"
AGENT_AUTH_REJECTED: Final = "agent_auth_rejected"
FRAME_REFUSED: Final = "frame_refused"
MESSAGE: Final = "message"
SERVER_STARTED: Final = "server_started"
SERVER_EXITED: Final = "server_exited"
POLICY_CHANGED: Final = "policy_changed"

AGENT_TO_SERVER: Final = "agent_to_server"
SERVER_TO_AGENT: Final = "server_to_agent"

OK: Final = "OK"
ERROR: Final = "ERROR"
TIMEOUT: Final = "TIMEOUT"
CANCELLED: Final = "CANCELLED"

NOWHERE: Final = "(none)"
"""The server id for calls that name no server; no config can contain it."""

MAX_NAME: Final = 512
"""Characters of a method or tool name that the record stores; peers choose the names."""

NAME_READ: Final = 4 * MAX_NAME
"""Characters of a method in which a secret is looked for, before the governor shortens it."""

UNREAD_HTTP: Final = "http"
"""The check for a request that is not valid HTTP or is not accepted; its sender is unknown."""

_SIGNALLED: Final = 128
"""Added to the number of the signal that ended a process, as in shells."""

_DROPPED: Final = frozenset({"unclassifiable", "unknown_response"})
"""Checks whose refusals are not answered, because there is no request to answer."""


START_BYTES: Final = 32
"""First bytes of a refused frame that the record stores: enough to recognise what sent it."""

_START_READ: Final = 256
"""First bytes in which a secret is looked for: its pattern may need more than the stored ones."""


class Record(NamedTuple):
    """One event, before it has a sequence number in a run."""

    type: str
    at: float
    """Seconds since the epoch."""
    server: str
    """Id of the server; empty if the event belongs to none."""
    session: str
    """Id of the session; ``0`` before there is one."""
    body: dict[str, Any]
    """The members that are specific to this type."""


def message_seen(  # noqa: PLR0917 - one message, told in the order it is seen
    at: float, server: str, session: str, direction: str, shape: str, method: str, size: int
) -> Record:
    """A message that no gate judges was passed on.

    The governor shortens the method and masks secrets in it.
    """
    body = {
        "message": {
            "direction": direction,
            "shape": shape,
            "method": method[:NAME_READ],
            "bytes": size,
        }
    }
    return Record(MESSAGE, at, server, session, body)


def frame_refused(
    at: float,
    server: str,
    session: str,
    *,
    direction: str,
    check: str,
    kind: str,
    size: int,
    start: bytes = b"",
    method: str = "",
    correlation_id: str = "",
    enforced: bool = True,
) -> Record:
    """A frame was refused, or in the development profile would have been.

    ``start`` is the frame or its beginning. The governor shortens it and ``method``, and masks
    secrets in them.
    """
    frame: dict[str, Any] = {"direction": direction, "check": check, "kind": kind, "bytes": size}
    frame["first_bytes"] = start[:_START_READ].hex()
    if method:
        frame["method"] = method[:NAME_READ]
    if correlation_id:
        frame["correlation_id"] = correlation_id
    frame["enforced"] = enforced
    if not enforced:
        frame["outcome"] = "WOULD_DROP" if check in _DROPPED else "WOULD_REJECT"
    return Record(FRAME_REFUSED, at, server, session, {"frame": frame})


def with_masked_method(record: Record, mask: Callable[[str], str]) -> Record:
    """Return a message or a refused frame with its method as the record stores it."""
    member = "frame" if record.type == FRAME_REFUSED else "message"
    said = record.body.get(member)
    if type(said) is not dict or type(said.get("method")) is not str:
        return record
    shown = mask(said["method"])
    if shown == said["method"]:
        return record
    return record._replace(body={**record.body, member: {**said, "method": shown}})


def with_masked_start(record: Record, mask: Callable[[str], str]) -> Record:
    """Return a refused frame with only as much of its beginning as the record stores."""
    frame = record.body["frame"]
    try:
        start = bytes.fromhex(frame.get("first_bytes", ""))
    except (TypeError, ValueError):
        start = b""  # reported by a shim, and not in the form that shims use
    # Latin-1 keeps every byte, also of a frame that is not text.
    shown = mask(start[:_START_READ].decode("latin-1")).encode("latin-1", "replace")
    body = {"frame": {**frame, "first_bytes": shown[:START_BYTES].hex()}}
    return record._replace(body={**record.body, **body})


def server_started(at: float, server: str, session: str, pid: int) -> Record:
    """A server was started or connected; one without a local process has the pid 0."""
    return Record(SERVER_STARTED, at, server, session, {"server": {"pid": pid}})


def server_exited(
    at: float,
    server: str,
    session: str,
    reason: str,
    *,
    exit_code: int | None = None,
    was_up: bool = True,
) -> Record:
    """A server exited, could not be started, or was lost; signal n gives the exit code 128 + n."""
    facts: dict[str, Any] = {"state": "lost" if was_up else "failed_to_start"}
    if exit_code is not None:
        code = exit_code if exit_code >= 0 else _SIGNALLED - exit_code
        facts = {"state": "exited", "exit_code": code}
    return Record(SERVER_EXITED, at, server, session, {"server": {**facts, "reason": reason}})


def describe_exit(code: int) -> str:
    """Return an exit code as text, for both conventions for signals."""
    number = -code if code < 0 else code - _SIGNALLED
    ended = f"was ended by signal {number}" if number > 0 else f"exited with code {code}"
    return f"the server {ended}"


def call_ended(
    at: float,
    server: str,
    session: str,
    *,
    call_id: str,
    tool: str,
    status: str,
    latency_ms: int,
    size: int,
    error: dict[str, Any] | None = None,
    is_error: bool = False,
) -> Record:
    """A call was answered, refused, lost or cancelled. Its result is measured, never stored."""
    body: dict[str, Any] = {
        "call": {"call_id": call_id, "server_name": server, "tool_name": tool[:MAX_NAME]},
        "status": status,
        "latency_ms": latency_ms,
        "bytes_out": size,
    }
    if is_error:
        body["is_error"] = True
    if error is not None:
        body["error"] = error
    return unchecked(Record, (CALL_END, at, server, session, body))
