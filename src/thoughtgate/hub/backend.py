"""The backend for a catalogue of many servers behind one endpoint.

This module keeps the peers and their streams, and passes an allowed frame to the session that
carries it. ``hub.requests`` interprets the messages of a client.
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, cast

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.errors import StoreError
from thoughtgate.front.authentication import Identity
from thoughtgate.front.backend import OpenStream
from thoughtgate.front.batch import Batch
from thoughtgate.front.batch_item import BatchItem
from thoughtgate.front.peer import Peer
from thoughtgate.front.post import STREAM, Leg, Post
from thoughtgate.front.sessions import SESSION_ENDED, HttpSession
from thoughtgate.front.stdio import StdioAgent
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.session_driver import HTTP, STDIO
from thoughtgate.hub.client import Client
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.requests import HubRequests
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.headers import COMPANIONS, ParamHeader, is_companion, param_headers_of
from thoughtgate.wire.message import Message
from thoughtgate.wire.revisions import META
from thoughtgate.wire.sse import render_event

SILENCE_S: Final = 15.0
"""Idle time after which a stream gets a comment; proxies close silent streams."""

MAX_WAITING: Final = 1000
MAX_WAITING_BYTES: Final = 1024 * 1024
"""Limits on the messages kept for a client without an open stream; the oldest are dropped."""


class ClientStream:
    """Unsolicited messages to a client: sent on its GET stream, or kept until it has one."""

    def __init__(self) -> None:
        self._exchange: Exchange | None = None
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._spoke_at = 0.0

    def attach(self, exchange: Exchange) -> None:
        """Send to this stream from now on, and end the stream that the client had before."""
        self.close()
        self._exchange = exchange
        exchange.on_gone = self._left
        exchange.start(200, STREAM)
        # Some clients and proxies wait for the first byte before they treat the stream as open.
        exchange.write(b": open\n\n")
        self._spoke_at = monotonic()
        for data in self._waiting:
            exchange.write(render_event(data))
        self._waiting.clear()
        self._size = 0

    def take(self, frame: ToAgent) -> None:
        """Send a message to the client, or keep it; drop it if the client does not read."""
        if self._exchange is None:
            self._keep(frame.data)
        elif not self._exchange.is_stalled:
            self._spoke_at = monotonic()
            self._exchange.write(render_event(frame.data))

    def forward(self, frame: ToServer) -> None:
        """Do nothing: this stream carries no frames to a server."""

    def _keep(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        while len(self._waiting) > MAX_WAITING or self._size > MAX_WAITING_BYTES:
            self._size -= len(self._waiting.popleft())

    @property
    def waiting(self) -> tuple[int, int]:
        """The number of messages that wait for the client, and their size in bytes."""
        return len(self._waiting), self._size

    def keep_alive(self) -> None:
        """Write a comment if the stream has been silent for long."""
        if self._exchange is not None and monotonic() - self._spoke_at > SILENCE_S:
            self._spoke_at = monotonic()
            self._exchange.write(b": still here\n\n")

    def close(self) -> None:
        """End the stream from the gate's side."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.on_gone = None
            exchange.end()

    def _left(self) -> None:
        self._exchange = None


class _Attached:
    """A client's stream as the endpoint sees it."""

    def __init__(self, exchange: Exchange, stream: ClientStream) -> None:
        self.exchange = exchange
        self._stream = stream

    def close(self) -> None:
        self._stream.close()


class HubBackend:
    """Serves many servers as one."""

    server = ""
    """Empty: requests to the hub itself belong to no server on the record."""

    needs_sessions = True

    def __init__(self, hub: Hub, *, is_shared: bool = False) -> None:
        """Serve a hub; ``is_shared`` says that gates on other machines serve it too."""
        self._is_shared = is_shared
        self.hub = hub
        self.authority = hub.gate.authority
        self.outbox = hub.gate.outbox
        self.on_refused: Callable[[bytes, str], None] = lambda _line, _check: None
        self._requests = HubRequests(hub)
        self._streams: set[ClientStream] = set()

    @property
    def adopts_sessions(self) -> bool:
        """Whether a session of another process can be continued.

        If servers have a process per session, their state would be lost silently. Behind a balancer
        that is better than an error at every gate but one.
        """
        servers = self.hub.supervisors
        return self._is_shared or all(one.settings.isolation != "session" for one in servers)

    # Peers.

    def open_peer(self, who: Identity, *, is_modern: bool) -> Client:
        """Return a client for a single request."""
        client = self._client(who.principal, is_modern=is_modern)
        client.claims = who.claims
        return client

    def open_session(self, who: Identity, label: str) -> Client:
        """Return a client for a session that begins with ``initialize``."""
        del label
        client = self._client(who.principal, is_modern=False)
        client.wants_session = True
        # The session may continue elsewhere, and no other gate may ask under the same ids.
        client.asks_as = f"thoughtgate-{os.urandom(6).hex()}"
        client.agent = stream = ClientStream()
        self._streams.add(stream)
        return client

    def open_stdio(self, principal: str, agent: StdioAgent) -> Client:
        """Return the only client of a hub on stdio."""
        client = self._client(principal, transport=STDIO)
        client.sole = True
        client.agent = client.line = agent
        agent.forward_to = self.forward
        return client

    def _client(self, principal: str, *, transport: str = HTTP, is_modern: bool = False) -> Client:
        client = Client(self.hub.new_session(), principal, self.outbox, transport)
        client.is_modern = is_modern
        client.receive = self._requests.receive
        client.on_error = self._note_error
        self.hub.join(client)
        return client

    def _note_error(self, client: Client, method: str, kind: str) -> str:
        return self.hub.gate.note_error(client.id, method, kind)

    def entered(self, peer: Peer, entry: HttpSession) -> None:
        """Tell a client the name of its session at every gate."""
        cast("Client", peer).session_name = entry.name

    def continued(self, peer: Peer, entry: HttpSession) -> None:
        """Learn what a client declared when it opened its session at another gate."""
        client, params = cast("Client", peer), entry.handshake.params
        client.introduce(params["capabilities"], params["clientInfo"])
        self.hub.declare(client)

    def give_back(self, peer: Peer) -> None:
        """Release a client; clients are not reused."""
        self.forget(peer)

    def forget(self, peer: Peer) -> None:
        """Release a client that has disconnected."""
        client = cast("Client", peer)
        if isinstance(client.agent, ClientStream):
            client.agent.close()
            self._streams.discard(client.agent)
        spawn(self.hub.leave(client))

    def param_headers(self, tool: str) -> tuple[ParamHeader, ...] | None:
        """Return the tool arguments that headers must repeat; None for an unlisted or hidden tool.

        ``tool`` is the composed name.
        """
        entry = self.hub.find_tool(tool)
        return None if entry is None else param_headers_of(entry.get("inputSchema")) or ()

    def with_trace_facts(self, message: Message, exchange: Exchange) -> Message:
        """Copy tracestate and baggage from the HTTP headers into the request."""
        return with_companions(message, exchange)

    # Frames.

    def forward(self, caller: Post | StdioAgent, frame: ToServer) -> Leg | None:
        """Pass an allowed frame to the session that carries it."""
        client = cast("Client", caller.peer)
        if frame.key is not None:
            session = client.routes.get(frame.key)
            return session.carry(frame, caller) if session is not None else None
        _answer_server(client, frame)
        caller.passed(202, b"", b"")
        return None

    def send(self, post: Post, frame: ToServer) -> None:
        """Send the message of a POST."""
        post.leg = self.forward(post, frame)

    def send_part(self, batch: Batch, frame: ToServer) -> Leg | None:
        """Send one message of a batch."""
        client = cast("Client", batch.peer)
        if frame.key is None:
            _answer_server(client, frame)
            return None
        session = client.routes.get(frame.key)
        return session.carry(frame, BatchItem(batch, frame.key)) if session is not None else None

    # Streams and sessions.

    def open_stream(self, exchange: Exchange, entry: HttpSession) -> OpenStream:
        """Open the stream that carries the servers' unsolicited messages."""
        stream = cast("Client", entry.peer).agent
        if not isinstance(stream, ClientStream):
            raise TypeError(stream)
        stream.attach(exchange)
        return _Attached(exchange, stream)

    def abandon(self, entry: HttpSession) -> None:
        """Release a session that has ended, and answer its requests that are still open."""
        client = cast("Client", entry.peer)
        for session in list(client.sessions.values()):
            self.authority.held.withdraw_all(SESSION_ENDED, session)
        client.stop(SESSION_ENDED, now())
        self.outbox.schedule()
        self.forget(client)

    def end_session(
        self, exchange: Exchange, entry: HttpSession, ended: Callable[[HttpSession], None]
    ) -> None:
        """End a session, and answer its requests that are still open."""
        ended(entry)
        self.abandon(entry)
        exchange.respond(204)

    def tick(self, at: float) -> None:
        """Keep streams alive, and carry on the tasks of processes that died."""
        if self.authority.governor.take_reports():
            self.outbox.schedule()
        if self.authority.governor.tasks.has_orphans(at):
            with suppress(StoreError):
                self.hub.resume_tasks()
        for stream in self._streams:
            stream.keep_alive()

    def stop(self, reason: str) -> None:
        """Do nothing: the endpoint has already stopped the clients."""
        del reason


def _answer_server(client: Client, frame: ToServer) -> None:
    """Pass a client's answer on to the server that asked, if one did."""
    message = frame.message
    if message is not None and message.id is not None:
        asking = client.questions.get(message.id)
        if asking is not None:
            asking.notified(frame)


def with_companions(message: Message, exchange: Exchange) -> Message:
    """Return a request with the headers that accompany a trace context copied to its ``_meta``."""
    said = {name: _joined(exchange, name.encode()) for name in COMPANIONS}
    carried = {name: text for name, text in said.items() if is_companion(text)}
    params = message.body.get("params")
    meta = params.get(META, {}) if type(params) is dict else None
    if not carried or type(params) is not dict or type(meta) is not dict:
        return message
    body = {**message.body, "params": {**params, META: {**meta, **carried}}}
    return message._replace(body=body)


def _joined(exchange: Exchange, wanted: bytes) -> str:
    """Return a list header, which may be spread over several header lines."""
    lines = [value for name, value in exchange.wire_headers if name == wanted]
    return b",".join(lines).decode("latin-1")
