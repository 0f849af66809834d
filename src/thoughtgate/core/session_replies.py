"""Replies and record events of a session, and the requests that they are about.

A session decides what happens; this module turns the decision into commands, so that every
refusal has the same form.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.core.commands import ANSWER, NOTICE, Command, ToAgent, ToServer, WriteRecord
from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    CANCELLED,
    ERROR,
    TIMEOUT,
    call_ended,
    frame_refused,
    message_seen,
)
from thoughtgate.core.task import refusal_kind
from thoughtgate.policy.call import Verdict
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.lines import length_of
from thoughtgate.wire.message import Fault, Message, RequestId
from thoughtgate.wire.methods import Listing
from thoughtgate.wire.replies import (
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

LATE_FOR_S: Final = 3600.0
"""How long the id of a request that the server has not answered stays reserved."""

PROGRESS_EVERY_S: Final = 10.0
"""Interval of progress notifications for a held call; common clients time out after 60 s."""

HOLD_TEXT: Final = "waiting for a person to approve this call"

CALLER_GONE: Final = "the caller is gone"
STOPPING: Final = "the gate is stopping"
ASKED_IN_AGENT: Final = "the agent's own prompt asks; the call will be made again"
UNREADABLE: Final = "the server's answer could not be read safely and was dropped"


STRAY: Final = frozenset({"missing_version", "unclassifiable"})
"""Faults that are typical for a server that logs to stdout; such a line is not a request."""

NEVER_PASSED: Final = frozenset({"too_large", "id_in_use", "too_many"})
"""Faults that even the development profile cannot forward: the bytes are lost, or ids would clash."""

UNSENT: Final = frozenset({"service_unavailable", "approval_withdrawn", "not_exposed"})
"""Kinds of error for requests that the gate itself did not forward: no server has seen them."""


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
    """Progress notifications sent while it is held."""
    redact: bool = False
    """Whether a rule requires masking of the answer."""
    alive_at: float = 0.0
    """When the server last showed progress."""
    answer: tuple[bool | None, str] | None = None
    """The person's answer to the prompt about exactly this call, if it is repeated; its first member is
    None if the prompt was dismissed."""
    shown: str = ""
    """The name that the caller used, if it differs from the server's own."""


class OfferedList(NamedTuple):
    """A list from the server that waits to be screened."""

    message: Message
    listing: Listing
    asked: PendingRequest


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
            self[ident] = self[ident]._replace(alive_at=at)

    def note_progress(self, message: Message, at: float) -> None:
        """Restart the timeout of the request whose progress the server reports."""
        token = (message.body.get("params") or {}).get("progressToken")
        ident = self.tokens.get(token) if type(token) is str or type(token) is int else None
        if ident is not None:
            self.keep_alive(ident, at)


def sent(asked: PendingRequest, at: float, call_id: str, redact: bool) -> PendingRequest:
    """Return a request in its forwarded state; a new tuple is faster than ``_replace`` here."""
    return unchecked(
        PendingRequest, (None, *asked[1:6], call_id, 0.0, 0, redact, at, None, asked[12])
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


def task_reply(key: RequestId, body: dict[str, Any]) -> ToAgent:
    """Return the reply to a request with the body from the task table."""
    reply = render({"jsonrpc": "2.0", "id": key, **body})
    return ToAgent(reply, key, ANSWER, refusal_kind(body))


def tell_progress(waiting: dict[RequestId, PendingRequest], at: float) -> list[Command]:
    """Return progress notifications, with the callers' own tokens, for held calls that are due."""
    commands: list[Command] = []
    for key, asked in waiting.items():
        if asked.token is None or not asked.held_since:
            continue
        due = int((at - asked.held_since) / PROGRESS_EVERY_S)
        if due > asked.told:
            waiting[key] = asked._replace(told=due)
            told = render_progress(asked.token, due, HOLD_TEXT)
            commands.append(ToAgent(told, key, NOTICE))
    return commands


class SessionReplies:
    """Creates the replies and record events of one session."""

    def __init__(self, setup: SessionSettings) -> None:
        self._setup = setup
        self._refusals = 0

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
        self._refusals += 1
        setup = self._setup
        correlation_id = f"{setup.session}-f{self._refusals}"
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
        # An unknown verdict means a faulty judge and counts as a denial.
        kind = verdict.kind if verdict.kind in MESSAGES else "internal_error"
        error = {"class": "policy_block", "kind": kind, "message": MESSAGES[kind]}
        return self.failed(key, asked, kind, at, error=error, gate=verdict.gate, details=details)

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
    ) -> list[Command]:
        """Answer a request with an error of the gate, and record the end of its call."""
        if kind == "not_exposed":
            # Hidden and unknown names must be indistinguishable.
            gate = "visibility"
        elif self._setup.names_server:
            details = {**(details or {}), "server": self._setup.server}
        reply = render_error(
            key,
            kind,
            modern=asked.modern,
            message=text,
            gate=gate,
            tool=asked.shown or asked.name,
            correlation_id=asked.call_id,
            details=details,
        )
        if error is None:
            blame = "policy_block" if kind in UNSENT else "transport"
            error = {"class": blame, "kind": kind, "message": text or MESSAGES[kind]}
        told = ToAgent(reply, key, ANSWER, kind, gate)
        return [*self.ended(asked, at, status, len(reply), error), told]

    def timed_out(self, key: RequestId, asked: PendingRequest, at: float) -> list[Command]:
        """Answer a request that the server has not answered in time, and cancel it there."""
        kind, text = "tool_call_timeout", "no answer in time"
        error = {"class": "timeout", "kind": kind, "message": text}
        told = self.failed(key, asked, kind, at, error=error, status=TIMEOUT)
        return [*told, to_server_frame(render_cancelled(key, text))]

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
