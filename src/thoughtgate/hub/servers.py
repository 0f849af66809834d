"""The servers of a hub: how each is reached, and what a new config changes."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from thoughtgate.config.secrets import secret_names
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.core.server_lifecycle import STOPPED
from thoughtgate.hub.parked_calls import Parking
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.upstream.child import ChildUpstream
from thoughtgate.upstream.client import Carrier
from thoughtgate.upstream.connect import ServerSetup
from thoughtgate.upstream.health import ServerHealth
from thoughtgate.upstream.http import HttpUpstream
from thoughtgate.upstream.http_carrier import HttpCarrier, ParamHeaders
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.stdio_carrier import StdioCarrier
from thoughtgate.upstream.supervisor import Owner
from thoughtgate.wire.headers import ParamHeader, param_headers_of

LOOK_S: Final = 1.0
"""How often to look for the login that a server needs."""

ANY: Final = "*"
"""The config entry for all other servers: a policy, not a server."""


class Servers(Mapping[str, ServerRelay]):
    """All servers in the config by id, whether they are in the namespace or not."""

    def __init__(
        self, settings: Settings, around: ServerSetup, owner: Owner, principal: str = ""
    ) -> None:
        """Prepare all servers; shared connections carry the logins of ``principal``, or none."""
        self._principal = principal
        self.parking = Parking()
        self._around = around
        self._owner = owner
        self._settings = settings
        self._made: set[ServerRelay] = set()
        """Every relay that is in use, including those of private processes."""
        self._relays = {server.id: self.relay_for(server) for server in named(settings)}

    def __getitem__(self, server: str) -> ServerRelay:
        return self._relays[server]

    def __iter__(self) -> Iterator[str]:
        return iter(self._relays)

    def __len__(self) -> int:
        return len(self._relays)

    def relay_for(self, server: ServerSettings, principal: str = "") -> ServerRelay:
        """Return a new relay to a server; nothing is started.

        ``principal`` is whose login it carries, if not the one of shared connections.
        """
        who = principal or self._principal
        relay = ServerRelay(
            server,
            lambda log: self._carrier(server, log, relay.health, who),
            self._owner,
            self.parking,
        )
        relay.principal = principal
        self._made.add(relay)
        return relay

    async def discard(self, relay: ServerRelay) -> None:
        """Stop a relay that is no longer needed."""
        # Removed first: ``await_login`` must not wait for a relay that is ending.
        self._made.discard(relay)
        await relay.dispose()

    async def apply(self, settings: Settings) -> list[str]:
        """Apply a new config; return the ids of servers that were added, removed or changed.

        Servers that did not change keep running.
        """
        # A server's environment leaves out the variables that hold secrets, so a change of their
        # names changes the environment of every server.
        secrets_moved = secret_names(self._settings) != secret_names(settings)
        wanted = {server.id: server for server in named(settings)}
        self._settings = settings
        changed = [ident for ident in self._relays if ident not in wanted]
        for ident, server in wanted.items():
            relay = self._relays.get(ident)
            if (
                relay is None
                or _how_reached(relay.settings) != _how_reached(server)
                or secrets_moved
            ):
                changed.append(ident)
            else:
                relay.settings = server
        gone = [self._relays.pop(ident) for ident in changed if ident in self._relays]
        self._relays = {
            ident: self._relays.get(ident) or self.relay_for(server)
            for ident, server in wanted.items()
        }
        for relay in gone:
            await self.discard(relay)
        return changed

    def needs_login_of(self, server: ServerSettings, principal: str) -> bool:
        """Return whether a principal needs a connection with a login of their own."""
        logins = self._around.logins
        return principal != self._principal and logins is not None and logins.is_personal(server)

    async def await_login(self, relay: ServerRelay) -> bool:
        """Wait until there is a login for a relay; return False if it is not needed any more."""
        logins, who = self._around.logins, relay.principal or self._principal
        while logins is not None and relay in self._made and relay.standing.state == STOPPED:
            await asyncio.sleep(LOOK_S)
            if await logins.has_login(relay.settings, who):
                return True
        return False

    async def dispose(self) -> None:
        """Stop all servers at the same time."""
        self.parking.close()
        made, self._made = self._made, set()
        await asyncio.gather(*(relay.dispose() for relay in made))
        await self._around.close()

    def _carrier(
        self, server: ServerSettings, log: ServerLog, health: ServerHealth, principal: str
    ) -> Carrier:
        if server.url:
            pool = self._around.open_pool(server)
            # Looked up per call, because the server's list may change while it is connected.
            return HttpCarrier(pool, self._param_headers(server.id), principal, health)
        command = self._around.command(server, self._settings)
        return StdioCarrier(server.id, command, log, self._around.watcher)

    def open_upstream(self, server: ServerSettings) -> HttpUpstream | ChildUpstream:
        """Return a connection to a server that passes requests through; nothing is started."""
        log = self[server.id].log
        return self._around.open_upstream(server, self._settings, self._owner.note, log)

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
