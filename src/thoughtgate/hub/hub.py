"""The hub: many servers as one, for any number of clients, under one gate.

The hub owns the parts and their shared state: the servers, the namespace that is served,
the connected clients. ``hub.requests`` interprets clients' messages, ``hub.client``
has calls judged, ``upstream.supervisor`` starts and restarts servers.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from thoughtgate.config.settings import Settings
from thoughtgate.core import task_codec
from thoughtgate.core.answers import introduction
from thoughtgate.core.catalogue import NOTHING, Offer
from thoughtgate.core.negotiation import LOG_LEVELS, NAME, carried_capabilities
from thoughtgate.core.record_events import (
    NOWHERE,
    SERVER_TO_AGENT,
    Record,
    frame_refused,
)
from thoughtgate.core.routing import split
from thoughtgate.core.server_lifecycle import CAME_UP, HALTED, NEEDS_LOGIN, RUNNING, STARTING
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import LOGIN_REQUIRED, PeerError
from thoughtgate.gate.approvals.standing_questions import REFUSED
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.open_governor import identity_of
from thoughtgate.gate.reload import HELD, INVALID, Reloader
from thoughtgate.hub.client import HIDDEN, Carried, Client, ServerSession
from thoughtgate.hub.engine import HubEngine
from thoughtgate.hub.lists import AT_ONCE, HubLists
from thoughtgate.hub.manager_tools import OFFER, ManagerTools
from thoughtgate.hub.namespace import NoSelection, Selection, select_namespace
from thoughtgate.hub.notifications import HubNotices
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.hub.routes import LIST_OF, HubRoutes, Target
from thoughtgate.hub.server_info import describe_server, instructions
from thoughtgate.hub.servers import Servers
from thoughtgate.policy.call import PRODUCTION, TOOL
from thoughtgate.policy.evaluation import is_visible
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.visibility import Exposure
from thoughtgate.upstream.connect import ServerSetup
from thoughtgate.wire.lines import length_of
from thoughtgate.wire.message import REQUEST, Fault, Message
from thoughtgate.wire.replies import render

MAX_LOGINS: Final = 1000
"""Connections with a login of their own that are kept; further ones end the longest unused."""

ANNOUNCE_S: Final = 0.05
"""Changes within this time are announced together."""

EAGER_WAIT_S: Final = 1.0
"""How long the start of eager servers waits for the client to declare its capabilities."""

INTRODUCTION_S: Final = 2.0
"""How long clients wait for eager servers, whose instructions are part of the first answer."""

_NOT_APPLIED: Final = {
    HELD: "nothing was changed: the file may loosen the policy, so a person must accept it first;"
    " until then the stricter of the old and the new rules counts",
    REFUSED: "nothing was changed: a person refused this change of the file",
}

_log: Final = logging.getLogger("thoughtgate.serve")


def hide_nowhere(policy: Policy) -> Policy:
    """Return a policy that treats a name of no known server like a hidden tool: both are denied."""
    hidden = {**policy.visibility.servers, NOWHERE: Exposure(enabled=False)}
    return replace(policy, visibility=replace(policy.visibility, servers=hidden))


class Hub:
    """Everything in ``serve`` except its transports."""

    def __init__(
        self,
        settings: Settings,
        governor: Governor,
        around: ServerSetup,
        *,
        namespace: str = "",
        principal: str = "",
    ) -> None:
        self.settings = settings
        # The console keeps its address until the hub is restarted.
        self._login_page = settings.console.login_page
        self.clients: dict[str, Client] = {}
        self.gate = HubEngine(
            governor, settings.holds.connection, is_authenticated=settings.listen.auth is not None
        )
        self.servers = Servers(settings, around, self, principal)
        self.lists = HubLists(self.gate, self.lists_changed)
        self.routes = HubRoutes(self.gate, self.lists)
        self.notices = HubNotices(self.clients, self.session, lambda: self.settings.separator)
        self.manager = ManagerTools(self)
        self.reloader: Reloader | None = None
        """Reloads the config; set by ``hub.run``, which knows the file."""
        self.on_applied: Callable[[], None] = lambda: None
        """Called when a new config has been applied."""
        self._applying: asyncio.Task[list[str]] | None = None
        self._asked_namespace = namespace
        self.selection: Selection | NoSelection = self._select(settings)
        self._announcing: set[tuple[str, tuple[bool, str] | None]] = set()
        self._private: dict[tuple[tuple[bool, str], str], ServerRelay] = {}
        """Relays of servers with one process per session or one login per principal, by owner and
        server."""
        self._unsigned: set[ServerRelay] = set()
        """Servers that wait for a login."""
        self._sessions = 0
        self._starting: asyncio.Task[None] | None = None
        """The start of the eager servers."""
        self._wait_until = 0.0

    # Servers and namespaces.

    def _select(self, settings: Settings) -> Selection | NoSelection:
        return select_namespace(
            self._asked_namespace,
            settings.default_namespace,
            settings.namespaces,
            list(self.servers),
        )

    @property
    def supervisors(self) -> list[ServerRelay]:
        """The servers of the namespace, in the order of the namespace."""
        selection = self.selection
        if isinstance(selection, NoSelection):
            return []
        return [self.servers[ident] for ident in selection.servers if ident in self.servers]

    def supervisor_for(self, client: Client, server: str) -> ServerRelay | None:
        """Return a client's view of a server: its private process or login, if it has one."""
        shared = self.servers.get(server)
        if shared is not None and self.servers.needs_login_of(shared.settings, client.principal):
            return self.relay(client, server)
        return self._private.get((client.owner, server)) or shared

    def supervisors_for(self, client: Client) -> list[ServerRelay]:
        """Return a client's view of the servers of the namespace, in the order of the namespace."""
        found = (self.supervisor_for(client, one.id) for one in self.supervisors)
        return [one for one in found if one is not None]

    @property
    def server_ids(self) -> list[str]:
        """The server ids that a composed name may begin with."""
        own = [NAME] if self.settings.manager_tools else []
        return own + [supervisor.id for supervisor in self.supervisors]

    def offer_of(self, client: Client, target: Target) -> Offer | None:
        """Return the list that must contain the target of a request; None if it is not known."""
        if target.server == NAME:
            return OFFER if target.kind == TOOL else NOTHING
        method = LIST_OF.get(target.kind)
        supervisor = self.supervisor_for(client, target.server)
        return supervisor.known(method) if supervisor is not None and method else None

    def find_tool(self, exposed: str) -> dict[str, Any] | None:
        """Return a server's description of the visible tool with this composed name."""
        route = split(exposed, self.settings.separator, self.server_ids)
        supervisor = self.servers.get(route.server) if route is not None else None
        offer = supervisor.known("tools/list") if supervisor is not None else None
        if offer is None or route is None:
            return None
        if not is_visible(self.gate.governor.policy.visibility, route.server, TOOL, route.name):
            return None
        if self.gate.governor.judge.definitions.hidden(route.server, TOOL, (route.name,)):
            return None
        return next((one for one in offer.entries if one.get("name") == route.name), None)

    def instructions(self) -> str:
        """Return the instructions for a client's model."""
        shown = [one for one in self.supervisors if self._shows_instructions(one)]
        return instructions(self.supervisors, self.settings.separator, shown)

    def _shows_instructions(self, supervisor: ServerRelay) -> bool:
        """Tell whether a server's own instructions may reach the model."""
        if supervisor.capabilities is None:
            return False
        said = introduction(supervisor.instructions)
        return not self.gate.screen(supervisor.id, "", "initialize", (said,))

    # Clients.

    def new_session(self) -> str:
        """Return the id of a new session: a counter, as the record requires."""
        self._sessions += 1
        return str(self._sessions)

    def join(self, client: Client) -> None:
        """Add a client that has connected."""
        self.clients[client.id] = client

    async def leave(self, client: Client) -> None:
        """Remove a client that has disconnected, and stop all work for it."""
        client.is_gone = True
        self.clients.pop(client.id, None)
        for task in list(client.work.values()):
            task.cancel()
        for session in list(client.sessions.values()):
            session.agent_left()
            session.close()
        for key, session in list(client.routes.items()):
            # A call that may become a task has a session of its own. This one is still routed
            # here, so it has not become a task.
            session.caller_left(key)
        for uri, server in client.followed.items():
            self.unfollow(client, server, uri)
        for listen in client.listens.values():
            for uri, server in listen.uris.items():
                self.unfollow(client, server, uri)
        await self._drop_private(lambda owner, _: owner == (False, client.id))

    async def _drop_private(self, is_over: Callable[[tuple[bool, str], str], bool]) -> None:
        for place in [place for place in self._private if is_over(*place)]:
            await self.servers.discard(self._private.pop(place))

    def unfollow(self, client: Client, server: str, uri: str, trace: str = "") -> None:
        """Note that a client no longer follows a resource."""
        relay = self.relay(client, server)
        if relay is not None:
            relay.unfollow(uri, trace)

    def declare(self, client: Client) -> None:
        """Pass a client's capabilities to servers that are not initialised yet; record who it is."""
        capabilities = carried_capabilities(client.capabilities)
        for supervisor in self.supervisors:
            supervisor.declare(capabilities)
        self.gate.governor.introduce(
            client.id,
            client=client.says_it_is,
            address=client.address,
            principal=client.principal,
        )

    # Sessions.

    def session(self, client: Client, server: str) -> ServerSession:
        """Return a client's session with a server, with the hub itself, or with no server."""
        found = client.sessions.get(server)
        if found is None:
            timeout_s = self.settings.listen.request_timeout_s
            if server in self.servers:
                timeout_s = self.servers[server].settings.timeout_s
            setup = SessionSettings(
                server or NOWHERE,
                client.id,
                enforce=self.gate.governor.policy.profile == PRODUCTION,
                timeout_s=timeout_s,
                max_held=self.gate.authority.max_held,
                names_server=True,
                login_page=self._login_page,
            )
            gate = self.gate
            found = ServerSession(gate.driven, gate.watch, client, setup, self._carry)
            found.session.prompts.declare(client.capabilities)
            client.sessions[server] = found
        return found

    async def _carry(self, session: ServerSession, call: Carried) -> Message:
        """Carry a call to the server that answers it."""
        if session.server == NAME:
            return await self.manager.relay(session, call)
        # Looked up per call, because a new config may have replaced the relay.
        relay = self.relay(session.client, session.server)
        if relay is None:
            raise PeerError(HIDDEN, "")
        try:
            return await relay.relay(session, call)
        except PeerError as error:
            # The server may have just asked for its first login. From then on each principal has a
            # connection of its own, and the call is tried once more on that one.
            own = self.relay(session.client, session.server)
            if error.cause != LOGIN_REQUIRED or own is relay or own is None:
                raise
        return await own.relay(session, call)

    def resume_tasks(self) -> None:
        """Continue the tasks of processes of this hub that died.

        Raises:
            StoreError: the tasks cannot be read.
        """
        for task in self.gate.governor.tasks.recover(now()):
            nobody = Client(self.new_session(), task.principal, self.gate.outbox)
            session = self.session(nobody, task.server)
            session.resumes = task.id
            body = task_codec.forwarded(task, task.id)
            message = Message(REQUEST, task.id, str(body["method"]), body, render(body))
            session.ask(message, json.loads(task.request), task.tool, None, "")

    def relay(self, client: Client, server: str) -> ServerRelay | None:
        """Return the relay to a server: shared, or private if sessions or logins are separate."""
        shared = self.servers.get(server)
        if shared is None:
            return None
        if shared.standing.state == HALTED:
            return (
                shared  # its error says that it was stopped; a private process must not run either
            )
        if self.servers.needs_login_of(shared.settings, client.principal):
            owner, principal = client.login_owner, client.principal
        elif client.sole or shared.settings.isolation != "session":
            return shared
        else:
            owner, principal = client.owner, ""
        key = (owner, server)
        if key not in self._private:
            if principal:
                self._make_room()
            own = self.servers.relay_for(shared.settings, principal)
            own.private_to = owner
            own.declare(carried_capabilities(client.capabilities))
            self._private[key] = own
        return self._private[key]

    def _make_room(self) -> None:
        """End the login connection that was unused for longest, if there are too many."""
        logins = [place for place, one in self._private.items() if one.settings.url]
        idle = [place for place in logins if self._private[place].is_idle]
        if len(logins) >= MAX_LOGINS and idle:
            oldest = min(idle, key=lambda place: self._private[place].used_at)
            spawn(self.servers.discard(self._private.pop(oldest)))

    # Callbacks of the supervisors; see ``supervisor.Owner``.

    def server_sent(self, server: ServerRelay, message: Message) -> None:
        """Deliver a server's request or notification to the clients it concerns."""
        self.notices.deliver(server, message)

    def server_refused(self, server: ServerRelay, fault: Fault, line: bytes) -> None:
        """Record a server frame that was dropped."""
        self.gate.note(
            frame_refused(
                now(),
                server.id,
                "0",
                direction=SERVER_TO_AGENT,
                check=fault.check,
                kind=fault.kind,
                size=length_of(line),
                start=line,
            )
        )

    def note(self, record: Record) -> None:
        """Put an event on the record."""
        self.gate.note(record)

    def server_changed(self, server: ServerRelay, event: str) -> None:
        """Handle a server's change of state; tell clients if it changes their lists."""
        if event == NEEDS_LOGIN:
            spawn(self._await_login(server))
        if event == CAME_UP:
            self._pass_log_level(server)
        was_listed, server.was_listed = server.was_listed, server.is_listed
        if was_listed != server.is_listed and server.standing.state != STARTING:
            for capability in ("tools", "prompts", "resources"):
                self._announce(capability)

    async def _await_login(self, server: ServerRelay) -> None:
        """Announce the lists of a server once somebody has signed in to it."""
        if server in self._unsigned:
            return
        self._unsigned.add(server)
        try:
            if not await self.servers.await_login(server):
                return
        finally:
            self._unsigned.discard(server)
        for capability in ("tools", "prompts", "resources"):
            self.lists_changed(server, capability)

    def lists_changed(self, server: ServerRelay, capability: str) -> None:
        """Announce that a server's list has changed."""
        if capability == "tools" and not server.is_fresh("tools/list"):
            self.gate.unlearn(server.id)
        if server.id in self.server_ids:
            self._announce(capability, server.private_to)

    def _announce(self, capability: str, owner: tuple[bool, str] | None = None) -> None:
        self.lists.forget()
        if not self._announcing:
            asyncio.get_running_loop().call_later(ANNOUNCE_S, self._announce_all)
        self._announcing.add((capability, owner))

    def _announce_all(self) -> None:
        changed, self._announcing = self._announcing, set()
        for capability, owner in changed:
            if owner is None or (capability, None) not in changed:
                self.notices.lists_changed(capability, owner)

    # Logs.

    def set_log_level(self) -> None:
        """Request the most verbose log level that any client wants from every server."""
        for supervisor in self.supervisors:
            self._pass_log_level(supervisor)

    def _pass_log_level(self, supervisor: ServerRelay) -> None:
        wanted = [client.log_level for client in self.clients.values() if client.log_level]
        if wanted:
            supervisor.set_log_level(min(wanted, key=LOG_LEVELS.index))

    # For the control socket and the manager tools; see ``manager_tools.Managed``.

    def describe_servers(self) -> list[dict[str, Any]]:
        """Return the status of every server."""
        active = {supervisor.id for supervisor in self.supervisors}
        return [describe_server(one, active=one.id in active) for one in self.servers.values()]

    def describe_namespaces(self) -> dict[str, Any]:
        """Return the namespaces, and which one is active and why."""
        selection = self.selection
        chosen = selection if isinstance(selection, Selection) else None
        return {
            "active": chosen.name if chosen is not None else None,
            "selection": chosen.how if chosen is not None else None,
            "namespaces": [
                {"id": name, "servers": list(servers)}
                for name, servers in self.settings.namespaces.items()
            ],
        }

    async def start_server(self, server: str) -> str:
        """Start a server; return what happened."""
        supervisor = self._named(server)
        upstream = await supervisor.ready(by_hand=True)
        return f"{server} is running" + (f" (pid {upstream.pid})" if upstream.pid else "")

    async def stop_server(self, server: str) -> str:
        """Stop a server, also for sessions and logins of its own; return what happened."""
        await self._named(server).stop()
        await self._drop_private(lambda _, of: of == server)
        return f"{server} is stopped"

    async def restart_server(self, server: str) -> str:
        """Restart a server; return what happened. Private processes start with their next call."""
        await self._drop_private(lambda _, of: of == server)
        upstream = await self._named(server).restart()
        return f"{server} was restarted" + (f" (pid {upstream.pid})" if upstream.pid else "")

    def server_log(self, server: str, lines: int, reader: str | None = None) -> list[str]:
        """Return the last lines of a server's log, for the operator or for one principal.

        Raises:
            PeerError: there is no such server, or its log may be about other principals' calls.
        """
        if reader is not None and not self._named(server).may_hear(reader):
            raise PeerError("not_exposed", f"others use {server} too, so only the operator sees it")
        mask = self.gate.governor.policy.redactor.mask_text
        return [mask(line) for line in self._named(server).log.tail(lines)]

    async def reload(self) -> str:
        """Reload the config; return a description of what changed."""
        reloader = self.reloader
        if reloader is None or reloader.loaded.path is None:
            raise PeerError("service_unavailable", "there is no config file to read again")
        before = self.gate.governor.policy.version
        outcome = reloader.reload(now())
        if outcome == INVALID:
            raise PeerError("service_unavailable", f"nothing was changed: {reloader.failure}")
        if outcome in {HELD, REFUSED}:
            return _NOT_APPLIED[outcome]
        changed = await self.applied()
        servers = f"servers changed: {', '.join(changed)}" if changed else "no server changed"
        is_same = before == self.gate.governor.policy.version
        rules = "the rules are the same" if is_same else "the rules changed"
        text = f"the config was read again; {servers}; {rules}"
        selection = self.selection
        return f"{text}; {selection.reason}" if isinstance(selection, NoSelection) else text

    def _named(self, server: str) -> ServerRelay:
        if server not in self.servers:
            known = ", ".join(self.servers)
            raise PeerError(HIDDEN, f"there is no server {server!r}; there are: {known}")
        return self.servers[server]

    # Start, reload and shutdown.

    def start_eager(self, *, everything: bool) -> None:
        """Start the servers that are configured to start before their first call."""
        eager = [one for one in self.supervisors if everything or one.settings.eager]
        if eager:
            self._wait_until = monotonic() + INTRODUCTION_S
            self._starting = spawn(self._start_all(eager))

    @property
    def is_starting(self) -> bool:
        """Whether the instructions of eager servers may soon be known."""
        starting = self._starting
        return starting is not None and not starting.done() and monotonic() < self._wait_until

    async def introduced(self) -> None:
        """Wait until the eager servers have started, for a limited time after the gate's start."""
        if self._starting is not None:
            left = max(0.0, self._wait_until - monotonic())
            await asyncio.wait({self._starting}, timeout=left)

    async def _start_all(self, supervisors: list[ServerRelay]) -> None:
        # A server learns the client's capabilities when it is initialised, so wait for them; with
        # several clients there is no single answer to wait for.
        sole = next((client for client in self.clients.values() if client.sole), None)
        if sole is not None:
            try:
                await asyncio.wait_for(sole.introduced.wait(), EAGER_WAIT_S)
            except TimeoutError:
                _log.debug("eager servers start before the client has spoken")
            self.declare(sole)
            self._wait_until = monotonic() + INTRODUCTION_S
        slots = asyncio.Semaphore(AT_ONCE)

        async def start(supervisor: ServerRelay) -> None:
            async with slots:
                try:
                    await supervisor.ready()
                except PeerError as error:
                    _log.warning("not started: %s", error, extra={"server": supervisor.id})

        await asyncio.gather(*(start(supervisor) for supervisor in supervisors))

    def adopt(self, settings: Settings) -> None:
        """Start applying a new config, after the previous one has been applied."""
        self._applying = spawn(self._apply_after(self._applying, settings))

    async def applied(self) -> list[str]:
        """Wait until the latest config is applied; return the servers that it changed."""
        return await asyncio.shield(self._applying) if self._applying is not None else []

    async def _apply_after(
        self, earlier: asyncio.Task[list[str]] | None, settings: Settings
    ) -> list[str]:
        if earlier is not None:
            await asyncio.wait({earlier})
        changed = await self.apply(settings)
        told = f"servers changed: {', '.join(changed)}" if changed else "no server changed"
        _log.info("config taken over; %s", told)
        return changed

    async def apply(self, settings: Settings) -> list[str]:
        """Apply a new config; restart only the servers that changed, and return them."""
        for name, server in settings.servers.items():
            self.gate.governor.identify(name, identity_of(server))
        self.settings = settings
        changed = await self.servers.apply(settings)
        await self._drop_private(lambda _, server: server in changed)
        self.selection = self._select(settings)
        self.on_applied()
        self.gate.authority.max_held = settings.holds.connection
        for client in self.clients.values():
            # Idle sessions are created again with the new timeouts and limits; busy ones keep
            # their old settings until their calls have ended.
            busy = {name: one for name, one in client.sessions.items() if not one.session.is_idle}
            client.sessions = busy
        for capability in ("tools", "prompts", "resources"):
            self._announce(capability)
        return changed

    @property
    def is_ready(self) -> bool:
        """Whether clients can be served: a namespace is selected and its eager servers run."""
        eager = [one for one in self.supervisors if one.settings.eager and one.settings.enabled]
        chosen = isinstance(self.selection, Selection)
        return chosen and all(one.standing.state == RUNNING for one in eager)

    async def close(self) -> None:
        """Disconnect every client and stop every server."""
        for client in list(self.clients.values()):
            await self.leave(client)
        await self.servers.dispose()
        self.gate.close()
