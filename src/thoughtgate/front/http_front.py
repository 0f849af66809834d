"""The HTTP front: address, authentication, the gate's own pages, admin port and drain.

``proxy`` and ``serve`` differ only in the endpoints they add.
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from thoughtgate.config.checks import is_loopback
from thoughtgate.config.listen_settings import ListenSettings
from thoughtgate.errors import ConfigError, Problem, ThoughtGateError
from thoughtgate.front.authentication import open_authenticator, resource_metadata
from thoughtgate.front.backend import Backend
from thoughtgate.front.endpoint import Endpoint, EndpointOptions
from thoughtgate.front.listener import METADATA, Listener
from thoughtgate.front.pages import AdminPort, Pages
from thoughtgate.front.request_head import expected_names
from thoughtgate.front.sessions import SessionLimit, SessionTable
from thoughtgate.front.shared_sessions import SharedSessions
from thoughtgate.gate.connections.certificates import listener_tls
from thoughtgate.gate.keys import KeyRing
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.poll_loop import complain
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.transports.http_server import HttpServer
from thoughtgate.transports.server_limits import ServerLimits

MCP: Final = "/mcp"
"""The path of the endpoint, with which its public URL ends."""

ADMIN_DRAIN_S: Final = 0.5
"""How long a shutdown waits for responses on the admin port to complete."""


def check_address(listen: ListenSettings, file: str) -> None:
    """Refuse to listen where other machines can connect without authentication.

    Raises:
        ConfigError: the address is reachable from other machines and no authentication is set.
    """
    if listen.transport == "http" and listen.auth is None and not is_loopback(listen.host):
        problem = (
            f"required when listening on {listen.host}, which other machines can reach;"
            " say in the config who may connect, or listen on 127.0.0.1"
        )
        raise ConfigError([Problem("listen.auth", problem, file)])


class HttpFront:
    """One listening address and its endpoints."""

    def __init__(
        self,
        listen: ListenSettings,
        authority: LocalAuthority,
        outbox: Outbox,
        pages: Pages,
        *,
        environ: Mapping[str, str],
        keys: KeyRing,
        anonymous: str,
        shared: SharedSessions | None = None,
        file: str = "",
        server: str = "",
        report: Callable[[str], None] = complain,
    ) -> None:
        """Prepare to listen; ``anonymous`` is the principal of agents that need not authenticate.

        ``keys`` seal session ids. ``shared`` are the sessions that other processes know too; this
        closes them. ``report`` is called with messages for the operator.

        Raises:
            ConfigError: something that authentication needs is not set, or a certificate file
                cannot be used.
        """
        self.port = 0
        self.admin_port = 0
        self._listen = listen
        self._tls = listener_tls(listen.tls, file, report) if listen.tls is not None else None
        self._session_keys = keys
        self._shared = shared
        self._authority = authority
        self._pages = pages
        self._session_limit = SessionLimit(listen.max_sessions)
        resource = _public_url(listen)
        self._authenticator, self._keys = open_authenticator(
            listen.auth,
            environ,
            anonymous=anonymous,
            metadata_url=metadata_url(resource),
            file=file,
        )
        self.auth_method = self._authenticator.method
        self.listener = Listener(
            authority,
            outbox,
            self._authenticator,
            server=server,
            keys=self._keys,
            metadata=lambda: resource_metadata(
                resource, listen.auth, authority.governor.policy.scopes()
            ),
            pages=pages.public_routes() if listen.admin_port else pages.routes(),
            max_concurrent=listen.max_concurrent,
        )
        limits = ServerLimits(max_body=listen.max_body, keep_alive_s=listen.keep_alive_s)
        self._server = HttpServer(self.listener, limits)
        self._admin = HttpServer(AdminPort(pages.routes())) if listen.admin_port else None
        pages.connections = lambda: len(self._server.connections)
        pages.prevented = lambda: authority.held.prevented
        pages.degraded = authority.governor.degraded
        pages.can_record = lambda: authority.governor.can_record

    def add(self, paths: Iterable[bytes], backend: Backend) -> Endpoint:
        """Serve a backend at these paths; without any, ``find_endpoint`` must return it."""
        listen = self._listen
        options = EndpointOptions(
            self.auth_method,
            enforce=self._authority.governor.policy.profile == PRODUCTION,
            max_batch=listen.max_batch,
            scope_challenge=self._authenticator.scope_challenge,
        )
        # Own keys per server, so that a session id issued for one server is not valid at another.
        keys = self._session_keys.derive(f"sessions of {backend.server}")
        sessions = SessionTable(keys, self._session_limit, idle_s=listen.session_idle_s)
        endpoint = Endpoint(
            options, backend, sessions, shared=self._shared, on_batch=self._pages.batch_came
        )
        self.listener.include(endpoint)
        for path in paths:
            self.listener.add(path, endpoint)
        return endpoint

    async def open(self, *, reuse_port: bool = False) -> None:
        """Start listening.

        Raises:
            ThoughtGateError: the address cannot be used.
        """
        listen = self._listen
        if self._keys is not None:
            await self._keys.fetch()
        self.port = await _bind(
            self._server, listen.host, listen.port, tls=self._tls, reuse_port=reuse_port
        )
        # No await in between: facts about a head are cached with it, so a request that was read
        # before the names are known would leave a wrong conclusion behind.
        self.listener.expected = expected_names(
            listen.host, self.port, listen.hosts, listen.origins
        )
        if self._admin is not None:
            self.admin_port = await _bind(
                self._admin, listen.admin_host, listen.admin_port, reuse_port=reuse_port
            )
        self._pages.is_serving = True
        url = _public_url(replace(listen, port=self.port))
        self._authority.governor.announce(url=url)

    async def drain(self) -> None:
        """Accept no more calls, and give those in progress time to finish.

        Before that, a balancer gets time to notice that this gate is no longer ready.
        """
        self._pages.is_serving, self._pages.is_draining = False, True
        await asyncio.sleep(self._listen.lame_duck_s)
        self.listener.drain()
        await self._server.drain(self._listen.drain_s, self.listener.close)
        if self._admin is not None:
            await self._admin.drain(ADMIN_DRAIN_S)
        if self._keys is not None:
            await self._keys.close()

    def close(self) -> None:
        """Stop, and answer every request that is still open."""
        self.listener.close()
        if self._shared is not None:
            self._shared.close()


async def _bind(
    server: HttpServer,
    host: str,
    port: int,
    *,
    reuse_port: bool,
    tls: ssl.SSLContext | None = None,
) -> int:
    try:
        return await server.listen(host, port, tls=tls, reuse_port=reuse_port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the address cannot be used"
        raise ThoughtGateError(cannot_listen(host, port, reason)) from None


def cannot_listen(host: str, port: int, reason: str) -> str:
    """Return the message about an address at which no server can listen."""
    return (
        f"cannot listen on {host}:{port}: {reason}; choose another address,"
        " or find what uses this one (thoughtgate status lists gates)"
    )


def _public_url(listen: ListenSettings) -> str:
    if listen.public_url:
        base = listen.public_url.rstrip("/")
        return base if base.endswith(MCP) else f"{base}{MCP}"
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    return f"{scheme_of(listen)}://{host}:{listen.port}{MCP}"


def metadata_url(resource: str) -> str:
    """Return where the metadata of the endpoint with this URL is (RFC 9728)."""
    # Only at the end: the host may be called ``mcp.example.com``.
    return f"{resource.removesuffix(MCP)}{METADATA.decode()}{MCP}"


def scheme_of(listen: ListenSettings) -> str:
    """Return what the URL of a listener begins with."""
    return "https" if listen.tls is not None else "http"
