"""One server behind an endpoint, passed through: the gate watches and never negotiates.

The peer of an agent is the driver of its session. How the server is reached is the
upstream's business; which headers of the agent go on is decided here.
"""

from collections.abc import Callable
from typing import cast

from thoughtgate.core import task_codec
from thoughtgate.core.commands import ToServer
from thoughtgate.core.events import AgentSent
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.front.agent_streams import PassedStream, PushStream
from thoughtgate.front.authentication import Identity
from thoughtgate.front.batch import Batch
from thoughtgate.front.batch_item import BatchItem
from thoughtgate.front.detached_calls import DetachedCalls
from thoughtgate.front.endpoint import OpenStream
from thoughtgate.front.peer import Peer
from thoughtgate.front.post import Leg, Post
from thoughtgate.front.request_head import CONTENT, facts_of, unmirrored, upstream_headers
from thoughtgate.front.sessions import HttpSession
from thoughtgate.front.spare_drivers import SpareDrivers
from thoughtgate.gate.clock import now
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import Engine, SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.http_server import Exchange
from thoughtgate.upstream.child import ChildUpstream
from thoughtgate.upstream.http import HttpUpstream
from thoughtgate.wire.headers import ParamHeader
from thoughtgate.wire.message import Message
from thoughtgate.wire.replies import render


class TransparentBackend:
    """One server and the sessions of the agents before it."""

    def __init__(
        self,
        setup: SessionSettings,
        upstream: HttpUpstream | ChildUpstream,
        authority: LocalAuthority,
        outbox: Outbox,
    ) -> None:
        self.server = setup.server
        self.authority = authority
        self.outbox = outbox
        self._upstream = upstream
        self._setup = setup
        """The last setup of a session; most differ only in their label, if at all."""
        self._tools = ToolHeaders()
        self.detached = DetachedCalls(upstream, self._tools)
        self._spares = SpareDrivers()
        self._engine = Engine(
            authority,
            outbox,
            notify=upstream.notify,
            run_detached=self.detached.run,
            on_list=self._tools.learn,
        )

    def adopt(self, setup: SessionSettings) -> None:
        """Give sessions that begin from now on other timeouts and limits."""
        self._setup = setup
        self._spares = SpareDrivers()

    @property
    def on_refused(self) -> Callable[[bytes, str], None]:
        """Told of frames of the server that no session can take."""
        return self._upstream.on_refused

    @on_refused.setter
    def on_refused(self, refused: Callable[[bytes, str], None]) -> None:
        self._upstream.on_refused = refused

    @property
    def needs_sessions(self) -> bool:
        """Whether a request of an older revision must belong to a session."""
        return self._upstream.needs_sessions

    @property
    def adopts_sessions(self) -> bool:
        """Whether a session that another process of the gate opened can be gone on with here."""
        return self._upstream.adopts_sessions

    # Peers.

    def open_peer(self, who: Identity, label: str, *, is_modern: bool) -> SessionDriver:
        """Return a driver for one request; most calls come without a session."""
        spare = self._spares.take(who.principal, is_modern=is_modern)
        return spare or self._driver(who, label, is_modern=is_modern)

    def open_session(self, who: Identity, label: str) -> SessionDriver:
        """Return a driver for a session of the older revisions."""
        driver = self._driver(who, label, is_modern=False)
        driver.wants_session = True
        return driver

    def _driver(self, who: Identity, label: str, *, is_modern: bool) -> SessionDriver:
        setup = self._setup
        if setup.session != label:
            setup = self._setup = setup._replace(session=label)
        return SessionDriver(self._engine, setup, who.principal, is_modern=is_modern)

    def entered(self, peer: Peer, entry: HttpSession) -> None:
        """A driver has its session."""
        cast("SessionDriver", peer).upstream_session = entry.upstream

    def give_back(self, peer: Peer) -> None:
        """A driver is spent, and may serve the next request."""
        self._spares.give(cast("SessionDriver", peer))

    def forget(self, peer: Peer) -> None:
        """A session is over without having been ended, or never came to be."""
        self._upstream.forget(cast("SessionDriver", peer))

    def param_headers(self, tool: str) -> tuple[ParamHeader, ...]:
        """Return the arguments of a tool that headers must repeat."""
        return self._tools.of(tool)

    def prepare(self, message: Message, exchange: Exchange) -> Message:
        """Pass messages on as they are."""
        del exchange
        return message

    # Frames.

    def send(self, post: Post, frame: ToServer) -> None:
        """Send the message of a POST."""
        upstream, driver = self._upstream, cast("SessionDriver", post.peer)
        if isinstance(upstream, ChildUpstream):
            post.leg = upstream.send(post, driver, frame)
            if frame.key is None:
                post.passed(202, b"", b"")
            return
        exchange = post.exchange
        if upstream.traces:
            headers = [*upstream_headers(exchange, post.upstream_session), CONTENT]
            post.leg = upstream.send(post, driver, frame, headers)
        else:
            head = facts_of(exchange).prepared(upstream.pool, exchange, post.upstream_session)
            post.leg = upstream.send_prepared(post, driver, frame, head)

    def send_part(self, batch: Batch, frame: ToServer) -> Leg | None:
        """Send one message of a batch."""
        upstream, driver = self._upstream, cast("SessionDriver", batch.peer)
        item = BatchItem(batch, frame.key)
        if isinstance(upstream, ChildUpstream):
            return upstream.send(item, driver, frame)
        headers = unmirrored(upstream_headers(batch.exchange, batch.upstream_session))
        headers.append(CONTENT)
        return upstream.send(item, driver, frame, headers)

    # Streams and sessions.

    def open_stream(self, exchange: Exchange, entry: HttpSession) -> OpenStream:
        """Open the stream on which the server speaks unasked, or resume one."""
        upstream, driver = self._upstream, cast("SessionDriver", entry.peer)
        if isinstance(upstream, ChildUpstream):
            pushed = PushStream(exchange, driver, upstream)
            before = upstream.listen(pushed)
            if isinstance(before, PushStream):
                before.close()
            return pushed
        stream = PassedStream(exchange)
        headers = upstream_headers(exchange, entry.upstream)
        stream.leg = upstream.request(stream, driver, b"GET", headers)
        return stream

    def end_session(
        self, exchange: Exchange, entry: HttpSession, ended: Callable[[HttpSession], None]
    ) -> None:
        """End a session; a server over HTTP is asked, and may refuse."""
        upstream, driver = self._upstream, cast("SessionDriver", entry.peer)
        if isinstance(upstream, ChildUpstream):
            ended(entry)
            upstream.forget(driver)
            exchange.respond(204)
            return
        stream = PassedStream(exchange, lambda: ended(entry))
        headers = upstream_headers(exchange, entry.upstream)
        stream.leg = upstream.request(stream, driver, b"DELETE", headers)

    # Time and tasks.

    def resume_tasks(self, auth_method: str) -> None:
        """Carry on the tasks that an earlier run of this gate left behind.

        Raises:
            StoreError: they cannot be read.
        """
        at = now()
        for task in self.authority.governor.tasks.recover(at):
            who = Identity(task.principal, auth_method)
            if task.modern:
                driver = self.open_peer(who, who.principal, is_modern=True)
            else:
                driver = self.open_session(who, task.principal)
            driver.resumes = task.id
            driver.feed(AgentSent(render(task_codec.forwarded(task, task.id)), at), None)
        self.outbox.schedule()

    def tick(self, at: float) -> None:
        """Time passed."""
        self.detached.tick(at)
        self.authority.tell(self.authority.governor.tasks.tick(at))

    def stop(self, reason: str) -> None:
        """The drivers have been told already."""
        del reason
