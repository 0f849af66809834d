"""Building what reaches a server from its settings: a connection pool, a command or an upstream."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from thoughtgate.config.secrets import secret_names
from thoughtgate.config.server_auth import BEARER
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.core.record_events import Record
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.gate.connections.certificates import server_tls
from thoughtgate.gate.connections.proxy_choice import choose_proxy
from thoughtgate.gate.poll_loop import complain
from thoughtgate.gate.state_directory import server_environment
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.transports.authorized_pool import AuthorizedPool
from thoughtgate.transports.child_process import ChildCommand, Watcher
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.http_proxy import parse_proxy
from thoughtgate.upstream.child import ChildUpstream
from thoughtgate.upstream.health import ServerHealth
from thoughtgate.upstream.http import HttpUpstream
from thoughtgate.upstream.legacy_sse import LegacySse
from thoughtgate.upstream.login_access import LoginAccess
from thoughtgate.upstream.server_log import ServerLog


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """The environment in which every server is reached or started."""

    environ: Mapping[str, str]
    base: str
    """The directory that relative paths in the config refer to."""
    watcher: Watcher | None = None
    logins: LoginAccess | None = None
    """The tokens of servers that need a login."""
    config: str = ""
    """The config file; empty if there is none."""
    agent_started: bool = False
    """Whether an agent starts the gate, and so chooses its environment."""
    report: Callable[[str], None] = complain
    """Called with messages for the operator."""

    async def close(self) -> None:
        """Close what all servers share."""
        if self.logins is not None:
            await self.logins.close()

    def command(self, server: ServerSettings, settings: Settings) -> ChildCommand:
        """Return the command of a stdio server, without the secrets of the gate's settings."""
        return child_command(server, self.environ, secret_names(settings), self.base)

    def open_pool(self, server: ServerSettings) -> HttpPool:
        """Open the pool of connections to a server's URL.

        Raises:
            ConfigError: a certificate file or the proxy cannot be used.
        """
        return open_pool(
            server,
            self.environ,
            self.logins,
            config=self.config,
            agent_started=self.agent_started,
            report=self.report,
        )

    def open_upstream(
        self,
        server: ServerSettings,
        settings: Settings,
        note: Callable[[Record], None],
        log: ServerLog | None = None,
    ) -> HttpUpstream | ChildUpstream:
        """Return a connection to a server that passes requests through; nothing is started."""
        if server.url:
            traces = settings.telemetry.otlp is not None
            return HttpUpstream(
                self.open_pool(server), ServerHealth(server.id, note), traces=traces
            )
        command = self.command(server, settings)
        return ChildUpstream(server, command, note, watcher=self.watcher, log=log)


def config_directory(path: str | None) -> str:
    """Return the directory that relative paths in a config refer to."""
    return str(Path(path).absolute().parent if path else Path.cwd())


def http_sessions(server: ServerSettings, settings: Settings, profile: str) -> SessionSettings:
    """Return the settings of the sessions with a server that is passed through to HTTP clients."""
    return SessionSettings(
        server.id,
        "",
        enforce=profile == PRODUCTION,
        timeout_s=min(settings.listen.request_timeout_s, server.timeout_s),
        max_held=settings.holds.connection,
        # A server that the config does not name is not on the console's page.
        login_page=settings.console.login_page if server.id in settings.servers else "",
    )


def login_access(
    settings: Settings, location: StoreLocation, environ: Mapping[str, str], config: str = ""
) -> LoginAccess:
    """Return how a gate reaches the tokens of its servers; ``config`` is its config file."""
    return LoginAccess(location, environ, settings.keys.tokens_env, config)


def open_pool(
    server: ServerSettings,
    environ: Mapping[str, str],
    logins: LoginAccess | None = None,
    *,
    config: str = "",
    agent_started: bool = False,
    report: Callable[[str], None] = complain,
) -> HttpPool:
    """Open the pool of connections to a server's URL, with the gate's own credentials.

    Without credentials in the config, a server that needs a login gets the tokens of ``logins``.

    Raises:
        ConfigError: a certificate file or the proxy cannot be used.
    """
    headers = [(name.lower().encode(), value.encode()) for name, value in server.headers.items()]
    if server.auth is not None and server.auth.type == BEARER:
        token = environ.get(server.auth.token_env, "").strip()
        headers.append((b"authorization", b"Bearer " + token.encode()))
    tls = None
    if server.url.startswith("https:"):
        tls = server_tls(server.tls, config, f"servers.{server.id}.tls", report)
    proxy = choose_proxy(server, environ, agent_started=agent_started, file=config)
    options = PoolOptions(
        connect_timeout_s=server.connect_timeout_s,
        tls=tls,
        proxy=parse_proxy(proxy.url) if proxy is not None else None,
        max_answer=server.max_answer,
        headers=headers,
    )
    authorizer = logins.authorizer(server) if logins is not None else None
    if authorizer is not None:
        pool: HttpPool = AuthorizedPool(server.url, options, authorizer)
    else:
        pool = HttpPool(server.url, options)
    if server.transport != "streamable-http":
        pool.route = LegacySse(pool, is_certain=server.transport == "sse")
    return pool


def child_command(
    server: ServerSettings, environ: Mapping[str, str], withheld: Iterable[str], base: str
) -> ChildCommand:
    """Return the command of a stdio server, with the environment that it may see.

    ``withheld`` are variables that only the gate may see; a relative directory is resolved
    against ``base``.
    """
    kept = server_environment(environ, withheld)
    directory = str(Path(base, Path(server.cwd).expanduser())) if server.cwd else ""
    return ChildCommand(server.command, server.args, {**kept, **server.env}, directory)
