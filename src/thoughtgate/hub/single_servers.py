"""Endpoints for single servers of the namespace, at ``/servers/ID/mcp``.

Such an endpoint behaves like ``proxy`` for that server: the agent's own handshake, the
server's own names, the same rules. The server is connected on the first request, separately
from the connection that the catalogue shares.
"""

import asyncio
from dataclasses import dataclass

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.front.endpoint import Endpoint
from thoughtgate.front.http_front import HttpFront
from thoughtgate.front.request_head import SERVER_PATH
from thoughtgate.front.transparent import TransparentBackend
from thoughtgate.gate.background import spawn
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.namespace import NoSelection
from thoughtgate.hub.relay import ServerRelay
from thoughtgate.upstream.child import ChildUpstream
from thoughtgate.upstream.connect import http_sessions
from thoughtgate.upstream.http import HttpUpstream


@dataclass(frozen=True, slots=True)
class _Single:
    """A single server with its connection and its endpoint."""

    supervisor: ServerRelay
    """The catalogue's supervisor; if the hub has another one, the server's config has changed."""
    upstream: HttpUpstream | ChildUpstream
    backend: TransparentBackend
    endpoint: Endpoint


class SingleServers:
    """The endpoints of single servers, created on the first request."""

    def __init__(self, hub: Hub, front: HttpFront, *, is_shared: bool = False) -> None:
        """Serve at ``front``; ``is_shared`` says that gates on other machines serve them too."""
        self._hub = hub
        self._is_shared = is_shared
        self._front = front
        self._made: dict[str, _Single] = {}
        self._closing: set[asyncio.Task[None]] = set()
        """Connections of servers that were removed or changed, whose processes still end."""
        hub.on_applied = self.update

    def find(self, path: bytes) -> Endpoint | None:
        """Return the endpoint of a path; None if it names no enabled server of the namespace."""
        matched = SERVER_PATH.fullmatch(path)
        ident = matched[1].decode("ascii", "replace") if matched is not None else ""
        supervisor = self._offered(ident)
        if supervisor is None:
            return None
        made = self._made.get(ident)
        if made is None or made.supervisor is not supervisor:
            self._end(ident)
            made = self._made[ident] = self._make(supervisor)
        return made.endpoint

    def update(self) -> None:
        """Apply a new config: close the endpoints of servers that were removed or changed."""
        for ident, made in list(self._made.items()):
            if self._offered(ident) is made.supervisor:
                made.backend.adopt(self._setup(made.supervisor.settings))
            else:
                self._end(ident)

    async def close(self, seconds: float) -> None:
        """Disconnect from every server, after the detached calls have finished."""
        made = list(self._made.values())
        await asyncio.gather(*(one.backend.detached.finish(seconds) for one in made))
        await asyncio.gather(*self._closing, *(one.upstream.close() for one in made))

    def _offered(self, ident: str) -> ServerRelay | None:
        """Return a server if it is in the namespace and enabled."""
        selection = self._hub.selection
        if isinstance(selection, NoSelection) or ident not in selection.servers:
            return None
        supervisor = self._hub.servers.get(ident)
        return supervisor if supervisor is not None and supervisor.settings.enabled else None

    def _end(self, ident: str) -> None:
        made = self._made.pop(ident, None)
        if made is not None:
            self._front.listener.remove(made.endpoint, "the config of the server has changed")
            closing = spawn(made.upstream.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _make(self, supervisor: ServerRelay) -> _Single:
        gate = self._hub.gate
        upstream = self._hub.servers.open_upstream(supervisor.settings)
        if isinstance(upstream, HttpUpstream):
            spawn(upstream.start())  # Starts the timer that closes idle connections.
        setup = self._setup(supervisor.settings)
        backend = TransparentBackend(
            setup, upstream, gate.authority, gate.outbox, is_shared=self._is_shared
        )
        return _Single(supervisor, upstream, backend, self._front.add((), backend))

    def _setup(self, server: ServerSettings) -> SessionSettings:
        profile = self._hub.gate.governor.policy.profile
        return http_sessions(server, self._hub.settings, profile)
