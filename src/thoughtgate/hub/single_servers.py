"""Each server of the namespace by itself, transparent and with its own names, at its own path.

``/servers/ID/mcp`` is what ``proxy`` would offer for that server: the agent's own
handshake, the server's own names, the same rules. A server is connected when it is first
asked for here, apart from the connection that the catalogue shares.
"""

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.session_replies import Setup
from thoughtgate.front.endpoint import Endpoint
from thoughtgate.front.http_front import HttpFront
from thoughtgate.front.request_head import SERVER_PATH
from thoughtgate.front.transparent import TransparentBackend
from thoughtgate.gate.background import spawn
from thoughtgate.hub.hub import Hub
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.upstream.child import ChildUpstream
from thoughtgate.upstream.http import HttpUpstream


class SingleServers:
    """The endpoints of single servers, made when they are first asked for."""

    def __init__(self, hub: Hub, front: HttpFront) -> None:
        self._hub = hub
        self._front = front
        self._made: dict[str, tuple[ServerSettings, HttpUpstream | ChildUpstream, Endpoint]] = {}

    def find(self, path: bytes) -> Endpoint | None:
        """Return the endpoint of a path; None when no enabled server of the namespace has it."""
        matched = SERVER_PATH.fullmatch(path)
        ident = matched[1].decode("ascii", "replace") if matched is not None else ""
        supervisor = next((one for one in self._hub.supervisors if one.id == ident), None)
        if supervisor is None or not supervisor.settings.enabled:
            return None
        made = self._made.get(ident)
        if made is not None and made[0] is supervisor.settings:
            return made[2]
        if made is not None:
            # The config has changed: whoever is connected finishes with the old one.
            made[2].close("the server's config has changed")
            spawn(made[1].close())
        return self._make(supervisor.settings)

    def _make(self, server: ServerSettings) -> Endpoint:
        hub, gate = self._hub, self._hub.gate
        upstream = hub.servers.open_upstream(server)
        setup = Setup(
            server.id,
            "",
            enforce=gate.governor.policy.profile == PRODUCTION,
            timeout_s=min(hub.settings.listen.request_timeout_s, server.timeout_s),
            max_held=hub.settings.holds.connection,
        )
        backend = TransparentBackend(setup, upstream, gate.authority, gate.outbox)
        endpoint = self._front.add((), backend)
        self._made[server.id] = (server, upstream, endpoint)
        return endpoint

    async def close(self) -> None:
        """Disconnect from every server."""
        for _, upstream, endpoint in self._made.values():
            endpoint.close("the gate is stopping")
            await upstream.close()
