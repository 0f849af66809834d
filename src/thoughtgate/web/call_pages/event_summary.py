"""Short descriptions of recorded events, for the traffic page and the page of a call."""

from typing import Any, Final, NamedTuple

from thoughtgate.core import record_events as events
from thoughtgate.record.call_rows import event_time, member, text

MAX_DETAIL: Final = 400
"""Maximum characters of a detail; the page of the call shows the rest."""

_TITLES: Final = {
    events.RUN_START: "run started",
    events.RUN_END: "run ended",
    events.CALL_START: "call",
    events.CALL_DECISION: "verdict",
    events.APPROVAL_REQUESTED: "approval requested",
    events.APPROVAL_DECIDED: "approval decided",
    events.CONTENT_FOUND: "content checks",
    events.CALL_END: "result",
    events.TOOLS_LIST: "list",
    events.MESSAGE: "message",
    events.FRAME_REFUSED: "frame refused",
    events.REQUEST_FAILED: "request failed",
    events.AGENT_CONNECTED: "agent connected",
    events.AGENT_AUTH_REJECTED: "request rejected",
    events.SERVER_STARTED: "server started",
    events.SERVER_EXITED: "server ended",
    events.SERVER_UNREACHABLE: "server unreachable",
    events.SERVER_RECOVERED: "server recovered",
    events.POLICY_CHANGED: "policy",
    events.DEFINITION_CHANGED: "definition",
    events.STOP_CHANGED: "stop order",
    events.CONFIG_CHANGED: "agent's config",
}


class EventSummary(NamedTuple):
    """One event, ready for display."""

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


def summarize(event: dict[str, Any]) -> EventSummary:
    """Return a short description of an event."""
    kind = text(event, "type") or ""
    call = member(event, "call")
    word, detail = _SUMMARIZERS.get(kind, _summarize_other)(event)
    judged = ("decision", "frame", "list", "content")
    decision = next((member(event, name) for name in judged if name in event), {})
    return EventSummary(
        event_time(event),
        kind,
        # Lines about the record itself, and types of later versions, have no title.
        _TITLES.get(kind, kind.replace("_", " ")),
        text(event, "server_name") or "",
        text(call, "tool_name") or "",
        word,
        detail[:MAX_DETAIL],
        text(call, "call_id") or "",
        decision.get("enforced") is not False,
    )


def _summarize_start(event: dict[str, Any]) -> tuple[str, str]:
    return "", text(member(member(event, "call"), "preview"), "args_preview") or ""


def _summarize_decision(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "decision")
    rule = text(said, "rule_id") or text(said, "gate") or ""
    why = text(member(said, "explain"), "summary") or ""
    return text(said, "action") or "", f"{rule}: {why}" if rule and why else rule or why


def _summarize_asked(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "approval")
    workflow = text(said, "workflow") or ""
    return "asked", f"workflow {workflow}, by {text(said, 'channel') or 'console'}"


def _summarize_answered(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "approval")
    by, reason = text(said, "decided_by") or "", text(said, "reason") or ""
    who = f"by {by}" if by else ""
    return text(said, "outcome") or "", ": ".join(part for part in (who, reason) if part)


def _summarize_content(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "content")
    found = said.get("findings")
    listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    told = ", ".join(f"{one.get('check')} at {one.get('where') or '/'}" for one in listed)
    return text(said, "outcome") or text(said, "action") or "", told


def _summarize_end(event: dict[str, Any]) -> tuple[str, str]:
    error = member(event, "error")
    kind = text(error, "kind") or text(error, "class") or ""
    took = event.get("latency_ms")
    parts = [f"{took} ms" if isinstance(took, int) else "", kind]
    if event.get("is_error") is True:
        parts.append("the tool reports an error")
    return text(event, "status") or "", ", ".join(part for part in parts if part)


def _summarize_list(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "list")
    hidden = said.get("hidden")
    names = [str(name) for name in hidden] if isinstance(hidden, list) else []
    told = f"{text(said, 'method')}: {said.get('returned')} of {said.get('offered')} shown"
    return "", f"{told}; hidden: {', '.join(names[:8])}" if names else told


def _summarize_message(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "message")
    arrow = "→" if text(said, "direction") == "agent_to_server" else "←"
    return (
        "",
        f"{arrow} {text(said, 'shape')} {text(said, 'method')}, {said.get('bytes')} bytes{_times(said)}",
    )


def _summarize_frame(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "frame")
    return "refused", f"{text(said, 'check')}, {said.get('bytes')} bytes{_times(said)}"


def _summarize_rejected(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "agent") or member(event, "auth")
    return "refused", f"{text(said, 'method') or ''}: {text(said, 'reason') or ''}{_times(said)}"


def _times(said: dict[str, Any]) -> str:
    repeated = said.get("repeated")
    return f"; occurred {repeated} times, this is the last" if isinstance(repeated, int) else ""


def _summarize_run(event: dict[str, Any]) -> tuple[str, str]:
    said = member(event, "run")
    meta = member(said, "meta")
    facts = ", ".join(f"{name} {value}" for name, value in meta.items() if isinstance(value, str))
    return text(said, "status") or "", facts or text(said, "mode") or ""


_BODIES: Final = ("server", "policy", "config", "agent", "record", "request", "checkpoint")


def _summarize_other(event: dict[str, Any]) -> tuple[str, str]:
    said = next((member(event, name) for name in _BODIES if name in event), {})
    return "", ", ".join(
        f"{name} {value}" for name, value in said.items() if isinstance(value, str | int)
    )


_SUMMARIZERS: Final = {
    events.CALL_START: _summarize_start,
    events.CALL_DECISION: _summarize_decision,
    events.APPROVAL_REQUESTED: _summarize_asked,
    events.APPROVAL_DECIDED: _summarize_answered,
    events.CONTENT_FOUND: _summarize_content,
    events.CALL_END: _summarize_end,
    events.TOOLS_LIST: _summarize_list,
    events.MESSAGE: _summarize_message,
    events.FRAME_REFUSED: _summarize_frame,
    events.AGENT_AUTH_REJECTED: _summarize_rejected,
    events.RUN_START: _summarize_run,
    events.RUN_END: _summarize_run,
}
