"""Driving a session: every command is carried out here, whichever loop moves the bytes.

Synchronous. The asyncio products and the shim's poll loop only read bytes, feed events
and write what a sink is given. What a session wants sent waits in the outbox until the
record is written.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from thoughtgate.core.commands import (
    AskPeople,
    AskTask,
    Command,
    EndTask,
    JudgeCall,
    MaskAnswer,
    PersonAnswered,
    ScreenList,
    ToAgent,
    ToServer,
    Withdraw,
    WriteRecord,
)
from thoughtgate.core.events import AgentSent, CallJudged, Event, ServerGone, Ticked
from thoughtgate.core.session import Session
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.gate.authority import Authority
from thoughtgate.gate.clock import now
from thoughtgate.gate.outbox import Outbox
from thoughtgate.wire.message import Json, Message, RequestId

HTTP: Final = "mcp_http"
STDIO: Final = "mcp_stdio"
"""The agent's transport, as rules and the record know it."""


class Sink(Protocol):
    """Where frames for the agent go, and how frames for the server leave."""

    def take(self, frame: ToAgent) -> None:
        """A frame for the agent."""

    def forward(self, frame: ToServer) -> None:
        """A frame for the server; called once it may be sent."""


class Caller(Sink, Protocol):
    """A sink that waits for the answer to a request."""

    def can_be_asked(self, *, modern: bool) -> bool:
        """Whether the caller can be shown a prompt before, or in place of, the answer."""

    def held(self, key: RequestId) -> None:
        """The call waits for a person now."""

    def withdrawn(self) -> None:
        """The call was taken back by its caller."""

    def keep_alive(self, at: float) -> None:
        """Time passed while the call is held."""


class Engine:
    """What all sessions of a gate share."""

    __slots__ = ("authority", "notify", "on_list", "outbox", "run_detached")

    def __init__(
        self,
        authority: Authority,
        outbox: Outbox,
        *,
        notify: "Callable[[SessionDriver, ToServer], None]",
        run_detached: "Callable[[SessionDriver, ToServer], None]",
        on_list: Callable[[str, tuple[dict[str, Json], ...]], None] | None = None,
    ) -> None:
        self.authority = authority
        self.outbox = outbox
        self.notify = notify
        """Sends the server a frame that no caller carries, such as a cancellation."""
        self.run_detached = run_detached
        """Sends the server a call that no caller waits for."""
        self.on_list = on_list
        """Told of every list that a server offers, before it is screened."""


class SessionDriver:
    """One session and what it is carried by."""

    __slots__ = (
        "__weakref__",
        "_authority",
        "_engine",
        "agent",
        "callers",
        "claims",
        "is_modern",
        "name",
        "outbox",
        "person",
        "principal",
        "resumes",
        "session",
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
        self.session = Session(setup)
        self.session.prompts.promises = engine.authority.promises(setup.server, principal)
        self.outbox = engine.outbox
        self.principal = principal
        self.person = principal if transport == HTTP else ""
        """In whose name the agent's own prompt is answered; empty for the login of this process."""
        self.transport = transport
        self.claims: dict[str, Any] | None = None
        """What authentication says of the principal, as of its last request."""
        self.is_modern = is_modern
        self.callers: dict[RequestId, Caller] = {}
        self.agent: Caller | None = None
        """Who hears what no caller waits for: the agent of a connection that is its alone."""
        self.name = ""
        """How tasks know this session, once it has to do with any."""
        self.resumes = ""
        """The task whose call this session makes in place of a caller that asked before a restart."""
        self.trace = ""
        """The W3C trace context of the request that is being taken in."""
        self.upstream_session = ""
        """The session as the server knows it; empty where there is none."""
        self.wants_session = False
        """Whether the server knows, or may want, an HTTP session behind this one."""

    def notify(self, frame: ToServer) -> None:
        """Send the server a frame that no caller carries."""
        self._engine.notify(self, frame)

    @property
    def label(self) -> str:
        """The session's id on the record."""
        return self.session.setup.session

    def is_open(self, key: RequestId) -> bool:
        """Tell whether a request still has no answer."""
        return self.session.is_open(key)

    def is_undecided(self, key: RequestId) -> bool:
        """Tell whether a call still waits for its first verdict: never, it comes at once."""
        del key
        return False

    def stop(self, reason: str, at: float) -> None:
        """The gate stops: whoever still waits is told."""
        if not self.session.is_idle:
            self.feed(ServerGone(reason, at), None)

    @property
    def is_busy(self) -> bool:
        """Whether anything is open."""
        return bool(self.callers) or not self.session.is_idle

    @property
    def is_spent(self) -> bool:
        """Whether its one request is over and has left no trace: no session, task or late answer."""
        known = self.wants_session or self.name or self.resumes or self.callers
        return not known and self.session.is_untouched

    def feed(self, event: Event, sink: Sink | None) -> int:
        """Report an event and carry out what follows; return how many frames the agent gets."""
        frames = 0
        for command in self.session.receive(event):
            frames += _CARRIERS[type(command)](self, command, sink)
        return frames

    def is_answered_by(self, event: AgentSent) -> bool:
        """Tell whether a response is one to a prompt of the gate."""
        said = event.message
        return type(said) is Message and self.session.prompts.is_asked(said.id)

    def can_be_asked(self, command: AskPeople) -> bool:
        """Tell whether the caller of a held call can be shown a prompt."""
        caller = self._caller(command.key)
        return caller is not None and caller.can_be_asked(modern=command.modern)

    def tick(self, at: float) -> None:
        """Time passed."""
        self.feed(Ticked(at), None)
        for caller in list(self.callers.values()):
            caller.keep_alive(at)

    def _to_agent(self, frame: ToAgent, sink: Sink | None) -> int:
        target = sink if sink is not None else self._caller(frame.key)
        if target is None:
            return 0
        target.take(frame)
        return 1

    def _to_server(self, frame: ToServer, sink: Sink | None) -> int:
        target = sink if sink is not None else self._caller(frame.key)
        if target is not None:
            self.outbox.send(self, target, frame)
        elif frame.key is not None:
            self.outbox.send(self, _Detached(self, self._engine.run_detached), frame)
        else:
            self.outbox.later(self.notify, frame)
        return 0

    def _record(self, command: WriteRecord, sink: Sink | None) -> int:
        del sink
        self._authority.note(command.record)
        self.outbox.schedule()
        return 0

    def _judge(self, command: JudgeCall, sink: Sink | None) -> int:
        if self.resumes:
            self._authority.resume(self, command)
            return 0
        judged = self._authority.judge(self, command)
        return 0 if judged is None else self.feed(judged, sink)

    def _screen(self, command: ScreenList, sink: Sink | None) -> int:
        on_list = self._engine.on_list
        if on_list is not None:
            on_list(command.method, command.entries)
        screened = self._authority.screen(self, command)
        return 0 if screened is None else self.feed(screened, sink)

    def _mask(self, command: MaskAnswer, sink: Sink | None) -> int:
        masked = self._authority.mask(self, command)
        return 0 if masked is None else self.feed(masked, sink)

    def _ask(self, command: AskPeople, sink: Sink | None) -> int:
        frames = 0
        events = self._authority.ask(self, command)
        is_decided = bool(events) and type(events[0]) is CallJudged
        caller = None if is_decided else self._caller(command.key)
        if caller is not None:
            caller.held(command.key)
        for event in events:
            frames += self.feed(event, sink if is_decided else None)
        self.outbox.schedule()
        return frames

    def _answered(self, command: PersonAnswered, sink: Sink | None) -> int:
        del sink
        self._authority.person_answered(self, command)
        return 0

    def _ask_task(self, command: AskTask, sink: Sink | None) -> int:
        return sum(self.feed(event, sink) for event in self._authority.ask_task(self, command))

    def _end_task(self, command: EndTask, sink: Sink | None) -> int:
        del sink
        self._authority.end_task(self, command)
        return 0

    def _withdraw(self, command: Withdraw, sink: Sink | None) -> int:
        del sink
        self._authority.withdraw(self, command, now())
        self.outbox.schedule()
        caller = self._caller(command.key)
        if caller is not None:
            caller.withdrawn()
        return 0

    def _caller(self, key: RequestId | None) -> Caller | None:
        return self.agent if key is None else self.callers.get(key, self.agent)


class _Detached:
    """A sink for a call that no caller waits for."""

    def __init__(
        self, driver: SessionDriver, run: Callable[[SessionDriver, ToServer], None]
    ) -> None:
        self._driver = driver
        self._run = run

    def take(self, frame: ToAgent) -> None:
        """Nobody is there to be told."""

    def forward(self, frame: ToServer) -> None:
        """The call may go to the server."""
        self._run(self._driver, frame)


_CARRIERS: Final[dict[type[Command], Callable[[SessionDriver, Any, Sink | None], int]]] = {
    ToAgent: SessionDriver._to_agent,  # noqa: SLF001  the table of the class above
    ToServer: SessionDriver._to_server,  # noqa: SLF001  as above
    WriteRecord: SessionDriver._record,  # noqa: SLF001  as above
    JudgeCall: SessionDriver._judge,  # noqa: SLF001  as above
    ScreenList: SessionDriver._screen,  # noqa: SLF001  as above
    MaskAnswer: SessionDriver._mask,  # noqa: SLF001  as above
    AskPeople: SessionDriver._ask,  # noqa: SLF001  as above
    AskTask: SessionDriver._ask_task,  # noqa: SLF001  as above
    EndTask: SessionDriver._end_task,  # noqa: SLF001  as above
    PersonAnswered: SessionDriver._answered,  # noqa: SLF001  as above
    Withdraw: SessionDriver._withdraw,  # noqa: SLF001  as above
}
