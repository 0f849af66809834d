"""Builds the means to reach a server from its settings: a pool, a command, or a whole upstream."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from thoughtgate.config.secrets import secret_names
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.core.record_events import Record
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.gate.state_directory import server_environment
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.transports.child_process import ChildCommand, Watcher
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.tls import client_context
from thoughtgate.upstream.child import ChildUpstream
from thoughtgate.upstream.http import HttpUpstream
from thoughtgate.upstream.server_log import ServerLog


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment in which every server is reached or started."""

    environ: Mapping[str, str]
    base: str
    """The directory that relative paths in the config refer to."""
    watcher: Watcher | None = None

    def command(self, server: ServerSettings, settings: Settings) -> ChildCommand:
        """Return the command of a stdio server, without the secrets of the gate's settings."""
        return child_command(server, self.environ, secret_names(settings), self.base)

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
            return HttpUpstream(open_pool(server, self.environ), traces=traces)
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
    )


def open_pool(server: ServerSettings, environ: Mapping[str, str]) -> HttpPool:
    """Open the pool of connections to a server's URL, with the gate's own credentials."""
    headers = [(name.lower().encode(), value.encode()) for name, value in server.headers.items()]
    if server.auth is not None:
        token = environ.get(server.auth.token_env, "").strip()
        headers.append((b"authorization", b"Bearer " + token.encode()))
    tls = client_context() if server.url.startswith("https:") else None
    options = PoolOptions(connect_timeout_s=server.connect_timeout_s, tls=tls, headers=headers)
    return HttpPool(server.url, options)


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
