"""The governance service: one policy, one desk and one record for all shims of a run.

Shims ask over HTTP on the loopback with the run's token. This module knows what is asked
and answered; ``runtime.governance_http`` knows HTTP. Everything runs on one event loop,
so a governor is never used by two at once.
"""

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass, field
from typing import Any, Final

from thoughtgate.config.settings import Settings
from thoughtgate.core.clerk import ORPHAN_AFTER_S
from thoughtgate.core.commands import AskTask, EndTask
from thoughtgate.core.events import Event
from thoughtgate.core.judge import Question, Ruling
from thoughtgate.core.record import CANCELLED, SERVER_STARTED, Record, call_ended
from thoughtgate.core.task_book import Caller
from thoughtgate.errors import PeerError, RecordError
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, Verdict
from thoughtgate.runtime.clock import monotonic, now
from thoughtgate.runtime.governor import Governor
from thoughtgate.runtime.task_desk import Told
from thoughtgate.runtime.task_wire import as_told, task_command
from thoughtgate.wire.methods import LISTINGS, named_by

LOST_AFTER_S: Final = 15.0
"""A shim that was silent for three heartbeats is gone."""

SETTLE_EVERY_S: Final = 0.1
"""How often people's answers are looked for while calls are held."""

MAX_WAIT_S: Final = 30.0
KEEP_RULINGS: Final = 10_000
"""Outcomes kept for shims that have not fetched them."""


@dataclass(slots=True)
class ShimSession:
    """One shim, from its hello to its goodbye."""

    id: str
    server: str
    seen_at: float
    group: int = 0
    """Process group of its server, once it has told."""
    open_calls: dict[str, str] = field(default_factory=dict)
    """Calls without an end, with their tool."""
    told: list[Event] = field(default_factory=list)
    """What its session must know of tasks and was not yet told."""


class Governance:
    """Answers shims."""

    def __init__(self, governor: Governor, settings: Settings, withheld: frozenset[str]) -> None:
        self.governor = governor
        self.shutting_down = False
        self.sessions: dict[str, ShimSession] = {}
        self.servers_seen: set[str] = set()
        self._settings = settings
        self._withheld = sorted(withheld)
        self._count = 0
        self._held: dict[str, str] = {}
        self._rulings: dict[str, Ruling] = {}
        self._news = asyncio.Condition()
        self._empty = asyncio.Event()
        self._empty.set()
        run = governor.run
        self._principal = run.principal or run.agent_id

    def heartbeat(self, body: dict[str, Any]) -> dict[str, Any]:
        """A shim lives: a new one, a known one, or one that says goodbye."""
        server = _string(body, "server_id")
        if body.get("hello") is True:
            return self._welcome(server)
        session = self.sessions.get(_string(body, "session_id"))
        if session is not None:
            session.seen_at = monotonic()
            if body.get("bye") is True:
                self._part(session)
        return {"shutdown": self.shutting_down}

    def evaluate(self, body: dict[str, Any]) -> dict[str, Any]:
        """Judge a request, or screen a list."""
        session = self._session_of(body)
        if self.shutting_down:
            return {"decision": "deny", "kind": "service_unavailable", "shutdown": True}
        method = _string(body, "method")
        params = body.get("params")
        if not isinstance(params, dict):
            raise PeerError("invalid_params", "params must be an object")
        if body.get("direction") == "server_to_agent":
            return self._screen(session, method, params)
        return self._judge(session, method, params, body)

    async def task(self, call_id: str, wait_s: float) -> dict[str, Any] | None:
        """Return how a held call stands, waiting a while for news; None when it is unknown."""
        deadline = monotonic() + min(wait_s, MAX_WAIT_S)
        async with self._news:
            while call_id in self._held and not self.shutting_down:
                left = deadline - monotonic()
                if left <= 0:
                    return {"task_id": call_id, "status": "pending", "shutdown": False}
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), left)
        ruling = self._rulings.pop(call_id, None)
        if ruling is None:
            return None
        return {"task_id": call_id, "status": "decided", **self._answer(ruling)}

    async def tasks(self, body: dict[str, Any], wait_s: float) -> dict[str, Any]:
        """Carry out what a shim says of tasks, and tell it what its session must know."""
        session = self._session_of(body)
        told = self._task_command(session, body)
        self._tell(told)
        deadline = monotonic() + min(wait_s, MAX_WAIT_S)
        async with self._news:
            while not session.told and monotonic() < deadline and not self.shutting_down:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), deadline - monotonic())
        news, session.told = session.told, []
        self.governor.flush_quietly()
        return {"told": [as_told(event) for event in news], "shutdown": self.shutting_down}

    def _task_command(self, session: ShimSession, body: dict[str, Any]) -> list[Told]:
        desk, at = self.governor.tasks, now()
        command = task_command(body, at)
        if command is None:
            return []
        if isinstance(command, EndTask):
            return desk.ended(command)
        if isinstance(command, AskTask):
            return desk.answer(session.id, Caller(self._principal, session.id), command)
        held = self.governor.judge.open_call(command.call_id)
        return desk.make(session.id, command, held.call) if held is not None else []

    def _tell(self, told: list[Told]) -> None:
        for ident, event in told:
            session = self.sessions.get(ident)
            if session is not None:
                session.told.append(event)

    def events(self, body: dict[str, Any]) -> None:
        """Put on record what a shim saw.

        Raises:
            RecordError: it cannot be written.
        """
        session = self._session_of(body)
        records = body.get("records")
        if not isinstance(records, list):
            raise PeerError("invalid_params", "records must be a list")
        for item in records:
            record = _record(item, session)
            self._follow(session, record)
            self.governor.note(record)
        self.governor.flush()

    def withdraw(self, body: dict[str, Any]) -> None:
        """Nobody waits for a held call any more."""
        call_id = _string(body, "task_id")
        if self._held.pop(call_id, None) is not None:
            self.governor.withdraw(call_id, _string(body, "reason")[:200], now())
            self.governor.flush_quietly()

    async def settle(self) -> None:
        """Look once for what people have decided, and wake whoever waits for it."""
        self._tell(self.governor.tasks.tick(now()))
        if not self._held:
            return
        rulings = self.governor.settled(now())
        if not rulings:
            return
        for ruling in rulings:
            if self._held.pop(ruling.call_id, None) is not None:
                decided = self._rulings[ruling.call_id] = self._recorded(ruling)
                if decided.verdict.action == FORWARD:
                    self._tell(self.governor.tasks.started(ruling.call_id, now()))
        while len(self._rulings) > KEEP_RULINGS:
            del self._rulings[next(iter(self._rulings))]
        async with self._news:
            self._news.notify_all()

    async def watch(self) -> None:
        """Run until cancelled: people's answers, and shims that vanished."""
        while True:
            await asyncio.sleep(SETTLE_EVERY_S)
            await self.settle()
            silent = monotonic() - LOST_AFTER_S
            for session in [one for one in self.sessions.values() if one.seen_at < silent]:
                self._part(session)

    async def shut_down(self) -> None:
        """Tell every shim, with its next question or heartbeat, to stop."""
        self.shutting_down = True
        async with self._news:
            self._news.notify_all()

    async def all_gone(self) -> None:
        """Return when no shim is left."""
        await self._empty.wait()

    def end_leftovers(self) -> None:
        """End the servers of shims that never said goodbye."""
        for session in list(self.sessions.values()):
            self._part(session)

    def _welcome(self, server: str) -> dict[str, Any]:
        self._count += 1
        session = ShimSession(str(self._count), server, monotonic())
        self.sessions[session.id] = session
        self._empty.clear()
        self.servers_seen.add(server)
        listed = self._settings.servers.get(server)
        return {
            "shutdown": self.shutting_down,
            "session_id": session.id,
            "timeout_s": (listed.timeout_s if listed is not None else 0.0) or ORPHAN_AFTER_S,
            "max_held": self._settings.holds.connection,
            "withheld": self._withheld,
        }

    def _part(self, session: ShimSession) -> None:
        """A shim is gone: its server's group too, and its calls have an end."""
        self.sessions.pop(session.id, None)
        if not self.sessions:
            self._empty.set()
        if session.group > 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(session.group, signal.SIGKILL)
        at = now()
        for call_id, tool in list(session.open_calls.items()):
            if self._held.pop(call_id, None) is not None:
                self.governor.withdraw(call_id, "the caller is gone", at)
            error = {
                "class": "transport",
                "kind": "service_unavailable",
                "message": "the shim is gone",
            }
            self.governor.note(
                call_ended(
                    at,
                    session.server,
                    session.id,
                    call_id=call_id,
                    tool=tool,
                    status=CANCELLED,
                    latency_ms=0,
                    size=0,
                    error=error,
                )
            )
        session.open_calls.clear()
        self.governor.flush_quietly()

    def _judge(
        self, session: ShimSession, method: str, params: dict[str, Any], body: dict[str, Any]
    ) -> dict[str, Any]:
        named = named_by(method, params)
        if isinstance(named, str) or not named:
            raise PeerError("invalid_params", "there is nothing to judge in this")
        size = body.get("bytes_in")
        at = now()
        question = Question(
            session.server,
            session.id,
            self._principal,
            method,
            tuple(named),
            size if isinstance(size, int) else 0,
            "mcp_stdio",
            at,
        )
        ruling = self.governor.rule(question)
        if ruling.verdict.action == APPROVE:
            settled = self.governor.ask(ruling.call_id, ruling.verdict.workflow, at)
            if settled is None:
                self._held[ruling.call_id] = session.id
            else:
                ruling = settled
        ruling = self._recorded(ruling)
        if ruling.call_id:
            session.open_calls[ruling.call_id] = named[0].name
        return self._answer(ruling)

    def _recorded(self, ruling: Ruling) -> Ruling:
        """A verdict counts only once it is on record."""
        try:
            self.governor.flush()
        except RecordError:
            verdict = Verdict(DENY, "record", "service_unavailable", "the record cannot be written")
            return ruling._replace(verdict=verdict)
        return ruling

    def _answer(self, ruling: Ruling) -> dict[str, Any]:
        verdict = ruling.verdict
        answer: dict[str, Any] = {
            "decision": _DECISIONS[verdict.action],
            "task_id": ruling.call_id if verdict.action == APPROVE else None,
            "policy_id": verdict.rule or None,
            "reason": None,
            "poll_interval_ms": 1000 if verdict.action == APPROVE else None,
            "shutdown": self.shutting_down,
            "call_id": ruling.call_id,
            "gate": verdict.gate,
        }
        if verdict.action == DENY:
            answer["kind"] = verdict.kind
        if verdict.workflow:
            answer["workflow"] = verdict.workflow
        if verdict.retry_after_s:
            answer["retry_after"] = verdict.retry_after_s
        return answer

    def _screen(self, session: ShimSession, method: str, params: dict[str, Any]) -> dict[str, Any]:
        entries = params.get("entries")
        if method not in LISTINGS or not isinstance(entries, list):
            raise PeerError("invalid_params", "there is nothing to screen in this")
        offered = tuple(entry for entry in entries if isinstance(entry, dict))
        hidden = self.governor.screen(session.server, session.id, method, offered, now())
        self.governor.flush_quietly()
        return {"decision": "forward", "hidden": sorted(hidden), "shutdown": self.shutting_down}

    def _session_of(self, body: dict[str, Any]) -> ShimSession:
        session = self.sessions.get(_string(body, "session_id"))
        if session is None:
            raise PeerError("invalid_request", "there is no such session; say hello first")
        session.seen_at = monotonic()
        return session

    def _follow(self, session: ShimSession, record: Record) -> None:
        """Learn from an event which calls are open and where the server runs."""
        if record.type == SERVER_STARTED:
            pid = (record.body.get("server") or {}).get("pid")
            session.group = pid if isinstance(pid, int) else 0
        call = record.body.get("call")
        if record.type == "tool_call_end" and isinstance(call, dict):
            session.open_calls.pop(str(call.get("call_id")), None)


_DECISIONS: Final = {FORWARD: "forward", DENY: "deny", APPROVE: "pending_approval"}

_REPORTED: Final = frozenset(
    {"message", "frame_refused", "tool_call_end", "server_started", "server_exited"}
)
"""The types of event that only a shim can see; everything else the service records itself."""


def _record(item: Any, session: ShimSession) -> Record:
    if not isinstance(item, list) or len(item) != 3:  # noqa: PLR2004 - type, time, body
        raise PeerError("invalid_params", "a record is a list of type, time and body")
    kind, at, body = item
    if kind not in _REPORTED or not isinstance(at, int | float) or not isinstance(body, dict):
        raise PeerError("invalid_params", "a shim does not report such events")
    return Record(kind, float(at), session.server, session.id, body)


def _string(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise PeerError("invalid_params", f"{key} must be a string")
    return value
