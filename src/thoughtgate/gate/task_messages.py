"""Tasks between a shim and its governance service: commands up, events down, as JSON.

Small on purpose: every shim loads it.
"""

from typing import Any

from thoughtgate.core.commands import AskPeople, AskTask, EndTask
from thoughtgate.core.events import AgentSent, CallJudged, Event, TaskAnswered, TaskMade
from thoughtgate.errors import KINDS, PeerError
from thoughtgate.policy.call import DENY, Verdict


def as_command(command: AskPeople | AskTask | EndTask) -> dict[str, Any]:
    """Return what a shim says to its service."""
    return {"command": type(command).__name__, "fields": command._asdict()}


def task_command(body: dict[str, Any], at: float) -> AskPeople | AskTask | EndTask | None:
    """Return what a shim said; None when it only asks for news.

    Raises:
        PeerError: it makes no sense.
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
    """Return what a service tells the shim's session."""
    if isinstance(event, TaskMade):
        return {"event": "made", "key": event.key, "body": event.body}
    if isinstance(event, TaskAnswered):
        return {"event": "answered", "key": event.key, "body": event.body}
    if isinstance(event, CallJudged):
        return {"event": "refused", "call_id": event.call_id, "kind": event.verdict.kind}
    if isinstance(event, AgentSent):
        return {"event": "cancel", "frame": event.line.decode()}
    raise TypeError(event)


def told_event(told: Any, at: float) -> Event | None:
    """Return what a service told; None when it makes no sense."""
    if not isinstance(told, dict):
        return None
    name, key, body = told.get("event"), told.get("key"), told.get("body")
    if isinstance(key, str | int):
        if name == "made" and isinstance(body, dict):
            return TaskMade(key, body, at)
        if name == "answered" and (body is None or isinstance(body, dict)):
            return TaskAnswered(key, body, at)
    call_id, kind, frame = told.get("call_id"), told.get("kind"), told.get("frame")
    if name == "refused" and isinstance(call_id, str):
        kind = kind if isinstance(kind, str) and kind in KINDS else "task_cancelled"
        return CallJudged(call_id, Verdict(DENY, "approval", kind), call_id, at)
    if name == "cancel" and isinstance(frame, str):
        return AgentSent(frame.encode(), at)
    return None
