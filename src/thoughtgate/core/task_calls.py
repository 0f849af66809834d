"""Calls of a session that became tasks.

Such a call has left the table of open requests, because its caller may use the id again. It is
identified by its call id while a person decides, and by an id of the gate once it runs. The
server's answer then belongs to the task and is not sent to the agent.
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
        """Whether there ever was one; most sessions have none."""
        self._held: dict[str, PendingRequest] = {}
        self._running: dict[RequestId, str] = {}

    def hold(self, asked: PendingRequest) -> None:
        """Add a held call whose caller has received its task."""
        self.is_used = True
        self._held[asked.call_id] = asked

    def take(self, call_id: str) -> PendingRequest | None:
        """Remove and return a held call that was decided or withdrawn."""
        return self._held.pop(call_id, None)

    def take_all(self) -> list[PendingRequest]:
        """Remove and return all held calls."""
        held = list(self._held.values())
        self._held.clear()
        return held

    def run(self, asked: PendingRequest) -> Message:
        """Start a call: return the request for the server, with an id of the gate."""
        assert asked.message is not None
        self.is_used = True
        ident = f"tg-{asked.call_id}"
        body = asked.message.body
        params = without_task(body.get("params") or {})
        self._running[ident] = asked.call_id
        body = {**body, "id": ident, "params": params}
        return asked.message._replace(id=ident, body=body, raw=render(body))

    def divert(self, commands: list[Command], at: float) -> list[Command]:
        """Replace answers to running tasks by the end of the task."""
        return [self._end(command, at) for command in commands]

    def _end(self, command: Command, at: float) -> Command:
        if not isinstance(command, ToAgent) or command.key is None or command.carries != ANSWER:
            return command
        call_id = self._running.pop(command.key, None)
        if call_id is None:
            return command
        return EndTask(call_id, json.loads(command.data), at)
