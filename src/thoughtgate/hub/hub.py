"""The hub: many servers as one, for any number of clients, under one gate.

It owns the parts and what they share: which servers there are, which namespace is served,
who is connected. What a client's message means is ``hub.requests``'s business, how calls
are judged ``hub.server_session``'s, how servers live ``supervisor``'s.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from thoughtgate.config.settings import Settings
from thoughtgate.core import task_codec
from thoughtgate.core.catalogue import NOTHING, Offer
from thoughtgate.core.namespace import NoSelection, Selection, select_namespace
from thoughtgate.core.negotiation import LOG_LEVELS, NAME, carried_capabilities
from thoughtgate.core.record_events import (
    NOWHERE,
    SERVER_TO_AGENT,
    Record,
    frame_refused,
)
from thoughtgate.core.routing import split
from thoughtgate.core.server_lifecycle import CAME_UP, RUNNING, STARTING
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import PeerError
from thoughtgate.gate.background import spawn
from thoughtgate.gate.clock import now
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.reload import Reloader
from thoughtgate.hub.client import Client
from thoughtgate.hub.engine import HubEngine
from thoughtgate.hub.lists import AT_ONCE, HubLists, Own
from thoughtgate.hub.manager_tools import ENTRIES, OFFER, ManagerTools
from thoughtgate.hub.notifications import HubNotices
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.hub.routes import LIST_OF, HubRoutes, Target
from thoughtgate.hub.server_info import describe_server, instructions
from thoughtgate.hub.server_session import HIDDEN, Carried, ServerSession
from thoughtgate.hub.servers import Servers, Surroundings
from thoughtgate.policy.call import PRODUCTION, TOOL
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.visibility import Exposure, Visibility
from thoughtgate.upstream.supervisor import Supervisor
from thoughtgate.wire.message import REQUEST, Fault, Message
from thoughtgate.wire.replies import render

ANNOUNCE_S: Final = 0.05
"""Changes that come together are announced together."""

DRAIN_STEP_S: Final = 0.02

EAGER_WAIT_S: Final = 1.0
"""How long eager servers wait for the client to say what it can be asked."""

_log: Final = logging.getLogger("thoughtgate.serve")


def hide_nowhere(policy: Policy) -> Policy:
    """Return a policy by which a call that names no server is denied as one to a hidden tool is."""
    hidden = {**policy.visibility.servers, NOWHERE: Exposure(enabled=False)}
    return replace(policy, visibility=Visibility(hidden))


class Hub:
    """All of ``serve`` but its transports."""

    def __init__(
        self, settings: Settings, governor: Governor, around: Surroundings, *, namespace: str = ""
    ) -> None:
        self.settings = settings
        self.clients: dict[str, Client] = {}
        self.gate = HubEngine(
            governor, settings.holds.connection, is_authenticated=settings.listen.auth is not None
        )
        self.servers = Servers(settings, around, self)
        self.lists = HubLists(self.gate, self.lists_changed)
        self.routes = HubRoutes(self.gate, self.lists)
        self.notices = HubNotices(self.clients, self.session, lambda: self.settings.separator)
        self.manager = ManagerTools(self)
        self.reloader: Reloader | None = None
        """Reads the config again; set by who knows where it is."""
        self.on_applied: Callable[[], None] = lambda: None
        """Told when a new config has been taken over."""
        self._applying: asyncio.Task[list[str]] | None = None
        self._asked_namespace = namespace
        self.selection: Selection | NoSelection = self._select(settings)
        self._announcing: set[tuple[str, tuple[bool, str] | None]] = set()
        self._private: dict[tuple[tuple[bool, str], str], ServerRelay] = {}
        """The servers whose config asks for one process per session, by session and server."""
        self._sessions = 0

    # What is served.

    def _select(self, settings: Settings) -> Selection | NoSelection:
        return select_namespace(
            self._asked_namespace,
            settings.default_namespace,
            settings.namespaces,
            [server.id for server in self.servers],
        )

    @property
    def supervisors(self) -> list[Supervisor]:
        """The servers of the namespace, in its order."""
        selection = self.selection
        if isinstance(selection, NoSelection):
            return []
        return [self.servers[ident] for ident in selection.servers if ident in self.servers]

    def supervisor_for(self, client: Client, server: str) -> Supervisor | None:
        """Return a server as a client sees it: its own process once it has one."""
        own = self._private.get((client.owner, server))
        return own.supervisor if own is not None else self.servers.get(server)

    def supervisors_for(self, client: Client) -> list[Supervisor]:
        """Return the servers of the namespace, in its order, as a client sees them."""
        found = (self.supervisor_for(client, one.id) for one in self.supervisors)
        return [one for one in found if one is not None]

    @property
    def server_ids(self) -> list[str]:
        """The ids that a composed name may begin with."""
        own = [NAME] if self.settings.manager_tools else []
        return own + [supervisor.id for supervisor in self.supervisors]

    @property
    def own_tools(self) -> Own | None:
        """The manager tools, unless the config switches them off."""
        return Own(NAME, ENTRIES) if self.settings.manager_tools else None

    def offer_of(self, client: Client, target: Target) -> Offer | None:
        """Return the list that must name what a request is about; None where none is known."""
        if target.server == NAME:
            return OFFER if target.kind == TOOL else NOTHING
        method = LIST_OF.get(target.kind)
        supervisor = self.supervisor_for(client, target.server)
        return supervisor.known(method) if supervisor is not None and method else None

    def find_tool(self, exposed: str) -> dict[str, Any] | None:
        """Return what a server says of a tool that clients know by this name."""
        route = split(exposed, self.settings.separator, self.server_ids)
        supervisor = self.servers.get(route.server) if route is not None else None
        offer = supervisor.known("tools/list") if supervisor is not None else None
        if offer is None or route is None:
            return None
        return next((one for one in offer.entries if one.get("name") == route.name), None)

    def instructions(self) -> str:
        """Return what a client's model should know."""
        return instructions(self.supervisors, self.settings.separator)

    # Clients.

    def new_session(self) -> str:
        """Return the id of a new session: a counter, as the record wants it."""
        self._sessions += 1
        return str(self._sessions)

    def join(self, client: Client) -> None:
        """A client is there."""
        self.clients[client.id] = client

    async def leave(self, client: Client) -> None:
        """A client is gone: nothing is done for it any more."""
        client.is_gone = True
        self.clients.pop(client.id, None)
        for task in list(client.work.values()):
            task.cancel()
        for session in list(client.sessions.values()):
            session.agent_left()
            session.close()
        for key, session in list(client.routes.items()):
            # What may become a task has a session of its own; this has not become one.
            session.caller_left(key)
        for uri, server in client.followed.items():
            self.unfollow(client, server, uri)
        for listen in client.listens.values():
            for uri, server in listen.uris.items():
                self.unfollow(client, server, uri)
        await self._drop_private(lambda owner, _: owner == (False, client.id))

    async def _drop_private(self, is_over: Callable[[tuple[bool, str], str], bool]) -> None:
        for place in [place for place in self._private if is_over(*place)]:
            relay = self._private.pop(place)
            self.servers.forget(relay)
            await relay.supervisor.dispose()

    def unfollow(self, client: Client, server: str, uri: str, trace: str = "") -> None:
        """One client less follows a resource."""
        relay = self.relay(client, server)
        if relay is not None:
            relay.supervisor.unfollow(uri, trace)

    def declare(self, client: Client) -> None:
        """Let servers that are not up yet know what this client can be asked."""
        capabilities = carried_capabilities(client.capabilities)
        for supervisor in self.supervisors:
            supervisor.declare(capabilities)

    # Sessions.

    def session(self, client: Client, server: str) -> ServerSession:
        """Return a client's session with a server, with the hub itself, or with nobody."""
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
            )
            relay = _FoundLater(self, client, server)
            found = ServerSession(self.gate.driven, self.gate, client, setup, relay)
            client.sessions[server] = found
        return found

    def resume_tasks(self) -> None:
        """Carry on the tasks that an earlier run of this hub left behind.

        Raises:
            StoreError: they cannot be read.
        """
        for task in self.gate.governor.tasks.recover(now()):
            nobody = Client(self.new_session(), task.principal, self.gate.outbox)
            session = self.session(nobody, task.server)
            session.resumes = task.id
            body = task_codec.forwarded(task, task.id)
            message = Message(REQUEST, task.id, str(body["method"]), body, render(body))
            session.ask(message, json.loads(task.request), task.tool, None, "")

    def relay(self, client: Client, server: str) -> ServerRelay | None:
        """Return the way to a server: shared, or this session's own when the config says so."""
        shared = self.servers.relays.get(server)
        if shared is None or client.sole or shared.supervisor.settings.isolation != "session":
            return shared
        key = (client.owner, server)
        if key not in self._private:
            own = self.servers.relay_for(shared.supervisor.settings)
            own.owner = client.owner
            own.supervisor.declare(carried_capabilities(client.capabilities))
            self._private[key] = own
        return self._private[key]

    # What servers say; see ``supervisor.Owner``.

    def server_asked(self, supervisor: Supervisor, message: Message) -> None:
        """A server asks something of a client."""
        relay = self.servers.way_of(supervisor)
        if relay is not None:
            self.notices.asked(relay, message)

    def server_said(self, supervisor: Supervisor, message: Message) -> None:
        """A server sent a notification."""
        relay = self.servers.way_of(supervisor)
        if relay is not None:
            self.notices.said(relay, message)

    def server_refused(self, supervisor: Supervisor, fault: Fault, size: int) -> None:
        """A frame of a server was dropped."""
        self.gate.note(
            frame_refused(
                now(),
                supervisor.id,
                "0",
                direction=SERVER_TO_AGENT,
                check=fault.check,
                kind=fault.kind,
                size=size,
            )
        )

    def note(self, record: Record) -> None:
        """Put an event on the record."""
        self.gate.note(record)

    def server_changed(self, supervisor: Supervisor, event: str) -> None:
        """A server came into another state: clients are told when that changes their lists."""
        if event == CAME_UP:
            self._pass_log_level(supervisor)
        was_listed, supervisor.was_listed = supervisor.was_listed, supervisor.is_listed
        if was_listed != supervisor.is_listed and supervisor.standing.state != STARTING:
            for capability in ("tools", "prompts", "resources"):
                self._announce(capability)

    def lists_changed(self, supervisor: Supervisor, capability: str) -> None:
        """What a server offers is not what it was."""
        relay = self.servers.way_of(supervisor)
        if relay is not None and supervisor.id in self.server_ids:
            self._announce(capability, relay.owner)

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
        """Ask the servers for as much as the most curious client wants."""
        for supervisor in self.supervisors:
            self._pass_log_level(supervisor)

    def _pass_log_level(self, supervisor: Supervisor) -> None:
        wanted = [client.log_level for client in self.clients.values() if client.log_level]
        if wanted:
            supervisor.set_log_level(min(wanted, key=LOG_LEVELS.index))

    # For people and for the manager tools; see ``manager_tools.Managed``.

    def describe_servers(self) -> list[dict[str, Any]]:
        """Return how every server is."""
        active = {supervisor.id for supervisor in self.supervisors}
        return [describe_server(one, active=one.id in active) for one in self.servers]

    def describe_namespaces(self) -> dict[str, Any]:
        """Return the namespaces and the choice among them."""
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
        """Stop a server; return what happened."""
        await self._named(server).stop()
        return f"{server} is stopped"

    async def restart_server(self, server: str) -> str:
        """Restart a server; return what happened."""
        upstream = await self._named(server).restart()
        return f"{server} was restarted" + (f" (pid {upstream.pid})" if upstream.pid else "")

    def server_log(self, server: str, lines: int) -> list[str]:
        """Return the last lines of a server's log."""
        mask = self.gate.governor.policy.redactor.mask_text
        return [mask(line) for line in self._named(server).log.tail(lines)]

    async def reload(self) -> str:
        """Read the config again; return what changed."""
        reloader = self.reloader
        if reloader is None or reloader.loaded.path is None:
            raise PeerError("service_unavailable", "there is no config file to read again")
        before = self.gate.governor.policy.version
        if not reloader.reload(now()):
            raise PeerError("service_unavailable", f"nothing was changed: {reloader.failure}")
        changed = await self.applied()
        servers = f"servers changed: {', '.join(changed)}" if changed else "no server changed"
        is_same = before == self.gate.governor.policy.version
        rules = "the rules are the same" if is_same else "the rules changed"
        text = f"the config was read again; {servers}; {rules}"
        selection = self.selection
        return f"{text}; {selection.reason}" if isinstance(selection, NoSelection) else text

    def _named(self, server: str) -> Supervisor:
        if server not in self.servers:
            known = ", ".join(one.id for one in self.servers)
            raise PeerError(HIDDEN, f"there is no server {server!r}; there are: {known}")
        return self.servers[server]

    # Life.

    def start_eager(self, *, everything: bool) -> None:
        """Start the servers that should not wait for their first call."""
        eager = [one for one in self.supervisors if everything or one.settings.eager]
        if eager:
            spawn(self._start_all(eager))

    async def _start_all(self, supervisors: list[Supervisor]) -> None:
        sole = next((client for client in self.clients.values() if client.sole), None)
        if sole is not None:
            try:
                await asyncio.wait_for(sole.introduced.wait(), EAGER_WAIT_S)
            except TimeoutError:
                _log.debug("eager servers start before the client has spoken")
            self.declare(sole)
        slots = asyncio.Semaphore(AT_ONCE)

        async def start(supervisor: Supervisor) -> None:
            async with slots:
                try:
                    await supervisor.ready()
                except PeerError as error:
                    _log.warning("not started: %s", error, extra={"server": supervisor.id})

        await asyncio.gather(*(start(supervisor) for supervisor in supervisors))

    def adopt(self, settings: Settings) -> None:
        """Begin to take over a new config, once the one before it is taken over."""
        self._applying = spawn(self._apply_after(self._applying, settings))

    async def applied(self) -> list[str]:
        """Wait until the last config is taken over; return the servers that it changed."""
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
        """Take over a new config; only what changed restarts. Return what did."""
        self.settings = settings
        changed = await self.servers.apply(settings)
        await self._drop_private(lambda _, server: server in changed)
        self.selection = self._select(settings)
        self.on_applied()
        self.gate.authority.max_held = settings.holds.connection
        for client in self.clients.values():
            busy = {name: one for name, one in client.sessions.items() if not one.session.is_idle}
            client.sessions = busy
        for capability in ("tools", "prompts", "resources"):
            self._announce(capability)
        return changed

    @property
    def is_ready(self) -> bool:
        """Whether clients can be served: a namespace is chosen and its eager servers run."""
        eager = [one for one in self.supervisors if one.settings.eager and one.settings.enabled]
        chosen = isinstance(self.selection, Selection)
        return chosen and all(one.standing.state == RUNNING for one in eager)

    @property
    def is_idle(self) -> bool:
        """Whether no client waits for anything."""
        return not any(client.routes or client.work for client in self.clients.values())

    async def drain(self, seconds: float) -> None:
        """Let what is under way finish, for a while."""
        for _ in range(round(seconds / DRAIN_STEP_S)):
            if self.is_idle:
                return
            await asyncio.sleep(DRAIN_STEP_S)

    async def close(self) -> None:
        """Part from every client and stop every server; nothing is left behind."""
        for client in list(self.clients.values()):
            await self.leave(client)
        await self.servers.dispose()
        self.gate.close()


class _FoundLater:
    """A relay that is looked up when it is needed: a new config may have replaced it."""

    def __init__(self, hub: Hub, client: Client, server: str) -> None:
        self._hub = hub
        self._client = client
        self._server = server

    async def relay(self, session: ServerSession, call: Carried) -> Message:
        """Carry a call to where its server is now."""
        if self._server == NAME:
            return await self._hub.manager.relay(session, call)
        relay = self._hub.relay(self._client, self._server)
        if relay is None:
            raise PeerError(HIDDEN, "")
        return await relay.relay(session, call)
