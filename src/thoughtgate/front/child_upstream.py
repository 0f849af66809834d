"""An upstream over stdio for agents over HTTP: a child for all, or one for each session.

With ``shared`` all agents talk to one process, which may ask none of them anything. With
``session`` each session has a process of its own. The two eras never share a process:
servers settle on the one that speaks first.
"""

import asyncio
import shutil
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Final

from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.core.events import NotSent
from thoughtgate.errors import PeerGone
from thoughtgate.front.batch import Batch
from thoughtgate.front.batch_item import Part
from thoughtgate.front.detached_calls import Alone
from thoughtgate.front.multiplexer import Mux, lose
from thoughtgate.front.post import JSON, STREAM, Post
from thoughtgate.front.sessions import Entry
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.child_process import ChildCommand, Watcher
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import REQUEST, Message, RequestId
from thoughtgate.wire.replies import render_error
from thoughtgate.wire.sse import render_event

SHARED: Final = "shared"
NEEDS_SESSION: Final = "this server needs a session: send initialize first, then its Mcp-Session-Id"

CLOSE_S: Final = 5.0
"""How long starting and stopping processes are waited for at the end."""


class ChildUpstream:
    """A server that is run as a child process."""

    names_sessions = False
    """A stdio server knows no sessions; the gateway names them."""

    def __init__(
        self,
        command: ChildCommand,
        *,
        isolation: str = SHARED,
        watcher: Watcher | None = None,
    ) -> None:
        self._command = command
        self._watcher = watcher
        self._is_shared = isolation == SHARED
        self._muxes: dict[object, Mux] = {}
        self._spare: Mux | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_refused: Callable[[bytes, str], None] = lambda _line, _check: None
        """Told of frames of the server that cannot be passed on."""

    @property
    def adopts_sessions(self) -> bool:
        """A session with a process of its own lives where that process does."""
        return self._is_shared

    @property
    def is_up(self) -> bool:
        """Whether the server runs, or can be run when a session needs it."""
        if not self._is_shared:
            return True
        return any(mux.is_up for mux in [*self._muxes.values(), self._spare] if mux is not None)

    async def start(self) -> None:
        """Start the shared process, or see that one could be started.

        Raises:
            PeerGone: it cannot be started.
        """
        if self._is_shared:
            self._spare = self._new_mux()
            await self._spare.start()
        elif shutil.which(self._command.command, path=self._command.env.get("PATH")) is None:
            raise PeerGone("the server could not be started: No such file or directory")

    async def close(self) -> None:
        """Stop every process."""
        if self._tasks:
            # Processes that are being stopped must be gone before this one is.
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_S)
            for task in late:
                task.cancel()
        muxes = [*self._muxes.values()] + ([self._spare] if self._spare is not None else [])
        await asyncio.gather(*(mux.stop() for mux in muxes), return_exceptions=True)

    # What the gateway needs.

    def send(self, post: Post, frame: ToServer) -> None:
        """Send the message of a POST."""
        if not post.session and self._needs_session(post):
            _Refusal(post, frame.key).make()
            return
        line = ChildLine(post, post.flow, frame.key, self)
        post.leg = line
        self._dispatch(line, frame)
        if frame.key is None:
            post.passed(202, b"", b"")

    def send_part(self, batch: Batch, frame: ToServer) -> "ChildLine":
        """Send one message of a batch."""
        line = ChildLine(Part(batch, frame.key), batch.flow, frame.key, self)
        if self._is_shared or batch.upstream_session:
            self._dispatch(line, frame)
        else:
            line.lost("invalid_request")
        return line

    def notify(self, flow: SessionDriver, entry: Entry | None, frame: ToServer) -> None:
        """Send a frame that belongs to no POST, such as a cancellation."""
        del entry
        mux = self._muxes.get(self._key_of(flow))
        if mux is not None and frame.message is not None:
            mux.send_notice(flow, frame.message)

    def send_alone(
        self, alone: Alone, entry: Entry | None, frame: ToServer, tools: ToolHeaders
    ) -> None:
        """Send a frame that no caller waits for."""
        del entry, tools
        self._dispatch(ChildLine(alone, alone.flow, alone.key, self), frame)
        if alone.key is None:
            # A pipe keeps the order: what follows may be sent now.
            alone.passed(202, b"", b"")

    def open_stream(self, exchange: Exchange, entry: Entry) -> "ChildStream":
        """Open the stream on which the server speaks unasked."""
        stream = ChildStream(exchange, entry.flow, self)
        before = self._mux_for(entry.flow).listen(stream)
        if isinstance(before, ChildStream):
            before.close()
        return stream

    def end_session(self, exchange: Exchange, entry: Entry, ended: Callable[[Entry], None]) -> None:
        """End a session; its own process ends with it."""
        ended(entry)
        self.forget(entry.flow)
        exchange.respond(204)

    def forget(self, flow: SessionDriver) -> None:
        """A session is over, or never came to be: its own process ends with it."""
        if self._is_shared or flow.is_modern:
            shared = self._muxes.get(self._key_of(flow))
            if shared is not None:
                shared.leave(flow)
            return
        mux = self._muxes.pop(flow, None)
        if mux is not None:
            self._spawn(mux.stop())

    def unlisten(self, stream: "ChildStream") -> None:
        """An agent hears no more."""
        mux = self._muxes.get(self._key_of(stream.flow))
        if mux is not None:
            mux.unlisten(stream)

    def drop(self, line: "ChildLine") -> None:
        """A caller waits no more."""
        mux = self._muxes.get(self._key_of(line.flow))
        if mux is not None:
            mux.forget(line)

    def _dispatch(self, line: "ChildLine", frame: ToServer) -> None:
        message = frame.message
        if message is None:
            # Only the development profile lets such a frame come this far; a pipe cannot carry it.
            line.lost("invalid_request")
            return
        mux = self._mux_for(line.flow)
        if mux.is_up:
            _put(mux, line, message)
        else:
            self._spawn(self._start_and_put(mux, line, message))

    async def _start_and_put(self, mux: Mux, line: "ChildLine", message: Message) -> None:
        try:
            await mux.start()
        except PeerGone:
            line.lost("server_start_failed")
            return
        _put(mux, line, message)

    def _needs_session(self, post: Post) -> bool:
        return not self._is_shared and not post.flow.is_modern and post.method != "initialize"

    def _key_of(self, flow: SessionDriver) -> object:
        if self._is_shared:
            return flow.is_modern
        return flow.principal if flow.is_modern else flow

    def _mux_for(self, flow: SessionDriver) -> Mux:
        key = self._key_of(flow)
        mux = self._muxes.get(key)
        if mux is None:
            mux, self._spare = self._spare or self._new_mux(), None
            self._muxes[key] = mux
        return mux

    def _new_mux(self) -> Mux:
        return Mux(
            self._command,
            is_shared=self._is_shared,
            on_refused=self._refused,
            watcher=self._watcher,
        )

    def _refused(self, line: bytes, check: str) -> None:
        self.on_refused(line, check)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _put(mux: Mux, line: "ChildLine", message: Message) -> None:
    if message.shape == REQUEST:
        mux.send(line, message)
    else:
        mux.send_notice(line.flow, message)


class _Refusal:
    """A message that came without the session it needs: the call ends, the agent is told why."""

    def __init__(self, post: Post, key: RequestId | None) -> None:
        self._post = post
        self._key = key

    def make(self) -> None:
        """End the call on the record, then answer."""
        key, flow = self._key, self._post.flow
        if key is not None:
            flow.feed(NotSent(key, "invalid_request", now()), self)
        body = render_error(key, "invalid_request", message=NEEDS_SESSION)
        flow.outbox.later(self._post.answered, body, 400, JSON)

    def take(self, frame: ToAgent) -> None:
        """The session's own words say less."""

    def forward(self, frame: ToServer) -> None:
        """Nothing goes to the server."""


class ChildLine:
    """One request on its way to a stdio server."""

    is_resumable = False

    def __init__(
        self,
        owner: Post | Part | Alone,
        flow: SessionDriver,
        key: RequestId | None,
        home: ChildUpstream,
    ) -> None:
        self._owner = owner
        self._home = home
        self.flow = flow
        self.key = key
        self.is_over = False

    def take(self, frame: ToAgent) -> None:
        """The session passes a frame of the server on."""
        outbox = self.flow.outbox
        if frame.carries != ANSWER:
            outbox.later(self._owner.told, frame.data)
            return
        self.is_over = True
        headers = JSON
        if isinstance(self._owner, Post) and self._owner.method == "initialize":
            headers += self._name_session(self._owner, frame)
        outbox.later(self._owner.answered, frame.data, 200, headers)

    def forward(self, frame: ToServer) -> None:
        """The session answers the server in the agent's place."""
        self.flow.notify(frame)

    def lost(self, kind: str) -> None:
        """The server gave no answer."""
        if self.key is None or self.is_over:
            return
        lose(self, kind)

    def abort(self) -> None:
        """Nobody waits any more."""
        if not self.is_over:
            self.is_over = True
            # The server may yet have to be told: its number must be known until that is done.
            asyncio.get_running_loop().call_soon(self._home.drop, self)

    def pause(self) -> None:
        """One pipe serves many: nobody may stop it alone."""

    def resume(self) -> None:
        """As above."""

    def _name_session(self, post: Post, frame: ToAgent) -> bytes:
        message = read_frame(frame.data)
        if not isinstance(message, Message) or "result" not in message.body or self.flow.is_modern:
            return b""
        named = post.session_named(uuid.uuid4().hex)
        return b"mcp-session-id: %b\r\n" % named.encode()


class ChildStream:
    """A stream of an agent on which a stdio server may speak unasked."""

    def __init__(self, exchange: Exchange, flow: SessionDriver, home: ChildUpstream) -> None:
        self.exchange = exchange
        self.flow = flow
        self._home = home
        exchange.on_gone = self._gone
        exchange.start(200, STREAM)
        # Something at once, so that clients and proxies know that the stream is open.
        exchange.write(b": open\n\n")

    def take(self, frame: ToAgent) -> None:
        """A frame for the agent."""
        self.flow.outbox.later(self.exchange.write, render_event(frame.data))

    def forward(self, frame: ToServer) -> None:
        """The session answers the server in the agent's place."""
        self.flow.notify(frame)

    def close(self) -> None:
        """End the stream from our side."""
        self._gone()
        self.exchange.end()

    def _gone(self) -> None:
        self._home.unlisten(self)
