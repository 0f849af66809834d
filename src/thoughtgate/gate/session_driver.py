"""Driving a session over HTTP: its commands carried out, the record before the bytes.

A flow belongs to one HTTP session, or to one request where there are no sessions. What
it wants sent waits in the outbox until the record is written, once for everything that
the event loop brought in one turn.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

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
from thoughtgate.core.events import (
    AgentSent,
    AnswerMasked,
    CallJudged,
    Event,
    ListScreened,
    NotSent,
    TaskMade,
    Ticked,
)
from thoughtgate.core.judge import Question, Ruling
from thoughtgate.core.session import CALLER_GONE, Session
from thoughtgate.core.session_replies import Setup
from thoughtgate.core.task_table import Caller as TaskCaller
from thoughtgate.errors import RecordError
from thoughtgate.gate.authority import prompts
from thoughtgate.gate.clock import now
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.task_runner import Told
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, Verdict
from thoughtgate.wire.headers import ParamHeader, param_headers_of
from thoughtgate.wire.message import Json, Message, RequestId
from thoughtgate.wire.unchecked import unchecked

TRANSPORT: Final = "mcp_http"

MAX_TOOLS: Final = 20_000
"""Tools whose wishes for headers are remembered."""

MAX_SPARE: Final = 256
"""Flows kept for the next request; a few KiB each."""

_FRAME: Final = 4
"""Members of a frame that waits; anything else that waits has two."""

POLL_EVERY_S: Final = 0.1
"""How often people's answers are looked for while calls are held."""


class Sink(Protocol):
    """Where frames for the agent go, and how frames for the server leave."""

    def take(self, data: bytes, key: RequestId | None) -> None:
        """A frame for the agent."""

    def forward(self, data: bytes, key: RequestId | None) -> None:
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


class Outbox:
    """What is to be sent once the record is written."""

    def __init__(self, governor: Governor) -> None:
        self._governor = governor
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Any] = []
        """Frames for the server (sink, data, key, flow), and what is to be done (function, arguments)."""
        self._scheduled = False

    def send(self, flow: "Flow", sink: Sink, data: bytes, key: RequestId | None) -> None:
        """Send a frame to the server, unless the record cannot be written."""
        self._waiting.append((sink, data, key, flow))
        if not self._scheduled:
            self.schedule()

    def later(self, function: Callable[..., None], *arguments: Any) -> None:
        """Do something towards the agent, after everything that was to be done before it."""
        self._waiting.append((function, arguments))
        if not self._scheduled:
            self.schedule()

    def carries(self, sink: Sink) -> bool:
        """Whether a frame from this sink is on its way to the server."""
        return any(len(item) == _FRAME and item[0] is sink for item in self._waiting)

    def schedule(self) -> None:
        """Write the record at the end of this turn of the loop, even with nothing to send."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write the record, then send."""
        self._scheduled = False
        waiting, self._waiting = self._waiting, []
        try:
            self._governor.flush()
        except RecordError:
            waiting = self._without_forwards(waiting)
        done = 0
        try:
            for item in waiting:
                done += 1
                if len(item) == _FRAME:
                    item[0].forward(item[1], item[2])
                else:
                    item[0](*item[1])
        finally:
            if done < len(waiting):
                # One failed; what others wait for is not lost with it.
                self._waiting = waiting[done:] + self._waiting
                self.schedule()

    def _without_forwards(self, waiting: list[Any]) -> list[Any]:
        """The record is not written: nothing may reach a server; who waits is told why."""
        at = now()
        kept = []
        for item in waiting:
            if len(item) != _FRAME:
                kept.append(item)
                continue
            sink, _, key, flow = item
            if key is not None:
                flow.feed(NotSent(key, "service_unavailable", at), sink)
        return kept


class Desk:
    """The calls that wait for a person, over all flows."""

    def __init__(self, governor: Governor) -> None:
        self._governor = governor
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._held: dict[str, tuple[Flow, RequestId]] = {}
        self._flows: WeakValueDictionary[str, Flow] = WeakValueDictionary()
        self._named = 0
        self.prevented = 0
        """Held calls that were not made because their caller had left."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, call_id: str, flow: "Flow", key: RequestId) -> None:
        """A call waits."""
        self._held[call_id] = (flow, key)
        if self._timer is None:
            self._timer = self._loop.call_later(POLL_EVERY_S, self._look)

    def drop(self, call_id: str) -> None:
        """A call waits no more."""
        self._held.pop(call_id, None)

    def withdraw_all(self, reason: str, ended: "Flow | None" = None) -> None:
        """The gate stops, or one flow ended: whatever waits is not made.

        But for tasks: the next gate carries them on, and one whose session ended still runs.
        """
        at = now()
        verdict = Verdict(DENY, "approval", "approval_withdrawn", reason)
        for call_id, (flow, key) in list(self._held.items()):
            if ended is not None and (flow is not ended or self._governor.tasks.is_task(call_id)):
                continue
            self.drop(call_id)
            if self._governor.tasks.survives(call_id):
                self._governor.suspend(call_id, at)
                continue
            self._governor.withdraw(call_id, reason, at)
            flow.feed(CallJudged(key, verdict, call_id, at), None)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self.poll(now())
        self._timer = self._loop.call_later(POLL_EVERY_S, self._look) if self._held else None

    def name_of(self, flow: "Flow") -> str:
        """Return the name by which tasks know a flow."""
        if not flow.name:
            self._named += 1
            flow.name = f"{flow.session.setup.session}:{self._named}"
            self._flows[flow.name] = flow
        return flow.name

    def tell(self, told: list[Told]) -> None:
        """Pass what the tasks say on to the flows that wait for it."""
        for name, event in told:
            flow = self._flows.get(name)
            if flow is not None:
                flow.feed(event, None)
                flow.outbox.schedule()

    def poll(self, at: float) -> None:
        """Look whether people have decided, and go on with what they decided on."""
        for ruling in self._governor.settled(at):
            held = self._held.pop(ruling.call_id, None)
            if held is not None:
                flow, key = held
                flow.feed(CallJudged(key, ruling.verdict, ruling.call_id, at), None)
                flow.outbox.schedule()
            elif ruling.verdict.action == FORWARD:
                self.prevented += 1


class _Runner:
    """A sink for a call without a caller."""

    def __init__(self, flow: "Flow", run: "Callable[[Flow, bytes, RequestId], None]") -> None:
        self._flow = flow
        self._run = run

    def take(self, data: bytes, key: RequestId | None) -> None:
        """Nobody is there to be told."""

    def forward(self, data: bytes, key: RequestId | None) -> None:
        """The call may go to the server."""
        if key is not None:
            self._run(self._flow, data, key)


class ToolHeaders:
    """The arguments that tools want repeated in headers, as their lists say."""

    def __init__(self) -> None:
        self._wanted: dict[str, tuple[ParamHeader, ...]] = {}

    def learn(self, method: str, entries: tuple[dict[str, Json], ...]) -> None:
        """Remember what a list of tools says."""
        if method != "tools/list":
            return
        for entry in entries:
            name = entry.get("name")
            wanted = param_headers_of(entry.get("inputSchema"))
            if type(name) is not str:
                continue
            if wanted and len(self._wanted) < MAX_TOOLS:
                self._wanted[name] = wanted
            else:
                self._wanted.pop(name, None)

    def of(self, tool: str) -> tuple[ParamHeader, ...]:
        """Return what a tool wants repeated."""
        return self._wanted.get(tool, ())


@dataclass(frozen=True, slots=True)
class Shared:
    """What all flows of a gateway have in common."""

    governor: Governor
    outbox: Outbox
    desk: Desk
    tools: ToolHeaders
    is_authenticated: bool
    """Whether principals are shown, not only assumed."""
    notify: "Callable[[Flow, bytes], None]"
    """Sends the server a frame that no caller carries, such as a cancellation."""
    run_alone: "Callable[[Flow, bytes, RequestId], None]"
    """Sends the server a call that no caller waits for."""


class Flow:
    """One session and what it is carried by."""

    __slots__ = (
        "__weakref__",
        "_shared",
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
        "wants_session",
    )

    def __init__(self, shared: Shared, setup: Setup, principal: str, *, is_modern: bool) -> None:
        self._shared = shared
        self.session = Session(setup)
        self.session.prompts.promises = shared.governor.promises(setup.server, principal)
        self.outbox = shared.outbox
        self.principal = principal
        self.person = principal
        """In whose name the agent's own prompt is answered; empty for the login of this process."""
        self.claims: dict[str, Any] | None = None
        """What authentication says of the principal, as of its last request."""
        self.is_modern = is_modern
        self.callers: dict[RequestId, Caller] = {}
        self.agent: Caller | None = None
        """Who hears what no caller waits for: the agent of a line that is its alone."""
        self.name = ""
        """How tasks know this flow, once it has to do with any."""
        self.resumes = ""
        """The task whose call this flow makes in place of a caller that asked before a restart."""
        self.trace = ""
        """The W3C trace context of the request that is being taken in."""
        self.wants_session = False
        """Whether the server knows, or may want, a session behind this flow."""

    @property
    def desk(self) -> Desk:
        """Where held calls wait."""
        return self._shared.desk

    def notify(self, data: bytes) -> None:
        """Send the server a frame that no caller carries."""
        self._shared.notify(self, data)

    @property
    def is_busy(self) -> bool:
        """Whether anything is open."""
        return bool(self.callers) or not self.session.is_idle

    @property
    def is_spent(self) -> bool:
        """Whether its one request is over and has left no trace: no session, no task, no late answer."""
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

    def tick(self, at: float) -> None:
        """Time passed."""
        self.feed(Ticked(at), None)
        for caller in list(self.callers.values()):
            caller.keep_alive(at)

    def _to_agent(self, command: ToAgent, sink: Sink | None) -> int:
        target = sink if sink is not None else self._caller(command.key)
        if target is None:
            return 0
        target.take(command.data, command.key)
        return 1

    def _to_server(self, command: ToServer, sink: Sink | None) -> int:
        target = sink if sink is not None else self._caller(command.key)
        if target is None and command.key is not None:
            target = _Runner(self, self._shared.run_alone)
        if target is not None:
            self.outbox.send(self, target, command.data, command.key)
        else:
            self.outbox.later(self.notify, command.data)
        return 0

    def _record(self, command: WriteRecord, sink: Sink | None) -> int:
        del sink
        self._shared.governor.note(command.record)
        self.outbox.schedule()
        return 0

    def _judge(self, command: JudgeCall, sink: Sink | None) -> int:
        setup = self.session.setup
        key, method, named, params, size, _, at = command
        question = unchecked(
            Question,
            (
                setup.server,
                setup.session,
                self.principal,
                method,
                named,
                size,
                TRANSPORT,
                at,
                params,
                self.trace,
                self.claims,
                bool(self.resumes),
            ),
        )
        ruling = self._shared.governor.rule(question)
        if self.resumes:
            return self._resume(command, ruling)
        verdict, call_id, _ = ruling
        return self.feed(unchecked(CallJudged, (key, verdict, call_id, at)), sink)

    def _resume(self, command: JudgeCall, ruling: Ruling) -> int:
        """Go on where a dead gate stopped: the call is a task, and waits for a person as promised.

        That the rules would forward it today makes no difference: a person may have refused it.
        Only the development profile asks nobody.
        """
        governor, key, at = self._shared.governor, command.key, command.at
        call_id, verdict = ruling.call_id, ruling.verdict
        governor.tasks.resumed(self.resumes, call_id, self.desk.name_of(self))
        self.feed(CallJudged(key, verdict._replace(action=APPROVE), call_id, at), None)
        if verdict.action == FORWARD and not governor.tasks.started(call_id, at):
            verdict = Verdict(DENY, "approval", "approval_withdrawn")
        if verdict.action == APPROVE:
            owner = governor.tasks.owner_of(self.resumes)
            decided = governor.ask(call_id, verdict.workflow, at, owner=owner)
            if decided is None:
                self.desk.hold(call_id, self, key)
                return 0
            verdict = decided.verdict
        return self.feed(CallJudged(key, verdict, call_id, at), None)

    def _screen(self, command: ScreenList, sink: Sink | None) -> int:
        setup, shared = self.session.setup, self._shared
        shared.tools.learn(command.method, command.entries)
        hidden = shared.governor.screen(
            setup.server, setup.session, command.method, command.entries, command.at
        )
        return self.feed(ListScreened(command.key, hidden, command.at), sink)

    def _mask(self, command: MaskAnswer, sink: Sink | None) -> int:
        masked = self._shared.governor.mask(command.body)
        return self.feed(AnswerMasked(command.key, masked, command.at), sink)

    def _ask(self, command: AskPeople, sink: Sink | None) -> int:
        if self.resumes:
            # The caller has its task since before the restart.
            return self.feed(TaskMade(command.key, {}, command.at), None)
        name = self.desk.name_of(self) if command.params is not None else ""
        ruling, told = self._shared.governor.hold(name, command)
        if ruling is not None:
            verdict = ruling.verdict
            return self.feed(CallJudged(command.key, verdict, command.call_id, command.at), sink)
        self.desk.hold(command.call_id, self, command.key)
        self.outbox.schedule()
        caller = self._caller(command.key)
        if caller is not None:
            caller.held(command.key)
        self.desk.tell(told)
        if command.params is None and caller and caller.can_be_asked(modern=command.modern):
            # Whoever takes a task has left this line when the person answers.
            for event in prompts(command, self._shared.governor.prompt(command.call_id)):
                self.feed(event, None)
        return 0

    def _answered(self, command: PersonAnswered, sink: Sink | None) -> int:
        del sink
        self._shared.governor.person_answered(command._replace(by=self.person))
        return 0

    def _ask_task(self, command: AskTask, sink: Sink | None) -> int:
        name = self.desk.name_of(self)
        who = TaskCaller(self.principal, name, self._shared.is_authenticated)
        told = self._shared.governor.tasks.answer(name, who, command)
        frames = 0
        for line, event in told:
            if line == name and sink is not None:
                frames += self.feed(event, sink)
            else:
                self.desk.tell([(line, event)])
        return frames

    def _end_task(self, command: EndTask, sink: Sink | None) -> int:
        del sink
        self.desk.tell(self._shared.governor.tasks.ended(command))
        return 0

    def _withdraw(self, command: Withdraw, sink: Sink | None) -> int:
        del sink
        self.desk.drop(command.call_id)
        if command.reason == CALLER_GONE:
            self.desk.prevented += 1
        self._shared.governor.withdraw(command.call_id, command.reason, now())
        self.outbox.schedule()
        caller = self._caller(command.key)
        if caller is not None:
            caller.withdrawn()
        return 0

    def _caller(self, key: RequestId | None) -> Caller | None:
        return self.agent if key is None else self.callers.get(key, self.agent)


class SpareFlows:
    """Flows of one request that are over and serve the next: most calls come without a session."""

    def __init__(self) -> None:
        self._spare: dict[tuple[str, bool], list[Flow]] = {}
        self._count = 0

    def take(self, principal: str, *, is_modern: bool) -> Flow | None:
        """Return a flow that nobody uses any more, if there is one of this kind."""
        spare = self._spare.get((principal, is_modern))
        if not spare:
            return None
        self._count -= 1
        return spare.pop()

    def give(self, flow: Flow) -> None:
        """Keep a flow that is spent."""
        if self._count >= MAX_SPARE:
            self._spare.clear()
            self._count = 0
        self._spare.setdefault((flow.principal, flow.is_modern), []).append(flow)
        self._count += 1


_CARRIERS: Final[dict[type[Command], Callable[[Flow, Any, Sink | None], int]]] = {
    ToAgent: Flow._to_agent,  # noqa: SLF001  the table of the class above
    ToServer: Flow._to_server,  # noqa: SLF001  as above
    WriteRecord: Flow._record,  # noqa: SLF001  as above
    JudgeCall: Flow._judge,  # noqa: SLF001  as above
    ScreenList: Flow._screen,  # noqa: SLF001  as above
    MaskAnswer: Flow._mask,  # noqa: SLF001  as above
    AskPeople: Flow._ask,  # noqa: SLF001  as above
    AskTask: Flow._ask_task,  # noqa: SLF001  as above
    EndTask: Flow._end_task,  # noqa: SLF001  as above
    PersonAnswered: Flow._answered,  # noqa: SLF001  as above
    Withdraw: Flow._withdraw,  # noqa: SLF001  as above
}
