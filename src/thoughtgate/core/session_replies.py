"""The clerk of a session: words its replies and its records.

A session decides what happens; the clerk turns that into commands. Keeping the wording
here keeps the session readable and makes every refusal look alike.
"""

from typing import Any, Final, NamedTuple

from thoughtgate.core.commands import Command, ToAgent, ToServer, WriteRecord
from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    ERROR,
    call_ended,
    frame_refused,
    message_seen,
)
from thoughtgate.policy.call import Verdict
from thoughtgate.wire.lines import length_of
from thoughtgate.wire.message import Fault, Message, RequestId
from thoughtgate.wire.replies import MESSAGES, render, render_error
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

NEVER_PASSED: Final = frozenset({"too_large", "id_in_use", "too_many"})
"""Faults that even the development profile cannot pass on: the bytes are gone, or ids would mix."""

UNSENT: Final = frozenset({"service_unavailable", "approval_withdrawn", "not_exposed"})
"""Kinds of error that say that the gate itself did not send a request on: no server has seen it."""


class Setup(NamedTuple):
    """What a session is told about itself."""

    server: str
    session: str
    enforce: bool = True
    """False in the development profile: refuse nothing, record what would have been refused."""
    timeout_s: float = ORPHAN_AFTER_S
    max_held: int = MAX_HELD
    max_open: int = MAX_OPEN


class Asked(NamedTuple):
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


def sent(asked: Asked, at: float, call_id: str, redact: bool) -> Asked:
    """Return a request as it is once the server has it; built anew, as every call passes here."""
    return unchecked(Asked, (None, *asked[1:6], call_id, 0.0, 0, redact, at, None))


def traced(message: Message, trace: str) -> Message:
    """Return a request that tells the server under which trace it works."""
    body = with_traceparent(message.body, trace)
    return message._replace(body=body, raw=render(body))


class Clerk:
    """Words what one session says."""

    def __init__(self, setup: Setup) -> None:
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
            commands.append(ToServer(data) if to_server else ToAgent(data))
        elif fault.answerable and (to_server or fault.id is not None):
            reply = render_error(
                fault.id,
                fault.kind,
                modern=message is not None and is_modern(message.body.get("params")),
                message=fault.reason,
                correlation_id=correlation_id,
                details={"check": fault.check},
            )
            commands.append(ToAgent(reply) if to_server else ToServer(reply))
        return commands

    def denied(self, key: RequestId, asked: Asked, verdict: Verdict, at: float) -> list[Command]:
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
        asked: Asked,
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
        reply = render_error(
            key,
            kind,
            modern=asked.modern,
            message=text,
            gate=gate,
            tool=asked.name,
            correlation_id=asked.call_id,
            details=details,
        )
        if error is None:
            blame = "policy_block" if kind in UNSENT else "transport"
            error = {"class": blame, "kind": kind, "message": text or MESSAGES[kind]}
        return [*self.ended(asked, at, status, len(reply), error), ToAgent(reply, key)]

    def ended(
        self,
        asked: Asked,
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
