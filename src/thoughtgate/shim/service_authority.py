"""The authority of a shim under ``wrap``: asks the governance service for every verdict.

The service judges, requests approvals and keeps the record. A call that the service did not allow
is never forwarded: a missing, late or invalid reply is a denial, or in development a message.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thoughtgate.core.answers import RELAY_KEY
from thoughtgate.core.commands import (
    AskPeople,
    AskTask,
    EndTask,
    InspectAnswer,
    InspectLater,
    JudgeCall,
    PersonAnswered,
    ScreenList,
    Withdraw,
)
from thoughtgate.core.elicitation import HoldNotice, RequestStates
from thoughtgate.core.events import AnswerInspected, CallJudged, Event, ListScreened, TaskAnswered
from thoughtgate.core.record_events import AGENT_TO_SERVER, FRAME_REFUSED, Record
from thoughtgate.core.server_requests import is_server_key
from thoughtgate.core.session_replies import (
    MAX_HELD,
    ORPHAN_AFTER_S,
    CorrelationIds,
    SessionSettings,
)
from thoughtgate.core.tool_listing import LIST_FIRST
from thoughtgate.errors import KINDS
from thoughtgate.gate.authority import prompts
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.poll_loop import complain
from thoughtgate.gate.run_file import RunFile
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.task_messages import as_command, told_event
from thoughtgate.policy.call import APPROVE, DENY, DEVELOPMENT, FORWARD, PRODUCTION, Verdict
from thoughtgate.shim.event_queue import EventQueue
from thoughtgate.shim.service_connection import Link
from thoughtgate.shim.service_handshake import (
    EVALUATE_S,
    SUCCESS,
    Reply,
    as_body,
    content_seen,
    find_run,
    findings_in,
    inspection_in,
    is_recorded,
    open_log,
    open_session,
    read_object,
    server_variables,
    text_in,
    wait_on,
)
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Fault, Message, RequestId
from thoughtgate.wire.methods import SCREENED

if TYPE_CHECKING:
    from thoughtgate.telemetry.logs import Log

TASK_POLL_S: Final = 5.0
"""Timeout of a request about a held call (F-016b)."""

TASK_WAIT_S: Final = 4
"""How long the service may keep such a request open; shorter than its timeout."""

HEARTBEAT_S: Final = 5.0

LOOK_EVERY_S: Final = 0.05
"""How often timeouts are checked, even under load."""

STOPPED_S: Final = 2 * HEARTBEAT_S
"""If the loop has not run for this long, the shim was stopped (Ctrl-Z), and no reply is late."""

GOODBYE_S: Final = 1.0
"""How long a stopping shim tries to deliver its last events."""

GONE: Final = "the governance service is gone"

NOT_RECORDED: Final = 503
"""The service's status for events that it could not write."""

OnReply: TypeAlias = Callable[[Reply], list[Event]]


class ServiceAuthority:
    """Judges by asking the governance service."""

    def __init__(self, run: RunFile, server: str, session: str) -> None:
        # The service gives each session a random id.
        self.errors = CorrelationIds(session)
        self.stop_reason = ""
        self.log: Log | None = None
        """Where messages go as JSON lines; None for plain text."""
        self.is_reported = False  # Whether the service itself reports verdicts to the operator.
        self._run = run
        self._server = server
        self._session = session
        self._enforce = run.profile == PRODUCTION
        self.offers_tasks = False
        """Whether the agent is offered tasks, because calls may be held; the service's last word."""
        self.inspects = 0
        # Several connections, because replies arrive in order: neither events nor heartbeats may
        # delay a verdict, and a request for news stays open until there is some.
        self._calls = self._link()
        self._events = self._link()
        self._pulse = self._link()
        self._news = self._link()
        self._held: dict[str, tuple[Link, RequestId]] = {}
        self._tasked: set[str] = set()
        self._notices: dict[str, HoldNotice] = {}
        """What the agent's program is told about calls that are about to be held."""
        self._client = ""
        self._unanswered: set[RequestId] = set()
        self._queue = EventQueue()
        self._late: list[Event] = []
        """Events that the session receives in the next iteration of the loop."""
        self._recording = True
        """False while the service cannot write the record: then nothing is forwarded."""
        self._look_at = 0.0
        self._turned_at = self._next_pulse = monotonic()

    @property
    def interval_s(self) -> float:
        """How long the loop may wait, so that heartbeats and timeouts are on time."""
        if self._late:
            return 0.0
        if self._queue and self._events.is_idle:
            return self._queue.wait_s
        if self._held or self._queue or not (self._calls.is_idle and self._events.is_idle):
            return 0.25
        return max(0.0, min(self._next_pulse - monotonic(), HEARTBEAT_S))

    @property
    def is_behind(self) -> bool:
        """Whether too many events wait for the service."""
        return self._queue.is_full

    def read(self, line: bytes) -> Message | Fault:
        """Parse a frame with the small reader: the fast one would cost the shim too much memory."""
        return read_frame(line)

    def judge(self, driver: SessionDriver, command: JudgeCall) -> CallJudged | None:
        """Request a verdict; it arrives as an event."""
        more = {"listed": command.listed} if command.listed else {}
        if driver.session.prompts.client:
            more["client"] = driver.session.prompts.client
        if is_server_key(command.key):
            more["requested_by"] = "server"
        self._evaluate(
            command,
            lambda reply: self._judged(command, reply),
            direction="agent_to_server",
            params=command.params,
            message_type="request",
            bytes_in=command.bytes_in,
            **more,
        )
        return None

    def resume(self, driver: SessionDriver, command: JudgeCall) -> None:
        """Never called: tasks of a wrap do not outlive it."""
        raise AssertionError((driver, command))

    def screen(self, driver: SessionDriver, command: ScreenList) -> ListScreened | None:
        """Request which entries of a list, or which part of a handshake, to hide."""
        del driver
        self._evaluate(
            command,
            lambda reply: [self._screened(command, reply)],
            direction="server_to_agent",
            params={"entries": command.entries, "last": command.is_last},
            message_type="response",
        )
        return None

    def inspect(self, driver: SessionDriver, command: InspectAnswer) -> AnswerInspected | None:
        """Have a message of the server inspected."""
        del driver
        about = {
            name: getattr(command, name) for name in ("call_id", "body", "of_task", "can_wait")
        }
        self._post("/governance/inspect", lambda reply: self._inspected(command, reply), **about)
        return None

    def inspect_later(self, driver: SessionDriver, command: InspectLater) -> None:
        """Send the service a message with the next events, or only its size if too much waits."""
        del driver
        record, size = content_seen(command, self._server, self._session, self._queue.unsent_bytes)
        self._queue.unsent_bytes += size
        self._queue.put(record)

    def _inspected(self, command: InspectAnswer, reply: Reply) -> list[Event]:
        body = reply.get("body") if reply is not None else None
        findings = findings_in(reply)
        if (outcome := text_in(reply, "outcome")) and not self.is_reported:
            words = ", ".join(f"{check} at {where}" for check, _, where in findings)
            self._would(outcome, f"a result: {words}", None, gate="contents", policy_reason=words)
        # Without a valid reply, the agent gets an error and never the original.
        kept = body if isinstance(body, dict) else None
        more = (findings, text_in(reply, "held"), text_in(reply, "workflow"))
        return [AnswerInspected(command.key, kept, now(), *more)]

    def ask(self, driver: SessionDriver, command: AskPeople) -> list[Event]:
        """Wait for the decision: the service has sent the approval request with its verdict."""
        del driver
        link = self._link()
        self._held[command.call_id] = (link, command.key)
        events = self._await_people(command.call_id)
        events += prompts(command, self._notices.pop(command.call_id, HoldNotice()))
        if command.params is None:
            return events
        self._tasked.add(command.call_id)
        return events + self._say_of_tasks(command)

    def person_answered(self, driver: SessionDriver, command: PersonAnswered) -> None:
        """Send the service the answer that a person gave to the agent's own prompt."""
        del driver
        told = {"task_id": command.call_id, "approve": command.approve, "reason": command.reason}
        about = {"definition": command.definition}
        self._post("/governance/answer", _heed_nothing, **told, **about)

    def ask_task(self, driver: SessionDriver, command: AskTask) -> list[Event]:
        """Forward a request about tasks to the service's task table."""
        del driver
        self._unanswered.add(command.key)
        return self._say_of_tasks(command)

    def end_task(self, driver: SessionDriver, command: EndTask) -> None:
        """Report the result of a task to the service."""
        del driver
        self._tasked.discard(command.call_id)
        self._late += self._say_of_tasks(command)

    def inspection(self, server: str) -> int:
        """Return whether, and when, the server's messages are inspected before a call was judged."""
        del server
        return self.inspects

    def request_states(self, server: str, principal: str) -> RequestStates | None:
        """Return None: the session keeps its own states, because the shim lives as long as it does."""
        del server, principal
        return None

    def withdraw(self, driver: SessionDriver, command: Withdraw, at: float) -> None:
        """Tell the service that a held call's caller no longer waits."""
        del driver, at
        held = self._held.pop(command.call_id, None)
        if held is not None:
            held[0].close()
        told = {"task_id": command.call_id, "reason": command.reason}
        self._post("/governance/withdraw", _heed_nothing, **told)

    def introduce(self, driver: SessionDriver) -> None:
        """Send the client's description of itself to the service, with the next events."""
        self._client = driver.session.prompts.client

    def note(self, record: Record) -> None:
        """Queue an event for the service's record."""
        is_passed = record.type == FRAME_REFUSED and "outcome" in record.body["frame"]
        if is_passed and not self.is_reported:
            frame = record.body["frame"]
            if self.log is not None:
                self.log.record(record)
            else:
                complain(f"{frame['outcome']}: a frame {frame['direction']}, {frame['check']}")
        self._queue.put(record)

    def flush(self) -> bool:
        """Tell whether frames may be sent; the service records verdicts before it returns them."""
        return self._recording and not self.stop_reason

    def rest(self) -> None:
        """Deliver queued events, after this iteration's frames have been sent."""
        self._hand_over()

    def descriptors(self) -> dict[int, int]:
        """Return the descriptors of all open connections."""
        return {link.descriptor: link.mask for link in self._links() if link.descriptor >= 0}

    def ready(self, descriptor: int, mask: int, at: float) -> list[Event]:
        """Read from or write to a connection that is ready."""
        del at
        for link in self._links():
            if link.descriptor == descriptor:
                return link.ready(mask)
        return []

    def tick(self, at: float) -> list[Event]:
        """Send heartbeats and expire overdue requests."""
        del at
        moment = monotonic()
        late, self._late = self._late, []
        if moment < self._look_at and self._pulse.descriptor >= 0:
            return late + self._listen()
        self._look_at = moment + LOOK_EVERY_S
        stopped_s, self._turned_at = moment - self._turned_at, moment
        events = late
        for link in self._links():
            if stopped_s > STOPPED_S:
                link.extend(stopped_s)
            # Calls do not wait for a stopped service: they are denied after their own timeout.
            events += link.expire(moment, 0 if link is self._calls else self._run.pid)
        if self._pulse.descriptor < 0:
            # The service closed the connection: a heartbeat finds out whether it still runs.
            self._next_pulse = moment
        if moment >= self._next_pulse and self._pulse.is_idle:
            self._next_pulse = moment + HEARTBEAT_S
            events += self._request(
                self._pulse, "/governance/heartbeat", self._felt, moment + HEARTBEAT_S
            )
        return events + self._listen()

    def finish(self, status: str, at: float) -> None:
        """Deliver the remaining events and say goodbye; the service may already have exited."""
        deadline = monotonic() + GOODBYE_S
        while (self._queue or not self._events.is_idle) and monotonic() < deadline:
            self._hand_over(at_once=True)
            if self._events.descriptor < 0:
                break
            wait_on(self._events, deadline)
        path, told = "/governance/heartbeat", {"bye": True, "status": status, "at": at}
        self._request(self._events, path, _heed_nothing, deadline, **told)
        while not self._events.is_idle and monotonic() < deadline:
            wait_on(self._events, deadline)
        self.close()

    def close(self) -> None:
        """Close every connection without a goodbye."""
        for link in self._links():
            link.close()

    def _link(self) -> Link:
        return Link(self._run.host, self._run.port, self._run.token)

    def _links(self) -> list[Link]:
        held = (link for link, _ in self._held.values())
        return [self._calls, self._events, self._pulse, self._news, *held]

    def _request(
        self, link: Link, path: str, answer: OnReply, deadline: float, **fields: Any
    ) -> list[Event]:
        """Send a request of this session; return events only if it fails at once."""
        said = {"server_id": self._server, "session_id": self._session, "waits_until": deadline}

        def on_reply(status: int, body: bytes) -> list[Event]:
            return answer(read_object(status, body))

        return link.request("POST", path, as_body(said | fields), on_reply, deadline)

    def _ask(self, path: str, answer: OnReply, **fields: Any) -> list[Event]:
        return self._request(self._calls, path, answer, monotonic() + EVALUATE_S, **fields)

    def _post(self, path: str, answer: OnReply, **fields: Any) -> None:
        """Send a request; events of a failure at once are fed in the loop's next iteration."""
        self._late += self._ask(path, answer, **fields)

    def _evaluate(self, command: JudgeCall | ScreenList, answer: OnReply, **fields: Any) -> None:
        about = {"method": command.method, "id": command.key, "profile": self._run.profile}
        self._post("/governance/evaluate", answer, **about, **fields)

    def _judged(self, command: JudgeCall, reply: Reply) -> list[Event]:
        if reply is not None and reply.get("shutdown") is True:
            self.stop_reason = "the run is over"
        verdict, call_id = self._verdict(reply, command), text_in(reply, "call_id")
        if verdict.action == APPROVE:
            said = (text_in(reply, name) for name in HoldNotice._fields)
            self._notices[call_id] = HoldNotice(*said)
        return [CallJudged(command.key, verdict, call_id, now())]

    def _verdict(self, reply: Reply, command: JudgeCall | None = None) -> Verdict:
        said = reply or {}
        decision = said.get("decision")
        if not self._recording:
            # This verdict may have been recorded after the events that were not.
            self._recording = is_recorded(reply)
        if decision == "list_tools":
            return LIST_FIRST
        if decision == "forward":
            if (outcome := text_in(reply, "outcome")) and not self.is_reported:
                gate, kind, tool = (text_in(reply, key) for key in ("gate", "kind", "tool"))
                words = f"{tool!r}, {gate} gate, {kind}"
                self._would(outcome, words, command, tool=tool, gate=gate, policy_reason=kind)
            gate, trace = text_in(reply, "gate"), text_in(reply, "trace")
            inspect = inspection_in(said)
            return Verdict(FORWARD, gate, enforced=not outcome, inspect=inspect, trace=trace)
        if decision == "pending_approval":
            return Verdict(APPROVE, "approval", workflow=text_in(reply, "workflow"))
        if decision == "deny":
            kind = text_in(reply, "kind")
            wait_s = said.get("retry_after")
            return Verdict(
                DENY,
                text_in(reply, "gate"),
                # A newer service may send a kind that this shim does not know.
                kind if kind in KINDS else "governance_denied",
                retry_after_s=float(wait_s) if isinstance(wait_s, int | float) else 0.0,
                scopes=text_in(reply, "scopes"),
                missing_scopes=text_in(reply, "missing_scopes"),
                findings=findings_in(reply),
            )
        return self._no_answer(command)

    def _no_answer(self, command: JudgeCall | None) -> Verdict:
        # F-016b: without a reply from the service, production denies.
        if self._enforce:
            return Verdict(DENY, "governance", "service_unavailable")
        words = "the governance service did not answer"
        facts = {"gate": "governance", "policy_reason": words}
        self._would("WOULD_BLOCK", f"{words}; forwarded (development)", command, **facts)
        return Verdict(FORWARD, "governance", enforced=False)

    def _would(self, outcome: str, words: str, command: JudgeCall | None, **facts: str) -> None:
        """Report what the production profile would have refused, in the configured log format."""
        if self.log is None:
            complain(f"{outcome}: {words}")
            return
        asked: dict[str, Any] = {}
        if command is not None:
            # Not the name: only the service knows which secrets to mask in it.
            asked = {"method": command.method, "message_id": command.key}
        self.log.say(
            "warn",
            "call judged",
            server_id=self._server,
            direction=AGENT_TO_SERVER,
            governance_decision=outcome,
            profile=DEVELOPMENT,
            forwarded=True,
            **{**asked, **facts},
        )

    def _screened(self, command: ScreenList, reply: Reply) -> ListScreened:
        if reply is not None and "offers_tasks" in reply:
            self.offers_tasks = reply["offers_tasks"] is True
        return ListScreened(command.key, self._hidden(command, reply), now(), self.offers_tasks)

    def _hidden(self, command: ScreenList, reply: Reply) -> frozenset[str] | None:
        hidden = reply.get("hidden") if reply is not None else None
        if isinstance(hidden, list):
            return frozenset(name for name in hidden if type(name) is str)
        if not self._enforce:
            return frozenset()
        if command.method != "initialize":
            return None  # An empty list would say that the server has no tools.
        key = SCREENED[command.method].key
        names = (entry.get(key) for entry in command.entries)
        return frozenset(name for name in names if type(name) is str)

    def _say_of_tasks(self, command: AskPeople | AskTask | EndTask) -> list[Event]:
        return self._ask("/governance/tasks", self._told, **as_command(command))

    def _listen(self) -> list[Event]:
        """Keep a request open for news from the service while a task is pending."""
        if not (self._tasked or self._unanswered) or not self._news.is_idle:
            return []
        path = f"/governance/tasks?wait={TASK_WAIT_S}"
        return self._request(self._news, path, self._told, monotonic() + TASK_POLL_S)

    def _told(self, reply: Reply) -> list[Event]:
        at = now()
        events: list[Event] = []
        for told in reply.get("told", []) if reply is not None else []:
            event = told_event(told, at)
            if isinstance(event, TaskAnswered):
                self._unanswered.discard(event.key)
            if isinstance(event, CallJudged) and event.call_id in self._held:
                self._held.pop(event.call_id)[0].close()
            if event is not None:
                events.append(event)
        return events

    def _await_people(self, call_id: str) -> list[Event]:
        held = self._held.get(call_id)
        if held is None:
            return []
        link, key = held

        def answer(status: int, body: bytes) -> list[Event]:
            return self._people_said(call_id, key, status, body)

        path = f"/governance/task/{call_id}?wait={TASK_WAIT_S}"
        return link.request("GET", path, b"", answer, monotonic() + TASK_POLL_S)

    def _people_said(self, call_id: str, key: RequestId, status: int, body: bytes) -> list[Event]:
        if call_id not in self._held:
            return []
        reply = read_object(status, body)
        if reply is not None and reply.get("status") == "pending":
            return self._await_people(call_id)
        link, _ = self._held.pop(call_id)
        link.close()
        return [CallJudged(key, self._verdict(reply), call_id, now())]

    def _felt(self, reply: Reply) -> list[Event]:
        if reply is None:
            self.stop_reason = GONE
        elif reply.get("shutdown") is True:
            self.stop_reason = "the run is over"
        return []

    def _hand_over(self, *, at_once: bool = False) -> None:
        if not self._queue or not self._events.is_idle:
            return
        batch = self._queue.take(at_once=at_once)
        if not batch:
            return
        told: dict[str, Any] = {
            "server_id": self._server,
            "session_id": self._session,
            "records": [[record.type, record.at, record.body] for record in batch],
        }
        if self._client:
            told["client"] = self._client
        data = as_body(told)

        def answer(status: int, body: bytes) -> list[Event]:
            del body
            self._recording = status == SUCCESS
            if not status:
                self.stop_reason = self.stop_reason or GONE
            elif status not in {SUCCESS, NOT_RECORDED}:
                self.stop_reason = self.stop_reason or "the governance service does not take events"
            return []

        self._events.request("POST", "/governance/events", data, answer, monotonic() + HEARTBEAT_S)


def connect(
    server: str,
    command: tuple[str, ...],
    service: tuple[str, str],
    environ: Mapping[str, str],
    entry: str = "",
) -> tuple[ServiceAuthority, SessionSettings, list[str], dict[str, str]]:
    """Find the service, wait until it is ready, and open a session with it.

    ``command`` is the server's command line; ``service`` is the run's key and the endpoint. Also
    returns the names of the variables that the server must not see, and the variables of ``entry``
    that only the server may see.

    Raises:
        UsageError: the run file or the endpoint is invalid, or the server must not start.
        PeerGone: the service does not answer.
    """
    run = find_run(*service, environ)
    own = server_variables(run, entry)
    reply = open_session(run, server, command)
    # The service's reply takes precedence: the run file may be out of date.
    run = run._replace(profile=text_in(reply, "profile") or PRODUCTION)
    session = text_in(reply, "session_id")
    timeout_s = reply.get("timeout_s")
    held = reply.get("max_held")
    setup = SessionSettings(
        server,
        session,
        enforce=run.profile == PRODUCTION,
        timeout_s=float(timeout_s) if isinstance(timeout_s, int | float) else ORPHAN_AFTER_S,
        max_held=held if isinstance(held, int) else MAX_HELD,
        relay_key=os.urandom(16).hex() if reply.get("relayed") is True else "",
        login_page=text_in(reply, "login_page"),
    )
    withheld = [name for name in reply.get("withheld", []) if isinstance(name, str)]
    own.update((name, value) for name, value in reply.get("env", {}).items() if value)
    if setup.relay_key:
        own[RELAY_KEY] = setup.relay_key
    authority = ServiceAuthority(run, server, session)
    authority.log, authority.is_reported = open_log(reply), reply.get("is_reported") is True
    authority.offers_tasks = reply.get("offers_tasks") is True
    authority.inspects = inspection_in(reply)
    return authority, setup, withheld, own


def _heed_nothing(reply: Reply) -> list[Event]:
    """Ignore the reply."""
    del reply
    return []
