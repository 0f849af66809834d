"""The calls of a session whose callers took a task and went on.

Such a call has left the table of requests: its id is the caller's to use again. It is
known by its call id while a person decides, and by an id of the gate's own once it runs;
what the server says then belongs to the task, not to the agent's line.
"""

import json

from thoughtgate.core.commands import ANSWER, Command, EndTask, ToAgent
from thoughtgate.core.session_replies import PendingRequest
from thoughtgate.core.task import without_task
from thoughtgate.wire.message import Message, RequestId
from thoughtgate.wire.replies import render


class TaskCalls:
    """Held and running calls that are tasks."""

    def __init__(self) -> None:
        self.is_used = False
        """Whether there was ever one; most sessions have none."""
        self._held: dict[str, PendingRequest] = {}
        self._running: dict[RequestId, str] = {}

    def hold(self, asked: PendingRequest) -> None:
        """Take over a held call whose caller has its task."""
        self.is_used = True
        self._held[asked.call_id] = asked

    def take(self, call_id: str) -> PendingRequest | None:
        """Give a held call back: a person has decided, or nobody wants it any more."""
        return self._held.pop(call_id, None)

    def take_all(self) -> list[PendingRequest]:
        """Give all held calls back."""
        held = list(self._held.values())
        self._held.clear()
        return held

    def run(self, asked: PendingRequest) -> Message:
        """Start a call: return the request for the server, under an id of the gate's own."""
        assert asked.message is not None
        self.is_used = True
        ident = f"tg-{asked.call_id}"
        body = asked.message.body
        params = without_task(body.get("params") or {})
        self._running[ident] = asked.call_id
        body = {**body, "id": ident, "params": params}
        return asked.message._replace(id=ident, body=body, raw=render(body))

    def divert(self, commands: list[Command], at: float) -> list[Command]:
        """Turn every answer to a running task into the task's end."""
        return [self._end(command, at) for command in commands]

    def _end(self, command: Command, at: float) -> Command:
        if not isinstance(command, ToAgent) or command.key is None or command.carries != ANSWER:
            return command
        call_id = self._running.pop(command.key, None)
        if call_id is None:
            return command
        return EndTask(call_id, json.loads(command.data), at)
