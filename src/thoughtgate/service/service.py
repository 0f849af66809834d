"""Governance service: one policy, one approval queue and one record for all shims of a run.

Shims send their requests over HTTP on the loopback interface, with the run's token. This
module handles the requests; ``service.http_api`` handles HTTP. Everything runs on one event
loop, so that a governor is never used concurrently. The token admits a shim to the service;
after that, a session can act on its own calls only.
"""

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from typing import Any, Final

from thoughtgate.config.settings import Settings
from thoughtgate.core.commands import (
    CONTENT_SEEN,
    AskTask,
    EndTask,
    InspectAnswer,
    InspectLater,
    PersonAnswered,
)
from thoughtgate.core.contents.inspected_answers import inspection_of
from thoughtgate.core.events import CallJudged
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.core.record_events import CALL_END, SERVER_STARTED, Record
from thoughtgate.core.run_summary import outcome_of
from thoughtgate.core.server_requests import MEMBER
from thoughtgate.core.session_replies import ORPHAN_AFTER_S, RELAY_GRACE_S, STOPPING
from thoughtgate.core.task import wants_task
from thoughtgate.core.task_table import Caller
from thoughtgate.errors import PeerError, RecordError
from thoughtgate.gate.clock import monotonic, new_id, now
from thoughtgate.gate.contents.inspection import inspect_answer
from thoughtgate.gate.definitions.inspection import load_checks
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.held_calls import HeldCalls
from thoughtgate.gate.run_identity import principal_of
from thoughtgate.gate.task_messages import as_told, task_command
from thoughtgate.gate.task_runner import Told
from thoughtgate.policy.call import (
    APPROVE,
    DENY,
    FORWARD,
    INSPECT_AFTER,
    INSPECT_BEFORE,
    LIST,
    Verdict,
)
from thoughtgate.service.shim_session import (
    MAX_OPEN_CALLS,
    ShimSession,
    UnfinishedCall,
    known_process,
    read_record,
    string_of,
    wrong,
)
from thoughtgate.wire.methods import (
    INPUT_REQUIRED,
    SCREENED,
    Named,
    named_by,
    named_by_server,
    named_in_requests,
)
from thoughtgate.wire.revisions import is_modern

SETTLE_EVERY_S: Final = 0.1
"""Poll interval for decisions while calls are held."""

STOPPED_S: Final = 5.0
"""If no poll has run for this long, the service was stopped (Ctrl-Z), and no shim counts as silent."""

MAX_WAIT_S: Final = 30.0
"""How long a request about a held call may be kept open (long polling)."""

KEEP_VERDICTS: Final = 10_000
"""Verdicts kept for shims that have not fetched them yet."""

MAX_SESSIONS: Final = 1_000
"""Maximum shims at once; an agent has dozens of servers at most."""

MAX_BATCH: Final = 10_000
"""Maximum events in one request; a shim sends at most five hundred."""

LATER_SLICE_S: Final = 0.05
"""How long messages that agents already have are inspected before other requests get their turn."""

MAX_REASON: Final = 200

POLL_MS: Final = 1000
"""Suggested interval for a caller that polls; a caller that uses long polling needs none."""


class Governance:
    """Handles the requests of all shims of a run."""

    def __init__(self, governor: Governor, settings: Settings, withheld: frozenset[str]) -> None:
        self.governor = governor
        self.settings = settings
        self.shutting_down = False
        self.sessions: dict[str, ShimSession] = {}
        self.reported: set[str] = set()
        """Servers whose shims have opened a session, now or earlier in the run."""
        self._by_name: dict[str, str] = {}
        """Ids of the sessions of callers that opened none themselves, by the server's name."""
        self._withheld = sorted(withheld)
        self.relayed: Collection[str] = ()
        """Names of the remote servers, in front of which our own proxy runs."""
        self.login_page = ""
        """The console's page for signing in to servers; empty without a console."""
        self.reports_verdicts = False
        """Whether this process reports verdicts to the operator, so that shims need not."""
        self.own_variables: Mapping[str, Mapping[str, str]] = {}
        """Variables of the gate's own proxies, by the server's name. They are withheld from all
        other servers, and are in no file and on no command line."""
        self.identities: Mapping[str, tuple[str, ...]] = {}
        """The URLs of remote servers, by name. Their command lines, our proxy's, identify none."""
        self._held: HeldCalls[ShimSession] = HeldCalls(governor, self._decided)
        self._verdicts: dict[str, Verdict] = {}
        """Verdicts on calls that were held, until their shims fetch them."""
        self._granted: dict[str, Verdict] = {}
        """Verdicts of running calls that became tasks although nobody had to approve them."""
        self._news = asyncio.Condition()
        self._empty = asyncio.Event()
        self._empty.set()
        self._principal = principal_of(governor.run)

    def heartbeat(self, body: dict[str, Any]) -> dict[str, Any]:
        """Handle a heartbeat from a new shim, a known one, or one that says goodbye."""
        server = string_of(body, "server_id")
        if body.get("hello") is True:
            self._identify(server, body.get("command"))
            return self._start_session(server, known_process(body.get("pid")))
        ident = body.get("session_id", self._by_name.get(server))
        session = self.sessions.get(ident) if isinstance(ident, str) else None
        if session is None:
            # The server of a shim that was declared lost has been killed, so the shim must stop.
            return {"shutdown": self.shutting_down or ident is not None}
        session.seen_at = monotonic()
        if body.get("bye") is True:
            self._close_session(session)
        return {"shutdown": self.shutting_down}

    def evaluate(self, body: dict[str, Any]) -> dict[str, Any]:
        """Judge a request, or screen a list."""
        session = self._session_of(body)
        if self.shutting_down:
            # No call may start now: its end could no longer be recorded.
            return {"decision": "deny", "kind": "service_unavailable", "shutdown": True}
        method = string_of(body, "method")
        params = body.get("params")
        if not isinstance(params, dict):
            params = {} if params is None else wrong("params must be an object")
        if body.get("direction") == "server_to_agent":
            return self._screen(session, method, params)
        return self._judge(session, method, params, body)

    async def task(self, call_id: str, wait_s: float) -> dict[str, Any] | None:
        """Return the state of a held call, waiting for news; None if the call is unknown."""
        deadline = monotonic() + min(wait_s, MAX_WAIT_S)
        async with self._news:
            while call_id in self._held or call_id in self._granted:
                left = deadline - monotonic()
                if left <= 0:
                    return {"task_id": call_id, "status": "pending", "shutdown": False}
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), left)
        # Removed when fetched: a verdict is given out once, so that a call cannot run twice.
        verdict = self._verdicts.pop(call_id, None)
        if verdict is None:
            return None
        return {"task_id": call_id, "status": "decided", **self._answer(verdict, call_id)}

    async def tasks(self, body: dict[str, Any], wait_s: float) -> dict[str, Any]:
        """Carry out a shim's command about tasks, and return the events for its session."""
        session = self._session_of(body)
        self._tell(self._task_command(session, body))
        deadline = monotonic() + min(wait_s, MAX_WAIT_S)
        async with self._news:
            while not session.told and monotonic() < deadline and not self.shutting_down:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), deadline - monotonic())
        news, session.told = session.told, []
        self.governor.flush_quietly()
        return {"told": [as_told(event) for event in news], "shutdown": self.shutting_down}

    def events(self, body: dict[str, Any]) -> dict[str, Any]:
        """Record the events that a shim reports.

        Raises:
            RecordError: the record cannot be written.
        """
        session = self._session_of(body)
        told = body.get("records")
        if not isinstance(told, list) or len(told) > MAX_BATCH:
            wrong("records must be a list, and not too long")
        at = now()
        # All are validated first, so that a batch is recorded as a whole or not at all.
        records = [read_record(item, session.server, session.id, at) for item in told]
        self._introduce(session, body)
        for record in records:
            self._note(session, record)
        self.governor.flush()
        return {"shutdown": self.shutting_down}

    def inspect(self, body: dict[str, Any]) -> dict[str, Any]:
        """Inspect a message of a server; a result that must wait is held from now on."""
        session, call_id, at = self._session_of(body), string_of(body, "call_id"), now()
        said = body.get("body")
        if not isinstance(said, dict):
            wrong("body must be an object")
        if call_id and call_id not in session.open_calls:
            wrong("there is no such call")
        command = InspectAnswer(
            0,
            call_id,
            said,
            at,
            of_task=body.get("of_task") is True,
            can_wait=body.get("can_wait") is not False,
        )
        inspected = inspect_answer(
            self.governor, session.server, session.id, self._principal, command
        )
        _, kept, _, findings, held, workflow, outcome = inspected
        if held:
            settled = self.governor.ask(held, workflow, at, owner=session.owner)
            if settled is None:
                self._held.hold(held, session, held)
            else:
                # There is nobody to ask, so nobody could release it.
                kept, held = None, ""
        self.governor.flush_quietly()
        answer = {"body": kept, "findings": findings, "outcome": outcome}
        return {**answer, "held": held, "workflow": workflow} if held else answer

    def withdraw(self, body: dict[str, Any]) -> None:
        """Withdraw the approval request of a held call that its caller no longer waits for."""
        session = self._session_of(body)
        call_id = string_of(body, "task_id")
        if self._held.is_of(call_id, session):
            self._held.drop(call_id)
            self.governor.withdraw(call_id, string_of(body, "reason")[:MAX_REASON], now())
            self.governor.flush_quietly()

    def answered(self, body: dict[str, Any]) -> None:
        """Store the answer that a person gave to the agent's own prompt about a held call."""
        call_id, approve = string_of(body, "task_id"), body.get("approve")
        if self._held.is_of(call_id, self._session_of(body)) and isinstance(approve, bool):
            reason, about = string_of(body, "reason"), str(body.get("definition") or "")
            answer = PersonAnswered(call_id, approve, reason[:MAX_REASON], now(), definition=about)
            self.governor.approvals.answer(answer)

    async def settle(self) -> None:
        """Poll once for new decisions, and wake the requests that wait for them."""
        self._tell(self.governor.tasks.tick(now()))
        if self.governor.later.waiting:
            self.governor.later.run(LATER_SLICE_S)
            self.governor.flush_quietly()
        before = len(self._verdicts)
        self._held.poll(now())
        decided = list(self._verdicts)[before:]
        if not decided:
            return
        # One flush writes the decisions on all these calls; if it fails, none of them may run.
        if not self._is_recorded():
            self._verdicts |= dict.fromkeys(decided, _UNRECORDED)
        while len(self._verdicts) > KEEP_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]
        await self._wake_waiting()

    async def watch(self) -> None:
        """Poll for decisions and detect lost shims, until cancelled."""
        turned_at = monotonic()
        while True:
            await asyncio.sleep(SETTLE_EVERY_S)
            await self.settle()
            at = monotonic()
            stopped, turned_at = at - turned_at > STOPPED_S, at
            for session in list(self.sessions.values()):
                if stopped:
                    session.seen_at = at
                elif session.is_gone(at):
                    self._lose(session)

    def adopt(self, settings: Settings) -> None:
        """Use other settings for the shims that connect from now on."""
        self.settings = settings

    async def shut_down(self) -> None:
        """Withdraw all approval requests, and tell every shim to stop when it next sends a request."""
        self.shutting_down = True
        self._held.withdraw_all(STOPPING)
        self.governor.flush_quietly()
        await self._wake_waiting()

    async def all_gone(self) -> None:
        """Return when no shim is connected."""
        await self._empty.wait()

    def end_leftovers(self) -> None:
        """Kill the servers of shims that never said goodbye."""
        for session in list(self.sessions.values()):
            self._lose(session)

    def _task_command(self, session: ShimSession, body: dict[str, Any]) -> list[Told]:
        tasks, at = self.governor.tasks, now()
        command = task_command(body, at)
        if command is None:
            return []
        if isinstance(command, AskTask):
            return tasks.answer(session.id, Caller(self._principal, session.id), command)
        if isinstance(command, EndTask):
            return tasks.ended(command)
        if command.call_id not in session.open_calls:
            return []
        held = self.governor.judge.open_call(command.call_id)
        granted = self._granted.get(command.call_id)
        if granted is not None:
            return tasks.make_granted(session.id, command, held, granted)
        return tasks.make(session.id, command, held.call) if held is not None else []

    def _tell(self, told: list[Told]) -> None:
        for ident, event in told:
            session = self.sessions.get(ident)
            if isinstance(event, CallJudged):
                self._held.drop(event.call_id)
            if session is not None:
                session.told.append(event)

    def _start_session(self, server: str, pid: int) -> dict[str, Any]:
        if not self.reported:
            load_checks()  # while the server starts: a shim waits two seconds for its list
        session = self._open_session(server, pid)
        self.reported.add(server)
        listed, is_relayed = self.settings.servers.get(server), server in self.relayed
        timeout_s = (listed.timeout_s if listed is not None else 0.0) or ORPHAN_AFTER_S
        return {
            "shutdown": self.shutting_down,
            "session_id": session.id,
            "profile": self.governor.policy.profile,
            # Longer than our proxy waits: the proxy knows the server's state and reports it.
            "timeout_s": timeout_s + RELAY_GRACE_S if is_relayed else timeout_s,
            "offers_tasks": self.governor.offers_tasks,
            "inspect": _INSPECTIONS[self.governor.policy.inspection(server)],
            "max_held": self.settings.holds.connection,
            "withheld": self._withheld,
            "relayed": is_relayed,
            "login_page": self.login_page,
            "env": dict(self.own_variables.get(server, {})),
            "log_format": self.settings.telemetry.log_format,
            "log_level": self.settings.telemetry.log_level,
            "is_reported": self.reports_verdicts,
        }

    def _identify(self, server: str, command: Any) -> None:
        """Note which program is behind a server's id, so that it gets the right pins."""
        known = self.identities.get(server)
        if known is None and isinstance(command, list):
            known = tuple(word for word in command if isinstance(word, str))
        if known:
            self.governor.identify(server, known)

    def _open_session(self, server: str, pid: int = 0) -> ShimSession:
        if len(self.sessions) >= MAX_SESSIONS:
            raise PeerError("service_unavailable", "too many shims are connected")
        session = ShimSession(new_id(), server, monotonic(), pid)
        self.sessions[session.id] = session
        self._empty.clear()
        return session

    def _session_of(self, body: dict[str, Any]) -> ShimSession:
        """Return the session of a request; a caller that names none gets one per server name."""
        server = string_of(body, "server_id")
        ident = body.get("session_id", self._by_name.get(server))
        if ident is None:
            ident = self._by_name[server] = self._open_session(server).id
        session = self.sessions.get(ident) if isinstance(ident, str) else None
        if session is None or session.server != server:
            raise PeerError("invalid_request", "there is no such session; say hello first")
        session.seen_at = monotonic()
        return session

    def _lose(self, session: ShimSession) -> None:
        """Declare a shim lost and kill its server, which must not outlive it."""
        session.end_server()
        self._close_session(session)

    def _close_session(self, session: ShimSession) -> None:
        """Remove a shim's session, and record an end for every call that it had open."""
        self.sessions.pop(session.id, None)
        if self._by_name.get(session.server) == session.id:
            del self._by_name[session.server]
        if not self.sessions:
            self._empty.set()
        at = now()
        for call_id, opened in session.open_calls.items():
            self._granted.pop(call_id, None)
            unsent = self._verdicts.pop(call_id, None) is not None
            if self._held.drop(call_id):
                unsent = True
                self.governor.withdraw(call_id, "the caller is gone", at)
            self.governor.note(opened.end(call_id, session, at, unsent=unsent))
        session.open_calls.clear()
        for held in self._held.held_for(session):
            self._held.drop(held)
            self.governor.withdraw(held, "the caller is gone", at)
        self.governor.flush_quietly()

    def _judge(
        self, session: ShimSession, method: str, params: dict[str, Any], body: dict[str, Any]
    ) -> dict[str, Any]:
        named = _named(method, params, by_server=body.get("requested_by") == "server")
        if isinstance(named, str):
            raise PeerError("invalid_params", named)
        if not named:
            return {"decision": "forward", "shutdown": False}
        if len(session.open_calls) >= MAX_OPEN_CALLS:
            raise PeerError("service_unavailable", "too many calls are open")
        size = body.get("bytes_in")
        at = now()
        self._introduce(session, body)
        call = CallRequest(
            session.server,
            session.id,
            self._principal,
            method,
            tuple(named),
            size if isinstance(size, int) else 0,
            "mcp_stdio",
            at,
            params,
            listed=string_of(body, "listed") if "listed" in body else "",
            client=string_of(body, "client") if "client" in body else "",
            message_id=ident if isinstance(ident := body.get("id"), str | int) else None,
        )
        verdict, call_id, _ = self.governor.rule(call)
        if verdict.action == LIST:
            return {"decision": "list_tools", "shutdown": False}
        if _is_late(body):
            return self._not_delivered(session, call_id, named[0].name)
        if verdict.action == APPROVE:
            verdict = self._ask(session, verdict, call_id, at)
        elif verdict.action == FORWARD and self._makes_task(session, method, params, named[0].name):
            # The shim holds the call until its task is made; the verdict comes with that.
            self._granted[call_id] = verdict
            verdict = verdict._replace(action=APPROVE)
        verdict = self._if_recorded(verdict, call_id)
        if call_id:
            refused = verdict.kind if verdict.action == DENY else ""
            session.open_calls[call_id] = UnfinishedCall(named[0].name, refused)
        return self._answer(verdict, call_id, named[0].name)

    def _if_recorded(self, verdict: Verdict, call_id: str) -> Verdict:
        """Return the verdict, or a refusal if the record cannot be written."""
        if self._is_recorded():
            return verdict
        self._granted.pop(call_id, None)
        if self._held.drop(call_id):
            self.governor.withdraw(call_id, _UNRECORDED.reason, now())
        return _UNRECORDED

    def _not_delivered(self, session: ShimSession, call_id: str, tool: str) -> dict[str, Any]:
        """End a call whose shim, without a verdict in time, has refused or (in development) sent it."""
        self.governor.withdraw(call_id, TOO_LATE, now())
        end = UnfinishedCall(tool).end(call_id, session, now(), unsent=True)
        self.governor.note(end._replace(body={**end.body, "error": _LATE_ERROR}))
        self.governor.flush_quietly()
        return self._answer(Verdict(DENY, "governance", "service_unavailable"), call_id)

    def _ask(self, session: ShimSession, verdict: Verdict, call_id: str, at: float) -> Verdict:
        """Hold a call that a person must approve, unless its verdict is already known."""
        settled = self.governor.ask(call_id, verdict.workflow, at, owner=session.owner)
        if settled is not None:
            return settled.verdict
        self._held.hold(call_id, session, call_id)
        return verdict

    def _makes_task(
        self, session: ShimSession, method: str, params: dict[str, Any], tool: str
    ) -> bool:
        """Tell whether a call becomes a task although nobody has to approve it."""
        wanted = not is_modern(params) and wants_task(method, params, modern=False)
        return wanted and self.governor.makes_task(session.server, tool)

    def _introduce(self, session: ShimSession, body: dict[str, Any]) -> None:
        """Note for the record what a shim knows about its agent."""
        client = string_of(body, "client") if "client" in body else ""
        self.governor.introduce(session.id, client=client, principal=self._principal)

    def _decided(self, session: ShimSession, event: CallJudged) -> None:
        del session  # any request that names the call may fetch its verdict
        self._verdicts[event.call_id] = event.verdict

    async def _wake_waiting(self) -> None:
        async with self._news:
            self._news.notify_all()

    def _is_recorded(self) -> bool:
        """Write the queued events; return whether the calls that they allow may run."""
        try:
            self.governor.flush()
        except RecordError:
            return False
        return True

    def _answer(self, verdict: Verdict, call_id: str, tool: str = "") -> dict[str, Any]:
        waits = verdict.action == APPROVE
        answer: dict[str, Any] = {
            "decision": _DECISIONS[verdict.action],
            "task_id": call_id if waits else None,
            "policy_id": verdict.rule or None,
            "reason": verdict.reason or None,
            "poll_interval_ms": POLL_MS if waits else None,
            "shutdown": self.shutting_down,
            "call_id": call_id,
            "gate": verdict.gate,
        }
        if not verdict.enforced:
            answer["outcome"] = outcome_of(verdict.kind)
            answer["tool"] = self.governor.judge.recorded_name(tool)
        if verdict.action == DENY or not verdict.enforced:
            answer["kind"] = verdict.kind or "approval"
        optional = {
            "inspect": _INSPECTIONS[inspection_of(verdict)],
            "findings": verdict.findings,
            "trace": verdict.trace,
            "workflow": verdict.workflow,
            "retry_after": verdict.retry_after_s,
            "scopes": verdict.scopes,
            "missing_scopes": verdict.missing_scopes,
            **(self.governor.approvals.notice(call_id)._asdict() if waits else {}),
        }
        return answer | {name: value for name, value in optional.items() if value}

    def _screen(self, session: ShimSession, method: str, params: dict[str, Any]) -> dict[str, Any]:
        entries = params.get("entries")
        if method not in SCREENED or not isinstance(entries, list):
            raise PeerError("invalid_params", "there is nothing to screen in this")
        offered = tuple(entry for entry in entries if isinstance(entry, dict))
        about = (session.server, session.id, method, offered, now())
        hidden = self.governor.screen(*about, is_last=params.get("last") is not False)
        self.governor.flush_quietly()
        return {
            "decision": "forward",
            "hidden": sorted(hidden),
            "offers_tasks": self.governor.offers_tasks,
            "shutdown": self.shutting_down,
        }

    def _note(self, session: ShimSession, record: Record) -> None:
        """Record an event, and update the session's open calls and its server's process group."""
        if record.type == CONTENT_SEEN:
            self._inspect_later(session, record)
            return
        if record.type == SERVER_STARTED:
            session.follow_server(record.body.get("server"))
        elif record.type == CALL_END:
            self._granted.pop(record.body["call"]["call_id"], None)
            ended = session.open_calls.pop(record.body["call"]["call_id"], None)
            if ended is None:
                # The call ended when its shim was declared lost, or belongs to another session.
                return
        self.governor.note(record)

    def _inspect_later(self, session: ShimSession, record: Record) -> None:
        """Inspect a message that the agent already has, when the service has time."""
        call_id, body, size = (record.body.get(key) for key in ("call_id", "body", "size"))
        if call_id and call_id not in session.open_calls:
            return
        if not isinstance(body, dict) or not isinstance(size, int):
            body, size = {}, -1  # the shim had no room for it
        command = InspectLater(str(call_id), body, size, record.at)
        self.governor.later.put_message(command, session.server, session.id, self._principal)


TOO_LATE: Final = "the verdict came too late: the shim did not wait for it"
_LATE_ERROR: Final = {"class": "policy_block", "kind": "service_unavailable", "message": TOO_LATE}
_UNRECORDED: Final = Verdict(DENY, "record", "service_unavailable", "the record cannot be written")
_INSPECTIONS: Final = {0: False, INSPECT_AFTER: "after", INSPECT_BEFORE: True}
_DECISIONS: Final = {FORWARD: "forward", DENY: "deny", APPROVE: "pending_approval"}


def _is_late(body: dict[str, Any]) -> bool:
    """Tell whether a shim has given up waiting for the verdict that it asked for."""
    # Both processes read the same monotonic clock: it counts from the start of the system.
    until = body.get("waits_until")
    return isinstance(until, int | float) and monotonic() > until


def _named(method: str, params: dict[str, Any], *, by_server: bool) -> list[Named] | str:
    """Return what a request of the agent names, or with ``by_server`` one of the server."""
    if not by_server:
        return named_by(method, params)
    if method == INPUT_REQUIRED:
        requests = params.get(MEMBER)
        return named_in_requests(requests if type(requests) is dict else {"": requests})
    return named_by_server(method, params)
