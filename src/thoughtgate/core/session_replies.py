"""Replies and record events of a session, and the requests that they are about.

A session decides what happens; this module turns the decision into commands, so that every
refusal has the same form.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from thoughtgate.core.answers import (
    INSTRUCTIONS,
    RELAY,
    introduction,
    relayed_change,
    relayed_failure,
)
from thoughtgate.core.commands import (
    ANSWER,
    NOTICE,
    Command,
    ScreenList,
    ToAgent,
    ToServer,
    WriteRecord,
)
from thoughtgate.core.elicitation import URL_REQUIRED, Elicitations, login_request
from thoughtgate.core.events import ServerGone
from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    CANCELLED,
    ERROR,
    SERVER_TO_AGENT,
    TIMEOUT,
    Record,
    call_ended,
    frame_refused,
    message_seen,
    request_failed,
)
from thoughtgate.core.task import lacks_correlation, refusal_kind, with_correlation
from thoughtgate.errors import LOGIN_REQUIRED, upstream_error
from thoughtgate.policy.call import Verdict
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.lines import length_of
from thoughtgate.wire.message import Fault, Message, RequestId
from thoughtgate.wire.methods import SCREENED
from thoughtgate.wire.replies import (
    GATE_MESSAGES,
    MESSAGES,
    render,
    render_cancelled,
    render_error,
    render_progress,
)
from thoughtgate.wire.revisions import is_modern, with_traceparent
from thoughtgate.wire.unchecked import unchecked

MAX_OPEN: Final = 100_000
"""Open requests per direction; each costs less than half a KiB."""

MAX_HELD: Final = 32
"""Calls held per session before further ones are refused."""

ORPHAN_AFTER_S: Final = 600.0
"""How long a server may be silent on a request if its config sets no timeout."""

RELAY_GRACE_S: Final = 5.0
"""How much longer a session waits if our own proxy, which has the same timeout, is in between."""

LATE_FOR_S: Final = 3600.0
"""How long the id of a request that the server has not answered stays reserved."""

PROGRESS_EVERY_S: Final = 10.0
"""Interval of progress notifications for a held call; common clients time out after 60 s."""

HOLD_TEXT: Final = "waiting for a person to approve this call"
RELEASE_TEXT: Final = "the call was made; waiting for a person to release its result"

CALLER_GONE: Final = "the caller is gone"
NO_ANSWER: Final = "no answer in time"
STOPPING: Final = "the gate is stopping"
CONTENTS: Final = "contents"
"""The gate that inspects arguments and results."""
ASKED_IN_AGENT: Final = "the agent's own prompt asks; the call will be made again"
UNREADABLE: Final = "the server's answer could not be read safely and was dropped"
WITHHELD: Final = (
    "the call was made, but its result is withheld because of what the content checks found in it"
)


STRAY: Final = frozenset({"missing_version", "unclassifiable"})
"""Faults that are typical for a server that logs to stdout; such a line is not a request."""

NEVER_PASSED: Final = frozenset({"too_large", "id_in_use", "too_many"})
"""Faults that even the development profile cannot forward: the bytes are lost, or ids would clash."""

_RECORDED_FACTS: Final = ("cause", "status")
"""The facts about a server's failure that the record of a call has besides the message."""

UNSENT: Final = frozenset({"service_unavailable", "approval_withdrawn", "not_exposed"})
"""Kinds of error for requests that the gate itself did not forward: no server has seen them."""


class CorrelationIds:
    """Numbers the errors of a gate that belong to no call, so that the record can be searched.

    An error about a call has the call's id instead. One counter serves all sessions of a gate:
    the ids of a run differ, and those of other runs begin differently.
    """

    __slots__ = ("_prefix", "count")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.count = 0
        """How many ids were given out."""

    def next(self) -> str:
        """Return a new id."""
        self.count += 1
        return self.last

    @property
    def last(self) -> str:
        """The id that was given out last."""
        return f"{self._prefix}.e{self.count}"


class SessionSettings(NamedTuple):
    """The settings of one session."""

    server: str
    session: str
    enforce: bool = True
    """False in the development profile: refuse nothing, record what would have been refused."""
    timeout_s: float = ORPHAN_AFTER_S
    max_held: int = MAX_HELD
    max_open: int = MAX_OPEN
    names_server: bool = False
    """Whether errors name the server, for callers that use several."""
    relay_key: str = ""
    """The key that our own proxy and the shim in front of it share, for a remote server."""
    is_relay: bool = False
    """Whether this session is the proxy's, which marks its errors; otherwise it is the shim's."""
    login_page: str = ""
    """The page of the console where people sign in to servers; empty if there is none."""


class PendingRequest(NamedTuple):
    """An agent request without an answer: before its verdict, held, or forwarded."""

    message: Message | None
    """The frame, kept until it is forwarded."""
    method: str
    name: str
    """The tool, resource or prompt that it names; empty if no gate judges it."""
    at: float
    """When the request arrived."""
    modern: bool
    token: RequestId | None
    """The caller's progress token."""
    call_id: str = ""
    held_since: float = 0.0
    """When the approval was requested; 0 if the request is not held."""
    told: int = 0
    """Progress notifications sent while it is held; once it is forwarded, how often the server
    showed progress."""
    inspect: int = 0
    """Whether the answer is inspected, before or after the agent gets it."""
    alive_at: float = 0.0
    """When the server last showed progress."""
    answer: tuple[bool | None, str, str] | None = None
    """The person's answer to the prompt about exactly this call, if it is repeated; its first member is
    None if the prompt was dismissed."""
    shown: str = ""
    """The name that the caller used, if it differs from the server's own."""
    waits: str = ""
    """What waits and where to answer, while the call is held; empty for the general text."""
    release: str = ""
    """The id under which a person is asked to release the answer, if that is held; the frame is then
    the answer."""
    given_up: str = ""
    """Why nobody waits for it any more, while its verdict is still to come."""


class OfferedList(NamedTuple):
    """A list or a handshake from the server that waits to be screened."""

    message: Message
    asked: PendingRequest


def find_offer(
    message: Message, asked: PendingRequest, key: RequestId, at: float
) -> tuple[OfferedList, ScreenList] | None:
    """Return the list in a server's answer, or what the server says about itself, to be screened."""
    result, listing = message.body.get("result"), SCREENED.get(asked.method)
    if listing is None or type(result) is not dict:
        return None
    if not listing.member:
        screen = ScreenList(key, asked.method, (introduction(result.get(INSTRUCTIONS)),), at)
        return OfferedList(message, asked), screen
    entries = result.get(listing.member)
    if type(entries) is not list:
        return None
    offered = tuple(entry for entry in entries if type(entry) is dict)
    is_last = not result.get("nextCursor")
    return OfferedList(message, asked), ScreenList(key, asked.method, offered, at, is_last)


class OpenRequests(dict[RequestId, PendingRequest]):
    """Agent requests that were forwarded and have no answer yet."""

    __slots__ = ("late", "tokens")

    def __init__(self) -> None:
        super().__init__()
        self.late: dict[RequestId, float] = {}
        """Requests that ended before the server answered, and when: their ids stay reserved too, so
        that a late answer, such as an unscreened list, is not taken for another request's."""
        self.tokens: dict[RequestId, RequestId] = {}
        """Progress tokens of open requests, with the request's id."""

    def add(self, ident: RequestId, asked: PendingRequest) -> None:
        """Add a request that is being forwarded."""
        self[ident] = asked
        if asked.token is not None:
            self.tokens[asked.token] = ident

    def close(self, ident: RequestId) -> PendingRequest | None:
        """Remove and return a request; None if it is not open."""
        asked = self.pop(ident, None)
        if asked is not None and asked.token is not None:
            self.tokens.pop(asked.token, None)
        return asked

    def close_early(self, ident: RequestId, at: float) -> PendingRequest | None:
        """Close a request that the server may still answer; its id stays reserved."""
        asked = self.close(ident)
        if asked is not None:
            self.late[ident] = at
        return asked

    def forget_late(self, at: float) -> None:
        """Release ids that have been reserved for long enough."""
        for ident in [ident for ident, since in self.late.items() if since < at - LATE_FOR_S]:
            del self.late[ident]

    def keep_alive(self, ident: RequestId, at: float) -> None:
        """Restart the timeout of a request, if it is open."""
        if ident in self:
            asked = self[ident]
            self[ident] = asked._replace(alive_at=at, told=asked.told + 1)

    def note_progress(self, message: Message, at: float) -> None:
        """Restart the timeout of the request whose progress the server reports."""
        token = (message.body.get("params") or {}).get("progressToken")
        ident = self.tokens.get(token) if type(token) is str or type(token) is int else None
        if ident is not None:
            self.keep_alive(ident, at)


def sent(asked: PendingRequest, at: float, call_id: str, inspect: int) -> PendingRequest:
    """Return a request in its forwarded state; a new tuple is faster than ``_replace`` here."""
    return unchecked(
        PendingRequest,
        (None, *asked[1:6], call_id, 0.0, 0, inspect, at, None, asked[12], "", "", ""),
    )


def traced(message: Message, trace: str) -> Message:
    """Return a request with the trace context for the server, if there is one."""
    if not trace:
        return message
    body = with_traceparent(message.body, trace)
    return message._replace(body=body, raw=render(body))


def to_server_frame(data: bytes, key: RequestId | None = None) -> ToServer:
    """Return a frame that the gate itself sends to the server."""
    message = read_frame(data)
    return ToServer(data, key, message if isinstance(message, Message) else None)


def reply_to_server(data: bytes) -> ToServer:
    """Return the gate's own response to a request of the server; no caller waits for anything."""
    return to_server_frame(data)._replace(detached=True)


def checks_in(findings: Iterable[Sequence[str]]) -> list[str]:
    """Return the ids of the checks that found something, each once."""
    return sorted({found[0] for found in findings})


def task_reply(key: RequestId, body: dict[str, Any]) -> ToAgent:
    """Return the reply to a request with the body from the task table."""
    reply = render({"jsonrpc": "2.0", "id": key, **body})
    return ToAgent(reply, key, ANSWER, refusal_kind(body))


def size_of(commands: list[Command]) -> int:
    """Return how many bytes the agent gets."""
    return sum(len(one.data) for one in commands if isinstance(one, ToAgent))


def task_notice(body: dict[str, Any]) -> ToAgent:
    """Return the notification that a task has another status."""
    said = {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": body}
    return ToAgent(render(said), None, NOTICE)


def tell_progress(waiting: dict[RequestId, PendingRequest], at: float) -> list[Command]:
    """Return progress notifications, with the callers' own tokens, for held calls that are due."""
    commands: list[Command] = []
    for key, asked in waiting.items():
        if asked.token is None or not asked.held_since:
            continue
        # The first one is sent at once: until then, the user only sees a slow call.
        due = int((at - asked.held_since) / PROGRESS_EVERY_S) + 1
        if due > asked.told:
            waiting[key] = asked._replace(told=due)
            text = RELEASE_TEXT if asked.release else asked.waits or HOLD_TEXT
            told = render_progress(asked.token, due, text)
            commands.append(ToAgent(told, key, NOTICE))
    return commands


class SessionReplies:
    """Creates the replies and record events of one session."""

    def __init__(self, setup: SessionSettings, errors: CorrelationIds | None = None) -> None:
        self._setup = setup
        self._errors = errors or CorrelationIds(setup.session)
        self.prompts = Elicitations()
        """What the agent's client can show to a person."""

    def seen(self, message: Message, at: float, direction: str, method: str = "") -> WriteRecord:
        """Record a message that no gate judges."""
        setup = self._setup
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

    def passes(self, fault: Fault) -> bool:
        """Tell whether an invalid frame is forwarded anyway, as in the development profile."""
        return not self._setup.enforce and fault.check not in NEVER_PASSED

    def refused(
        self, fault: Fault, line: bytes, at: float, direction: str, message: Message | None = None
    ) -> list[Command]:
        """Refuse a frame: record it, and answer its sender if it was a request."""
        setup = self._setup
        correlation_id = self._errors.next()
        passes = self.passes(fault)
        record = frame_refused(
            at,
            setup.server,
            setup.session,
            direction=direction,
            check=fault.check,
            kind=fault.kind,
            size=length_of(line),
            start=line,
            method=message.method if message is not None else "",
            correlation_id=correlation_id,
            enforced=not passes,
        )
        commands: list[Command] = [WriteRecord(record)]
        to_server = direction == AGENT_TO_SERVER
        if passes:
            data = line.removesuffix(b"\r")
            commands.append(
                ToServer(data, None, message) if to_server else ToAgent(data, None, NOTICE)
            )
        elif fault.answerable and (to_server or fault.id is not None):
            reply = render_error(
                fault.id,
                fault.kind,
                modern=message is not None and is_modern(message.body.get("params")),
                message=fault.reason,
                correlation_id=correlation_id,
                details={"check": fault.check},
            )
            commands.append(
                ToAgent(reply, None, ANSWER, fault.kind) if to_server else reply_to_server(reply)
            )
        return commands

    def unasked(self, message: Message, at: float, direction: str) -> list[Command]:
        """Drop and record a response that belongs to no open request."""
        fault = Fault("invalid_request", "", "unknown_response", None, answerable=False)
        return self.refused(fault, message.raw, at, direction, message)

    def denied(
        self, key: RequestId, asked: PendingRequest, verdict: Verdict, at: float
    ) -> list[Command]:
        """Tell the caller that its call is denied, without revealing the rules."""
        details: dict[str, Any] = {}
        if verdict.retry_after_s:
            details["retry_after"] = round(verdict.retry_after_s, 3)
        if verdict.scopes:
            details["scopes"] = verdict.scopes.split(" ")
            details["missing_scopes"] = verdict.missing_scopes.split(" ")
        if verdict.findings:
            details["checks"] = checks_in(verdict.findings)
        # An unknown verdict means a faulty judge and counts as a denial.
        kind = verdict.kind if verdict.kind in MESSAGES else "internal_error"
        text = GATE_MESSAGES.get(verdict.gate) or MESSAGES[kind]
        error = {"class": "policy_block", "kind": kind, "message": text}
        commands = self.failed(
            key, asked, kind, at, error=error, text=text, gate=verdict.gate, details=details
        )
        if not verdict.scopes:
            return commands
        return [
            one._replace(scopes=verdict.scopes) if isinstance(one, ToAgent) else one
            for one in commands
        ]

    def failed(
        self,
        key: RequestId,
        asked: PendingRequest,
        kind: str,
        at: float,
        *,
        error: dict[str, Any] | None = None,
        text: str = "",
        gate: str = "",
        status: str = ERROR,
        details: dict[str, Any] | None = None,
        facts: dict[str, Any] | None = None,
    ) -> list[Command]:
        """Answer a request with an error of the gate, and record the end of its call.

        ``facts`` say why the server gave no answer: the caller gets all, the record the cause and
        the HTTP status.
        """
        if facts:
            mark = {RELAY: self._setup.relay_key} if self._setup.is_relay else {}
            details = {**(details or {}), **facts, **mark}
        if kind == "not_exposed":
            # Hidden and unknown names must be indistinguishable.
            gate = "visibility"
        elif self._setup.names_server:
            details = {**(details or {}), "server": self._setup.server}
        ident, code = asked.call_id or self._errors.next(), 0
        if facts and facts.get("cause") == LOGIN_REQUIRED and self._can_ask_for_login(asked):
            login = login_request(self._setup.login_page, self._setup.server, ident)
            details, code = {**(details or {}), **login}, URL_REQUIRED
        reply = render_error(
            key,
            kind,
            modern=asked.modern,
            message=text,
            gate=gate,
            tool=asked.shown or asked.name,
            correlation_id=ident,
            details=details,
            code=code,
        )
        if error is None:
            blame = "policy_block" if kind in UNSENT else "transport"
            error = {"class": blame, "kind": kind, "message": text or MESSAGES[kind]}
        if facts:
            error |= {name: facts[name] for name in _RECORDED_FACTS if name in facts}
        told = ToAgent(reply, key, ANSWER, kind, gate)
        if not asked.call_id:
            return [self._request_failed(asked, kind, at), told]
        return [*self.ended(asked, at, status, len(reply), error), told]

    def withheld(
        self, key: RequestId, asked: PendingRequest, findings: Sequence[Sequence[str]], at: float
    ) -> list[Command]:
        """Answer a call that was made, and whose result the agent must not get.

        The kind of error must not suggest that the call was not made: callers would repeat it.
        """
        kind = "content_blocked"
        error = {"class": "policy_block", "kind": kind, "message": WITHHELD}
        details = {"checks": checks_in(findings)} if findings else None
        return self.failed(
            key, asked, kind, at, error=error, text=WITHHELD, gate=CONTENTS, details=details
        )

    def _can_ask_for_login(self, asked: PendingRequest) -> bool:
        return bool(self._setup.login_page) and self.prompts.opens_urls and not asked.modern

    def unserved(
        self, key: RequestId, asked: PendingRequest, gone: ServerGone, at: float
    ) -> list[Command]:
        """Answer a request whose server is gone."""
        return self.failed(key, asked, gone.kind, at, text=gone.reason, facts=gone.facts)

    def relayed(
        self, key: RequestId, asked: PendingRequest, message: Message, at: float
    ) -> list[Command]:
        """Answer a request whose remote server failed, as our proxy reports; nothing otherwise."""
        found = relayed_failure(message.body, self._setup.relay_key)
        if found is None:
            return []
        kind, text, facts = found
        if kind == "tool_call_timeout":
            # The record says the same as if the session's own timer had ended first.
            return self._out_of_time(key, asked, facts["cause"], at)
        return self.failed(key, asked, kind, at, text=text, facts=facts)

    def relayed_report(self, message: Message, at: float) -> list[Command]:
        """Record a change of a remote server's state that our proxy reports; drop other reports."""
        found = relayed_change(message.body, self._setup.relay_key)
        if found is None:
            return [self.seen(message, at, SERVER_TO_AGENT)]
        event, facts = found
        record = Record(event, at, self._setup.server, self._setup.session, {"server": facts})
        return [WriteRecord(record)]

    def _request_failed(self, asked: PendingRequest, kind: str, at: float) -> WriteRecord:
        """Record the error that was numbered last: it belongs to a request that is no call."""
        setup = self._setup
        return WriteRecord(
            request_failed(
                at,
                setup.server,
                setup.session,
                method=asked.method,
                kind=kind,
                correlation_id=self._errors.last,
            )
        )

    def about_task(
        self, key: RequestId, asked: PendingRequest, body: dict[str, Any], at: float
    ) -> list[Command]:
        """Reply to a request with the body from the task table, and record a refusal in it."""
        kind = lacks_correlation(body)
        if not kind:
            return [task_reply(key, body)]
        reply = task_reply(key, with_correlation(body, asked.call_id or self._errors.next()))
        return [reply] if asked.call_id else [self._request_failed(asked, kind, at), reply]

    def timed_out(self, key: RequestId, asked: PendingRequest, at: float) -> list[Command]:
        """Answer a request that the server has not answered in time, and cancel it there."""
        cause = "idle_timeout" if asked.told else "answer_timeout"
        told = self._out_of_time(key, asked, cause, at)
        return [*told, to_server_frame(render_cancelled(key, NO_ANSWER))._replace(cause=cause)]

    def _out_of_time(
        self, key: RequestId, asked: PendingRequest, cause: str, at: float
    ) -> list[Command]:
        kind, why = "tool_call_timeout", upstream_error(cause)
        error, text = {"class": "timeout", "kind": kind, "message": NO_ANSWER}, str(why)
        return self.failed(
            key, asked, kind, at, error=error, text=text, status=TIMEOUT, facts=why.facts
        )

    def withdrawn(
        self, asked: PendingRequest, at: float, why: str, status: str = CANCELLED, size: int = 0
    ) -> list[Command]:
        """Record the end of a call that is not made, because nobody waits for it any more."""
        error = {"class": "policy_block", "kind": "approval_withdrawn", "message": why}
        return self.ended(asked, at, status, size, error)

    def ended(
        self,
        asked: PendingRequest,
        at: float,
        status: str,
        size: int,
        error: dict[str, Any] | None = None,
        *,
        is_error: bool = False,
    ) -> list[Command]:
        """Record the end of a call; nothing for a request that no gate judged."""
        if not asked.call_id:
            return []
        setup = self._setup
        record = call_ended(
            at,
            setup.server,
            setup.session,
            call_id=asked.call_id,
            tool=asked.name,
            status=status,
            latency_ms=max(0, round((at - asked.at) * 1000)),
            size=size,
            error=error,
            is_error=is_error,
        )
        return [unchecked(WriteRecord, (record,))]
