"""The servers of a hub: how each is reached, and what a new config changes."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from thoughtgate.config.secrets import secret_names
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.hub.parked_calls import Parking
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.transports.child_process import ChildCommand, Watcher
from thoughtgate.upstream.child import ChildUpstream
from thoughtgate.upstream.client import Carrier
from thoughtgate.upstream.connect import child_command, open_pool
from thoughtgate.upstream.http import HttpUpstream
from thoughtgate.upstream.http_carrier import HttpCarrier, ParamHeaders
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.stdio_carrier import StdioCarrier
from thoughtgate.upstream.supervisor import Owner, Supervisor
from thoughtgate.wire.headers import ParamHeader, param_headers_of

ANY: Final = "*"
"""The config entry for all other servers: a policy, not a server."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment in which every server is started."""

    environ: Mapping[str, str]
    base: str
    """The directory that relative paths in the config refer to."""
    watcher: Watcher | None = None


class Servers:
    """All servers in the config, whether they are in the namespace or not."""

    def __init__(self, settings: Settings, around: Surroundings, owner: Owner) -> None:
        self.parking = Parking()
        self.relays: dict[str, ServerRelay] = {}
        self._around = around
        self._owner = owner
        self._settings = settings
        self._ways: dict[int, ServerRelay] = {}
        for server in named(settings):
            self.relays[server.id] = self.relay_for(server)

    def __getitem__(self, server: str) -> Supervisor:
        return self.relays[server].supervisor

    def get(self, server: str) -> Supervisor | None:
        """Return a server; None if it is not in the config."""
        relay = self.relays.get(server)
        return relay.supervisor if relay is not None else None

    def __contains__(self, server: object) -> bool:
        return server in self.relays

    def __iter__(self) -> Iterator[Supervisor]:
        return iter([relay.supervisor for relay in self.relays.values()])

    def relay_for(self, server: ServerSettings) -> ServerRelay:
        """Return a new relay to a server; nothing is started."""
        supervisor = Supervisor(server, lambda log: self._carrier(server, log), self._owner)
        relay = ServerRelay(supervisor, self.parking)
        self._ways[id(supervisor)] = relay
        return relay

    def way_of(self, supervisor: Supervisor) -> ServerRelay | None:
        """Return the relay that a supervisor belongs to."""
        return self._ways.get(id(supervisor))

    def forget(self, relay: ServerRelay) -> None:
        """Remove a relay that is no longer needed."""
        self._ways.pop(id(relay.supervisor), None)

    async def apply(self, settings: Settings) -> list[str]:
        """Apply a new config; return the ids of servers that were added, removed or changed.

        Servers that did not change keep running.
        """
        # A server's environment leaves out the variables that hold secrets, so a change of their
        # names changes the environment of every server.
        secrets_moved = secret_names(self._settings) != secret_names(settings)
        wanted = {server.id: server for server in named(settings)}
        self._settings = settings
        changed = [ident for ident in self.relays if ident not in wanted]
        for ident, server in wanted.items():
            relay = self.relays.get(ident)
            if (
                relay is None
                or _how_reached(relay.supervisor.settings) != _how_reached(server)
                or secrets_moved
            ):
                changed.append(ident)
            else:
                relay.supervisor.settings = server
        gone = [self.relays.pop(ident) for ident in changed if ident in self.relays]
        self.relays = {
            ident: self.relays.get(ident) or self.relay_for(server)
            for ident, server in wanted.items()
        }
        for relay in gone:
            self.forget(relay)
            await relay.supervisor.dispose()
        return changed

    async def dispose(self) -> None:
        """Stop all servers at the same time."""
        self.parking.close()
        await asyncio.gather(*(relay.supervisor.dispose() for relay in self._ways.values()))

    def _carrier(self, server: ServerSettings, log: ServerLog) -> Carrier:
        if server.url:
            pool = open_pool(server, self._around.environ)
            # Looked up per call, because the server's list may change while it is connected.
            return HttpCarrier(pool, self._param_headers(server.id))
        return StdioCarrier(server.id, self._command(server), log, self._around.watcher)

    def _command(self, server: ServerSettings) -> ChildCommand:
        around = self._around
        return child_command(server, around.environ, secret_names(self._settings), around.base)

    def open_upstream(self, server: ServerSettings) -> HttpUpstream | ChildUpstream:
        """Return a connection to a server that passes requests through; nothing is started."""
        if server.url:
            traces = self._settings.telemetry.otlp is not None
            return HttpUpstream(open_pool(server, self._around.environ), traces=traces)
        return ChildUpstream(
            server,
            self._command(server),
            self._owner.note,
            watcher=self._around.watcher,
            log=self[server.id].log,
        )

    def _param_headers(self, server: str) -> ParamHeaders:
        def wanted(tool: str) -> tuple[ParamHeader, ...]:
            offer = self[server].known("tools/list") if server in self else None
            for entry in offer.entries if offer is not None else ():
                if entry.get("name") == tool:
                    return param_headers_of(entry.get("inputSchema")) or ()
            return ()

        return wanted


def named(settings: Settings) -> list[ServerSettings]:
    """Return the servers that have a command or a URL, in the order of the config."""
    return [
        server
        for ident, server in settings.servers.items()
        if ident != ANY and (server.command or server.url)
    ]


def _how_reached(server: ServerSettings) -> ServerSettings:
    """Return only the settings that a server's process or connection depends on.

    A change of any other setting needs no restart.
    """
    return replace(
        server,
        name="",
        expose=ServerSettings("").expose,
        timeout_s=0.0,
        start_timeout_s=0.0,
        eager=False,
        idle_s=0.0,
    )
