"""Playing a session: short words for what happens to it and what it must say."""

import json
from collections.abc import Callable
from typing import Any

from tests.support.frames import line as frame

from thoughtgate.core.commands import ANSWER, NOTICE, PROMPT, ToAgent, ToServer, WriteRecord
from thoughtgate.core.events import AgentSent, CallJudged, ServerSent
from thoughtgate.core.session import Session
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, Verdict
from thoughtgate.testing.playbook import Playbook, Some
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Message, RequestId

YES = Verdict(FORWARD, "rules")
NO = Verdict(DENY, "rules", "governance_denied", "secret rule text", "rules[3]")
ASK = Verdict(APPROVE, "rules", workflow="ops")
SETUP = SessionSettings("srv", "1", timeout_s=60, max_held=2, max_open=5)


def new_session(**changes: Any) -> Session:
    """A session with small limits."""
    return Session(SETUP._replace(**changes))


def play(session: Session | None = None) -> Playbook:
    """Play without the records, which have tests of their own."""
    return Playbook(session or new_session(), ignore=(WriteRecord,))


def agent(body: Any, at: float = 0.0) -> AgentSent:
    """The agent sent a frame."""
    return AgentSent(frame(body), at)


def server(body: Any, at: float = 0.0) -> ServerSent:
    """The server sent a frame."""
    return ServerSent(frame(body), at)


def judged(key: int | str, verdict: Verdict, at: float = 0.0) -> CallJudged:
    """The judge has spoken."""
    return CallJudged(key, verdict, f"run.{key}", at)


def to_server(data: bytes, key: RequestId | None = None) -> ToServer:
    """A frame for the server, with what it says."""
    message = read_frame(data)
    return ToServer(data, key, message if isinstance(message, Message) else None)


def to_agent(data: bytes, key: RequestId | None = None) -> ToAgent:
    """A frame of the server for the agent."""
    message = read_frame(data)
    shape = message.shape if isinstance(message, Message) else NOTIFICATION
    return ToAgent(data, key, {REQUEST: PROMPT, NOTIFICATION: NOTICE}.get(shape, ANSWER))


def fails(ident: Any, kind: str) -> Some:
    """A reply of ours to the agent."""
    return Some(ToAgent, is_error(ident, kind))


def is_error(ident: Any, kind: str) -> Callable[[Any], bool]:
    """Tell whether a command carries an error of this kind for this id."""

    def is_it(command: Any) -> bool:
        body = json.loads(command.data)
        return bool(
            body["id"] == ident and body.get("error", {}).get("data", {}).get("kind") == kind
        )

    return is_it


def records(session: Session, event: Any) -> list[Any]:
    """Return what an event puts on the record."""
    return [
        command.record for command in session.receive(event) if isinstance(command, WriteRecord)
    ]
