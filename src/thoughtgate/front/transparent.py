"""The backend for a single server that is passed through, without protocol negotiation.

The peer of an agent is the driver of its session. The upstream knows how to reach the
server; this module decides which of the agent's headers are forwarded.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast

from thoughtgate.core import task_codec
from thoughtgate.core.commands import ToServer
from thoughtgate.core.events import AgentSent
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import StoreError
from thoughtgate.front.agent_streams import PassedStream, PushStream
from thoughtgate.front.authentication import Identity
from thoughtgate.front.backend import OpenStream
from thoughtgate.front.batch import Batch
from thoughtgate.front.batch_item import BatchItem
from thoughtgate.front.detached_calls import DetachedCalls
from thoughtgate.front.peer import Peer
from thoughtgate.front.post import Leg, Post
from thoughtgate.front.request_head import CONTENT, HeadFacts, unmirrored, upstream_headers
from thoughtgate.front.sessions import SESSION_ENDED, HttpSession
from thoughtgate.front.spare_drivers import SpareDrivers
from thoughtgate.gate.clock import now
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import Engine, SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.policy.call import TOOL
from thoughtgate.policy.evaluation import is_visible
from thoughtgate.transports.http_server import Exchange
from thoughtgate.upstream.child import ChildUpstream
from thoughtgate.upstream.http import HttpUpstream
from thoughtgate.upstream.shared_tasks import StoredTasks
from thoughtgate.wire.headers import VERSION, ParamHeader
from thoughtgate.wire.message import Message
from thoughtgate.wire.replies import render

TOOLS_LIST: Final = "tools/list"


class TransparentBackend:
    """One server and the sessions of its agents."""

    def __init__(
        self,
        setup: SessionSettings,
        upstream: HttpUpstream | ChildUpstream,
        authority: LocalAuthority,
        outbox: Outbox,
        *,
        is_shared: bool = False,
    ) -> None:
        """Serve an upstream; ``is_shared`` says that gates on other machines serve it too."""
        self.server = setup.server
        self.authority = authority
        self.outbox = outbox
        self.needs_sessions = upstream.needs_sessions
        # A process per session cannot be continued, only replaced. Behind a balancer that is better
        # than an error at every gate but one. After a restart an error is better, because it tells
        # the agent that the server's state is lost.
        self.adopts_sessions = is_shared or not upstream.needs_sessions
        if isinstance(upstream, ChildUpstream):
            upstream.is_spread = is_shared
        self._upstream = upstream
        self._setup = setup
        """The settings of the last session, reused because most differ only in their label."""
        self._tools = ToolHeaders()
        self.detached = DetachedCalls(upstream, self._tools)
        self._spares = SpareDrivers()
        self._auth_method = ""
        # A shared process has a multiplexer, which knows the owners of its tasks.
        tasks = authority.governor.server_tasks if isinstance(upstream, HttpUpstream) else None
        self._engine = Engine(
            authority,
            outbox,
            notify=upstream.notify,
            run_detached=self.detached.run,
            on_list=self._tools.learn,
            task_owners=StoredTasks(tasks, setup.server) if tasks is not None else None,
        )

    def adopt(self, setup: SessionSettings) -> None:
        """Use other timeouts and limits for sessions that begin from now on."""
        self._setup = setup
        self._spares = SpareDrivers()

    @property
    def on_refused(self) -> Callable[[bytes, str], None]:
        """Called with server frames that no session can take."""
        return self._upstream.on_refused

    @on_refused.setter
    def on_refused(self, refused: Callable[[bytes, str], None]) -> None:
        self._upstream.on_refused = refused

    # Peers.

    def open_peer(self, who: Identity, *, is_modern: bool) -> SessionDriver:
        """Return a driver for a request without a session; limits then apply per principal."""
        driver = self._spares.take(who.principal, is_modern=is_modern)
        if driver is None:
            driver = self._driver(who, who.principal, is_modern=is_modern)
        driver.claims = who.claims
        return driver

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
        """Tell a driver its session id at the server, and its name at every gate."""
        driver = cast("SessionDriver", peer)
        driver.upstream_session, driver.session_name = entry.upstream, entry.name

    def continued(self, peer: Peer, entry: HttpSession) -> None:
        """Tell a driver, and a process of its own, what the agent said in its handshake."""
        driver, params = cast("SessionDriver", peer), entry.handshake.params
        driver.session.prompts.learn("initialize", params)
        if isinstance(self._upstream, ChildUpstream):
            self._upstream.introduce(driver, params)

    def give_back(self, peer: Any) -> None:
        """Release the driver of a finished request and keep it for reuse."""
        self._upstream.forget(peer)
        self._spares.give(peer)

    def forget(self, peer: Peer) -> None:
        """Release a session that was not ended by a DELETE, or was never opened."""
        self._upstream.forget(cast("SessionDriver", peer))

    def param_headers(self, tool: str) -> tuple[ParamHeader, ...] | None:
        """Return the tool arguments that headers must repeat; None for an unlisted or hidden tool."""
        visibility = self.authority.governor.policy.visibility
        return self._tools.known(tool) if is_visible(visibility, self.server, TOOL, tool) else None

    def with_trace_facts(self, message: Message, exchange: Exchange) -> Message:
        """Return the message unchanged: a transparent backend edits nothing."""
        del exchange
        return message

    # Frames.

    def send(self, post: Post, frame: ToServer) -> None:
        """Send the message of a POST."""
        upstream = self._upstream
        driver: Any = post.peer  # a driver, as this backend opens no other peers
        said = frame.message
        if said is not None and said.method == TOOLS_LIST and not driver.wants_session:
            # Without a session, only the header says which revision the agent speaks.
            version = post.exchange.headers.get(VERSION, b"")
            driver.session.prompts.revision = version.strip().decode("latin-1")
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
            facts: HeadFacts = exchange.head.memo
            head = facts.prepared(upstream.pool, exchange, post.upstream_session)
            post.leg = upstream.send_prepared(post, driver, frame, head)

    def send_part(self, batch: Batch, frame: ToServer) -> Leg | None:
        """Send one message of a batch."""
        upstream, driver = self._upstream, cast("SessionDriver", batch.peer)
        item = BatchItem(batch, frame.key)
        if isinstance(upstream, ChildUpstream):
            return upstream.send(item, driver, frame)
        # The agent's Mcp-Method and Mcp-Name describe the batch at best, not this one message.
        headers = unmirrored(upstream_headers(batch.exchange, batch.upstream_session))
        headers.append(CONTENT)
        leg = upstream.send(item, driver, frame, headers)
        if frame.key is None:
            upstream.notices.add(leg)  # The batch does not wait for its response.
        return leg

    # Streams and sessions.

    def open_stream(self, exchange: Exchange, entry: HttpSession) -> OpenStream:
        """Open or resume the stream that carries the server's unsolicited messages."""
        upstream, driver = self._upstream, cast("SessionDriver", entry.peer)
        if isinstance(upstream, ChildUpstream):
            pushed = PushStream(exchange, driver, upstream)
            before = upstream.listen(pushed)
            if isinstance(before, PushStream):
                before.close()
            return pushed
        stream = driver.stream = PassedStream(exchange, partial(self._note_error, entry, "GET"))
        headers = unmirrored(upstream_headers(exchange, entry.upstream))
        stream.leg = upstream.request(stream, driver, b"GET", headers)
        return stream

    def abandon(self, entry: HttpSession) -> None:
        """Release a session that was ended at another gate, and answer its open requests."""
        driver = cast("SessionDriver", entry.peer)
        driver.stop(SESSION_ENDED, now())
        self._upstream.forget(driver)

    def end_session(
        self, exchange: Exchange, entry: HttpSession, ended: Callable[[HttpSession], None]
    ) -> None:
        """End a session; an HTTP server is asked to end it, and may refuse (405)."""
        upstream, driver = self._upstream, cast("SessionDriver", entry.peer)
        if isinstance(upstream, ChildUpstream):
            ended(entry)
            upstream.forget(driver)
            exchange.respond(204)
            return
        note = partial(self._note_error, entry, "DELETE")
        stream = PassedStream(exchange, note, lambda: ended(entry))
        headers = unmirrored(upstream_headers(exchange, entry.upstream))
        stream.leg = upstream.request(stream, driver, b"DELETE", headers)

    def _note_error(self, entry: HttpSession, method: str, kind: str) -> str:
        label, governor = entry.peer.label, self.authority.governor
        ident = governor.note_error(self.server, label, method, kind, now())
        self.outbox.schedule()
        return ident

    # Timers and tasks.

    def resume_tasks(self, auth_method: str) -> None:
        """Continue the tasks of processes of this gate that died.

        Raises:
            StoreError: the tasks cannot be read.
        """
        self._auth_method = auth_method
        at = now()
        for task in self.authority.governor.tasks.recover(at):
            who = Identity(task.principal, auth_method)
            if task.modern:
                driver = self.open_peer(who, is_modern=True)
            else:
                driver = self.open_session(who, task.principal)
            driver.resumes = task.id
            driver.feed(AgentSent(render(task_codec.forwarded(task, task.id)), at), None)
        self.outbox.schedule()

    def tick(self, at: float) -> None:
        """Handle the timeouts of detached calls and tasks."""
        self.detached.tick(at)
        if self.authority.governor.take_reports():
            self.outbox.schedule()
        if self.authority.governor.tasks.has_orphans(at):
            with suppress(StoreError):
                self.resume_tasks(self._auth_method)
        self.authority.tell(self.authority.governor.tasks.tick(at))

    def stop(self, reason: str) -> None:
        """Do nothing: the endpoint has already stopped the drivers."""
        del reason
