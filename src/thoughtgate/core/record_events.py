"""Events of the record as values, created by the packages that observe them.

``core.envelope`` renders them as lines, and ``record.writer`` writes the lines. Every shim loads
this module, so it stays small.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from thoughtgate.errors import CAUSES, STOPPED_BY_HAND
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
REQUEST_FAILED: Final = "request_failed"
MESSAGE: Final = "message"
SERVER_STARTED: Final = "server_started"
SERVER_EXITED: Final = "server_exited"
SERVER_UNREACHABLE: Final = "server_unreachable"
SERVER_RECOVERED: Final = "server_recovered"
POLICY_CHANGED: Final = "policy_changed"
CONTENT_FOUND: Final = "content_found"
DEFINITION_CHANGED: Final = "definition_changed"
STOP_CHANGED: Final = "stop_changed"
CONFIG_CHANGED: Final = "config_changed"

ABOUT_SERVERS: Final = (b'"type":"tools_list"', b'"type":"server_')
"""Marks of the lines about servers and what they offer. The longer a mark, the faster the search."""

SERVER_EVENTS: Final = frozenset(
    {SERVER_STARTED, SERVER_EXITED, SERVER_UNREACHABLE, SERVER_RECOVERED}
)
"""Changes of a server's state."""

AGENT_TO_SERVER: Final = "agent_to_server"
SERVER_TO_AGENT: Final = "server_to_agent"

OK: Final = "OK"
ERROR: Final = "ERROR"
TIMEOUT: Final = "TIMEOUT"
CANCELLED: Final = "CANCELLED"

OUTCOME_UNKNOWN: Final = "outcome_unknown"
"""The kind of error of a call that may have run: its process ended before the answer arrived."""

NOWHERE: Final = "(none)"
"""The server id for calls that name no server; no config can contain it."""

MAX_NAME: Final = 512
"""Characters of a method or tool name that the record stores; peers choose the names."""

MAX_FINDINGS: Final = 100
"""Findings of one message that the record stores; it counts the others."""

NAME_READ: Final = 4 * MAX_NAME
"""Characters of a method in which a secret is looked for, before the governor shortens it."""

UNREAD_HTTP: Final = "http"
"""The check for a request that is not valid HTTP or is not accepted; its sender is unknown."""

_SIGNALLED: Final = 128
"""Added to the number of the signal that ended a process, as in shells."""

_METHOD_IN: Final = {FRAME_REFUSED: "frame", REQUEST_FAILED: "request"}

_DROPPED: Final = frozenset({"unclassifiable", "unknown_response"})
"""Checks whose refusals are not answered, because there is no request to answer."""


START_BYTES: Final = 32
"""First bytes of a refused frame that the record stores: enough to recognise what sent it."""

_START_READ: Final = 256
"""First bytes that are searched for secrets: a pattern may need more than the stored ones."""


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
    address: str = "",
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
    if address:
        frame["address"] = address
    frame["enforced"] = enforced
    if not enforced:
        frame["outcome"] = "WOULD_DROP" if check in _DROPPED else "WOULD_REJECT"
    return Record(FRAME_REFUSED, at, server, session, {"frame": frame})


def request_failed(
    at: float, server: str, session: str, *, method: str, kind: str, correlation_id: str
) -> Record:
    """A request that is no call was answered with an error of the gate.

    The governor shortens the method and masks secrets in it.
    """
    request = {"method": method[:NAME_READ], "kind": kind, "correlation_id": correlation_id}
    return Record(REQUEST_FAILED, at, server, session, {"request": request})


def content_found(
    at: float,
    server: str,
    session: str,
    call: dict[str, Any],
    *,
    findings: Sequence[Sequence[str]],
    direction: str,
    action: str,
    enforced: bool,
    skipped: int = 0,
) -> Record:
    """The content checks found something; ``findings`` are check, tier and place, never the value.

    ``skipped`` counts messages that were not inspected because too many waited for it.
    """
    content: dict[str, Any] = {
        "direction": direction,
        "findings": [
            dict(zip(("check", "tier", "where"), found, strict=True))
            for found in findings[:MAX_FINDINGS]
        ],
        "found": len(findings),
        "action": action,
        "enforced": enforced,
    }
    if skipped:
        content["skipped"] = skipped
    if not enforced:
        content["outcome"] = f"WOULD_{action.upper()}"
    return Record(CONTENT_FOUND, at, server, session, {"call": call, "content": content})


def with_masked_method(record: Record, mask: Callable[[str], str]) -> Record:
    """Return a message, a failed request or a refused frame with its method as it is stored."""
    member = _METHOD_IN.get(record.type, "message")
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


_INTENDED: Final = frozenset({"stopped", STOPPED_BY_HAND})
"""Causes of an end that is no failure, and has no kind of error."""


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
    cause: str = "",
) -> Record:
    """A server exited, could not be started, or was lost; signal n gives the exit code 128 + n."""
    facts: dict[str, Any] = {"state": "lost" if was_up else "failed_to_start"}
    if exit_code is not None:
        # Python reports the signal that ended a process as a negative number.
        code = exit_code if exit_code >= 0 else _SIGNALLED - exit_code
        facts = {"state": "exited", "exit_code": code}
        cause = cause or "exited"
    facts["cause"] = cause = cause or ("connection_lost" if was_up else "start_failed")
    if cause not in _INTENDED:
        facts["kind"] = CAUSES[cause][0] if was_up else "server_start_failed"
    return Record(SERVER_EXITED, at, server, session, {"server": {**facts, "reason": reason}})


def server_unreachable(at: float, server: str, session: str, facts: dict[str, Any]) -> Record:
    """A server cannot be reached, or gives no usable answers; ``facts`` say why."""
    return Record(SERVER_UNREACHABLE, at, server, session, {"server": facts})


def server_recovered(at: float, server: str, session: str, down_s: float) -> Record:
    """A server that could not be used answers again."""
    facts = {"state": "up", "down_s": round(max(0.0, down_s), 3)}
    return Record(SERVER_RECOVERED, at, server, session, {"server": facts})


def config_changed(
    at: float, server: str, change: str, file: str, *, governed: bool, reason: str
) -> Record:
    """A config file of the agent changed during a run; ``server`` is empty if it was removed."""
    facts = {"change": change, "file": file, "governed": governed, "reason": reason}
    return Record(CONFIG_CHANGED, at, server, "0", {"config": facts})


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
