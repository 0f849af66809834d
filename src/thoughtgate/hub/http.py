"""``serve`` over HTTP: many clients, sessions for legacy ones, none for modern ones.

It knows Streamable HTTP: heads, sessions, streams, statuses. What messages mean is
``hub.requests``'s business. Nothing is read of a request whose head is refused.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from thoughtgate.config.checks import is_loopback
from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, AGENT_CONNECTED, Record
from thoughtgate.errors import ConfigError, Problem, ThoughtGateError
from thoughtgate.front.authentication import Identity, Rejection, misdirected, open_entrance
from thoughtgate.front.pages import AdminPort
from thoughtgate.front.request_head import (
    Expected,
    accepts_stream,
    admit_page,
    expected_names,
    header_mismatch,
    is_modern_request,
    render_mismatch,
    wrong_page,
    wrong_place,
    wrong_post,
)
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.hub.client import Client
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.post import JSON, HttpPost, HttpStream, trace_of, with_companions
from thoughtgate.hub.requests import HubRequests
from thoughtgate.telemetry.metrics import Metrics
from thoughtgate.transports.http_server import Exchange, HttpServer, ServerLimits
from thoughtgate.wire.batch import one_line
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.headers import SESSION
from thoughtgate.wire.message import REQUEST, Fault, Message, RequestId
from thoughtgate.wire.replies import render_error

PATHS: Final = (b"/mcp", b"/mcp/v1")
TRANSPORT: Final = "mcp_http"
LOOK_S: Final = 5.0
"""How often sessions are looked over for idleness, and streams are kept alive."""

ADMIN_DRAIN_S: Final = 0.5
"""How long a stop lets a page be read to its end."""

BESIDE_MCP: Final = (b"/health",)
"""Pages that agents can still reach when there is an admin port."""

ALLOW: Final = b"allow: POST, GET, DELETE\r\n"
RETRY_AFTER: Final = b"retry-after: 1\r\n"


@dataclass(slots=True, eq=False)
class HttpSession:
    """A legacy client between its initialize and its end."""

    ident: str
    client: Client
    posts: dict[RequestId, HttpPost]
    stream: HttpStream
    used_at: float


class HttpFront:
    """The listener."""

    def __init__(
        self,
        hub: Hub,
        loaded: Loaded,
        environ: Mapping[str, str],
        principal: str,
        meter: Metrics | None = None,
    ) -> None:
        self.signalled = 0
        self._meter = meter
        self._hub = hub
        self._listen_settings = loaded.settings.listen
        self._requests = HubRequests(hub)
        self._entrance, self._keys = open_entrance(
            self._listen_settings.auth,
            environ,
            anonymous=principal,
            metadata_url="",
            file=loaded.path or "",
        )
        self._expected = Expected(frozenset(), 0, frozenset())
        self._sessions: dict[str, HttpSession] = {}
        self._posts: set[HttpPost] = set()
        self._over = asyncio.Event()
        pages: dict[bytes, Callable[[], tuple[int, bytes, bytes]]] = {
            b"/health": lambda: (200, JSON, b'{"status":"ok"}'),
            b"/ready": self._ready,
            b"/metrics": self._metrics,
        }
        settings = self._listen_settings
        self._admin = HttpServer(AdminPort(pages)) if settings.admin_port else None
        self._pages = {path: pages[path] for path in (BESIDE_MCP if self._admin else pages)}
        self._server = HttpServer(
            self, ServerLimits(max_body=settings.max_body, keep_alive_s=settings.keep_alive_s)
        )

    async def listen(self, host: str, port: int) -> int:
        """Listen, and return the port.

        Raises:
            ConfigError: the address is not loopback and agents need not authenticate.
            ThoughtGateError: the address cannot be used.
        """
        settings = self._listen_settings
        if settings.auth is None and not is_loopback(host):
            text = f"{host} is not loopback: configure listen.auth, or use 127.0.0.1"
            raise ConfigError([Problem("listen.auth", text)])
        if self._keys is not None:
            await self._keys.fetch()
        bound = await _listen(self._server, host, port)
        if self._admin is not None:
            await _listen(self._admin, settings.admin_host, settings.admin_port)
        self._expected = expected_names(host, bound, settings.hosts, settings.origins)
        return bound

    async def serve(self, *, eager: bool) -> None:
        """Serve until a signal comes; then let calls finish for a while."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signal, number)
        self._hub.start_eager(everything=eager)
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), LOOK_S)
            self._look_over()
        for session in self._sessions.values():
            session.stream.close()
        self._hub.gate.release()
        await self._server.drain(self._listen_settings.drain_s)
        if self._admin is not None:
            await self._admin.drain(ADMIN_DRAIN_S)
        if self._keys is not None:
            await self._keys.close()

    def _signal(self, number: int) -> None:
        self.signalled = number
        self._over.set()

    def _look_over(self) -> None:
        moment = monotonic()
        for post in self._posts:
            post.keep_alive()
        for session in list(self._sessions.values()):
            session.stream.keep_alive()
            busy = session.posts or session.stream.is_open
            if not busy and moment - session.used_at > self._listen_settings.session_idle_s:
                self._end(session)

    def _ready(self) -> tuple[int, bytes, bytes]:
        if self._hub.is_ready and not self._over.is_set():
            return 200, JSON, b'{"status":"ready"}'
        return 503, JSON, b'{"status":"starting"}'

    def _metrics(self) -> tuple[int, bytes, bytes]:
        meter = self._meter
        if meter is None:
            return 404, b"", b""
        meter.set("mcp_connections_active", len(self._server.connections))
        prevented = self._hub.gate.prevented
        meter.set("thoughtgate_zombie_execution_prevented_total", prevented)
        return 200, b"content-type: text/plain; version=0.0.4\r\n", meter.render()

    # The listener's callbacks.

    def opened(self, exchange: Exchange) -> None:
        """Check the head; what is refused here is refused before its body is read."""
        is_page = exchange.target.partition(b"?")[0] not in PATHS
        status = (wrong_page if is_page else wrong_place)(exchange, self._expected)
        if status:
            self._note_rejection(misdirected(status))
        if not status and (is_page or admit_page(exchange)):
            return
        if not status and exchange.method == b"POST":
            status = wrong_post(exchange)
        if status:
            exchange.respond(status)
            return
        who = self._entrance.check(exchange.peer, exchange.headers, exchange.repeated)
        if isinstance(who, Rejection):
            self._reject(exchange, who)
            return
        exchange.facts = who
        if self._over.is_set() or len(self._posts) >= self._listen_settings.max_concurrent:
            exchange.respond(503, RETRY_AFTER)

    def completed(self, exchange: Exchange) -> None:
        """The whole request is here."""
        path = exchange.target.partition(b"?")[0]
        who = exchange.facts
        page = self._pages.get(path)
        if page is not None:
            exchange.respond(*page())
        elif path not in PATHS:
            exchange.respond(404)
        elif not isinstance(who, Identity):
            spawn(self._identify_late(exchange))
        else:
            self._identified(exchange, who)

    def refused(self, exchange: Exchange, status: int) -> None:
        """The request cannot be read."""
        exchange.respond(status)

    async def _identify_late(self, exchange: Exchange) -> None:
        """A token was signed with a key that is not known yet."""
        if self._keys is not None:
            await self._keys.fetch()
        who = self._entrance.check(exchange.peer, exchange.headers, exchange.repeated)
        if isinstance(who, Identity):
            self._identified(exchange, who)
        else:
            self._reject(exchange, who or Rejection(401, "jwt", "signed by an unknown key"))

    def _identified(self, exchange: Exchange, who: Identity) -> None:
        if exchange.method == b"POST":
            self._post(exchange, who)
        elif exchange.method in {b"GET", b"DELETE"}:
            self._session_request(exchange, who)
        else:
            exchange.respond(405, ALLOW)

    # POST.

    def _post(self, exchange: Exchange, who: Identity) -> None:
        message = read_frame(one_line(exchange.body))
        if isinstance(message, Fault):
            self._unreadable(exchange, who, message)
            return
        mismatch = header_mismatch(exchange, message)
        if mismatch is not None:
            exchange.respond(400, JSON, render_mismatch(message.id, mismatch))
        elif is_modern_request(exchange, message.body.get("params")):
            self._modern(exchange, who, message)
        elif message.method == "initialize" and message.shape == REQUEST:
            self._initialize(exchange, who, message)
        else:
            session = self._session(exchange, who)
            if session is not None:
                self._legacy(exchange, session, message)

    def _unreadable(self, exchange: Exchange, who: Identity, fault: Fault) -> None:
        """Refuse a body that is no message, on record as everywhere."""
        client = Client("0", who.principal, TRANSPORT, lambda *_: None)
        self._requests.refuse(client, fault, len(exchange.body), modern=False)
        exchange.respond(400, JSON, render_error(fault.id, fault.kind, message=fault.reason))

    def _modern(self, exchange: Exchange, who: Identity, message: Message) -> None:
        """From 2026-07-28 on a request stands alone, and leaving cancels it."""
        if message.shape != REQUEST or message.id is None:
            exchange.respond(202)
            return
        post = HttpPost(exchange, accepts_stream(exchange.headers), modern=True)
        client = Client(self._hub.new_session(), who.principal, TRANSPORT, post.take)
        client.claims = who.claims
        client.modern = True
        client.traces[message.id] = trace_of(exchange)
        self._posts.add(post)
        post.on_end = lambda: self._part(client, post)
        exchange.on_gone = post.gone
        self._hub.join(client)
        self._requests.take(client, self._traced(message, exchange))

    def _part(self, client: Client, post: HttpPost) -> None:
        self._posts.discard(post)
        spawn(self._hub.leave(client))

    def _initialize(self, exchange: Exchange, who: Identity, message: Message) -> None:
        if len(self._sessions) >= self._listen_settings.max_sessions:
            exchange.respond(503, RETRY_AFTER)
            return
        posts: dict[RequestId, HttpPost] = {}
        stream = HttpStream()

        def send(data: bytes, about: RequestId | None, final: bool) -> None:
            post = posts.get(about) if about is not None else None
            if post is not None:
                post.take(data, about, final)
            elif not final:
                stream.put(data)

        client = Client(self._hub.new_session(), who.principal, TRANSPORT, send)
        client.claims = who.claims
        session = HttpSession(secrets.token_urlsafe(24), client, posts, stream, monotonic())
        self._sessions[session.ident] = session
        self._hub.join(client)
        body = {"agent": {"method": who.method, "identity": who.principal}}
        self._hub.gate.note(Record(AGENT_CONNECTED, now(), "", client.id, body))
        self._hub.gate.flush()
        self._legacy(exchange, session, message, b"mcp-session-id: %b\r\n" % session.ident.encode())

    def _legacy(
        self, exchange: Exchange, session: HttpSession, message: Message, headers: bytes = b""
    ) -> None:
        session.used_at = monotonic()
        if message.shape != REQUEST or message.id is None:
            self._requests.take(session.client, message)
            exchange.respond(202)
            return
        ident = message.id
        if ident in session.posts:
            text = "the id is already in use"
            exchange.respond(400, JSON, render_error(ident, "invalid_request", message=text))
            return
        post = HttpPost(exchange, accepts_stream(exchange.headers), modern=False, headers=headers)
        session.posts[ident] = post
        session.client.traces[ident] = trace_of(exchange)
        self._posts.add(post)
        post.on_end = lambda: self._answered(session, ident, post)
        # Before 2026-07-28 leaving is not cancelling; but nobody is left to approve for.
        exchange.on_gone = lambda: self._caller_left(session, ident, post)
        self._requests.take(session.client, self._traced(message, exchange))

    def _traced(self, message: Message, exchange: Exchange) -> Message:
        """Have a request carry on what its head says beside the trace, where the gate traces."""
        traces = self._hub.gate.governor.trace is not None
        return with_companions(message, exchange) if traces else message

    def _answered(self, session: HttpSession, ident: RequestId, post: HttpPost) -> None:
        session.used_at = monotonic()
        session.posts.pop(ident, None)
        session.client.traces.pop(ident, None)
        self._posts.discard(post)

    def _caller_left(self, session: HttpSession, ident: RequestId, post: HttpPost) -> None:
        post.gone()
        channel = session.client.routes.get(ident)
        if channel is not None:
            channel.caller_left(ident)

    # GET and DELETE.

    def _session_request(self, exchange: Exchange, who: Identity) -> None:
        if SESSION not in exchange.headers:
            exchange.respond(405, ALLOW)
            return
        session = self._session(exchange, who)
        if session is None:
            return
        if exchange.method == b"DELETE":
            self._end(session)
            exchange.respond(204)
        elif not accepts_stream(exchange.headers):
            exchange.respond(406)
        elif session.stream.is_open:
            exchange.respond(409)
        else:
            session.stream.attach(exchange)

    def _session(self, exchange: Exchange, who: Identity) -> HttpSession | None:
        """Return the caller's own session; a foreign one does not exist for it."""
        named = exchange.headers.get(SESSION)
        if named is None:
            text = "this needs a session: initialize first"
            exchange.respond(400, JSON, render_error(None, "invalid_request", message=text))
            return None
        session = self._sessions.get(named.decode("latin-1"))
        if session is None or session.client.principal != who.principal:
            text = "there is no such session"
            exchange.respond(404, JSON, render_error(None, "invalid_request", message=text))
            return None
        session.client.claims = who.claims
        return session

    def _end(self, session: HttpSession) -> None:
        self._sessions.pop(session.ident, None)
        session.stream.close()
        spawn(self._hub.leave(session.client))

    def _note_rejection(self, rejection: Rejection) -> None:
        agent = {"method": rejection.method, "reason": rejection.reason}
        self._hub.gate.note(Record(AGENT_AUTH_REJECTED, now(), "", "0", {"agent": agent}))
        self._hub.gate.flush()

    def _reject(self, exchange: Exchange, rejection: Rejection) -> None:
        self._note_rejection(rejection)
        exchange.respond(rejection.status, rejection.headers)


async def _listen(server: HttpServer, host: str, port: int) -> int:
    try:
        return await server.listen(host, port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the address cannot be used"
        raise ThoughtGateError(f"cannot listen on {host}:{port}: {reason}") from None
