"""Tasks of the hub, which is a server of its own and so offers them itself.

A caller that asks for a task before 2026-07-28 gets one whether or not a person must be
asked, because the hub says that its tools may be called so; later the hub volunteers one
where a call has to wait. Over HTTP a task outlives the request that made it, and with
known callers also the process.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from thoughtgate import __version__
from thoughtgate.core import task_codec
from thoughtgate.core.commands import AskPeople, AskTask, EndTask, JudgeCall
from thoughtgate.core.events import AgentSent, CallJudged, Event, TaskAnswered, TaskMade
from thoughtgate.core.judge import Ruling
from thoughtgate.core.negotiation import completed
from thoughtgate.core.task import Task, wants_task
from thoughtgate.core.task_table import Caller
from thoughtgate.gate.clock import now
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.task_runner import Told
from thoughtgate.hub.client import Client
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, Verdict
from thoughtgate.wire.message import REQUEST, Message, RequestId
from thoughtgate.wire.replies import render

if TYPE_CHECKING:
    from thoughtgate.hub.channel import Channel

METHODS: Final = frozenset(
    {"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"}
)

_Waiter = tuple[str, RequestId]


class HubTasks:
    """Makes tasks of calls, and answers for them."""

    def __init__(self, governor: Governor) -> None:
        self._desk = governor.tasks
        self._governor = governor
        self._channels: WeakValueDictionary[str, Channel] = WeakValueDictionary()
        self._names = 0
        self._resuming: dict[Channel, str] = {}
        self._free: dict[str, Verdict] = {}
        """Calls that become tasks although no person needs to be asked."""
        self._waiters: dict[_Waiter, asyncio.Future[dict[str, Any]]] = {}

    @property
    def are_open(self) -> bool:
        """Whether anybody waits for the end of a task, or a task for its end."""
        return bool(self._waiters) or self._desk.has_unfinished

    def advertise(self, capabilities: dict[str, Any], client: Client) -> dict[str, Any]:
        """Return the hub's capabilities with its tasks."""
        said = task_codec.advertise(capabilities, modern=client.modern)
        if not client.modern and not self._knows(client):
            # 2025-11-25, tasks: without a way to tell callers apart there is no list.
            tasks = {key: value for key, value in said["tasks"].items() if key != "list"}
            return {**said, "tasks": tasks}
        return said

    def carrier_of(self, client: Client, message: Message, *, modern: bool) -> Client:
        """Return who carries a call: the client, or one that outlives it when it may be a task."""
        params = message.body.get("params") or {}
        if client.sole or not wants_task(message.method, params, modern=modern):
            return client
        able = client.capabilities if modern else {}
        # Whom could a server ask once the caller has its task and is gone?
        return replace(client, channels={}, questions={}, work={}, capabilities=able)

    # Judging and holding.

    def is_promised(self, channel: "Channel") -> bool:
        """Tell whether a channel makes a call whose caller was told that a person decides."""
        return channel in self._resuming

    def judged(self, channel: "Channel", command: JudgeCall, ruling: Ruling) -> Verdict:
        """Return the verdict for the session: what becomes a task is held, if only for a moment."""
        verdict = ruling.verdict
        task_id = self._resuming.get(channel)
        if task_id is not None:
            self._desk.resumed(task_id, ruling.call_id, self.name_of(channel))
            if verdict.action != APPROVE:
                self._free[ruling.call_id] = verdict
            return verdict._replace(action=APPROVE)
        wanted = not command.modern and wants_task(command.method, command.params, modern=False)
        if verdict.action == FORWARD and wanted:
            self._free[ruling.call_id] = verdict
            return verdict._replace(action=APPROVE)
        return verdict

    def held(self, channel: "Channel", command: AskPeople) -> list[Event] | None:
        """Return what the session is told of a call that waits; None when it is no matter of tasks."""
        key, call_id, at = command.key, command.call_id, command.at
        verdict = self._free.pop(call_id, None)
        task_id = self._resuming.pop(channel, None)
        if task_id is not None:
            events: list[Event] = [TaskMade(key, {}, at)]
            if verdict is None:
                owner = self._desk.owner_of(task_id)
                ruling = self._governor.ask(call_id, command.workflow, at, owner=owner)
                verdict = ruling.verdict if ruling is not None else None
            elif verdict.action == FORWARD and not self._desk.started(call_id, at):
                verdict = Verdict(DENY, "approval", "approval_withdrawn")
            return events if verdict is None else [*events, CallJudged(key, verdict, call_id, at)]
        opened = self._governor.judge.open_call(call_id)
        if verdict is None or opened is None:
            return None
        told = self._desk.make(self.name_of(channel), command, opened.call)
        events = [event for _, event in told]
        if any("error" in event.body for event in events if isinstance(event, TaskMade)):
            return events
        if not self._desk.started(call_id, at):
            verdict = Verdict(DENY, "approval", "service_unavailable")
        return [*events, CallJudged(key, verdict, call_id, at)]

    def ended(self, command: EndTask) -> None:
        """A call that is a task has its answer."""
        self.tell(self._desk.ended(command))

    # Requests about tasks.

    async def about(
        self, client: Client, key: RequestId, method: str, params: dict[str, Any], *, modern: bool
    ) -> dict[str, Any]:
        """Answer a request about tasks, when there is an answer."""
        name = f"client {client.id}"
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiters[name, key] = future
        caller = Caller(client.principal, name, authenticated=self._knows(client))
        try:
            self.tell(self._desk.answer(name, caller, AskTask(key, method, params, modern, now())))
            body = await future
        finally:
            self._waiters.pop((name, key), None)
            self._desk.left(name, key)
        if modern and "result" in body:
            return {**body, "result": completed(method, body["result"], __version__)}
        return body

    def tick(self, at: float) -> None:
        """Time passed."""
        self.tell(self._desk.tick(at))

    # After a restart.

    def resume(self, open_channel: "Callable[[Task], Channel]") -> None:
        """Carry on what an earlier process left behind.

        Raises:
            StoreError: it cannot be read.
        """
        for task in self._desk.recover(now()):
            channel = open_channel(task)
            self._resuming[channel] = task.id
            body = task_codec.forwarded(task, task.id)
            message = Message(REQUEST, task.id, str(body["method"]), body, render(body))
            params = json.loads(task.request)
            channel.ask(message, task.id, params, task.tool, modern=task.modern)

    # Names.

    def name_of(self, channel: "Channel") -> str:
        """Return the name by which tasks know a channel."""
        if not channel.name:
            self._names += 1
            channel.name = f"{channel.client.id}/{channel.server}:{self._names}"
            self._channels[channel.name] = channel
        return channel.name

    def tell(self, told: list[Told]) -> None:
        """Pass what the tasks say on to whoever waits for it."""
        for name, event in told:
            channel = self._channels.get(name)
            if isinstance(event, TaskAnswered):
                future = self._waiters.get((name, event.key))
                if future is not None and not future.done() and event.body is not None:
                    future.set_result(event.body)
            elif channel is not None and isinstance(event, AgentSent):
                channel.cancel_task(event)
            elif channel is not None:
                channel.feed(event)

    def _knows(self, client: Client) -> bool:
        return client.sole or self._desk.is_durable
