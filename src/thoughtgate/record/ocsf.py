"""Export of the record as OCSF events (Open Cybersecurity Schema Framework).

Every event of the record maps to one OCSF event; members without a counterpart in the class go
into ``unmapped`` under their own names. ``docs/reference/audit.md`` documents the mapping;
a test compares its table of fields with what is exported.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from thoughtgate.core import record_events as events
from thoughtgate.record import evidence
from thoughtgate.record.call_rows import event_time, member, number, text
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
"""Used where OCSF requires a name and the record has none."""


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
    events.RUN_START: OcsfClass(*_LIFECYCLE, 3, "Start"),
    events.RUN_END: OcsfClass(*_LIFECYCLE, 4, "Stop"),
    events.SERVER_STARTED: OcsfClass(*_LIFECYCLE, 3, "Start"),
    events.SERVER_EXITED: OcsfClass(*_LIFECYCLE, 4, "Stop"),
    events.SERVER_UNREACHABLE: OcsfClass(*_LIFECYCLE, OTHER, "Unreachable"),
    events.SERVER_RECOVERED: OcsfClass(*_LIFECYCLE, OTHER, "Recovered"),
    events.CALL_START: OcsfClass(*_API, OTHER, "Requested"),
    events.CALL_DECISION: OcsfClass(*_API, OTHER, "Judged"),
    events.CALL_END: OcsfClass(*_API, OTHER, "Ended"),
    events.TOOLS_LIST: OcsfClass(*_API, 2, "Read"),
    events.MESSAGE: OcsfClass(*_API, OTHER, "Passed on"),
    events.APPROVAL_REQUESTED: OcsfClass(*_AUTHORIZE, OTHER, "Asked"),
    events.APPROVAL_DECIDED: OcsfClass(*_AUTHORIZE, OTHER, "Decided"),
    events.AGENT_CONNECTED: OcsfClass(*_AUTHENTICATION, 1, "Logon"),
    events.AGENT_AUTH_REJECTED: OcsfClass(*_AUTHENTICATION, 1, "Logon"),
    events.FRAME_REFUSED: OcsfClass(*_FINDING, 1, "Create"),
    events.CONTENT_FOUND: OcsfClass(*_FINDING, 1, "Create"),
    events.REQUEST_FAILED: OcsfClass(*_API, OTHER, "Failed"),
    events.STOP_CHANGED: OcsfClass(*_BASE, OTHER, "Stop order changed"),
    events.CONFIG_CHANGED: OcsfClass(*_BASE, OTHER, "Agent's config changed"),
    events.POLICY_CHANGED: OcsfClass(*_BASE, OTHER, "Policy changed"),
    events.DEFINITION_CHANGED: OcsfClass(*_FINDING, 1, "Create"),
    evidence.RECORD_OPENED: OcsfClass(*_BASE, OTHER, "Record continued"),
    evidence.RECORD_REPAIRED: OcsfClass(*_BASE, OTHER, "Record repaired"),
    evidence.RECORD_GAP: OcsfClass(*_BASE, OTHER, "Events lost"),
    evidence.CHECKPOINT: OcsfClass(*_BASE, OTHER, "Record signed"),
}
"""The OCSF class and activity of each event type."""

_UNKNOWN_TYPE: Final = OcsfClass(*_BASE, UNKNOWN, "Unknown")


def _constants(shape: OcsfClass) -> tuple[dict[str, Any], tuple[str | int, ...]]:
    members = {**shape._asdict(), "type_uid": shape.class_uid * 100 + shape.activity_id}
    return members, (*members.values(), *PRODUCT.values())


_CONSTANTS: Final = {shape: _constants(shape) for shape in (*CLASSES.values(), _UNKNOWN_TYPE)}
"""The constant members of each class and activity, and all strings and numbers in them."""

_PLACED: Final = frozenset({
    "v", "type", "ts", "run_id", "agent_id", "client", "session_id", "seq", "server_name", "chain",
    "principal", "source.host_id", "call.call_id", "call.server_name", "call.tool_name", "call.kind",
    "call.method", "call.principal", "list.method", "message.method", "status", "latency_ms",
    "run.status", "run.summary.duration_ms", "error.kind", "error.code", "error.message",
    "agent.identity", "agent.reason", "agent.repeated", "approval.outcome", "approval.decided_by",
    "decision.action", "decision.rule_id", "decision.policy.policy_id",
    "decision.policy.policy_version", "frame.check", "frame.kind", "frame.correlation_id",
    "frame.repeated", "list.repeated", "message.repeated",
})  # fmt: skip
"""Members that are mapped in some class."""


_FOLDED: Final = ("agent", "frame", "list", "message", "request")
"""Members of events that may each stand for several events."""


def _nested(paths: Iterable[str]) -> dict[str, Any]:
    """Return dotted paths as nested tables; a mapped member is an empty one."""
    tables: dict[str, Any] = {}
    for path in paths:
        table = tables
        for name in path.split("."):
            table = table.setdefault(name, {})
    return tables


_MAPPED: Final = _nested(_PLACED)

_STATUSES: Final = {
    **dict.fromkeys(("OK", "SUCCEEDED", "approved"), SUCCESS),
    **dict.fromkeys(("ERROR", "TIMEOUT", "CANCELLED", "FAILED", "TERMINATED"), FAILURE),
    **dict.fromkeys(("rejected", "timeout", "withdrawn"), FAILURE),
}

_REFUSALS: Final = frozenset({"BLOCK", "THROTTLE"})
_GRAVE: Final = frozenset({events.FRAME_REFUSED, evidence.RECORD_GAP, evidence.RECORD_REPAIRED})
_LOGONS: Final = {events.AGENT_AUTH_REJECTED: FAILURE, events.AGENT_CONNECTED: SUCCESS}

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
        if kind == events.CALL_END:
            return self._open.pop(key, {})
        if kind == events.CALL_START:
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
        **_endpoints(event),
        **_status(kind, event),
        **(_decision(decision) if decision else {}),
    }
    detail = _DETAILS.get(shape.class_uid)
    if detail is not None:
        found.update(detail(event, call))
    placed = _gather(found.values(), {time, *leaves})
    return {"time": time, **members, **found, "unmapped": _rest(written, _MAPPED, placed)}


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


def _rest(said: dict[str, Any], tables: dict[str, Any], mapped: set[str | int]) -> dict[str, Any]:
    """Return the members whose values were not mapped."""
    rest: dict[str, Any] = {}
    for name, value in said.items():
        kind = type(value)
        table = tables.get(name)
        if kind is dict and table:
            inner = _rest(value, table, mapped)
            if inner:
                rest[name] = inner
        elif table != {} or not (
            value is None or value == "" or ((kind is str or kind is int) and value in mapped)
        ):
            rest[name] = value
    return rest


def _severity(kind: str, decision: dict[str, Any]) -> int:
    if kind in _GRAVE:
        return HIGH
    refused = decision.get("action") in _REFUSALS and decision.get("enforced") is not False
    return MEDIUM if refused or kind == events.AGENT_AUTH_REJECTED else INFORMATIONAL


def _metadata(
    event: dict[str, Any], call: dict[str, Any], *, borrowed: bool, decided: bool
) -> dict[str, Any]:
    run = text(event, "run_id")
    return _known(
        version=OCSF_VERSION,
        product=PRODUCT,
        profiles=["security_control"] if decided else None,
        labels=[BORROWED_TIME] if borrowed else None,
        uid=text(event, "chain"),
        correlation_uid=text(call, "call_id") or run,
        sequence=number(event, "seq"),
        original_time=text(event, "ts"),
        log_name=run,
        log_version=text(event, "v"),
        event_code=text(event, "type"),
    )


def _actor(kind: str, event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    if kind == events.APPROVAL_DECIDED:
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


def _endpoints(event: dict[str, Any]) -> dict[str, Any]:
    host = text(member(event, "source"), "host_id")
    server = text(event, "server_name")
    return _known(
        src_endpoint=_known(name=text(event, "client") or _UNSAID, uid=host),
        dst_endpoint={"svc_name": server} if server else None,
    )


def _status(kind: str, event: dict[str, Any]) -> dict[str, Any]:
    run, agent = member(event, "run"), member(event, "agent")
    said = (
        text(event, "status") or text(run, "status") or text(member(event, "approval"), "outcome")
    )
    repeated = next(
        filter(None, (number(member(event, name), "repeated") for name in _FOLDED)), None
    )
    duration = number(event, "latency_ms")
    if duration is None:
        duration = number(member(run, "summary"), "duration_ms")
    return _known(
        status_id=_LOGONS.get(kind, _STATUSES.get(said or "", UNKNOWN)),
        status=said,
        status_detail=text(member(event, "error"), "kind") or text(agent, "reason"),
        count=repeated,
        duration=duration,
    )


def _decision(said: dict[str, Any]) -> dict[str, Any]:
    word = text(said, "action") or ""
    action, disposition = _ACTIONS.get(word, (UNKNOWN, UNKNOWN))
    if said.get("enforced") is False:
        # The call was forwarded all the same: nothing was enforced.
        (action, disposition), word = _ACTIONS["ALLOW"], ""
    applied = member(said, "policy")
    policy = _known(
        name=text(said, "rule_id"),
        version=text(applied, "policy_version"),
        uid=text(applied, "policy_id"),
    )
    return _known(
        action_id=action,
        disposition_id=disposition,
        disposition=word or None,
        policy=policy or None,
    )


def _api(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    error = member(event, "error")
    parts = (call, member(event, "list"), member(event, "message"))
    methods = (text(part, "method") for part in parts)
    server, call_id = text(event, "server_name"), text(call, "call_id")
    response = _known(
        code=number(error, "code"), error=text(error, "kind"), message=text(error, "message")
    )
    api = _known(
        operation=next(filter(None, methods), "tools/call"),
        service={"name": server} if server else None,
        request={"uid": call_id} if call_id else None,
        response=response if error else None,
    )
    name = text(call, "tool_name")
    resources = [{"name": name, "type": text(call, "kind") or "tool"}] if name else None
    return _known(api=api, resources=resources)


def _authentication(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    identity = text(member(event, "agent"), "identity")
    user = {"name": identity} if identity else _caller(event, call)
    return {"user": user, "service": {"name": PRODUCT["name"]}}


def _authorization(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    wanted = text(call, "tool_name") or _UNSAID
    return {"user": _caller(event, call), "privileges": [wanted], "session": _session(event)}


def _finding(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    if event.get("type") == events.CONTENT_FOUND:
        return _content_finding(event, call)
    if event.get("type") == events.DEFINITION_CHANGED:
        return _definition_finding(event)
    frame = member(event, "frame")
    check = text(frame, "check") or _UNSAID
    info = {
        "title": f"frame refused: {check}",
        "analytic": {"name": check, "type_id": RULE},
        "uid": text(frame, "correlation_id") or text(event, "chain") or _UNSAID,
        "types": [text(frame, "kind") or _UNSAID],
    }
    return {"finding_info": info}


def _content_finding(event: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    listed = member(event, "content").get("findings")
    found = [one for one in listed if type(one) is dict] if type(listed) is list else []
    checks = sorted({text(one, "check") or _UNSAID for one in found})
    info = {
        "title": f"content found: {', '.join(checks) or _UNSAID}",
        "analytic": {"name": checks[0] if checks else _UNSAID, "type_id": RULE},
        "uid": text(call, "call_id") or text(event, "chain") or _UNSAID,
        "types": checks or [_UNSAID],
    }
    api = {
        "operation": text(call, "tool_name") or _UNSAID,
        "service": {"name": text(call, "server_name") or _UNSAID},
    }
    return {"finding_info": info, "evidences": [{"api": api}]}


def _definition_finding(event: dict[str, Any]) -> dict[str, Any]:
    changed = member(event, "definition")
    kind, name = text(changed, "kind") or _UNSAID, text(changed, "name") or _UNSAID
    info = {
        "title": f"definition {text(changed, 'outcome') or _UNSAID}: {kind} {name}",
        "analytic": {"name": "definition", "type_id": RULE},
        "uid": text(changed, "digest") or text(event, "chain") or _UNSAID,
        "types": [text(changed, "weight") or _UNSAID],
    }
    return {"finding_info": info}


def _app(event: dict[str, Any], _call: dict[str, Any]) -> dict[str, Any]:
    if event.get("type") in {events.RUN_START, events.RUN_END}:
        return {"app": PRODUCT}
    return {"app": {"name": text(event, "server_name") or _UNSAID, "vendor_name": _UNSAID}}


def _known(**members: Any) -> dict[str, Any]:
    """Return the members that have a value."""
    return {name: value for name, value in members.items() if value is not None}


_DETAILS: Final = {
    6003: _api,
    3002: _authentication,
    3003: _authorization,
    2004: _finding,
    6002: _app,
}
