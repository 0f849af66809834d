"""What a session says: the wording of its replies and of its records.

A session decides what happens; this module turns that into commands, so that every refusal
has the same form.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.core.commands import ANSWER, NOTICE, Command, ToAgent, ToServer, WriteRecord
from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    ERROR,
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
from thoughtgate.wire.replies import MESSAGES, render, render_error, render_progress
from thoughtgate.wire.revisions import is_modern, with_traceparent
from thoughtgate.wire.unchecked import unchecked

MAX_OPEN: Final = 100_000
"""Requests open at once in one direction; each costs under half a KiB."""

MAX_HELD: Final = 32
"""Calls that may wait for a person on one connection before the next is refused."""

ORPHAN_AFTER_S: Final = 600.0
"""How long a server may be silent on a request when its config sets no timeout."""

LATE_FOR_S: Final = 3600.0
"""How long the id of a request that ended without the server's answer stays taken."""

PROGRESS_EVERY_S: Final = 10.0
"""Pace of progress while a call is held; common clients give up after 60 s of silence."""

HOLD_TEXT: Final = "waiting for a person to approve this call"

CALLER_GONE: Final = "the caller is gone"
STOPPING: Final = "the gate is stopping"
ASKED_IN_AGENT: Final = "the agent's own prompt asks; the call will be made again"
UNREADABLE: Final = "the server's answer could not be read safely and was dropped"


STRAY: Final = frozenset({"missing_version", "unclassifiable"})
"""What a server's own logging on its standard output looks like; it asks for nothing."""

NEVER_PASSED: Final = frozenset({"too_large", "id_in_use", "too_many"})
"""Faults that even the development profile cannot pass on: the bytes are gone, or ids would mix."""

UNSENT: Final = frozenset({"service_unavailable", "approval_withdrawn", "not_exposed"})
"""Kinds of error that say that the gate itself did not send a request on: no server has seen it."""


class SessionSettings(NamedTuple):
    """What a session is told about itself."""

    server: str
    session: str
    enforce: bool = True
    """False in the development profile: refuse nothing, record what would have been refused."""
    timeout_s: float = ORPHAN_AFTER_S
    max_held: int = MAX_HELD
    max_open: int = MAX_OPEN
    names_server: bool = False
    """Whether an error says which server it is about, where callers know several."""


class PendingRequest(NamedTuple):
    """A request of the agent that has no answer yet: before its verdict, held, or at the server."""

    message: Message | None
    """The frame, kept until it is sent on."""
    method: str
    name: str
    """The tool, resource or prompt it names; empty when no gate judges it."""
    at: float
    """When the agent asked."""
    modern: bool
    token: RequestId | None
    """The caller's progress token."""
    call_id: str = ""
    held_since: float = 0.0
    """When people were asked; 0 for a request that was not held."""
    told: int = 0
    """Progress notifications sent while it is held."""
    redact: bool = False
    """A rule wants the answer without its secrets."""
    alive_at: float = 0.0
    """When the server last showed that it works on it."""
    answer: tuple[bool | None, str] | None = None
    """What the person in front of the agent said of exactly this call, when it is made again;
    nothing but that they were asked where the first is None."""
    shown: str = ""
    """The name that the caller used, where it is not the server's own."""


class OfferedList(NamedTuple):
    """A list that the server sent and that waits to be screened."""

    message: Message
    listing: Listing
    asked: PendingRequest


def sent(asked: PendingRequest, at: float, call_id: str, redact: bool) -> PendingRequest:
    """Return a request as it is once the server has it; built anew, as every call passes here."""
    return unchecked(
        PendingRequest, (None, *asked[1:6], call_id, 0.0, 0, redact, at, None, asked[12])
    )


def traced(message: Message, trace: str) -> Message:
    """Return a request that tells the server under which trace it works."""
    body = with_traceparent(message.body, trace)
    return message._replace(body=body, raw=render(body))


def to_server_frame(data: bytes, key: RequestId | None = None) -> ToServer:
    """Return a frame of the gate's own for the server."""
    message = read_frame(data)
    return ToServer(data, key, message if isinstance(message, Message) else None)


def task_reply(key: RequestId, body: dict[str, Any]) -> ToAgent:
    """Return the answer to a request, as the table of tasks words it."""
    reply = render({"jsonrpc": "2.0", "id": key, **body})
    return ToAgent(reply, key, ANSWER, refusal_kind(body))


def tell_progress(waiting: dict[RequestId, PendingRequest], at: float) -> list[Command]:
    """Send progress with the caller's own token on each held call that is due for it."""
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
    """Words what one session says."""

    def __init__(self, setup: SessionSettings) -> None:
        self._setup = setup
        self._refusals = 0

    def seen(self, message: Message, at: float, direction: str, method: str = "") -> WriteRecord:
        """Put an ungated message on the record."""
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
        """Tell whether a refused frame goes on all the same, as in the development profile."""
        return not self._setup.enforce and fault.check not in NEVER_PASSED

    def refused(
        self, fault: Fault, line: bytes, at: float, direction: str, message: Message | None = None
    ) -> list[Command]:
        """Refuse a frame: on the record, and to the one who asked with it."""
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
                ToAgent(reply, None, ANSWER, fault.kind) if to_server else to_server_frame(reply)
            )
        return commands

    def denied(
        self, key: RequestId, asked: PendingRequest, verdict: Verdict, at: float
    ) -> list[Command]:
        """Tell the caller that its call is not made, and nothing about the rules."""
        details: dict[str, Any] = {}
        if verdict.retry_after_s:
            details["retry_after"] = round(verdict.retry_after_s, 3)
        # A verdict that is neither forward nor a known denial comes from a judge gone wrong.
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
        """Answer a request with an error of ours, and end its call on the record."""
        if kind == "not_exposed":
            # Hidden, unknown and elsewhere must look the same.
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
        """End a call on the record; nothing for a request that no gate judged."""
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
