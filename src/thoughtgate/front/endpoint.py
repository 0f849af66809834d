"""One MCP endpoint over HTTP: posts, batches, streams and sessions.

An endpoint reads messages, checks them against their headers, finds their session and
hands them to the peer. It does not judge calls. Only the backend knows whether one server
or a catalogue of servers answers. Every request reaches a server through a session, so no
request can bypass the policy.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

from thoughtgate.core.events import AgentSent
from thoughtgate.core.record_events import (
    AGENT_CONNECTED,
    SERVER_TO_AGENT,
    UNREAD_HTTP,
    Record,
)
from thoughtgate.errors import StoreError
from thoughtgate.front.authentication import Identity, scope_challenge
from thoughtgate.front.backend import Backend, OpenStream
from thoughtgate.front.batch import Batch
from thoughtgate.front.peer import Peer
from thoughtgate.front.post import Post
from thoughtgate.front.refusals import Refusals
from thoughtgate.front.request_head import (
    JSON,
    RETRY_AFTER,
    HeadFacts,
    accepts_stream,
    header_mismatch,
    refusal_kind,
)
from thoughtgate.front.session_handshake import Handshake, handshake_of
from thoughtgate.front.sessions import SESSION_ENDED, HttpSession, SessionTable, session_name
from thoughtgate.front.shared_sessions import SharedSessions
from thoughtgate.gate.clock import now
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.batch import is_batch, one_line, split_batch
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.message import REQUEST, RESPONSE, Fault, Message
from thoughtgate.wire.methods import CANCELLED, LISTEN
from thoughtgate.wire.replies import render_error
from thoughtgate.wire.revisions import META, version_in
from thoughtgate.wire.unchecked import unchecked

TICK_S: Final = 1.0
EXPIRE_EVERY: Final = 30
"""Ticks between two checks for idle sessions."""

MAX_LEFT: Final = 256
"""Requests that agents have left and that are waited for, for the record; above it, the oldest is
cancelled. They do not count as calls in progress."""

ALLOW: Final = b"allow: POST, GET, DELETE\r\n"
UNCHECKED: Final = "cannot be checked, because the server has not listed this tool"

# Batches were part of 2025-03-26 and earlier; revision 2025-06-18 removed them.
_BATCHED: Final = frozenset({b"2025-03-26", b"2024-11-05"})


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Settings of an endpoint."""

    auth_method: str
    """How agents authenticate, for the record."""
    enforce: bool = True
    max_batch: int = 100
    scope_challenge: Callable[[str], bytes] = scope_challenge
    """Returns the header that tells a client which scopes its token must have."""


class Endpoint:
    """Answers the requests for one MCP endpoint."""

    def __init__(
        self,
        options: EndpointOptions,
        backend: Backend,
        sessions: SessionTable,
        *,
        shared: SharedSessions | None = None,
        on_batch: Callable[[int], None] = lambda _size: None,
    ) -> None:
        self._options = options
        self._backend = backend
        self._sessions = sessions
        self._shared = shared
        self._on_batch = on_batch
        self._authority, self._outbox = backend.authority, backend.outbox
        self.refusals = Refusals(backend.authority, backend.outbox, backend.server)
        self.send, self.send_part = backend.send, backend.send_part
        self.active = 0
        """Number of POSTs that are not answered yet."""
        self._entries: dict[Peer, HttpSession] = {}
        self._peers: dict[Peer, int] = {}
        """Number of POSTs in progress per peer."""
        self._left: dict[Post, None] = {}
        """Posts whose agents are gone, the oldest first."""
        self._orphans: set[Peer] = set()
        """Peers without a waiting client, whose requests the server may still be working on."""
        self._handshakes: dict[Peer, Handshake] = {}
        """The handshakes of sessions that are being opened."""
        self._streams: dict[OpenStream, HttpSession] = {}
        self._opened = 0
        self._ticks = 0
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(TICK_S, self._tick)
        backend.on_refused = self._server_refused
        sessions.on_dropped = self._dropped
        if shared is not None:
            shared.add(self)

    @property
    def is_in_use(self) -> bool:
        """Whether any request or stream is open."""
        return self.active > 0 or self.stream_count > 0

    @property
    def sessions_by_name(self) -> dict[str, HttpSession]:
        """The open sessions by their names in the shared store."""
        return self._sessions.by_name

    @property
    def stream_count(self) -> int:
        """Number of open GET streams."""
        self._drop_ended_streams()
        return len(self._streams)

    def receive(self, exchange: Exchange, who: Identity) -> None:
        """Handle a complete request of an authenticated client."""
        if exchange.method == b"POST":
            self._post(exchange, who)
        elif exchange.method in {b"GET", b"DELETE"}:
            self._stream(exchange, who)
        else:
            self.refusals.refuse(exchange, 405, UNREAD_HTTP, headers=ALLOW)

    # POST.

    def _post(self, exchange: Exchange, who: Identity) -> None:
        at = now()
        body = exchange.body
        if body[:1] != b"{" and is_batch(body):
            self._batch(exchange, who, at)
            return
        message = read_quickly(one_line(body))
        if isinstance(message, Fault):
            # A faulty message goes through a session as well: the session refuses it and puts
            # the refusal on the record.
            peer = self._backend.open_peer(who, is_modern=False)
            post = Post(self, exchange, peer, key=None, method="", at=at)
            # A session ignores an empty frame; with the space, an empty body is refused as well.
            self._feed(post, AgentSent(body or b" ", at, message))
            return
        facts: HeadFacts = exchange.head.memo
        params = message.body.get("params")
        states_version = params is not None and META in params and version_in(params) is not None
        # Headers are compared only if the revision requires them or the client sent them: this
        # keeps the common path of older revisions short.
        is_modern = states_version or facts.is_modern
        unlisted = False
        if is_modern or facts.is_mirrored:
            mismatch = self._mismatch(exchange, message) if self._options.enforce else None
            # A call of an unlisted tool is compared later, when the gate has fetched the list.
            unlisted = mismatch is not None and mismatch.reason == UNCHECKED
            unlisted = unlisted and message.shape == REQUEST
            if self.refusals.contradicts(exchange, message, None if unlisted else mismatch, at):
                return
        entry = None
        if not is_modern:
            if facts.session is not None:
                entry = self._find_session(exchange, who, facts.session)
                if entry is None:
                    return
            elif self._backend.needs_sessions and message.method != "initialize":
                self.refusals.want_session(exchange, message, at)
                return
        if self._authority.governor.trace is not None:
            message = self._backend.with_trace_facts(message, exchange)
        self._message(exchange, who, message, entry, is_modern=is_modern, unlisted=unlisted, at=at)

    def _message(
        self,
        exchange: Exchange,
        who: Identity,
        message: Message,
        entry: HttpSession | None,
        *,
        is_modern: bool,
        unlisted: bool,
        at: float,
    ) -> None:
        if entry is not None:
            peer = entry.peer
        elif message.method == "initialize" and not is_modern:
            if not self._sessions.limit.make_room():
                self.refusals.too_many_sessions(exchange, message, at)
                return
            peer = self._session_peer(who)
            self._sessions.limit.reserve(peer)
            self._handshakes[peer] = handshake_of(message.body.get("params"), at)
            self._introduce(exchange, peer, self._handshakes[peer])
        else:
            peer = self._backend.open_peer(who, is_modern=is_modern)
        key = message.id if message.shape == REQUEST else None
        post = Post(self, exchange, peer, key=key, method=message.method, at=at)
        if entry is not None:
            post.session, post.upstream_session = entry.ident, entry.upstream
        # Another POST of the session may be using the id; then the session refuses this one.
        if key is not None and peer.callers.setdefault(key, post) is post and unlisted:
            peer.header_checks[key] = partial(self._agrees, post, message)
        shared = self._shared
        if entry is not None and shared is not None:
            if not shared.is_watching:
                shared.watch()
            if key is None and self._is_carried(shared, entry, post, message):
                return
        self._feed(post, unchecked(AgentSent, (message.raw, at, message, "")))

    def _is_carried(
        self, shared: SharedSessions, entry: HttpSession, post: Post, message: Message
    ) -> bool:
        """Tell whether the message goes to another gate, which has the request that it is for."""
        if message.method == CANCELLED:
            shared.cancelled(entry, message)
        if message.shape != RESPONSE:
            return False

        def done(status: int) -> None:
            if status == HTTPStatus.ACCEPTED:
                post.passed(status, b"", b"")
                return
            kind = refusal_kind(status)
            ident = self.refusals.note_request(post.exchange, "unknown_response", kind)
            self._outbox.later(post.refuse, status, render_error(None, kind, correlation_id=ident))

        is_carried = shared.answered(entry, message, done)
        if is_carried:
            self.active += 1
            self._peers[entry.peer] = self._peers.get(entry.peer, 0) + 1
        return is_carried

    def _agrees(self, post: Post, message: Message) -> bool:
        """Compare a call with its headers now that the gate has asked for the list of tools."""
        mismatch = self._mismatch(post.exchange, message)
        if mismatch is not None:
            refusal = self.refusals.mismatch(post.exchange, message, mismatch, now())
            self._outbox.later(post.answered, refusal, 400, JSON)
        return mismatch is None

    def _feed(self, post: Post, event: AgentSent) -> None:
        peer = post.peer
        self.active += 1
        self._peers[peer] = self._peers.get(peer, 0) + 1
        # Ask before feeding: the session forgets its prompt once it has the answer.
        asked = post.key is None and peer.is_answered_by(event)
        frames = peer.feed(event, post)
        if not frames and post.key is None and not self._outbox.carries(post):
            # If it was not wanted, its refusal is the error that was recorded last.
            self._outbox.later(post.unheard, asked, self.last_error)

    def _batch(self, exchange: Exchange, who: Identity, at: float) -> None:
        named = exchange.headers.get(mirror.SESSION)
        entry = None
        if named is not None:
            entry = self._find_session(exchange, who, named)
            if entry is None:
                return
        elif self._backend.needs_sessions:
            self.refusals.want_session(exchange, None, at)
            return
        messages: list[Message | Fault] | Fault
        version = exchange.headers.get(mirror.VERSION)
        if version is not None and version.strip() not in _BATCHED:
            text = "batches are not accepted here"
            messages = Fault("invalid_request", text, "batch")
        else:
            messages = split_batch(exchange.body, self._options.max_batch)
        peer = entry.peer if entry is not None else self._backend.open_peer(who, is_modern=False)
        facts: HeadFacts = exchange.head.memo
        peer.trace, peer.address = facts.trace, exchange.peer
        if isinstance(messages, Fault):
            post = Post(self, exchange, peer, key=None, method="", at=at)
            self._feed(post, AgentSent(exchange.body, at, messages))
            return
        batch = Batch(
            self,
            exchange,
            peer,
            accepts_stream=accepts_stream(exchange.headers),
            upstream_session=entry.upstream if entry is not None else "",
        )
        self.active += 1
        self._peers[peer] = self._peers.get(peer, 0) + 1
        self._on_batch(len(messages))
        batch.feed(messages, at)

    def _mismatch(self, exchange: Exchange, message: Message) -> mirror.Mismatch | None:
        mismatch = header_mismatch(exchange, message)
        if mismatch is not None:
            return mismatch
        if message.method != "tools/call":
            stray = mirror.stray_param(exchange.headers)
            return mirror.Mismatch(stray, "has no matching argument") if stray else None
        params = message.body.get("params") or {}
        name, arguments = params.get("name"), params.get("arguments") or {}
        if type(name) is not str or type(arguments) is not dict:
            return None
        wanted = self._backend.param_headers(name)
        if wanted is None:
            # The server would read headers that nobody has compared with the judged arguments.
            stray = mirror.stray_param(exchange.headers)
            return mirror.Mismatch(stray, UNCHECKED) if stray else None
        required = version_in(params) is not None
        return mirror.check_params(wanted, exchange.headers, arguments, required=required)

    # GET and DELETE.

    def _stream(self, exchange: Exchange, who: Identity) -> None:
        named = exchange.headers.get(mirror.SESSION)
        if named is None:
            self.refusals.refuse(exchange, 405, UNREAD_HTTP, headers=ALLOW)
            return
        entry = self._find_session(exchange, who, named)
        if entry is None:
            return
        if exchange.method == b"DELETE":
            self._backend.end_session(exchange, entry, self._close_session)
        elif not accepts_stream(exchange.headers):
            self.refusals.refuse(exchange, 406, UNREAD_HTTP)
        else:
            self._drop_ended_streams()
            self._streams[self._backend.open_stream(exchange, entry)] = entry
            if self._shared is not None and not self._shared.is_watching:
                self._shared.watch()

    def _drop_ended_streams(self) -> None:
        streams = self._streams.items()
        self._streams = {one: entry for one, entry in streams if not _is_over(one.exchange)}

    def _end_streams(self, ended: HttpSession) -> None:
        """End the streams of a session that has ended."""
        for stream in [one for one, entry in self._streams.items() if entry is ended]:
            del self._streams[stream]
            if not _is_over(stream.exchange):
                stream.close()

    # Sessions.

    def open_session(self, post: Post, upstream: str) -> str:
        """Register the session that the server named; return the agent's id for it."""
        peer = post.peer
        known = self._entries.get(peer)
        if known is not None:
            return known.ident
        if post.method != "initialize" or post.exchange.is_gone:
            return ""
        handshake = self._handshakes.pop(peer, None) or Handshake(int(now()))
        entry = self._sessions.open(upstream, peer.principal, peer, handshake)
        self._enter(peer, entry)
        facts = {"method": self._options.auth_method, "identity": peer.principal}
        record = Record(AGENT_CONNECTED, now(), self._backend.server, peer.label, {"agent": facts})
        self._authority.note(record)
        self._outbox.schedule()
        return entry.ident

    def _enter(self, peer: Peer, entry: HttpSession) -> None:
        self._entries[peer] = entry
        self._backend.entered(peer, entry)

    def _find_session(self, exchange: Exchange, who: Identity, named: bytes) -> HttpSession | None:
        ident = named.decode("latin-1")
        entry = self._sessions.find(ident, who.principal)
        try:
            entry = entry or self._continue_session(exchange, ident, who)
        except StoreError:
            kind = "service_unavailable"
            self.refusals.refuse(exchange, 503, "unknown_session", kind=kind, headers=RETRY_AFTER)
            return None
        if entry is None:
            self.refusals.unknown_session(exchange)
            return None
        entry.peer.claims = who.claims
        return entry

    def _continue_session(
        self, exchange: Exchange, ident: str, who: Identity
    ) -> HttpSession | None:
        """Continue a session that another process opened, if there is room for it.

        Raises:
            StoreError: it is not known whether the session has ended.
        """
        sessions, principal = self._sessions, who.principal
        known = sessions.read(ident, principal) if self._backend.adopts_sessions else None
        if known is None:
            return None
        if self._shared is not None and self._shared.is_ended(session_name(ident)):
            return None
        if not sessions.limit.make_room():
            return None
        upstream, handshake = known
        peer = self._session_peer(who)
        self._introduce(exchange, peer, handshake)
        entry = sessions.enter(HttpSession(ident, upstream, principal, peer, handshake))
        self._enter(peer, entry)
        self._backend.continued(peer, entry)
        return entry

    def _close_session(self, entry: HttpSession) -> None:
        if self._shared is not None:
            self._shared.end(entry)
        self._forget_session(entry)

    def session_ended(self, entry: HttpSession) -> None:
        """Close a session that was ended at another gate."""
        self._forget_session(entry)
        self._backend.abandon(entry)
        self._outbox.schedule()

    def _forget_session(self, entry: HttpSession) -> None:
        self._sessions.forget(entry.ident)
        self._entries.pop(entry.peer, None)
        self._end_streams(entry)
        self._authority.held.withdraw_all(SESSION_ENDED, entry.peer)

    def _introduce(self, exchange: Exchange, peer: Peer, handshake: Handshake) -> None:
        """Have the record say who the agent of a session is."""
        self._authority.governor.introduce(
            peer.label,
            client=" ".join(part for part in handshake.client if part),
            address=exchange.peer,
            principal=peer.principal,
        )

    def _session_peer(self, who: Identity) -> Peer:
        self._opened += 1
        peer = self._backend.open_session(who, str(self._opened))
        peer.claims = who.claims
        return peer

    # Called by posts and batches.

    def note_error(self, peer: Peer, method: str, kind: str) -> str:
        """Record an error that no session reports; return its id."""
        return self.refusals.note_error(peer.label, method, kind)

    @property
    def last_error(self) -> str:
        """The id of the error that was recorded last."""
        return self.refusals.last

    def scope_challenge(self, scopes: str) -> bytes:
        """Return the header that tells a client which scopes its token must have."""
        return self._options.scope_challenge(scopes)

    def prevented(self) -> None:
        """Count an approved call that is not made because its caller has disconnected."""
        self._authority.held.prevented += 1

    def left(self, post: Post) -> None:
        """Stop counting a post as a call in progress: its agent left before the response arrived.

        Otherwise one agent could use up every place with calls that it does not wait for.
        """
        self.active -= 1
        self._left[post] = None
        if len(self._left) > MAX_LEFT:
            next(iter(self._left)).give_up()

    def closed(self, peer: Peer, *, is_spare: bool = True, left: Post | None = None) -> None:
        """Release the peer of a post or batch that was answered or abandoned."""
        if left is not None:
            self._left.pop(left, None)
        else:
            self.active -= 1
        others = self._peers.get(peer, 0) - 1
        if others > 0:
            self._peers[peer] = others
            return
        self._peers.pop(peer, None)
        if peer in self._entries:
            return
        self._sessions.limit.release(peer)
        self._handshakes.pop(peer, None)
        is_spent = peer.is_spent
        if not is_spent and peer.is_busy:
            self._orphans.add(peer)
            return
        if is_spent and is_spare:
            self._backend.give_back(peer)
        else:
            self._backend.forget(peer)

    def _server_refused(self, line: bytes, check: str) -> None:
        self.refusals.note(check, "invalid_request", line, now(), direction=SERVER_TO_AGENT)

    # Timers and shutdown.

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK_S, self._tick)
        self._ticks += 1
        at = now()
        for peer in [*self._peers, *self._orphans]:
            peer.tick(at)
        for peer in [peer for peer in self._orphans if not peer.is_busy]:
            self._orphans.discard(peer)
            self._backend.forget(peer)
        self._backend.tick(at)
        if self._shared is not None:
            self._shared.tick()
        if self._ticks % EXPIRE_EVERY == 0:
            self._expire(at)

    def _expire(self, at: float) -> None:
        for entry in self._sessions.entries():
            if entry.peer not in self._peers and entry.peer.is_busy:
                entry.peer.tick(at)
        self._drop_ended_streams()
        for entry in self._streams.values():
            self._sessions.touch(entry.ident)  # An open stream shows that the agent is present.
        self._sessions.expire()

    def _dropped(self, entry: HttpSession) -> None:
        self._entries.pop(entry.peer, None)
        self._end_streams(entry)
        self._backend.forget(entry.peer)

    def drain(self) -> None:
        """End the streams; calls in progress may still be answered."""
        for stream in self._streams:
            if not _is_over(stream.exchange):
                stream.close()
        self._streams.clear()
        for peer in list(self._peers):
            for caller in list(peer.callers.values()):
                if isinstance(caller, Post) and caller.method == LISTEN:
                    caller.gone()  # A subscription never ends by itself; waiting would be useless.

    def close(self, reason: str) -> None:
        """Stop, and answer every request that is still open."""
        self._timer.cancel()
        if self._shared is not None:
            self._shared.remove(self)
        self._sessions.limit.remove(self._sessions)
        at = now()
        for peer in {*self._peers, *self._orphans, *self._entries}:
            peer.stop(reason, at)
        self._backend.stop(reason)


def _is_over(exchange: Exchange) -> bool:
    return exchange.is_answered or exchange.is_gone
