"""One client's calls to one server, under the gate.

A channel drives the same session as the shim and the gateway do, so a call is judged,
held, recorded, timed out and refused alike everywhere. How an allowed call reaches its
server, and in which revision, is a relay's business.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from thoughtgate.core.commands import (
    ANSWER,
    AskPeople,
    Command,
    EndTask,
    JudgeCall,
    MaskAnswer,
    PersonAnswered,
    ToAgent,
    ToServer,
    Withdraw,
    WriteRecord,
)
from thoughtgate.core.events import (
    AgentGone,
    AgentSent,
    CallerGone,
    Event,
    KeptAlive,
    NotSent,
    PersonAsked,
    ServerGone,
    ServerSent,
    Ticked,
)
from thoughtgate.core.session import CALLER_GONE, Session
from thoughtgate.core.session_replies import Setup
from thoughtgate.core.task import without_task
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.gate.clock import now
from thoughtgate.hub.client import Client
from thoughtgate.hub.gate import HubGate
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Message, RequestId
from thoughtgate.wire.methods import CANCELLED, PROGRESS
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import is_modern, progress_token, traceparent, with_traceparent

HIDDEN: Final = "not_exposed"

MAX_STRETCH: Final = 10
"""A call that reports progress may take this many times its timeout, and no longer."""

QUESTION_S: Final = 600.0
"""How long a client may take to answer a server: often a person has to."""


@dataclass(slots=True, eq=False)
class Carried:
    """A gated request of a client, from its arrival to its answer."""

    key: RequestId
    method: str
    params: dict[str, Any]
    """As the server knows them: the original name, the client's ``_meta``."""
    exposed: str
    """The name that the client used."""
    modern: bool
    task: asyncio.Task[None] | None = None
    since: float = 0.0
    """When it was sent on; 0 before."""
    trouble: str = ""
    """What went wrong on the way, in words."""

    @property
    def token(self) -> RequestId | None:
        """The client's own progress token."""
        return progress_token(self.params)


class Relay(Protocol):
    """Brings an allowed request to where it is answered."""

    async def relay(self, channel: "Channel", call: Carried) -> Message:
        """Return the response, with the client's id and in its revision.

        Raises:
            PeerError: there is none, and why.
            PeerGone: the server went away.
        """


class Channel:
    """The way between one client and one server."""

    def __init__(
        self, gate: HubGate, client: Client, server: str, relay: Relay, timeout_s: float
    ) -> None:
        self.client = client
        self.server = server
        self.name = ""
        """How tasks know this channel, once it has to do with any."""
        self.session = Session(
            Setup(
                server,
                client.id,
                enforce=gate.governor.policy.profile == PRODUCTION,
                timeout_s=timeout_s,
                max_held=gate.max_held,
            )
        )
        self.session.prompts.promises = gate.governor.promises(server, client.principal)
        self.calls: dict[RequestId, Carried] = {}
        self._prompted: dict[RequestId, RequestId] = {}
        """Calls that the client's own prompt asks about, with the prompt's id."""
        self._gate = gate
        self._relay = relay
        self._depth = 0
        self._forwards: list[RequestId] = []
        self._replies: list[ToAgent] = []
        self._from_server = False
        self._about: RequestId | None = None
        self._answers: dict[RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._asking: dict[RequestId, RequestId] = {}
        """Questions under way at the client, with the call that waits for the answer."""
        self._passed: list[bytes] = []
        self._carriers: dict[type, Callable[[Any], None]] = {
            ToServer: self._to_server,
            ToAgent: self._reply_later,
            WriteRecord: self._note,
            JudgeCall: self._judge,
            MaskAnswer: lambda command: self.feed(gate.mask(command)),
            AskPeople: self._ask_people,
            PersonAnswered: lambda command: gate.answered(self, command),
            EndTask: gate.tasks.ended,
            Withdraw: gate.withdraw,
        }

    # The client's side.

    def ask(
        self,
        message: Message,
        key: RequestId,
        params: dict[str, Any],
        exposed: str,
        *,
        modern: bool,
    ) -> None:
        """The client makes a request; ``params`` are those for the server."""
        # Tasks are the hub's own: no server is asked for one.
        sent = without_task(params)
        self.calls[key] = Carried(key, message.method, sent, exposed, modern)
        self.client.routes[key] = self
        seen = message._replace(body={**message.body, "params": params})
        self.feed(AgentSent(message.raw, now(), seen))
        self._gate.watch(self)

    def cancel(self, message: Message, key: RequestId) -> None:
        """The client no longer wants an answer."""
        self.feed(AgentSent(message.raw, now(), message))
        self._drop(key)

    def cancel_task(self, event: AgentSent) -> None:
        """Nobody wants the task any more that a call of this channel is."""
        self.feed(event)
        self._drop(json.loads(event.line)["params"]["requestId"])

    def caller_left(self, key: RequestId) -> None:
        """The caller of one request is gone."""
        call = self.calls.get(key)
        self.feed(CallerGone(key, now()))
        if call is not None and (call.modern or call.task is None):
            self._drop(key)

    def answered(self, message: Message, ident: RequestId) -> None:
        """The client answered what the server had asked."""
        self._passed = []
        self.feed(AgentSent(message.raw, now(), message))
        answer = self._answers.pop(ident, None)
        if answer is not None and self._passed and not answer.done():
            answer.set_result(message.body)

    def agent_left(self) -> None:
        """The client asks nothing more: what no server works on yet is not begun."""
        self.feed(AgentGone(now()))
        for key in [key for key, call in self.calls.items() if call.task is None]:
            self._drop(key)

    def close(self) -> None:
        """The client is gone for good: nothing of its is carried on."""
        for key in list(self.calls):
            self.feed(CallerGone(key, now()))
            self._drop(key)
        if not self.session.is_idle:
            # No answer can come to what was dropped: it ends here, on the record too.
            self.feed(ServerGone(CALLER_GONE, now()))
        for answer in self._answers.values():
            answer.cancel()

    # The server's side.

    async def question(
        self, method: str, params: dict[str, Any] | None, about: RequestId | None
    ) -> dict[str, Any]:
        """Ask the client something on the server's behalf and return the response's body."""
        ident = self.client.next_question()
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": ident, "method": method}
        if params is not None:
            body["params"] = params
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[ident] = answer
        self.client.questions[ident] = self
        if about is not None:
            self._asking[ident] = about
        self._say(Message(REQUEST, ident, method, body, render(body)), about)
        try:
            async with asyncio.timeout(QUESTION_S):
                return await answer
        except asyncio.CancelledError:
            self.notify(CANCELLED, {"requestId": ident, "reason": "no longer needed"}, about)
            raise
        except TimeoutError:
            raise PeerError("upstream_timeout", "the client did not answer in time") from None
        finally:
            self._answers.pop(ident, None)
            self._asking.pop(ident, None)
            self.client.questions.pop(ident, None)

    def notify(self, method: str, params: dict[str, Any], about: RequestId | None) -> None:
        """Tell the client something on the server's behalf."""
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        self._say(Message(NOTIFICATION, None, method, body, render(body)), about)

    def progress(self, call: Carried, params: dict[str, Any]) -> None:
        """The server tells how far a call is; the client hears it with its own token."""
        token = call.token
        if token is not None and call.key in self.calls:
            self.notify(PROGRESS, {**params, "progressToken": token}, call.key)

    def _say(self, message: Message, about: RequestId | None) -> None:
        self._about = about
        try:
            self.feed(ServerSent(message.raw, now(), message))
        finally:
            self._about = None

    def tick(self, at: float) -> None:
        """Time passed; a call whose client is being asked something is not late."""
        for key in self._asking.values():
            self.session.receive(KeptAlive(key, at))
        oldest = at - (self.session.setup.timeout_s * MAX_STRETCH + QUESTION_S)
        for call in [one for one in self.calls.values() if 0.0 < one.since < oldest]:
            call.trouble = "it took too long in spite of its progress"
            self._fail(call, "tool_call_timeout")
        self.feed(Ticked(at))

    # Driving the session.

    def feed(self, event: Event) -> None:
        """Tell the session what happened and carry out what it wants."""
        self._depth += 1
        try:
            commands: list[Command] = self.session.receive(event)
            for command in commands:
                carry = self._carriers.get(type(command))
                if carry is not None:
                    carry(command)
        finally:
            self._depth -= 1
        if not self._depth:
            self._carry_out()

    def _to_server(self, command: ToServer) -> None:
        if command.key is not None:
            call = self.calls.get(command.key)
            if call is None:
                self._begin_task(command.key, command.data)
            elif self._gate.governor.trace is not None:
                _trace(call, command.data)
            self._forwards.append(command.key)
        else:
            self._passed.append(command.data)

    def _reply_later(self, frame: ToAgent) -> None:
        self._replies.append(frame)

    def _judge(self, command: JudgeCall) -> None:
        call = self.calls.get(command.key)
        if call is not None:
            # What the session took out, a person's answer, is not for the server.
            call.params = without_task(command.params)
        self.feed(self._gate.judge(self, command))

    def _ask_people(self, command: AskPeople) -> None:
        for event in self._gate.ask(self, command):
            if isinstance(event, PersonAsked) and not command.modern:
                self.session.prompts.declare(self.client.capabilities)
                self._prompted[event.key] = event.ident
                self.client.questions[event.ident] = self
            self.feed(event)

    def _note(self, command: WriteRecord) -> None:
        self._gate.note(command.record)

    def _begin_task(self, key: RequestId, data: bytes) -> None:
        """A call whose caller has its task runs now, under an id of the gate's own."""
        body = json.loads(data)
        params = body["params"]
        modern = is_modern(params)
        self.calls[key] = Carried(key, body["method"], params, params["name"], modern)
        self._gate.watch(self)

    def _carry_out(self) -> None:
        """Record first; then what may be sent is sent."""
        recorded = self._gate.flush()
        forwards, self._forwards = self._forwards, []
        for key in forwards:
            call = self.calls.get(key)
            if call is None:
                continue
            if recorded:
                call.since = now()
                call.task = asyncio.get_running_loop().create_task(self._carry(call))
            else:
                self.feed(NotSent(key, "service_unavailable", now()))
        replies, self._replies = self._replies, []
        for frame in replies:
            self._reply(frame)

    async def _carry(self, call: Carried) -> None:
        try:
            reply = await self._relay.relay(self, call)
        except PeerError as error:
            call.trouble = str(error)
            self._fail(call, error.kind)
        except PeerGone as gone:
            call.trouble = str(gone)
            self._fail(call, "upstream_connection_failed")
        except Exception:  # noqa: BLE001  a fault of ours in one call must not leave its caller hanging
            self._fail(call, "internal_error")
        else:
            self._from_server = True
            try:
                self.feed(ServerSent(reply.raw, now(), reply))
            finally:
                self._from_server = False

    def _fail(self, call: Carried, kind: str) -> None:
        self.feed(NotSent(call.key, kind, now()))

    def _reply(self, frame: ToAgent) -> None:
        data, key = frame.data, frame.key
        if key is None or frame.carries != ANSWER:
            self.client.tell(data, key if key is not None else self._about)
            return
        call = self._drop(key)
        if call is not None and not self._from_server:
            data = self._explain(data, call)
        self.client.reply(data, key)

    def _drop(self, key: RequestId) -> Carried | None:
        """A request is over; what is still done for it is not needed."""
        call = self.calls.pop(key, None)
        self.client.routes.pop(key, None)
        self.client.questions.pop(self._prompted.pop(key, ""), None)
        if call is not None and call.task is not None and call.task is not asyncio.current_task():
            call.task.cancel()
        return call

    def _explain(self, data: bytes, call: Carried) -> bytes:
        """Say of an error of ours which server it is about, by the names the client knows."""
        body = json.loads(data)
        error = body.get("error")
        if not isinstance(error, dict) or not isinstance(error.get("data"), dict):
            return data
        facts = error["data"]
        facts["tool"] = call.exposed
        if facts.get("kind") == HIDDEN:
            # Hidden, unknown and elsewhere must look the same, to the order of their members.
            facts["gate"] = "visibility"
            error["data"] = dict(sorted(facts.items()))
        else:
            facts["server"] = self.server
            if call.trouble:
                facts["reason"] = call.trouble
        return render(body)


def _trace(call: Carried, data: bytes) -> None:
    """Have a call tell its server of the trace that the session put into its frame."""
    # Only the trace: the frame may still have what the server must not see, such as the task.
    trace = traceparent(json.loads(data).get("params"))
    if trace:
        call.params = with_traceparent({"params": call.params}, trace)["params"]
