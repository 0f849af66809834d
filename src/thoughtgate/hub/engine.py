"""The hub's gate: one governor for all clients and servers, and the timers of their sessions."""

import asyncio
from dataclasses import replace
from typing import Any, Final

from thoughtgate.core import task_codec
from thoughtgate.core.commands import AskPeople, AskTask, JudgeCall, ToServer
from thoughtgate.core.events import CallJudged, Event, PersonAsked, TaskAnswered, TaskMade
from thoughtgate.core.judge import CallRequest
from thoughtgate.core.negotiation import completed
from thoughtgate.core.record_events import NOWHERE, Record
from thoughtgate.core.task import wants_task
from thoughtgate.core.task_table import Caller
from thoughtgate.gate.clock import now
from thoughtgate.gate.event_loop import HeldCallTimer, open_outbox
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.session_driver import Engine, SessionDriver
from thoughtgate.gate.task_runner import Told
from thoughtgate.hub.client import Client, ServerSession
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, PRODUCTION, Verdict
from thoughtgate.wire.message import Json, Message, RequestId

TICK_S: Final = 0.25
"""Interval at which sessions with open requests are checked for timeouts."""

TASK_METHODS: Final = frozenset(
    {"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"}
)

_Waiter = tuple[str, RequestId]


class HubAuthority(LocalAuthority):
    """Judges calls for the hub, which acts as a server itself and therefore offers tasks.

    Before 2026-07-28, a caller that asks for a task gets one whether or not approval is needed,
    because the hub declares task support for its tools.
    """

    def __init__(self, governor: Governor, *, is_authenticated: bool, max_held: int) -> None:
        super().__init__(governor, is_authenticated=is_authenticated)
        self.max_held = max_held
        self._granted: dict[str, Verdict] = {}
        """Verdicts of calls that become tasks although they need no approval."""
        self.waiters: dict[_Waiter, asyncio.Future[dict[str, Any]]] = {}

    def judge(self, driver: SessionDriver, command: JudgeCall) -> CallJudged | None:
        """Judge a call; a call that becomes a task is held, if only for a moment."""
        question = self.question(driver, command)
        nowhere = question.server == NOWHERE
        ruling = self._refuse(question) if nowhere else self.governor.rule(question)
        verdict = ruling.verdict
        if verdict.action == FORWARD and self._offers_task(driver, command):
            self._granted[ruling.call_id] = verdict
            verdict = verdict._replace(action=APPROVE)
        return CallJudged(command.key, verdict, ruling.call_id, command.at)

    @staticmethod
    def _offers_task(driver: SessionDriver, command: JudgeCall) -> bool:
        """Whether the caller asks the hub for a task; a server served singly offers its own."""
        if not isinstance(driver, ServerSession) or command.modern:
            return False
        return wants_task(command.method, command.params, modern=False)

    def _refuse(self, question: CallRequest) -> Any:
        """Judge a call to an unknown name; deny it in every profile, as it cannot be forwarded."""
        judge = self.governor.judge
        policy = judge.policy
        # Outside production, the judge would only observe the denial and forward the call.
        judge.policy = enforced = replace(policy, profile=PRODUCTION)
        try:
            return self.governor.rule(question)
        finally:
            # A reload during the ruling may have set a new policy: do not overwrite that one.
            if judge.policy is enforced:
                judge.policy = policy

    def ask(self, driver: SessionDriver, command: AskPeople) -> list[Event]:
        """Request approval, unless the call is only held to become a task."""
        verdict = self._granted.pop(command.call_id, None)
        if verdict is not None:
            return self._make_task(driver, command, verdict)
        client = driver.client if isinstance(driver, ServerSession) else None
        if client is not None and not driver.resumes:
            if client.held > self.max_held:
                verdict = Verdict(
                    DENY, "approval", "service_unavailable", "too many calls are held"
                )
                return [CallJudged(command.key, verdict, command.call_id, command.at)]
            if not command.modern:
                driver.session.prompts.declare(client.capabilities)
        events = super().ask(driver, command)
        for event in events:
            if isinstance(event, PersonAsked) and isinstance(driver, ServerSession):
                driver.prompted(event.key, event.ident)
        return events

    def _make_task(
        self, driver: SessionDriver, command: AskPeople, verdict: Verdict
    ) -> list[Event]:
        key, call_id, at = command.key, command.call_id, command.at
        tasks = self.governor.tasks
        opened = self.governor.judge.open_call(call_id)
        if opened is None:
            return [CallJudged(key, verdict, call_id, at)]
        told = tasks.make(self.name_of(driver), command, opened.call)
        events = [event for _, event in told]
        if any("error" in event.body for event in events if isinstance(event, TaskMade)):
            return events
        if not tasks.started(call_id, at):
            verdict = Verdict(DENY, "approval", "service_unavailable")
        return [*events, CallJudged(key, verdict, call_id, at)]

    def tell(self, told: "Any") -> None:
        """Pass on events of tasks, to requests about tasks and to sessions."""
        rest: list[Told] = []
        for name, event in told:
            if isinstance(event, TaskAnswered) and (name, event.key) in self.waiters:
                future = self.waiters[name, event.key]
                if not future.done() and event.body is not None:
                    future.set_result(event.body)
            else:
                rest.append((name, event))
        super().tell(rest)


class HubEngine:
    """Judges, records and holds calls for the hub, and runs the timers of its sessions."""

    def __init__(
        self, governor: Governor, max_held: int, *, is_authenticated: bool = False
    ) -> None:
        self.governor = governor
        self.authority = HubAuthority(
            governor, is_authenticated=is_authenticated, max_held=max_held
        )
        self.outbox = open_outbox(self.authority)
        self.driven = Engine(
            self.authority, self.outbox, notify=_notify, run_detached=_run_detached
        )
        self._held_timer = HeldCallTimer(self.authority)
        self._busy: set[ServerSession] = set()
        self._timer: asyncio.TimerHandle | None = None

    def screen(
        self, server: str, session: str, method: str, entries: tuple[dict[str, Json], ...]
    ) -> frozenset[str]:
        """Return the names in a list that are hidden from the client."""
        return self.governor.screen(server, session, method, entries, now())

    def learn(self, server: str, entries: tuple[dict[str, Json], ...]) -> None:
        """Give the judge a server's description of its tools, without showing it to a client."""
        # Not through the governor, which would record the list as shown to a client.
        self.governor.judge.screen(server, "", "tools/list", entries, now())

    def unlearn(self, server: str) -> None:
        """Tell the judge that it does not know what a server's tools are now."""
        self.governor.judge.tools.forget(server)

    def note(self, record: Record) -> None:
        """Put an event on the record."""
        self.governor.note(record)
        self.outbox.schedule()

    # Tasks.

    def advertise_tasks(self, capabilities: dict[str, Any], client: Client) -> dict[str, Any]:
        """Return the hub's capabilities, with the task capability added."""
        said = task_codec.advertise(capabilities, modern=client.is_modern)
        if not client.is_modern and not self._knows(client):
            # 2025-11-25, tasks: a server that cannot tell callers apart must not offer
            # tasks/list.
            tasks = {key: value for key, value in said["tasks"].items() if key != "list"}
            return {**said, "tasks": tasks}
        return said

    def carrier_of(self, client: Client, message: Message, *, modern: bool) -> Client:
        """Return the client to carry a call: a copy that outlives it if it may become a task."""
        params = message.body.get("params") or {}
        if client.sole or not wants_task(message.method, params, modern=modern):
            return client
        able = client.capabilities if modern else {}
        # A legacy caller may disconnect once it has its task, so a server cannot rely on
        # asking it anything: the copy declares no capabilities.
        return replace(client, sessions={}, questions={}, work={}, capabilities=able)

    async def ask_task(
        self, client: Client, key: RequestId, method: str, params: dict[str, Any], *, modern: bool
    ) -> dict[str, Any]:
        """Answer a request about tasks, once the answer is known."""
        name = f"client {client.id}"
        tasks, waiters = self.governor.tasks, self.authority.waiters
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        waiters[name, key] = future
        caller = Caller(client.principal, name, authenticated=self._knows(client))
        self._schedule()
        try:
            asked = AskTask(key, method, params, modern, now())
            self.authority.tell(tasks.answer(name, caller, asked))
            body = await future
        finally:
            waiters.pop((name, key), None)
            tasks.left(name, key)
        if modern and "result" in body:
            return {**body, "result": completed(method, body["result"])}
        return body

    def _knows(self, client: Client) -> bool:
        return client.sole or self.governor.tasks.is_durable

    # Timers.

    def watch(self, session: ServerSession) -> None:
        """Tick a session until it is idle."""
        self._busy.add(session)
        self._schedule()

    def close(self) -> None:
        """Withdraw held calls, stop the timers and send what is left in the outbox."""
        # Tasks that outlive the hub stay held: they continue in its next run.
        self.authority.held.withdraw_all("the gate is stopping")
        self._held_timer.close()
        self.outbox.flush()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        at = now()
        for session in list(self._busy):
            session.tick(at)
            if session.session.is_idle:
                self._busy.discard(session)
        tasks = self.governor.tasks
        self.authority.tell(tasks.tick(at))
        if self._busy or self.authority.waiters or tasks.has_unfinished:
            self._schedule()


def _notify(driver: SessionDriver, frame: ToServer) -> None:
    if isinstance(driver, ServerSession):
        driver.notified(frame)


def _run_detached(driver: SessionDriver, frame: ToServer) -> None:
    if isinstance(driver, ServerSession):
        driver.carry(frame, None)
