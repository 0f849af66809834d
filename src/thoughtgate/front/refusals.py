"""Refusals of HTTP requests: each one is recorded with an id that the response repeats.

With that id, whoever reads the response finds the refusal with ``thoughtgate audit show``.
"""

from typing import Final

from thoughtgate.core.negotiation import GONE_IN_MODERN
from thoughtgate.core.record_events import AGENT_TO_SERVER, frame_refused
from thoughtgate.front.request_head import (
    JSON,
    RETRY_AFTER,
    is_modern_request,
    refuse,
    render_mismatch,
)
from thoughtgate.gate.clock import now
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.headers import Mismatch
from thoughtgate.wire.lines import length_of
from thoughtgate.wire.message import Message
from thoughtgate.wire.replies import render_error

TOO_MANY_SESSIONS: Final = "every session is in use; end one, or try again later"
NEEDS_SESSION: Final = "this needs a session: send initialize first, then its Mcp-Session-Id"
UNKNOWN_SESSION: Final = "there is no such session, or it has ended; send initialize again"


class Refusals:
    """Records and answers what an endpoint refuses outside of its sessions."""

    def __init__(self, authority: LocalAuthority, outbox: Outbox, server: str) -> None:
        self._authority = authority
        self._outbox = outbox
        self._server = server

    @property
    def last(self) -> str:
        """The id of the error that was recorded last, by whichever session."""
        return self._authority.errors.last

    def note(
        self,
        check: str,
        kind: str,
        frame: bytes,
        at: float,
        *,
        address: str = "",
        direction: str = AGENT_TO_SERVER,
    ) -> str:
        """Record a refused message that belongs to no session; return the id of the refusal."""
        ident = self._authority.errors.next()
        record = frame_refused(
            at,
            self._server,
            "0",
            direction=direction,
            check=check,
            kind=kind,
            size=length_of(frame),
            start=frame,
            correlation_id=ident,
            address=address,
        )
        self._authority.note(record)
        self._outbox.schedule()
        return ident

    def note_request(
        self, exchange: Exchange, check: str, kind: str = "invalid_request", at: float = 0.0
    ) -> str:
        """Record a refused request; return the id of the refusal."""
        return self.note(check, kind, exchange.body, at or now(), address=exchange.peer)

    def note_error(self, session: str, method: str, kind: str) -> str:
        """Record an error that no session reports; return its id."""
        ident = self._authority.governor.note_error(self._server, session, method, kind, now())
        self._outbox.schedule()
        return ident

    def refuse(
        self,
        exchange: Exchange,
        status: int,
        check: str,
        *,
        kind: str = "invalid_request",
        headers: bytes = b"",
    ) -> None:
        """Refuse a request with a status, once the refusal is on the record."""
        ident = self.note_request(exchange, check, kind)
        self._outbox.later(refuse, exchange, status, headers, ident)

    def want_session(self, exchange: Exchange, message: Message | None, at: float) -> None:
        """Refuse a request that needs a session and names none."""
        kind = "invalid_request"
        found = self.note_request(exchange, "missing_session", kind, at)
        ident = message.id if message is not None else None
        error = render_error(ident, kind, message=NEEDS_SESSION, correlation_id=found)
        self._outbox.later(exchange.respond, 400, JSON, error)

    def unknown_session(self, exchange: Exchange) -> None:
        """Refuse a request in a session that has ended, or that belongs to somebody else."""
        kind = "invalid_request"
        ident = self.note_request(exchange, "unknown_session", kind)
        error = render_error(None, kind, message=UNKNOWN_SESSION, correlation_id=ident)
        self._outbox.later(exchange.respond, 404, JSON, error)

    def too_many_sessions(self, exchange: Exchange, message: Message, at: float) -> None:
        """Refuse to open another session."""
        kind = "service_unavailable"
        ident = self.note_request(exchange, "too_many_sessions", kind, at)
        error = render_error(message.id, kind, message=TOO_MANY_SESSIONS, correlation_id=ident)
        self._outbox.later(exchange.respond, 503, JSON + RETRY_AFTER, error)

    def contradicts(
        self, exchange: Exchange, message: Message, mismatch: Mismatch | None, at: float
    ) -> bool:
        """Refuse a message that contradicts its own headers or its own revision."""
        if mismatch is not None:
            refusal = self.mismatch(exchange, message, mismatch, at)
            self._outbox.later(exchange.respond, 400, JSON, refusal)
            return True
        is_gone = message.method in GONE_IN_MODERN
        if is_gone and is_modern_request(exchange, message.body.get("params")):
            kind = "method_not_found"
            ident = self.note_request(exchange, "removed_method", kind, at)
            refusal = render_error(message.id, kind, modern=True, correlation_id=ident)
            self._outbox.later(exchange.respond, 404, JSON, refusal)
            return True
        return False

    def mismatch(
        self, exchange: Exchange, message: Message, mismatch: Mismatch, at: float
    ) -> bytes:
        """Record a message that contradicts its headers; return the error for it."""
        ident = self.note_request(exchange, "header_mismatch", "invalid_request", at)
        return render_mismatch(message.id, mismatch, ident)
