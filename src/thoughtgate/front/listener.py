"""The HTTP gateway: every request that reaches it, and what becomes of it.

It decides by path, method, caller and era; it does not judge calls (the governor does),
nor does it know how the server is reached (the upstream does). There is no way from the
listener to the server but through a session.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from thoughtgate.core import task_codec
from thoughtgate.core.events import AgentSent, ServerGone
from thoughtgate.core.record_events import (
    AGENT_AUTH_REJECTED,
    AGENT_CONNECTED,
    AGENT_TO_SERVER,
    SERVER_TO_AGENT,
    UNREAD_HTTP,
    Record,
    frame_refused,
)
from thoughtgate.core.session_replies import Setup
from thoughtgate.front.authentication import (
    NONE,
    Entrance,
    Identity,
    KeySet,
    Rejection,
    misdirected,
)
from thoughtgate.front.batch import Batch
from thoughtgate.front.detached_calls import Alone, LoneCalls
from thoughtgate.front.post import JSON, Leg, Post
from thoughtgate.front.request_head import (
    REMOVED,
    Expected,
    accepts_stream,
    admit_page,
    facts_of,
    header_mismatch,
    read_head,
    render_mismatch,
    render_refusal,
)
from thoughtgate.front.sessions import Entry, SessionTable
from thoughtgate.gate.clock import now
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.session_driver import Desk, Flow, Outbox, Shared, SpareFlows, ToolHeaders
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire import headers as mirror
from thoughtgate.wire.batch import is_batch, one_line, split_batch
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.message import REQUEST, Fault, Message, RequestId
from thoughtgate.wire.replies import render, render_error
from thoughtgate.wire.revisions import META, version_in
from thoughtgate.wire.unchecked import unchecked

METADATA: Final = b"/.well-known/oauth-protected-resource"

TICK_S: Final = 1.0
EXPIRE_EVERY: Final = 30
"""Ticks between looks for sessions that nobody uses."""

RETRY_AFTER: Final = b"retry-after: 1\r\n"
ALLOW: Final = b"allow: POST\r\n"

_BATCHED: Final = frozenset({b"2025-03-26", b"2024-11-05"})


Page: TypeAlias = tuple[int, bytes, bytes]
"""Status, rendered headers and body of a page that the gate itself serves."""


class OpenStream(Protocol):
    """A stream to an agent."""

    exchange: Exchange

    def close(self) -> None:
        """End it from our side."""


class Upstream(Protocol):
    """A server behind the gateway."""

    @property
    def names_sessions(self) -> bool:
        """Whether the server, not the gateway, names the sessions."""

    @property
    def adopts_sessions(self) -> bool:
        """Whether a session that another process of the gate opened can be gone on with here."""

    def send(self, post: Post, data: bytes, key: RequestId | None) -> None:
        """Send a frame; its answer comes to the post."""

    def send_part(self, batch: Batch, data: bytes, key: RequestId | None) -> Leg | None:
        """Send one message of a batch; its answer comes to the batch."""

    def notify(self, flow: Flow, entry: Entry | None, data: bytes) -> None:
        """Send a frame that belongs to no POST."""

    def send_alone(
        self, alone: Alone, entry: Entry | None, data: bytes, tools: ToolHeaders
    ) -> None:
        """Send a frame that no caller waits for."""

    def open_stream(self, exchange: Exchange, entry: Entry) -> OpenStream:
        """Open the stream on which the server speaks unasked."""

    def end_session(self, exchange: Exchange, entry: Entry, ended: Callable[[Entry], None]) -> None:
        """End a session and answer; tell when it has really ended."""

    def forget(self, flow: Flow) -> None:
        """A flow is over without having been ended, or never became a session."""

    on_refused: Callable[[bytes, str], None]
    """Told of frames of the server that no session can take."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """What the gateway is told about itself."""

    server: str
    enforce: bool = True
    timeout_s: float = 30.0
    max_held: int = 32
    max_concurrent: int = 10_000
    max_batch: int = 100


class Gateway:
    """Answers every request to the listener."""

    def __init__(
        self,
        options: GatewayOptions,
        governor: Governor,
        upstream: Upstream,
        entrance: Entrance,
        sessions: SessionTable,
        *,
        keys: KeySet | None = None,
        metadata: bytes | None = None,
        pages: Mapping[bytes, Callable[[], Page]] | None = None,
    ) -> None:
        self.options = options
        self._governor = governor
        self._upstream = upstream
        self._entrance = entrance
        self._sessions = sessions
        self._keys = keys
        self._metadata = metadata
        self._pages = dict(pages or {})
        self.expected = Expected(frozenset(), 0, frozenset())
        self.outbox = Outbox(governor)
        self.desk = Desk(governor)
        self._tools = ToolHeaders()
        self._entries: dict[Flow, Entry] = {}
        self.alone = LoneCalls(upstream, sessions, self._entries, self._tools)
        self._shared = Shared(
            governor,
            self.outbox,
            self.desk,
            self._tools,
            entrance.method != NONE,
            self._notify,
            self.alone.run,
        )
        self.active = 0
        """POSTs that are not answered yet."""
        self.is_draining = False
        self.on_batch: Callable[[int], None] = lambda _size: None
        """Told of every batch and its size."""
        self._setup = Setup(
            options.server, "", options.enforce, options.timeout_s, options.max_held
        )
        """The last setup of a session; most differ only in their label, if at all."""
        self._flows: dict[Flow, int] = {}
        """Flows with POSTs under way, and how many."""
        self._spares = SpareFlows()
        self._orphans: set[Flow] = set()
        """Flows that nobody waits for, with requests that the server may still work on."""
        self._streams: set[OpenStream] = set()
        self._opened = 0
        self._ticks = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(TICK_S, self._tick)
        upstream.on_refused = self._server_refused
        sessions.on_dropped = self._dropped

    @property
    def session_count(self) -> int:
        """Sessions that are open."""
        return len(self._sessions)

    # The server's callbacks.

    def opened(self, exchange: Exchange) -> None:
        """Check the head; what is refused here is refused before its body is read."""
        facts = read_head(exchange, self.expected)
        if facts.place:
            self._note_rejection(misdirected(facts.place))
            self._say(exchange, facts.place)
        if facts.place or facts.is_page or admit_page(exchange):
            return
        who = self._entrance.check(exchange.peer, exchange.headers, exchange.repeated)
        if isinstance(who, Rejection):
            self._reject(exchange, who)
            return
        exchange.facts = who
        if exchange.method == b"POST":
            if facts.post:
                self._say(exchange, facts.post)
            elif self.is_draining or self.active >= self.options.max_concurrent:
                self._say(exchange, 503, RETRY_AFTER)

    def completed(self, exchange: Exchange) -> None:
        """The whole request is here."""
        facts = facts_of(exchange)
        if facts.is_page:
            self._page(exchange, facts.path)
        elif exchange.facts is None:
            self._spawn(self._identify_late(exchange))
        else:
            self._identified(exchange)

    def refused(self, exchange: Exchange, status: int) -> None:
        """The request cannot be read."""
        self._note_refusal(UNREAD_HTTP, "invalid_request", len(exchange.body), now())
        self._say(exchange, status)

    async def _identify_late(self, exchange: Exchange) -> None:
        if self._keys is not None:
            await self._keys.fetch()
        who = self._entrance.check(exchange.peer, exchange.headers, exchange.repeated)
        if isinstance(who, Identity):
            exchange.facts = who
            self._identified(exchange)
        else:
            self._reject(exchange, who or Rejection(401, "jwt", "token signed by an unknown key"))

    def _identified(self, exchange: Exchange) -> None:
        who = exchange.facts
        if not isinstance(who, Identity):
            self._say(exchange, 403)
        elif exchange.method == b"POST":
            self._post(exchange, who)
        elif exchange.method in {b"GET", b"DELETE"}:
            self._stream(exchange, who)
        else:
            self._say(exchange, 405, ALLOW)

    # POST.

    def _post(self, exchange: Exchange, who: Identity) -> None:
        at = now()
        body = exchange.body
        if body[:1] != b"{" and is_batch(body):
            self._batch(exchange, who, at)
            return
        message = read_quickly(one_line(body))
        if isinstance(message, Fault):
            flow = self._passing_flow(who, is_modern=False)
            post = Post(self, exchange, flow, key=None, method="", at=at)
            self._feed(post, AgentSent(body or b" ", at, message))
            return
        facts = facts_of(exchange)
        params = message.body.get("params")
        states_version = params is not None and META in params and version_in(params) is not None
        if (states_version or facts.is_mirrored) and self._contradicts(exchange, message, at):
            return
        entry = None
        is_modern = states_version or facts.is_modern
        if facts.session is not None and not is_modern:
            entry = self._find_session(exchange, who, facts.session)
            if entry is None:
                return
        self._message(exchange, who, message, entry, is_modern=is_modern, at=at)

    def _contradicts(self, exchange: Exchange, message: Message, at: float) -> bool:
        """Refuse what contradicts its own headers, or its own revision."""
        mismatch = self._mismatch(exchange, message)
        if mismatch is not None and self.options.enforce:
            self._note_refusal("header_mismatch", "invalid_request", len(exchange.body), at)
            exchange.respond(400, JSON, render_mismatch(message.id, mismatch))
            return True
        if message.method in REMOVED and version_in(message.body.get("params")) is not None:
            self._note_refusal("removed_method", "method_not_found", len(exchange.body), at)
            exchange.respond(404, JSON, render_error(message.id, "method_not_found", modern=True))
            return True
        return False

    def _message(
        self,
        exchange: Exchange,
        who: Identity,
        message: Message,
        entry: Entry | None,
        *,
        is_modern: bool,
        at: float,
    ) -> None:
        if entry is not None:
            flow = entry.flow
        elif message.method == "initialize" and not is_modern:
            flow = self._session_flow(who)
        else:
            flow = self._passing_flow(who, is_modern=is_modern)
        key = message.id if message.shape == REQUEST else None
        post = Post(self, exchange, flow, key=key, method=message.method, at=at)
        if entry is not None:
            post.session, post.upstream_session = entry.ident, entry.upstream
        if key is not None:
            flow.callers.setdefault(key, post)
        self._feed(post, unchecked(AgentSent, (message.raw, at, message)))

    def _feed(self, post: Post, event: AgentSent) -> None:
        flow = post.flow
        self.active += 1
        self._flows[flow] = self._flows.get(flow, 0) + 1
        asked = post.key is None and flow.is_answered_by(event)
        frames = flow.feed(event, post)
        if not frames and post.key is None and not self.outbox.carries(post):
            self.outbox.later(post.unheard, asked)

    def _batch(self, exchange: Exchange, who: Identity, at: float) -> None:
        named = exchange.headers.get(mirror.SESSION)
        entry = None
        if named is not None:
            entry = self._find_session(exchange, who, named)
            if entry is None:
                return
        messages: list[Message | Fault] | Fault
        version = exchange.headers.get(mirror.VERSION)
        if version is not None and version.strip() not in _BATCHED:
            text = "batches are not accepted here"
            messages = Fault("invalid_request", text, "batch")
        else:
            messages = split_batch(exchange.body, self.options.max_batch)
        flow = entry.flow if entry is not None else self._passing_flow(who, is_modern=False)
        flow.trace = facts_of(exchange).trace
        if isinstance(messages, Fault):
            post = Post(self, exchange, flow, key=None, method="", at=at)
            self._feed(post, AgentSent(exchange.body, at, messages))
            return
        batch = Batch(
            self,
            exchange,
            flow,
            accepts_stream=accepts_stream(exchange.headers),
            upstream_session=entry.upstream if entry is not None else "",
        )
        self.active += 1
        self._flows[flow] = self._flows.get(flow, 0) + 1
        self.on_batch(len(messages))
        batch.feed(messages, at)

    def _mismatch(self, exchange: Exchange, message: Message) -> mirror.Mismatch | None:
        mismatch = header_mismatch(exchange, message)
        if mismatch is not None or message.method != "tools/call":
            return mismatch
        params = message.body.get("params") or {}
        name, arguments = params.get("name"), params.get("arguments") or {}
        if type(name) is not str or type(arguments) is not dict:
            return None
        wanted = self._tools.of(name)
        if not wanted or version_in(params) is None:
            return None
        return mirror.check_params(wanted, exchange.headers, arguments)

    # GET and DELETE.

    def _stream(self, exchange: Exchange, who: Identity) -> None:
        named = exchange.headers.get(mirror.SESSION)
        if named is None:
            self._say(exchange, 405, ALLOW)
            return
        entry = self._find_session(exchange, who, named)
        if entry is None:
            return
        if exchange.method == b"DELETE":
            self._upstream.end_session(exchange, entry, self._close_session)
        elif not accepts_stream(exchange.headers):
            self._say(exchange, 406)
        else:
            self._streams = {one for one in self._streams if not _is_over(one.exchange)}
            self._streams.add(self._upstream.open_stream(exchange, entry))

    # Sessions.

    def open_session(self, post: Post, upstream: str) -> str:
        """The server named a session in its answer: from now on its flow is known by it."""
        flow = post.flow
        known = self._entries.get(flow)
        if known is not None:
            return known.ident
        if post.method != "initialize" or post.exchange.is_gone:
            return ""
        entry = self._sessions.open(upstream, flow.principal, flow)
        self._entries[flow] = entry
        facts = {"method": self._entrance.method, "identity": flow.principal}
        label = flow.session.setup.session
        record = Record(AGENT_CONNECTED, now(), self.options.server, label, {"agent": facts})
        self._governor.note(record)
        self.outbox.schedule()
        return entry.ident

    def _find_session(self, exchange: Exchange, who: Identity, named: bytes) -> Entry | None:
        def make() -> Flow:
            return self._session_flow(who)

        adopt = make if self._upstream.adopts_sessions else None
        entry = self._sessions.find(named.decode("latin-1"), who.principal, adopt)
        if entry is None:
            self._note_refusal("unknown_session", "invalid_request", len(exchange.body), now())
            self._say(exchange, 404)
            return None
        self._entries.setdefault(entry.flow, entry)
        entry.flow.claims = who.claims
        return entry

    def _close_session(self, entry: Entry) -> None:
        self._sessions.forget(entry.ident)
        self._entries.pop(entry.flow, None)
        self.desk.withdraw_all("the session has ended", entry.flow)

    def _session_flow(self, who: Identity) -> Flow:
        self._opened += 1
        flow = self._flow(str(self._opened), who, is_modern=False)
        flow.wants_session = True
        return flow

    def _passing_flow(self, who: Identity, *, is_modern: bool) -> Flow:
        """A flow for one request: where there are no sessions, limits go by the principal."""
        flow = self._spares.take(who.principal, is_modern=is_modern)
        if flow is None:
            return self._flow(who.principal, who, is_modern=is_modern)
        flow.claims = who.claims
        return flow

    def _flow(self, label: str, who: Identity, *, is_modern: bool) -> Flow:
        setup = self._setup
        if setup.session != label:
            setup = self._setup = setup._replace(session=label)
        flow = Flow(self._shared, setup, who.principal, is_modern=is_modern)
        flow.claims = who.claims
        return flow

    # What posts and batches need.

    def send(self, post: Post, data: bytes, key: RequestId | None) -> None:
        """Send a frame to the server."""
        self._upstream.send(post, data, key)

    def send_part(self, batch: Batch, data: bytes, key: RequestId | None) -> Leg | None:
        """Send one message of a batch to the server."""
        return self._upstream.send_part(batch, data, key)

    def closed(self, post: Post) -> None:
        """A post is answered or given up."""
        self._left(post.flow)

    def batch_closed(self, batch: Batch) -> None:
        """A batch is answered or given up."""
        self._left(batch.flow, is_spare=False)  # the server may still speak on one of its legs

    def _left(self, flow: Flow, *, is_spare: bool = True) -> None:
        self.active -= 1
        left = self._flows.get(flow, 0) - 1
        if left > 0:
            self._flows[flow] = left
            return
        self._flows.pop(flow, None)
        if flow in self._entries:
            return
        is_spent = flow.is_spent
        if not is_spent and flow.is_busy:
            self._orphans.add(flow)
            return
        self._upstream.forget(flow)
        if is_spent and is_spare:
            self._spares.give(flow)

    def _notify(self, flow: Flow, data: bytes) -> None:
        self._upstream.notify(flow, self._entries.get(flow), data)

    def resume_tasks(self) -> None:
        """Carry on the tasks that an earlier run of this gate left behind.

        Raises:
            StoreError: they cannot be read.
        """
        at = now()
        for task in self._governor.tasks.recover(at):
            who = Identity(task.principal, self._entrance.method)
            modern = task.modern
            flow = self._passing_flow(who, is_modern=True) if modern else self._session_flow(who)
            flow.resumes = task.id
            flow.feed(AgentSent(render(task_codec.forwarded(task, task.id)), at), None)
        self.outbox.schedule()

    # Answers of the gate itself.

    def _page(self, exchange: Exchange, path: bytes) -> None:
        page = self._pages.get(path)
        if page is not None and exchange.method == b"GET":
            exchange.respond(*page())
        elif page is not None:
            self._say(exchange, 405, b"allow: GET\r\n")
        elif self._metadata is not None and path.startswith(METADATA):
            exchange.respond(200, JSON, self._metadata)
        else:
            self._say(exchange, 404)

    def _say(self, exchange: Exchange, status: int, headers: bytes = b"") -> None:
        exchange.respond(status, JSON + headers, render_refusal(status))

    def _note_rejection(self, rejection: Rejection) -> None:
        facts = {"method": rejection.method, "reason": rejection.reason}
        record = Record(AGENT_AUTH_REJECTED, now(), self.options.server, "0", {"agent": facts})
        self._governor.note(record)
        self.outbox.schedule()

    def _reject(self, exchange: Exchange, rejection: Rejection) -> None:
        self._note_rejection(rejection)
        exchange.respond(rejection.status, rejection.headers)

    def _note_refusal(
        self, check: str, kind: str, size: int, at: float, direction: str = AGENT_TO_SERVER
    ) -> None:
        server = self.options.server
        record = frame_refused(
            at, server, "0", direction=direction, check=check, kind=kind, size=size
        )
        self._governor.note(record)
        self.outbox.schedule()

    def _server_refused(self, line: bytes, check: str) -> None:
        self._note_refusal(check, "invalid_request", len(line), now(), SERVER_TO_AGENT)

    # Time and ends.

    def _tick(self) -> None:
        self._timer = self._loop.call_later(TICK_S, self._tick)
        self._ticks += 1
        at = now()
        for flow in [*self._flows, *self._orphans]:
            flow.tick(at)
        for flow in [flow for flow in self._orphans if not flow.is_busy]:
            self._orphans.discard(flow)
            self._upstream.forget(flow)
        self.alone.tick(at)
        self.desk.tell(self._governor.tasks.tick(at))
        if self._ticks % EXPIRE_EVERY == 0:
            self._expire(at)

    def _expire(self, at: float) -> None:
        for entry in self._sessions.entries():
            if entry.flow not in self._flows and entry.flow.is_busy:
                entry.flow.tick(at)
        self._sessions.expire()

    def _dropped(self, entry: Entry) -> None:
        self._entries.pop(entry.flow, None)
        self._upstream.forget(entry.flow)

    def drain(self) -> None:
        """Take no more calls; what waits for a person is not made; streams end."""
        self.is_draining = True
        self.desk.withdraw_all("the gate is stopping")
        for stream in self._streams:
            if not _is_over(stream.exchange):
                stream.close()
        self._streams.clear()

    def close(self) -> None:
        """Nothing more will come."""
        self._timer.cancel()
        self.desk.close()
        for task in self._tasks:
            task.cancel()
        gone = ServerGone("the gate is stopping", now())
        for flow in {*self._flows, *self._orphans, *self._entries}:
            if not flow.session.is_idle:
                flow.feed(gone, None)
        self.outbox.flush()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_over(exchange: Exchange) -> bool:
    return exchange.is_answered or exchange.is_gone
