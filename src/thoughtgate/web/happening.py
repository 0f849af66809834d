"""Events of the record in words: what happened, to what, and how it went."""

from typing import Any, Final, NamedTuple

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
from thoughtgate.record.call_rows import event_time, member, text

MAX_DETAIL: Final = 400
"""Characters of a detail; the call's own page has the rest."""

_TITLES: Final = {
    RUN_START: "run begins",
    RUN_END: "run ends",
    CALL_START: "call",
    CALL_DECISION: "verdict",
    APPROVAL_REQUESTED: "people asked",
    APPROVAL_DECIDED: "answer",
    CALL_END: "result",
    TOOLS_LIST: "list",
    MESSAGE: "message",
    FRAME_REFUSED: "frame refused",
    AGENT_CONNECTED: "agent connected",
    AGENT_AUTH_REJECTED: "turned away",
    SERVER_STARTED: "server started",
    SERVER_EXITED: "server ended",
    POLICY_CHANGED: "policy",
}


class Happening(NamedTuple):
    """One event, ready to be shown."""

    at: float
    kind: str
    """The event's type."""
    title: str
    server: str
    tool: str
    word: str
    """The verdict, outcome or status, if the event has one."""
    detail: str
    call_id: str
    enforced: bool = True


def tell(event: dict[str, Any]) -> Happening:
    """Put an event into words."""
    kind = text(event, "type") or ""
    call = member(event, "call")
    word, detail = _TELLERS.get(kind, _tell_other)(event)
    decision = member(event, "decision") or member(event, "frame") or member(event, "list")
    return Happening(
        event_time(event),
        kind,
        _TITLES.get(kind, kind.replace("_", " ")),
        text(event, "server_name") or "",
        text(call, "tool_name") or "",
        word,
        detail[:MAX_DETAIL],
        text(call, "call_id") or "",
        decision.get("enforced") is not False,
    )


def _tell_start(event: dict[str, Any]) -> tuple[str, str]:
    return "", text(member(member(event, "call"), "preview"), "args_preview") or ""


def _tell_decision(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "decision")
    rule = text(said, "rule_id") or text(said, "gate") or ""
    why = text(member(said, "explain"), "summary") or ""
    return text(said, "action") or "", f"{rule}: {why}" if rule and why else rule or why


def _tell_asked(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "approval")
    workflow = text(said, "workflow") or ""
    return "asked", f"workflow {workflow}, by {text(said, 'channel') or 'console'}"


def _tell_answered(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "approval")
    by, reason = text(said, "decided_by") or "", text(said, "reason") or ""
    who = f"by {by}" if by else ""
    return text(said, "outcome") or "", ": ".join(part for part in (who, reason) if part)


def _tell_end(event: dict[str, Any]) -> tuple[str, str]:
    error = member(event, "error")
    kind = text(error, "kind") or text(error, "class") or ""
    took = event.get("latency_ms")
    parts = [f"{took} ms" if isinstance(took, int) else "", kind]
    if event.get("is_error") is True:
        parts.append("the tool reports an error")
    return text(event, "status") or "", ", ".join(part for part in parts if part)


def _tell_list(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "list")
    hidden = said.get("hidden")
    names = [str(name) for name in hidden] if isinstance(hidden, list) else []
    told = f"{text(said, 'method')}: {said.get('returned')} of {said.get('offered')} shown"
    return "", f"{told}; hidden: {', '.join(names[:8])}" if names else told


def _tell_message(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "message")
    arrow = "→" if text(said, "direction") == "agent_to_server" else "←"
    return "", f"{arrow} {text(said, 'shape')} {text(said, 'method')}, {said.get('bytes')} bytes"


def _tell_frame(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "frame")
    return "refused", f"{text(said, 'check')}, {said.get('bytes')} bytes{_times(said)}"


def _tell_rejected(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "agent") or member(event, "auth")
    return "refused", f"{text(said, 'method') or ''}: {text(said, 'reason') or ''}{_times(said)}"


def _times(said: dict[str, Any]) -> str:
    repeated = said.get("repeated")
    return f"; {repeated} times, this is the last" if isinstance(repeated, int) else ""


def _tell_run(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "run")
    meta = member(said, "meta")
    facts = ", ".join(f"{name} {value}" for name, value in meta.items() if isinstance(value, str))
    return text(said, "status") or "", facts or text(said, "mode") or ""


def _tell_other(event: dict[str, Any]) -> tuple[str, str]:
    said = next((member(event, name) for name in _BODIES if name in event), {})
    return "", ", ".join(
        f"{name} {value}" for name, value in said.items() if isinstance(value, str | int)
    )


_BODIES: Final = ("server", "policy", "agent", "record", "checkpoint")

_TELLERS: Final = {
    CALL_START: _tell_start,
    CALL_DECISION: _tell_decision,
    APPROVAL_REQUESTED: _tell_asked,
    APPROVAL_DECIDED: _tell_answered,
    CALL_END: _tell_end,
    TOOLS_LIST: _tell_list,
    MESSAGE: _tell_message,
    FRAME_REFUSED: _tell_frame,
    AGENT_AUTH_REJECTED: _tell_rejected,
    RUN_START: _tell_run,
    RUN_END: _tell_run,
}
