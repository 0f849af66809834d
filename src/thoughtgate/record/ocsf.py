"""Export of the record as OCSF events (Open Cybersecurity Schema Framework).

Every event of the record maps to one OCSF event; members without a counterpart in the class go
into ``unmapped`` under their own names. ``docs/reference/audit.md`` documents the mapping in
``CLASSES`` and ``FIELDS``.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from thoughtgate.core.record_events import (
    AGENT_AUTH_REJECTED,
    AGENT_CONNECTED,
    APPROVAL_DECIDED,
    APPROVAL_REQUESTED,
    CALL_DECISION,
    CALL_END,
    CALL_START,
    FRAME_REFUSED,
    MESSAGE,
    POLICY_CHANGED,
    RUN_END,
    RUN_START,
    SERVER_EXITED,
    SERVER_STARTED,
    TOOLS_LIST,
)
from thoughtgate.record.call_rows import event_time, member, number, text
from thoughtgate.record.evidence import CHECKPOINT, RECORD_GAP, RECORD_OPENED, RECORD_REPAIRED
from thoughtgate.record.export import CallKey, call_key
from thoughtgate.version import __version__

OCSF_VERSION: Final = "1.3.0"

UNKNOWN: Final = 0
SUCCESS: Final = 1
FAILURE: Final = 2

INFORMATIONAL: Final = 1
MEDIUM: Final = 3
HIGH: Final = 4

OTHER: Final = 99

RULE: Final = 1
"""The OCSF type of an analytic that consists of a single rule."""

BORROWED_TIME: Final = "time_of_line_before"
"""The label of an event whose own time is unreadable, so that it has the previous line's."""

PRODUCT: Final = {"name": "ThoughtGate", "vendor_name": "ThoughtGate", "version": __version__}

MAX_OPEN: Final = 10_000
"""Maximum number of open calls that are remembered; the oldest are dropped."""

MAX_WORD: Final = 1000
"""Maximum characters remembered of a call; a call with more is not remembered."""

_CARRIED: Final = ("kind", "method", "principal")
"""Members that only the start event of a call has."""

_UNSAID: Final = "unknown"
"""The value where OCSF requires a name and the record has none."""


class OcsfClass(NamedTuple):
    """The class and activity an event type maps to."""

    class_uid: int
    class_name: str
    category_uid: int
    category_name: str
    activity_id: int
    activity_name: str


_API: Final = (6003, "API Activity", 6, "Application Activity")
_LIFECYCLE: Final = (6002, "Application Lifecycle", 6, "Application Activity")
_AUTHENTICATION: Final = (3002, "Authentication", 3, "Identity & Access Management")
_AUTHORIZE: Final = (3003, "Authorize Session", 3, "Identity & Access Management")
_FINDING: Final = (2004, "Detection Finding", 2, "Findings")
_BASE: Final = (0, "Base Event", 0, "Uncategorized")

CLASSES: Final[dict[str, OcsfClass]] = {
    RUN_START: OcsfClass(*_LIFECYCLE, 3, "Start"),
    RUN_END: OcsfClass(*_LIFECYCLE, 4, "Stop"),
    SERVER_STARTED: OcsfClass(*_LIFECYCLE, 3, "Start"),
    SERVER_EXITED: OcsfClass(*_LIFECYCLE, 4, "Stop"),
    CALL_START: OcsfClass(*_API, OTHER, "Requested"),
    CALL_DECISION: OcsfClass(*_API, OTHER, "Judged"),
    CALL_END: OcsfClass(*_API, OTHER, "Ended"),
    TOOLS_LIST: OcsfClass(*_API, 2, "Read"),
    MESSAGE: OcsfClass(*_API, OTHER, "Passed on"),
    APPROVAL_REQUESTED: OcsfClass(*_AUTHORIZE, OTHER, "Asked"),
    APPROVAL_DECIDED: OcsfClass(*_AUTHORIZE, OTHER, "Decided"),
    AGENT_CONNECTED: OcsfClass(*_AUTHENTICATION, 1, "Logon"),
    AGENT_AUTH_REJECTED: OcsfClass(*_AUTHENTICATION, 1, "Logon"),
    FRAME_REFUSED: OcsfClass(*_FINDING, 1, "Create"),
    POLICY_CHANGED: OcsfClass(*_BASE, OTHER, "Policy changed"),
    RECORD_OPENED: OcsfClass(*_BASE, OTHER, "Record continued"),
    RECORD_REPAIRED: OcsfClass(*_BASE, OTHER, "Record repaired"),
    RECORD_GAP: OcsfClass(*_BASE, OTHER, "Events lost"),
    CHECKPOINT: OcsfClass(*_BASE, OTHER, "Record signed"),
}
"""For each event type its OCSF class and activity."""

_UNKNOWN_TYPE: Final = OcsfClass(*_BASE, UNKNOWN, "Unknown")


def _constants(shape: OcsfClass) -> tuple[dict[str, Any], tuple[str | int, ...]]:
    members = {**shape._asdict(), "type_uid": shape.class_uid * 100 + shape.activity_id}
    return members, (*members.values(), *PRODUCT.values())


_CONSTANTS: Final = {shape: _constants(shape) for shape in (*CLASSES.values(), _UNKNOWN_TYPE)}
"""The constant members of each class and activity, and all strings and numbers in them."""

FIELDS: Final[tuple[tuple[str, str], ...]] = (
    ("time", "`ts`, as milliseconds since the epoch; where it cannot be read that of the line before"),
    ("class_uid, class_name, activity_id, activity_name", "by `type`, see the table of classes"),
    ("category_uid, category_name", "of the class: its first digit; Application Activity (6), Identity & Access Management (3), Findings (2) or Uncategorized (0)"),
    ("type_uid", "`class_uid` times 100, and `activity_id`"),
    ("severity_id", "1; 3 for a refusal that was enforced and for `agent_auth_rejected`; 4 for `frame_refused`, `record_gap` and `record_repaired`"),
    ("status_id", "1 for `OK`, `SUCCEEDED`, `approved` and `agent_connected`; 2 for the contract's other words of `status` and for `agent_auth_rejected`; else 0"),
    ("status", "`status`, `run.status` or `approval.outcome`"),
    ("status_detail", "`error.kind`, else `agent.reason`"),
    ("count", "`agent.repeated`, `frame.repeated`"),
    ("action_id, disposition_id", "`decision.action`: ALLOW 1 and 1; BLOCK and THROTTLE 2 and 2; HOLD 0 and 99; what was not enforced 1 and 1"),
    ("disposition", "`decision.action` that was enforced"),
    ("duration", "`latency_ms`, `run.summary.duration_ms`"),
    ("metadata.version", OCSF_VERSION),
    ("metadata.product.name, .vendor_name, .version", "ThoughtGate, twice, and the version that exports"),
    ("metadata.uid", "`chain`"),
    ("metadata.correlation_uid", "`call.call_id`, else `run_id`"),
    ("metadata.sequence", "`seq`"),
    ("metadata.original_time", "`ts`"),
    ("metadata.log_name", "`run_id`"),
    ("metadata.event_code, .log_version", "`type`, `v`"),
    ("metadata.labels", f"`{BORROWED_TIME}` when `time` is that of the line before"),
    ("metadata.profiles", "`security_control` when there is a `decision`"),
    ("actor.user.name", "who calls: `call.principal` of the call's start, else `principal`, else `unknown`; of `approval_decided` who decided: `approval.decided_by`, else `unknown`"),
    ("user.name (3002)", "`agent.identity`, else `principal`, else `unknown`"),
    ("user.name (3003)", "who calls: `call.principal` of the call's start, else `principal`, else `unknown`"),
    ("privileges (3003)", "`call.tool_name`, else `unknown`"),
    ("session.uid (3003)", "`session_id`, else 0"),
    ("service.name (3002)", "ThoughtGate"),
    ("actor.session.uid", "`session_id`, else 0"),
    ("actor.app_name", "`agent_id`, else `unknown`"),
    ("src_endpoint.name, .uid", "`client`, else `unknown`; `source.host_id`"),
    ("dst_endpoint.svc_name", "`server_name`"),
    ("api.operation (6003)", "`call.method` of the call's start, `list.method` or `message.method`, else `tools/call`"),
    ("api.service.name, api.request.uid (6003)", "`server_name`, `call.call_id`"),
    ("api.response.code, .error, .message (6003)", "`error.code`, `error.kind`, `error.message`"),
    ("resources[].name, .type (6003)", "`call.tool_name`; `call.kind` of the call's start, else `tool`"),
    ("policy.name, .version, .uid", "`decision.rule_id`, `decision.policy.policy_version`, `.policy_id`"),
    ("finding_info.title (2004)", "`frame refused: ` and `frame.check`"),
    ("finding_info.analytic.name, .type_id (2004)", f"`frame.check`; {RULE}, a rule"),
    ("finding_info.uid, .types (2004)", "`frame.correlation_id`, else `chain`; `frame.kind`"),
    ("app.name, .vendor_name (6002)", "of a server's start or exit `server_name` and `unknown`; of a run's ThoughtGate"),
    ("app.version (6002)", "of a run's start or end: the version that exports"),
    ("unmapped", "every member of the event whose value stands nowhere above, under its own name"),
)  # fmt: skip
"""Each OCSF field and its source; a number restricts the row to that class.

A path that begins with a dot is relative to the parent of the row's first path.
"""

_PLACED: Final = frozenset({
    "v", "type", "ts", "run_id", "agent_id", "client", "session_id", "seq", "server_name", "chain",
    "principal", "source.host_id", "call.call_id", "call.server_name", "call.tool_name", "call.kind",
    "call.method", "call.principal", "list.method", "message.method", "status", "latency_ms",
    "run.status", "run.summary.duration_ms", "error.kind", "error.code", "error.message",
    "agent.identity", "agent.reason", "agent.repeated", "approval.outcome", "approval.decided_by",
    "decision.action", "decision.rule_id", "decision.policy.policy_id",
    "decision.policy.policy_version", "frame.check", "frame.kind", "frame.correlation_id",
    "frame.repeated",
})  # fmt: skip
"""Members that are mapped in some class."""


class _Level(NamedTuple):
    """The mapped members of one object."""

    placed: frozenset[str]
    parents: dict[str, "_Level"]
    """Members that are objects with mapped members of their own."""


def _level(paths: Iterable[str]) -> _Level:
    known = frozenset(paths)
    parents = {path[:at] for path in known for at, char in enumerate(path) if char == "."}
    return _Level(
        known,
        {
            parent: _level(
                path[len(parent) + 1 :] for path in known if path.startswith(f"{parent}.")
            )
            for parent in parents
        },
    )


_TOP: Final = _level(_PLACED)

_STATUSES: Final = {
    "OK": SUCCESS,
    "SUCCEEDED": SUCCESS,
    "approved": SUCCESS,
    "ERROR": FAILURE,
    "TIMEOUT": FAILURE,
    "CANCELLED": FAILURE,
    "FAILED": FAILURE,
    "TERMINATED": FAILURE,
    "rejected": FAILURE,
    "timeout": FAILURE,
    "withdrawn": FAILURE,
}

_REFUSALS: Final = frozenset({"BLOCK", "THROTTLE"})
_GRAVE: Final = frozenset({FRAME_REFUSED, RECORD_GAP, RECORD_REPAIRED})
_LOGONS: Final = frozenset({AGENT_AUTH_REJECTED, AGENT_CONNECTED})

_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode

_ACTIONS: Final = {"ALLOW": (1, 1), "BLOCK": (2, 2), "THROTTLE": (2, 2), "HOLD": (UNKNOWN, OTHER)}
"""The OCSF action and disposition for each decision."""


class Starts:
    """Remembers members of start events for the later events of the same calls."""

    def __init__(self) -> None:
        self._open: dict[CallKey, dict[str, str]] = {}

    def said(self, event: dict[str, Any]) -> Mapping[str, str]:
        """Return the remembered members for an event; must be called for every event in order."""
        kind = event.get("type")
        key = call_key(event)
        if kind == CALL_END:
            return self._open.pop(key, {})
        if kind == CALL_START:
            self._keep(key, member(event, "call"))
        return self._open.get(key, {})

    def _keep(self, key: CallKey, call: dict[str, Any]) -> None:
        found = {name: text(call, name) or "" for name in _CARRIED}
        if key[0] and max(map(len, (*found.values(), key[0], key[1] or ""))) <= MAX_WORD:
            self._open[key] = found
            if len(self._open) > MAX_OPEN:
                del self._open[next(iter(self._open))]


def ocsf_event(
    written: dict[str, Any], before: float = 0.0, start: Mapping[str, str] | None = None
) -> dict[str, Any] | None:
    """Return an event of the record as an OCSF event; None if no time is known for it.

    ``before`` is the time of the previous line, used if the event's own time is unreadable;
    ``start`` contains members from the start event of its call.
    """
    event = written
    if start:
        event = {**written, "call": {**start, **member(written, "call")}}
    own = event_time(event)
    at = own if own > 0 else before
    if at <= 0:
        return None
    kind = text(event, "type") or ""
    shape = CLASSES.get(kind, _UNKNOWN_TYPE)
    members, leaves = _CONSTANTS[shape]
    time = round(at * 1000)
    call, decision = member(event, "call"), member(event, "decision")
    found: dict[str, Any] = {
        "severity_id": _severity(kind, decision),
        "metadata": _metadata(event, call, borrowed=at != own, decided=bool(decision)),
        "actor": _actor(kind, event, call),
    }
    _add_endpoints(found, event)
    _add_status(found, kind, event)
    if decision:
        _add_decision(found, decision)
    detail = _DETAILS.get(shape.class_uid)
    if detail is not None:
        found.update(detail(event, call))
    placed = _gather(found.values(), {time, *leaves})
    return {"time": time, **members, **found, "unmapped": _rest(written, _TOP, placed)}


def ocsf_line(mapped: dict[str, Any]) -> str:
    """Return an OCSF event as JSON in ASCII, as ``json.dumps`` would write it."""
    # orjson is many times faster; these are the only cases that it writes differently.
    if _has_no_float(mapped["unmapped"]):
        try:
            line = orjson.dumps(mapped)
        except orjson.JSONEncodeError:
            return _ENCODE(mapped)
        if line.isascii() and b"\x7f" not in line:
            return line.decode()
    return _ENCODE(mapped)


def _has_no_float(value: Any) -> bool:
    """Tell whether a value contains no floating-point number at any depth."""
    kind = type(value)
    if kind is dict:
        value = value.values()
    elif kind is not list:
        return kind is not float
    for inner in value:
        kind = type(inner)
        if kind is float or ((kind is dict or kind is list) and not _has_no_float(inner)):
            return False
    return True


def _gather(values: Iterable[Any], leaves: set[str | int]) -> set[str | int]:
    """Add all strings and numbers inside the values to ``leaves`` and return it."""
    add, waiting = leaves.add, [values]
    for within in waiting:  # the list grows during the loop
        for value in within:
            kind = type(value)
            if kind is str or kind is int:
                add(value)
            elif kind is list:
                waiting.append(value)
            elif value is not PRODUCT:
                waiting.append(value.values())
    return leaves


def _rest(said: dict[str, Any], level: _Level, mapped: set[str | int]) -> dict[str, Any]:
    """Return the members whose values were not mapped."""
    rest: dict[str, Any] = {}
    placed, parents = level
    for name, value in said.items():
        kind = type(value)
        if kind is dict and name in parents:
            inner = _rest(value, parents[name], mapped)
            if inner:
                rest[name] = inner
        elif name not in placed or not (
            value is None or value == "" or ((kind is str or kind is int) and value in mapped)
        ):
            rest[name] = value
    return rest


def _severity(kind: str, decision: dict[str, Any]) -> int:
    if kind in _GRAVE:
        return HIGH
    refused = decision.get("action") in _REFUSALS and decision.get("enforced") is not False
    return MEDIUM if refused or kind == AGENT_AUTH_REJECTED else INFORMATIONAL


def _metadata(
    event: dict[str, Any], call: dict[str, Any], *, borrowed: bool, decided: bool
) -> dict[str, Any]:
    run = text(event, "run_id")
    metadata: dict[str, Any] = {"version": OCSF_VERSION, "product": PRODUCT}
    if decided:
        metadata["profiles"] = ["security_control"]
    if borrowed:
        metadata["labels"] = [BORROWED_TIME]
    _add(metadata, "uid", text(event, "chain"))
    _add(metadata, "correlation_uid", text(call, "call_id") or run)
    _add(metadata, "sequence", number(event, "seq"))
    _add(metadata, "original_time", text(event, "ts"))
    _add(metadata, "log_name", run)
    _add(metadata, "log_version", text(event, "v"))
    _add(metadata, "event_code", text(event, "type"))
    return metadata


def _actor(kind: str, event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    if kind == APPROVAL_DECIDED:
        # The caller did not decide: if nobody did, no user is named.
        user = {"name": text(member(event, "approval"), "decided_by") or _UNSAID}
    else:
        user = _caller(event, call)
    return {
        "user": user,
        "session": _session(event),
        "app_name": text(event, "agent_id") or _UNSAID,
    }


def _caller(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    return {"name": text(call, "principal") or text(event, "principal") or _UNSAID}


def _session(event: dict[str, Any]) -> dict[str, Any]:
    return {"uid": text(event, "session_id") or "0"}


def _add_endpoints(found: dict[str, Any], event: dict[str, Any]) -> None:
    source = {"name": text(event, "client") or _UNSAID}
    _add(source, "uid", text(member(event, "source"), "host_id"))
    found["src_endpoint"] = source
    server = text(event, "server_name")
    if server:
        found["dst_endpoint"] = {"svc_name": server}


def _add_status(found: dict[str, Any], kind: str, event: dict[str, Any]) -> None:
    run = member(event, "run")
    said = (
        text(event, "status") or text(run, "status") or text(member(event, "approval"), "outcome")
    )
    if kind in _LOGONS:
        found["status_id"] = FAILURE if kind == AGENT_AUTH_REJECTED else SUCCESS
    else:
        found["status_id"] = _STATUSES.get(said or "", UNKNOWN)
    _add(found, "status", said)
    detail = text(member(event, "error"), "kind") or text(member(event, "agent"), "reason")
    _add(found, "status_detail", detail)
    repeated = (number(member(event, name), "repeated") for name in ("agent", "frame"))
    _add(found, "count", next(filter(None, repeated), None))
    duration = number(event, "latency_ms")
    if duration is None and run:
        duration = number(member(run, "summary"), "duration_ms")
    _add(found, "duration", duration)


def _add_decision(found: dict[str, Any], said: dict[str, Any]) -> None:
    word = text(said, "action") or ""
    action, disposition = _ACTIONS.get(word, (UNKNOWN, UNKNOWN))
    if said.get("enforced") is False:
        (action, disposition), word = _ACTIONS["ALLOW"], ""
    found["action_id"] = action
    found["disposition_id"] = disposition
    if word:
        found["disposition"] = word
    applied = member(said, "policy")
    policy: dict[str, Any] = {}
    _add(policy, "name", text(said, "rule_id"))
    _add(policy, "version", text(applied, "policy_version"))
    _add(policy, "uid", text(applied, "policy_id"))
    if policy:
        found["policy"] = policy


def _api(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    error = member(event, "error")
    operation = (
        text(call, "method")
        or text(member(event, "list"), "method")
        or text(member(event, "message"), "method")
    )
    api: dict[str, Any] = {"operation": operation or "tools/call"}
    server, call_id = text(event, "server_name"), text(call, "call_id")
    if server:
        api["service"] = {"name": server}
    if call_id:
        api["request"] = {"uid": call_id}
    if error:
        response: dict[str, Any] = {}
        _add(response, "code", number(error, "code"))
        _add(response, "error", text(error, "kind"))
        _add(response, "message", text(error, "message"))
        api["response"] = response
    name = text(call, "tool_name")
    if not name:
        return {"api": api}
    return {"api": api, "resources": [{"name": name, "type": text(call, "kind") or "tool"}]}


def _authentication(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    identity = text(member(event, "agent"), "identity")
    user = {"name": identity} if identity else _caller(event, call)
    return {"user": user, "service": {"name": PRODUCT["name"]}}


def _authorization(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    wanted = text(call, "tool_name") or _UNSAID
    return {"user": _caller(event, call), "privileges": [wanted], "session": _session(event)}


def _finding(event: dict[str, Any], _call: dict[str, Any]) -> dict[str, Any]:
    frame = member(event, "frame")
    check = text(frame, "check") or _UNSAID
    info = {
        "title": f"frame refused: {check}",
        "analytic": {"name": check, "type_id": RULE},
        "uid": text(frame, "correlation_id") or text(event, "chain") or _UNSAID,
        "types": [text(frame, "kind") or _UNSAID],
    }
    return {"finding_info": info}


def _app(event: dict[str, Any], _call: dict[str, Any]) -> dict[str, Any]:
    if event.get("type") in {RUN_START, RUN_END}:
        return {"app": PRODUCT}
    return {"app": {"name": text(event, "server_name") or _UNSAID, "vendor_name": _UNSAID}}


def _add(said: dict[str, Any], name: str, value: str | int | None) -> None:
    if value is not None:
        said[name] = value


_DETAILS: Final = {
    6003: _api,
    3002: _authentication,
    3003: _authorization,
    2004: _finding,
    6002: _app,
}
