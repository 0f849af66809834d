"""The hub's gate: one governor for all clients and servers, and the timers of their sessions."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from thoughtgate.core.commands import AskPeople, AskTask, JudgeCall, ToServer
from thoughtgate.core.events import CallJudged, Event, PersonAsked, TaskAnswered
from thoughtgate.core.negotiation import completed
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.core.record_events import NOWHERE, Record
from thoughtgate.core.task import advertise, wants_task
from thoughtgate.core.task_table import Caller
from thoughtgate.gate.clock import now
from thoughtgate.gate.event_loop import HeldCallTimer, open_outbox
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.session_driver import Engine, SessionDriver
from thoughtgate.gate.task_runner import Told
from thoughtgate.hub.client import Client, ServerSession
from thoughtgate.policy.call import DENY, PRODUCTION, Verdict
from thoughtgate.wire.message import Json, Message, RequestId

TICK_S: Final = 0.25
"""Interval at which sessions with open requests are checked for timeouts."""


_Waiter = tuple[str, RequestId]


class HubAuthority(LocalAuthority):
    """Judges calls for the hub, which acts as a server itself and therefore offers tasks.

    Before 2026-07-28, a caller that asks for a task gets one whether or not approval is needed,
    because the hub declares task support for its tools.
    """

    def __init__(self, governor: Governor, *, is_authenticated: bool, max_held: int) -> None:
        super().__init__(governor, is_authenticated=is_authenticated)
        self.max_held = max_held
        self.waiters: dict[_Waiter, asyncio.Future[dict[str, Any]]] = {}

    def judge(self, driver: SessionDriver, command: JudgeCall) -> CallJudged | None:
        """Judge a call; one to a name that does not exist is denied in every profile."""
        if driver.session.setup.server != NOWHERE:
            return super().judge(driver, command)
        ruling = self._refuse(self.call_request(driver, command))
        return CallJudged(command.key, ruling.verdict, ruling.call_id, command.at)

    def makes_task(self, driver: SessionDriver, command: JudgeCall) -> bool:
        """Tell whether a call becomes a task: servers behind the hub are never asked for one."""
        return isinstance(driver, ServerSession) or super().makes_task(driver, command)

    def _refuse(self, request: CallRequest) -> Any:
        """Judge a call to an unknown name; deny it in every profile, as it cannot be forwarded."""
        judge = self.governor.judge
        policy = judge.policy
        # Outside production, the judge would only observe the denial and forward the call.
        judge.policy = enforced = replace(policy, profile=PRODUCTION)
        try:
            return self.governor.rule(request)
        finally:
            # A reload during the ruling may have set a new policy: do not overwrite that one.
            if judge.policy is enforced:
                judge.policy = policy

    def ask(self, driver: SessionDriver, command: AskPeople) -> list[Event]:
        """Request approval, unless the client has too many held calls."""
        client = driver.client if isinstance(driver, ServerSession) else None
        if client is not None and not driver.resumes and not self.is_granted(command.call_id):
            # Not ``>=``: the session already counts this call as held.
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

    def tell(self, told: Iterable[Told]) -> None:
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
        self.governor.screen(server, "", "tools/list", entries, now(), is_shown=False)

    def unlearn(self, server: str) -> None:
        """Tell the judge that a server's tools may have changed since they were listed."""
        self.governor.judge.tools.forget(server)
        self.governor.judge.definitions.forget(server)

    def note(self, record: Record) -> None:
        """Put an event on the record."""
        self.governor.note(record)
        self.outbox.schedule()

    def note_error(self, session: str, method: str, kind: str) -> str:
        """Record an error that no session with a server reports; return its id."""
        ident = self.governor.note_error("", session, method, kind, now())
        self.outbox.schedule()
        return ident

    # Tasks.

    def advertise_tasks(self, capabilities: dict[str, Any], client: Client) -> dict[str, Any]:
        """Return the hub's capabilities, with the task capability added."""
        return advertise(capabilities, modern=client.is_modern, lists=self._knows(client))

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
