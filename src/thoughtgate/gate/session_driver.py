"""Session driver: carries out the commands of a session, whichever loop moves the bytes.

This module is synchronous. The asyncio products and the shim's poll loop only read bytes,
feed events to the driver, and write the frames that a sink receives. Frames for the server
wait in the outbox until the record is written.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from thoughtgate.core.commands import (
    ANSWER,
    NOTICE,
    AskPeople,
    AskTask,
    Command,
    EndTask,
    InspectAnswer,
    InspectLater,
    JudgeCall,
    PersonAnswered,
    ScreenList,
    ToAgent,
    ToServer,
    Withdraw,
    WriteRecord,
)
from thoughtgate.core.elicitation import RequestStates
from thoughtgate.core.events import (
    AgentSent,
    AnswerInspected,
    CallerGone,
    CallJudged,
    Event,
    ListScreened,
    NotSent,
    ServerGone,
    Ticked,
)
from thoughtgate.core.record_events import Record
from thoughtgate.core.server_requests import is_server_key
from thoughtgate.core.session import Session
from thoughtgate.core.session_replies import CorrelationIds, SessionSettings
from thoughtgate.core.tool_listing import LIST_FIRST
from thoughtgate.errors import upstream_error
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Outbox, Sink
from thoughtgate.policy.call import DENY, Verdict
from thoughtgate.wire.message import Json, Message, RequestId
from thoughtgate.wire.methods import LISTEN, TASK_METHODS
from thoughtgate.wire.revisions import META

HTTP: Final = "mcp_http"
STDIO: Final = "mcp_stdio"
"""The agent's transport, as it is named in rules and in the record."""

STREAM_ENDED: Final = "the stream on which the agent could be asked has ended"

_NO_SINK: Final = (None, "")
_REFUSED: Final = Verdict(DENY, "internal", "invalid_request")


class Caller(Sink, Protocol):
    """A sink that waits for the answer to a request."""

    def can_be_asked(self, *, modern: bool) -> bool:
        """Whether the caller can be shown a prompt before, or in place of, the answer."""

    def can_take_task(self) -> bool:
        """Whether a call may be answered with a task, before it was made."""

    def held(self, key: RequestId) -> None:
        """Note that the call is held until a person decides."""

    def withdrawn(self) -> None:
        """Note that the caller has withdrawn the call."""

    def keep_alive(self, at: float) -> None:
        """Keep the caller's connection open while the call is held."""


class PipeCaller:
    """The behaviour of every caller on a pipe: nothing has to be kept open while it waits."""

    def can_be_asked(self, *, modern: bool) -> bool:
        """Return True: a pipe can carry a prompt at any time."""
        del modern
        return True

    def can_take_task(self) -> bool:
        """Return True: every call is answered by itself."""
        return True

    def held(self, key: RequestId) -> None:
        """Do nothing: a pipe stays open while a call is held."""

    def withdrawn(self) -> None:
        """Do nothing: there is no HTTP exchange to end."""

    def keep_alive(self, at: float) -> None:
        """Do nothing: a pipe has no idle timeout."""


class Authority(Protocol):
    """Judges the requests of sessions and keeps the record.

    A reply that is not available at once is fed to the driver later, as an event.
    """

    errors: CorrelationIds
    """The ids of errors that belong to no call."""

    def judge(self, driver: "SessionDriver", command: JudgeCall) -> CallJudged | None:
        """Judge a request; None means that the verdict arrives later."""

    def resume(self, driver: "SessionDriver", command: JudgeCall) -> None:
        """Judge the call of a task from an earlier run of this gate again."""

    def screen(self, driver: "SessionDriver", command: ScreenList) -> ListScreened | None:
        """Return which entries of a list are hidden; None means that the reply arrives later."""

    def inspect(self, driver: "SessionDriver", command: InspectAnswer) -> AnswerInspected | None:
        """Inspect a message of the server; None means that the reply arrives later."""

    def inspect_later(self, driver: "SessionDriver", command: InspectLater) -> None:
        """Have a message inspected that the agent gets at once; never delay it."""

    def ask(self, driver: "SessionDriver", command: AskPeople) -> list[Event]:
        """Request approval for a held call; return the events that its session receives at once."""

    def person_answered(self, driver: "SessionDriver", command: PersonAnswered) -> None:
        """Store the answer that a person gave to the agent's own prompt."""

    def ask_task(self, driver: "SessionDriver", command: AskTask) -> list[Event]:
        """Answer a request about ThoughtGate's own tasks; the answer may arrive later."""

    def end_task(self, driver: "SessionDriver", command: EndTask) -> None:
        """Store the result of a task's call."""

    def withdraw(self, driver: "SessionDriver", command: Withdraw, at: float) -> None:
        """Withdraw the approval request of a call that its caller no longer waits for."""

    def inspection(self, server: str) -> int:
        """Return whether, and when, a server's messages are inspected before a call was judged."""

    def request_states(self, server: str, principal: str) -> RequestStates | None:
        """Return the request states of a principal's calls; None leaves them to the session."""

    def introduce(self, driver: "SessionDriver") -> None:
        """Have further events of a session say who its agent is."""

    def note(self, record: Record) -> None:
        """Queue an event for the record."""

    def flush(self) -> bool:
        """Make sure that queued events are recorded; False means that nothing may be forwarded."""


class TaskOwners(Protocol):
    """Knows which principal a server made a task for."""

    def may_use(self, principal: str, method: str, params: dict[str, Json]) -> bool:
        """Tell whether a principal may send a request: not if it names another's task."""

    def answered(self, principal: str, answer: bytes) -> None:
        """Remember the task that an answer creates."""

    def listed(self, principal: str, answer: dict[str, Json]) -> dict[str, Json]:
        """Return a list of tasks with those of a principal alone."""


class Engine:
    """The parts that all sessions of a gate share."""

    __slots__ = ("authority", "notify", "on_list", "outbox", "run_detached", "task_owners")

    def __init__(
        self,
        authority: Authority,
        outbox: Outbox,
        *,
        notify: "Callable[[SessionDriver, ToServer], None]",
        run_detached: "Callable[[SessionDriver, ToServer], None]",
        on_list: Callable[[str, tuple[dict[str, Json], ...]], None] | None = None,
        task_owners: TaskOwners | None = None,
    ) -> None:
        self.authority = authority
        self.outbox = outbox
        self.notify = notify
        """Sends the server a frame that belongs to no caller, such as a cancellation."""
        self.run_detached = run_detached
        """Sends the server a call that no caller waits for."""
        self.on_list = on_list
        """Receives every list that a server offers, before it is screened."""
        self.task_owners = task_owners
        """The owners of the server's tasks; None if the server has a single principal, or another
        part of the gate keeps them."""


class SessionDriver:
    """Drives one session: feeds it events and carries out its commands."""

    __slots__ = (
        "__weakref__",
        "_authority",
        "_engine",
        "_introduced_as",
        "_server_sinks",
        "address",
        "agent",
        "callers",
        "claims",
        "header_checks",
        "is_modern",
        "name",
        "outbox",
        "person",
        "principal",
        "resumes",
        "session",
        "session_name",
        "stream",
        "trace",
        "transport",
        "upstream_session",
        "wants_session",
    )

    def __init__(
        self,
        engine: Engine,
        setup: SessionSettings,
        principal: str,
        *,
        transport: str = HTTP,
        is_modern: bool = False,
    ) -> None:
        self._engine = engine
        self._authority = engine.authority
        self.session = Session(setup, engine.authority.errors)
        self.session.prompts.states = engine.authority.request_states(setup.server, principal)
        self.session.inputs.inspects_notices = engine.authority.inspection(setup.server)
        self.outbox = engine.outbox
        self.principal = principal
        self.person = principal if transport == HTTP else ""
        """Recorded as the reviewer when the agent's own prompt is answered; empty for the user that
        this process runs as."""
        self.transport = transport
        self.claims: dict[str, Any] | None = None
        """The principal's claims from authentication, as of its last request."""
        self.address = ""
        """The address of the client, as of its last request; empty on stdio."""
        self._introduced_as: str | None = None
        """What the agent's client said about itself when the record last learned of it."""
        self.is_modern = is_modern
        self.callers: dict[RequestId, Caller] = {}
        self.header_checks: dict[RequestId, Callable[[], bool]] = {}
        """Calls whose headers can be compared once the server's tools are known; a check that fails
        answers the call itself."""
        self._server_sinks: dict[RequestId, tuple[Sink, str]] = {}
        """Where held requests of the server arrived, and their call ids, by key."""
        self.agent: Caller | None = None
        """Receives frames that belong to no caller; set only where one agent has the connection to
        itself, as over stdio."""
        self.stream: Sink | None = None
        """The open stream for notifications that belong to no request, over HTTP."""
        self.name = ""
        """The name under which the task table knows this session; empty until it uses a task."""
        self.resumes = ""
        """The task whose call this session makes for a caller from before a restart."""
        self.trace = ""
        """The W3C trace context of the request that is being handled."""
        self.session_name = ""
        """The name of an HTTP session, the same at every gate that continues it."""
        self.upstream_session = ""
        """The session id that the server assigned; empty if it assigned none."""
        self.wants_session = False
        """Whether the server has, or may require, an HTTP session for this one."""

    def notify(self, frame: ToServer) -> None:
        """Send the server a frame that belongs to no caller."""
        self._engine.notify(self, frame)

    @property
    def label(self) -> str:
        """The session's id on the record."""
        return self.session.setup.session

    def is_open(self, key: RequestId) -> bool:
        """Tell whether a request still has no answer."""
        return self.session.is_open(key)

    def is_undecided(self, key: RequestId) -> bool:
        """Tell whether a call still waits for its first verdict."""
        return self.session.is_undecided(key)

    def stop(self, reason: str, at: float) -> None:
        """Answer every open request with an error because the gate is stopping."""
        if not self.session.is_idle:
            facts = upstream_error("gate_closing", reason).facts
            self.feed(ServerGone(reason, at, facts=facts), None)

    @property
    def is_busy(self) -> bool:
        """Whether any request is open."""
        return bool(self.callers) or not self.session.is_idle

    @property
    def is_spent(self) -> bool:
        """Whether the driver can be dropped: no session, task, caller or late answer needs it."""
        known = self.wants_session or self.name or self.resumes or self.callers
        return not known and self.session.is_untouched

    def feed(self, event: Event, sink: Sink | None) -> int:
        """Feed an event and carry out the commands that follow; return the frames for the agent.

        Frames go to ``sink`` if there is one, otherwise to the caller of their request.
        """
        frames = 0
        if sink is None and self._server_sinks and type(event) is CallJudged:
            # A server's request continues on the stream that it arrived on.
            sink, _ = self._server_sinks.pop(event.key, _NO_SINK)
        for command in self.session.receive(event):
            frames += _CARRIERS[type(command)](self, command, sink)
        return frames

    def stream_ended(self, sink: Sink) -> None:
        """Refuse the server's held requests that can no longer reach the agent through a sink."""
        if not self._server_sinks:
            return
        lost = [(key, of) for key, (target, of) in self._server_sinks.items() if target is sink]
        at = now()
        verdict = Verdict(DENY, "approval", "approval_withdrawn", STREAM_ENDED)
        for key, call_id in lost:
            del self._server_sinks[key]
            self._authority.withdraw(self, Withdraw(key, call_id, STREAM_ENDED), at)
            self.feed(CallJudged(key, verdict, call_id, at), None)
        self.outbox.schedule()

    def is_answered_by(self, event: AgentSent) -> bool:
        """Tell whether a response from the agent answers a prompt of the gate."""
        said = event.message
        return type(said) is Message and self.session.prompts.is_asked(said.id)

    def is_asked(self, ident: RequestId | None) -> bool:
        """Tell whether the agent owes the server or the gate the response with this id."""
        return self.session.prompts.is_asked(ident) or self.session.served.is_asked(ident)

    def can_take_task(self, key: RequestId) -> bool:
        """Tell whether a call may be answered with a task: not if others wait for its result."""
        caller = self._caller(key)
        return caller is None or caller.can_take_task()

    def can_be_asked(self, command: AskPeople) -> bool:
        """Tell whether the caller of a held call can be shown a prompt."""
        caller = self._caller(command.key)
        return caller is not None and caller.can_be_asked(modern=command.modern)

    def tick(self, at: float) -> None:
        """Let the session check its timeouts, and keep waiting callers alive."""
        self.feed(Ticked(at), None)
        # A copy, because a caller can leave the table during the loop.
        for caller in list(self.callers.values()):
            caller.keep_alive(at)

    def _to_agent(self, frame: ToAgent, sink: Sink | None) -> int:
        target = sink if sink is not None else self._caller(frame.key)
        if target is None and frame.key is None and frame.carries == NOTICE:
            target = self._open_stream()
        if target is None:
            return 0
        owners = self._engine.task_owners
        if owners is not None and frame.carries == ANSWER and b'"taskId"' in frame.data:
            owners.answered(self.principal, frame.data)
        target.take(frame)
        return 1

    # Overridden in the hub, where the sessions of all servers share the stream of their client.
    def _open_stream(self) -> Sink | None:
        return self.stream

    def _to_server(self, frame: ToServer, sink: Sink | None) -> int:
        owners, said = self._engine.task_owners, frame.message
        if owners is not None and said is not None and _may_name_task(said):
            params = said.body.get("params") or {}
            if not owners.may_use(self.principal, said.method, params):
                if frame.key is None:
                    return 0
                return self.feed(NotSent(frame.key, "task_not_found", now()), sink)
        target = sink if sink is not None else self._caller(frame.key)
        if target is not None and not frame.detached:
            self.outbox.send(self, target, frame)
        elif frame.key is not None:
            # The call of a task, for example: its caller has its reply and polls for the result.
            self.outbox.send(self, _Detached(self, self._engine.run_detached), frame)
        else:
            self.outbox.later(self.notify, frame)
        return 0

    def _record(self, command: WriteRecord, sink: Sink | None) -> int:
        del sink
        # Over HTTP the endpoint introduces agents: only it knows which ones have a session.
        if self.agent is not None and self.session.prompts.client is not self._introduced_as:
            self._introduced_as = self.session.prompts.client
            self._authority.introduce(self)
        self._authority.note(command.record)
        outbox = self.outbox
        if not outbox.is_scheduled:
            outbox.schedule()
        return 0

    def _judge(self, command: JudgeCall, sink: Sink | None) -> int:
        if self.resumes:
            # The caller was told before the restart that a person decides; see `resume`.
            self._authority.resume(self, command)
            return 0
        if self.header_checks and command.key in self.header_checks:
            if not command.listed:
                return self.feed(CallJudged(command.key, LIST_FIRST, "", command.at), sink)
            if not self.header_checks.pop(command.key)():
                return self._drop(command)
        if command.listed:
            # The list came to the gate, so the call answers through its own caller.
            sink = None
        judged = self._authority.judge(self, command)
        # None: the governance service was asked, and its verdict arrives as a later event.
        return 0 if judged is None else self.feed(judged, sink)

    def _drop(self, command: JudgeCall) -> int:
        """Forget a call that was refused and answered before it was judged; its id is free again."""
        self.feed(CallerGone(command.key, command.at), None)
        return self.feed(CallJudged(command.key, _REFUSED, "", command.at), None)

    def _screen(self, command: ScreenList, sink: Sink | None) -> int:
        on_list = self._engine.on_list
        if on_list is not None:
            # Before screening, because it learns the header annotations of every tool.
            on_list(command.method, command.entries)
        screened = self._authority.screen(self, command)
        return 0 if screened is None else self.feed(screened, sink)

    def _inspect(self, command: InspectAnswer, sink: Sink | None) -> int:
        inspected = self._authority.inspect(self, command)
        self.outbox.schedule()
        return 0 if inspected is None else self.feed(inspected, sink)

    def _inspect_later(self, command: InspectLater, sink: Sink | None) -> int:
        del sink
        self._authority.inspect_later(self, command)
        return 0

    def _ask(self, command: AskPeople, sink: Sink | None) -> int:
        frames = 0
        if command.params is not None and not self.can_take_task(command.key):
            command = command._replace(params=None)
        events = self._authority.ask(self, command)
        is_decided = bool(events) and type(events[0]) is CallJudged
        if is_server_key(command.key):
            if sink is not None and not is_decided:
                self._server_sinks[command.key] = (sink, command.call_id)
            caller = None
        else:
            caller = None if is_decided else self._caller(command.key)
        if caller is not None:
            caller.held(command.key)
        for event in events:
            # A held call answers through its caller: the sink of this turn may belong to another.
            frames += self.feed(event, sink if is_decided else None)
        self.outbox.schedule()
        return frames

    def _answered(self, command: PersonAnswered, sink: Sink | None) -> int:
        del sink
        self._authority.person_answered(self, command)
        return 0

    def _ask_task(self, command: AskTask, sink: Sink | None) -> int:
        owners = self._engine.task_owners
        if owners is not None and command.body is not None:
            command = command._replace(body=owners.listed(self.principal, command.body))
        return sum(self.feed(event, sink) for event in self._authority.ask_task(self, command))

    def _end_task(self, command: EndTask, sink: Sink | None) -> int:
        del sink
        self._authority.end_task(self, command)
        return 0

    def _withdraw(self, command: Withdraw, sink: Sink | None) -> int:
        del sink
        self._authority.withdraw(self, command, now())
        self.outbox.schedule()
        self._server_sinks.pop(command.key, None)
        caller = None if is_server_key(command.key) else self._caller(command.key)
        if caller is not None:
            caller.withdrawn()
        return 0

    def _caller(self, key: RequestId | None) -> Caller | None:
        return self.agent if key is None else self.callers.get(key, self.agent)


def _may_name_task(said: Message) -> bool:
    """Tell, at little cost, whether a request or notification may be about a task of the server."""
    if not said.method:
        return False
    return said.method in _ABOUT_TASKS or META in (said.body.get("params") or ())


_ABOUT_TASKS: Final = TASK_METHODS | {LISTEN}


class _Detached:
    """A sink for a call that no caller waits for."""

    def __init__(
        self, driver: SessionDriver, run: Callable[[SessionDriver, ToServer], None]
    ) -> None:
        self._driver = driver
        self._run = run

    def take(self, frame: ToAgent) -> None:
        """Discard the frame: no caller waits for it."""

    def forward(self, frame: ToServer) -> None:
        """Send the call to the server."""
        self._run(self._driver, frame)


_CARRIERS: Final[dict[type[Command], Callable[[SessionDriver, Any, Sink | None], int]]] = {
    ToAgent: SessionDriver._to_agent,  # noqa: SLF001  the table of the class above
    ToServer: SessionDriver._to_server,  # noqa: SLF001  as above
    WriteRecord: SessionDriver._record,  # noqa: SLF001  as above
    JudgeCall: SessionDriver._judge,  # noqa: SLF001  as above
    ScreenList: SessionDriver._screen,  # noqa: SLF001  as above
    InspectAnswer: SessionDriver._inspect,  # noqa: SLF001  as above
    InspectLater: SessionDriver._inspect_later,  # noqa: SLF001  as above
    AskPeople: SessionDriver._ask,  # noqa: SLF001  as above
    AskTask: SessionDriver._ask_task,  # noqa: SLF001  as above
    EndTask: SessionDriver._end_task,  # noqa: SLF001  as above
    PersonAnswered: SessionDriver._answered,  # noqa: SLF001  as above
    Withdraw: SessionDriver._withdraw,  # noqa: SLF001  as above
}
