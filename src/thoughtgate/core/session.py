"""One agent and one server talking through the gate: what may pass, and what is still open.

A session knows frames, ids and who waits for what. It does not know rules: it asks
with ``JudgeCall`` and ``ScreenList`` and is told. It does not know pipes, sockets or
clocks: frames and times come in as events, bytes go out as commands. The threadless
shim and the asyncio gateway drive the same class, which is how stdio and HTTP are
governed alike.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.core.commands import (
    AskPeople,
    Command,
    JudgeCall,
    ScreenList,
    ToAgent,
    ToServer,
    Withdraw,
    WriteRecord,
)
from thoughtgate.core.events import (
    AgentGone,
    AgentSent,
    CallJudged,
    Event,
    ListScreened,
    ServerGone,
    ServerSent,
    Ticked,
)
from thoughtgate.core.record import (
    AGENT_TO_SERVER,
    CANCELLED,
    ERROR,
    OK,
    SERVER_TO_AGENT,
    TIMEOUT,
    call_ended,
    frame_refused,
    message_seen,
)
from thoughtgate.policy.call import APPROVE, FORWARD, Verdict
from thoughtgate.wire import methods
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import NOTIFICATION, REQUEST, Fault, Message, RequestId
from thoughtgate.wire.replies import MESSAGES, render, render_cancelled, render_error, render_progress
from thoughtgate.wire.revisions import is_modern, progress_token

MAX_OPEN: Final = 100_000
"""Requests open at once in one direction; each costs under half a KiB."""

MAX_HELD: Final = 32
"""Calls that may wait for a person on one connection before the next is refused."""

ORPHAN_AFTER_S: Final = 600.0
"""How long a server may be silent on a request when its config sets no timeout."""

PROGRESS_EVERY_S: Final = 10.0
"""Pace of progress while a call is held; common clients give up after 60 s of silence."""


class Setup(NamedTuple):
    """What a session is told about itself."""

    server: str
    session: str
    enforce: bool = True
    """False in the development profile: refuse nothing, record what would have been refused."""
    timeout_s: float = ORPHAN_AFTER_S
    max_held: int = MAX_HELD
    max_open: int = MAX_OPEN


class _Waiting(NamedTuple):
    """A request of the agent that has no verdict yet, or waits for a person."""

    message: Message
    named: methods.Named
    at: float
    modern: bool
    token: RequestId | None
    call_id: str = ""
    held_since: float = 0.0
    told: int = 0
    """Progress notifications sent so far."""


class _Open(NamedTuple):
    """A request of the agent that the server is working on."""

    method: str
    name: str
    call_id: str
    at: float
    """When the agent asked."""
    alive_at: float
    """When the server last showed that it works on it."""
    modern: bool
    token: RequestId | None


class _Screened(NamedTuple):
    """A list that the server sent and that waits to be screened."""

    message: Message
    listing: methods.Listing
    modern: bool


class Session:
    """The state of one connection. ``receive`` is the only way in."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._waiting: dict[RequestId, _Waiting] = {}
        self._open: dict[RequestId, _Open] = {}
        self._lists: dict[RequestId, _Screened] = {}
        self._served: dict[RequestId, str] = {}
        self._held = 0
        self._refusals = 0
        self._agent_gone = False
        self._server_gone: ServerGone | None = None
        self._handlers: dict[type, Any] = {
            AgentSent: self._agent_sent,
            ServerSent: self._server_sent,
            CallJudged: self._call_judged,
            ListScreened: self._list_screened,
            AgentGone: self._agent_left,
            ServerGone: self._server_left,
            Ticked: self._ticked,
        }

    @property
    def is_idle(self) -> bool:
        """Nothing is open in either direction."""
        return not (self._waiting or self._open or self._lists or self._served)

    @property
    def open_calls(self) -> int:
        """Requests of the agent that have no answer yet."""
        return len(self._waiting) + len(self._open) + len(self._lists)

    @property
    def held_calls(self) -> int:
        """Calls that wait for a person."""
        return self._held

    def receive(self, event: Event) -> list[Command]:
        """Take what happened and return what to do about it, in order."""
        commands: list[Command] = self._handlers[type(event)](event)
        return commands

    # Frames from the agent.

    def _agent_sent(self, event: AgentSent) -> list[Command]:
        line = event.line
        if not line or line == b"\r":
            return []
        message = read_frame(line)
        if type(message) is Fault:
            return self._refuse_frame(message, line, event.at, AGENT_TO_SERVER)
        assert type(message) is Message
        if message.shape == REQUEST:
            return self._agent_asked(message, event.at)
        if message.shape == NOTIFICATION:
            return self._agent_notified(message, event.at)
        return self._agent_answered(message, event.at)

    def _agent_asked(self, message: Message, at: float) -> list[Command]:
        ident, method = message.id, message.method
        assert ident is not None
        fault = self._not_askable(ident)
        if fault is not None:
            return self._refuse_frame(fault, message.raw, at, AGENT_TO_SERVER, message)
        params = message.body.get("params") or {}
        modern = is_modern(params)
        if self._server_gone is not None:
            gone = self._server_gone
            return self._refuse(message, gone.kind, at, modern=modern, message_text=gone.reason)
        named = methods.named_by(method, params)
        if type(named) is str:
            fault = Fault("invalid_params", named, "wrong_params", ident)
            return self._refuse_frame(fault, message.raw, at, AGENT_TO_SERVER, message)
        token = progress_token(params)
        if named:
            assert type(named) is list
            self._waiting[ident] = _Waiting(message, named[0], at, modern, token)
            size = len(message.raw)
            return [JudgeCall(ident, method, tuple(named), params, size, modern, at)]
        self._open[ident] = _Open(method, "", "", at, at, modern, token)
        return [self._seen(message, at, AGENT_TO_SERVER), ToServer(message.raw)]

    def _not_askable(self, ident: RequestId) -> Fault | None:
        if ident in self._open or ident in self._waiting or ident in self._lists:
            return Fault("invalid_request", "the id is already in use", "id_in_use", ident)
        if self.open_calls >= self.setup.max_open:
            return Fault("service_unavailable", "too many requests are open", "too_many", ident)
        return None

    def _agent_notified(self, message: Message, at: float) -> list[Command]:
        if message.method in methods.GATED or message.method in methods.LISTINGS:
            fault = Fault("invalid_request", "this method needs an id", "missing_id")
            return self._refuse_frame(fault, message.raw, at, AGENT_TO_SERVER, message)
        commands: list[Command] = [
            self._seen(message, at, AGENT_TO_SERVER),
            ToServer(message.raw),
        ]
        if message.method == methods.CANCELLED:
            commands += self._agent_cancelled(message, at)
        return commands

    def _agent_cancelled(self, message: Message, at: float) -> list[Command]:
        params = message.body.get("params") or {}
        ident = params.get("requestId")
        if type(ident) not in (str, int):
            return []
        waiting = self._waiting.get(ident)
        if waiting is not None:
            return self._give_up(ident, waiting, "the caller cancelled", at)
        opened = self._open.pop(ident, None)
        if opened is None:
            return []
        return self._ended(opened, at, CANCELLED, 0)

    def _agent_answered(self, message: Message, at: float) -> list[Command]:
        method = self._served.pop(message.id, None) if message.id is not None else None
        if method is None:
            fault = Fault("invalid_request", "", "unknown_response", None, answerable=False)
            return self._refuse_frame(fault, message.raw, at, AGENT_TO_SERVER, message)
        seen = self._seen(message, at, AGENT_TO_SERVER, method)
        return [seen, ToServer(message.raw)]

    # Frames from the server.

    def _server_sent(self, event: ServerSent) -> list[Command]:
        line = event.line
        if not line or line == b"\r":
            return []
        message = read_frame(line)
        if type(message) is Fault:
            return self._refuse_frame(message, line, event.at, SERVER_TO_AGENT)
        assert type(message) is Message
        if message.shape == REQUEST:
            return self._server_asked(message, event.at)
        if message.shape == NOTIFICATION:
            self._keep_alive(message, event.at)
            seen = self._seen(message, event.at, SERVER_TO_AGENT)
            return [seen, ToAgent(message.raw)]
        return self._server_answered(message, event.at)

    def _server_asked(self, message: Message, at: float) -> list[Command]:
        assert message.id is not None
        if message.id in self._served or len(self._served) >= self.setup.max_open:
            fault = Fault("invalid_request", "the id is already in use", "id_in_use", message.id)
            return self._refuse_frame(fault, message.raw, at, SERVER_TO_AGENT, message)
        self._served[message.id] = message.method
        return [self._seen(message, at, SERVER_TO_AGENT), ToAgent(message.raw)]

    def _server_answered(self, message: Message, at: float) -> list[Command]:
        ident = message.id
        opened = self._open.pop(ident, None) if ident is not None else None
        if opened is None or ident is None:
            fault = Fault("invalid_request", "", "unknown_response", None, answerable=False)
            return self._refuse_frame(fault, message.raw, at, SERVER_TO_AGENT, message)
        listing = methods.LISTINGS.get(opened.method)
        result = message.body.get("result")
        if listing is not None and type(result) is dict:
            entries = result.get(listing.member)
            if type(entries) is list:
                self._lists[ident] = _Screened(message, listing, opened.modern)
                offered = tuple(entry for entry in entries if type(entry) is dict)
                return [ScreenList(ident, opened.method, offered, at)]
        if not opened.call_id:
            seen = self._seen(message, at, SERVER_TO_AGENT, opened.method)
            return [seen, ToAgent(message.raw)]
        status, error = _outcome(message.body)
        is_error = type(result) is dict and result.get("isError") is True
        commands = self._ended(opened, at, status, len(message.raw), error, is_error=is_error)
        commands.append(ToAgent(message.raw))
        return commands

    def _keep_alive(self, message: Message, at: float) -> None:
        """A server that reports progress on a request has not forgotten it."""
        if message.method != methods.PROGRESS:
            return
        params = message.body.get("params") or {}
        token = params.get("progressToken")
        for ident, opened in self._open.items():
            if opened.token is not None and opened.token == token:
                self._open[ident] = opened._replace(alive_at=at)
                return

    # The judge's answers.

    def _call_judged(self, event: CallJudged) -> list[Command]:
        waiting = self._waiting.get(event.key)
        if waiting is None:
            return []
        verdict = event.verdict
        waiting = waiting._replace(call_id=event.call_id)
        if verdict.action == APPROVE:
            return self._hold(event, waiting)
        del self._waiting[event.key]
        if waiting.held_since:
            self._held -= 1
        if verdict.action == FORWARD:
            return self._forward(event.key, waiting, event.at)
        return self._deny(event.key, waiting, verdict, event.at)

    def _forward(self, key: RequestId, waiting: _Waiting, at: float) -> list[Command]:
        self._open[key] = _Open(
            waiting.message.method,
            waiting.named.name,
            waiting.call_id,
            waiting.at,
            at,
            waiting.modern,
            waiting.token,
        )
        return [ToServer(waiting.message.raw)]

    def _hold(self, event: CallJudged, waiting: _Waiting) -> list[Command]:
        if self._held >= self.setup.max_held:
            del self._waiting[event.key]
            verdict = Verdict("deny", "approval", "service_unavailable")
            return self._deny(event.key, waiting, verdict, event.at)
        self._held += 1
        self._waiting[event.key] = waiting._replace(held_since=event.at)
        return [AskPeople(event.key, event.call_id, event.verdict.workflow, event.at)]

    def _deny(
        self, key: RequestId, waiting: _Waiting, verdict: Verdict, at: float
    ) -> list[Command]:
        details: dict[str, Any] = {}
        if verdict.retry_after_s:
            details["retry_after"] = round(verdict.retry_after_s, 3)
        reply = render_error(
            key,
            verdict.kind,
            modern=waiting.modern,
            gate=verdict.gate,
            tool=waiting.named.name,
            correlation_id=waiting.call_id,
            details=details,
        )
        error = {"class": "policy_block", "kind": verdict.kind, "message": MESSAGES[verdict.kind]}
        ended = self._end_record(
            waiting.named.name, waiting.call_id, waiting.at, at, ERROR, len(reply), error
        )
        return [ended, ToAgent(reply)]

    def _list_screened(self, event: ListScreened) -> list[Command]:
        screened = self._lists.pop(event.key, None)
        if screened is None:
            return []
        message, listing = screened.message, screened.listing
        entries = message.body["result"][listing.member]
        kept = [entry for entry in entries if _is_shown(entry, listing.key, event.hidden)]
        if len(kept) == len(entries):
            return [ToAgent(message.raw)]
        result = {**message.body["result"], listing.member: kept}
        if "cacheScope" in result:
            # 2026-07-28, caching: what was filtered for one caller must not be shared.
            result["cacheScope"] = "private"
        return [ToAgent(render({**message.body, "result": result}))]

    # Ends.

    def _agent_left(self, event: AgentGone) -> list[Command]:
        self._agent_gone = True
        commands: list[Command] = []
        for key, waiting in list(self._waiting.items()):
            commands += self._give_up(key, waiting, "the caller is gone", event.at)
        return commands

    def _server_left(self, event: ServerGone) -> list[Command]:
        """Everybody who waits is told; nothing stays open."""
        self._server_gone = event
        commands: list[Command] = []
        for key, waiting in list(self._waiting.items()):
            if waiting.held_since:
                commands.append(Withdraw(key, waiting.call_id, event.reason))
            commands += self._lost(key, waiting.named.name, waiting, event)
        for ident, opened in self._open.items():
            commands += self._lost(ident, opened.name, opened, event)
        for ident, screened in self._lists.items():
            reply = render_error(
                ident, event.kind, modern=screened.modern, message=event.reason
            )
            commands.append(ToAgent(reply))
        self._waiting.clear()
        self._open.clear()
        self._lists.clear()
        self._served.clear()
        self._held = 0
        return commands

    def _lost(
        self, ident: RequestId, name: str, asked: _Waiting | _Open, event: ServerGone
    ) -> list[Command]:
        reply = render_error(
            ident,
            event.kind,
            modern=asked.modern,
            message=event.reason,
            tool=name,
            correlation_id=asked.call_id,
        )
        commands: list[Command] = []
        if asked.call_id:
            error = {"class": "transport", "kind": event.kind, "message": event.reason}
            commands.append(
                self._end_record(
                    name, asked.call_id, asked.at, event.at, ERROR, len(reply), error
                )
            )
        commands.append(ToAgent(reply))
        return commands

    def _give_up(
        self, key: RequestId, waiting: _Waiting, reason: str, at: float
    ) -> list[Command]:
        """The caller no longer waits: whatever a person says now, the call is not made."""
        del self._waiting[key]
        commands: list[Command] = []
        if waiting.held_since:
            self._held -= 1
            commands.append(Withdraw(key, waiting.call_id, reason))
        if waiting.call_id:
            error = {"class": "policy_block", "kind": "approval_withdrawn", "message": reason}
            commands.append(
                self._end_record(
                    waiting.named.name, waiting.call_id, waiting.at, at, CANCELLED, 0, error
                )
            )
        return commands

    # Time.

    def _ticked(self, event: Ticked) -> list[Command]:
        commands: list[Command] = []
        for ident, opened in list(self._open.items()):
            if event.at - opened.alive_at > self.setup.timeout_s:
                commands += self._time_out(ident, opened, event.at)
        if self._held:
            commands += self._tell_progress(event.at)
        return commands

    def _time_out(self, ident: RequestId, opened: _Open, at: float) -> list[Command]:
        del self._open[ident]
        reply = render_error(
            ident,
            "tool_call_timeout",
            modern=opened.modern,
            tool=opened.name,
            correlation_id=opened.call_id,
        )
        commands: list[Command] = []
        if opened.call_id:
            error = {"class": "timeout", "kind": "tool_call_timeout", "message": "no answer in time"}
            commands += self._ended(opened, at, TIMEOUT, len(reply), error)
        cancel = render_cancelled(ident, "no answer in time")
        return [*commands, ToServer(cancel), ToAgent(reply)]

    def _tell_progress(self, at: float) -> list[Command]:
        commands: list[Command] = []
        for key, waiting in self._waiting.items():
            if waiting.token is None or not waiting.held_since:
                continue
            due = int((at - waiting.held_since) / PROGRESS_EVERY_S)
            if due > waiting.told:
                self._waiting[key] = waiting._replace(told=due)
                text = "waiting for a person to approve this call"
                commands.append(ToAgent(render_progress(waiting.token, due, text)))
        return commands

    # Saying no, and putting on record.

    def _refuse_frame(
        self, fault: Fault, line: bytes, at: float, direction: str, message: Message | None = None
    ) -> list[Command]:
        self._refusals += 1
        setup = self.setup
        correlation_id = f"{setup.session}-f{self._refusals}"
        record = frame_refused(
            at,
            setup.server,
            setup.session,
            direction=direction,
            check=fault.check,
            kind=fault.kind,
            size=len(line),
            method=message.method if message is not None else "",
            correlation_id=correlation_id,
            enforced=setup.enforce,
        )
        to_server = direction == AGENT_TO_SERVER
        if not setup.enforce and fault.check not in {"too_large", "id_in_use"}:
            passed = line.removesuffix(b"\r")
            return [WriteRecord(record), ToServer(passed) if to_server else ToAgent(passed)]
        if to_server:
            return [WriteRecord(record), *self._answer_refusal(fault, correlation_id, message)]
        return [WriteRecord(record), *self._answer_for_server(fault, at)]

    def _answer_refusal(
        self, fault: Fault, correlation_id: str, message: Message | None
    ) -> list[Command]:
        if not fault.answerable:
            return []
        modern = message is not None and is_modern(message.body.get("params"))
        reply = render_error(
            fault.id,
            fault.kind,
            modern=modern,
            message=fault.reason,
            correlation_id=correlation_id,
            details={"check": fault.check},
        )
        return [ToAgent(reply)]

    def _answer_for_server(self, fault: Fault, at: float) -> list[Command]:
        """A server's frame was refused: if it was an answer, the caller must not hang."""
        if fault.check == "id_in_use":
            return [ToServer(render_error(fault.id, "invalid_request", message=fault.reason))]
        if fault.id is None:
            return []
        opened = self._open.pop(fault.id, None)
        if opened is None:
            return []
        text = "the server's answer could not be read safely and was dropped"
        reply = render_error(
            fault.id,
            "internal_error",
            modern=opened.modern,
            message=text,
            tool=opened.name,
            correlation_id=opened.call_id,
        )
        commands: list[Command] = []
        if opened.call_id:
            error = {"class": "transport", "kind": "internal_error", "message": text}
            commands += self._ended(opened, at, ERROR, len(reply), error)
        return [*commands, ToAgent(reply)]

    def _refuse(
        self, message: Message, kind: str, at: float, *, modern: bool, message_text: str
    ) -> list[Command]:
        reply = render_error(message.id, kind, modern=modern, message=message_text)
        return [self._seen(message, at, AGENT_TO_SERVER), ToAgent(reply)]

    def _seen(self, message: Message, at: float, direction: str, method: str = "") -> WriteRecord:
        setup = self.setup
        return WriteRecord(
            message_seen(
                at,
                setup.server,
                setup.session,
                direction,
                message.shape,
                method or message.method,
                len(message.raw),
            )
        )

    def _ended(
        self,
        opened: _Open,
        at: float,
        status: str,
        size: int,
        error: dict[str, Any] | None = None,
        *,
        is_error: bool = False,
    ) -> list[Command]:
        if not opened.call_id:
            return []
        return [
            self._end_record(
                opened.name, opened.call_id, opened.at, at, status, size, error, is_error=is_error
            )
        ]

    def _end_record(
        self,
        name: str,
        call_id: str,
        since: float,
        at: float,
        status: str,
        size: int,
        error: dict[str, Any] | None = None,
        *,
        is_error: bool = False,
    ) -> WriteRecord:
        setup = self.setup
        return WriteRecord(
            call_ended(
                at,
                setup.server,
                setup.session,
                call_id=call_id,
                tool=name,
                status=status,
                latency_ms=max(0, round((at - since) * 1000)),
                size=size,
                error=error,
                is_error=is_error,
            )
        )


def _outcome(body: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return the status of a call and, for an error, what the record keeps of it.

    The server's own message may quote arguments or secrets; only its code is kept.
    """
    error = body.get("error")
    if error is None:
        return OK, None
    code = error.get("code") if type(error) is dict else None
    kept: dict[str, Any] = {"class": "upstream_error", "message": "the server answered with an error"}
    if type(code) is int:
        kept["code"] = code
    return ERROR, kept


def _is_shown(entry: Any, key: str, hidden: frozenset[str]) -> bool:
    """An entry without a readable name can be neither judged nor called: it is not shown."""
    if type(entry) is not dict:
        return False
    name = entry.get(key)
    return type(name) is str and name not in hidden
