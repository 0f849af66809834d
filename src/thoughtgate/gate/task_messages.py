"""JSON messages about tasks between a shim and its governance service.

Commands go from the shim to the service, events from the service to the shim. Kept small
because every shim loads it.
"""

from typing import Any

from thoughtgate.core.commands import AskPeople, AskTask, EndTask
from thoughtgate.core.events import (
    AgentSent,
    CallJudged,
    Event,
    TaskAnswered,
    TaskChanged,
    TaskMade,
)
from thoughtgate.errors import KINDS, PeerError
from thoughtgate.policy.call import DENY, FORWARD, Verdict


def as_command(command: AskPeople | AskTask | EndTask) -> dict[str, Any]:
    """Render a command for the service."""
    return {"command": type(command).__name__, "fields": command._asdict()}


def task_command(body: dict[str, Any], at: float) -> AskPeople | AskTask | EndTask | None:
    """Parse a shim's command; None if it only waits for events.

    Raises:
        PeerError: it is invalid.
    """
    name, fields = body.get("command"), body.get("fields")
    if name is None:
        return None
    if not isinstance(fields, dict):
        raise PeerError("invalid_params", "fields must be an object")
    try:
        command: AskPeople | AskTask | EndTask = _COMMANDS[name](**{**fields, "at": at})
    except (KeyError, TypeError):
        raise PeerError("invalid_params", "there is no such command about tasks") from None
    return command


_COMMANDS: dict[Any, Any] = {"AskPeople": AskPeople, "AskTask": AskTask, "EndTask": EndTask}


def as_told(event: Event) -> dict[str, Any]:
    """Render an event for the shim's session."""
    if isinstance(event, TaskMade):
        return {"event": "made", "key": event.key, "body": event.body}
    if isinstance(event, TaskAnswered):
        return {"event": "answered", "key": event.key, "body": event.body}
    if isinstance(event, TaskChanged):
        return {"event": "changed", "body": event.body}
    if isinstance(event, CallJudged) and event.verdict.action == FORWARD:
        call_id, verdict = event.call_id, event.verdict
        told = {"event": "granted", "call_id": call_id, "trace": verdict.trace}
        return {**told, "redact": verdict.redact}
    if isinstance(event, CallJudged):
        return {"event": "refused", "call_id": event.call_id, "kind": event.verdict.kind}
    if isinstance(event, AgentSent):
        return {"event": "cancel", "frame": event.line.decode()}
    raise TypeError(event)


def told_event(told: Any, at: float) -> Event | None:
    """Parse an event from the service; None if it is invalid."""
    if not isinstance(told, dict):
        return None
    name, key, body = told.get("event"), told.get("key"), told.get("body")
    if isinstance(key, str | int):
        if name == "made" and isinstance(body, dict):
            return TaskMade(key, body, at)
        if name == "answered" and (body is None or isinstance(body, dict)):
            return TaskAnswered(key, body, at)
    call_id, frame = told.get("call_id"), told.get("frame")
    if name in {"refused", "granted"} and isinstance(call_id, str):
        return CallJudged(call_id, _verdict(told), call_id, at)
    if name == "cancel" and isinstance(frame, str):
        return AgentSent(frame.encode(), at)
    return TaskChanged(body, at) if name == "changed" and isinstance(body, dict) else None


def _verdict(told: dict[str, Any]) -> Verdict:
    kind, trace = told.get("kind"), told.get("trace")
    if told["event"] == "refused":
        known = isinstance(kind, str) and kind in KINDS
        return Verdict(DENY, "approval", str(kind) if known else "task_cancelled")
    # Unless the service says that there is nothing to mask, the answer is masked.
    redact = told.get("redact") is not False
    return Verdict(FORWARD, "", redact=redact, trace=trace if isinstance(trace, str) else "")
