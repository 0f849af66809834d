"""Builds the means to reach a server from its settings: a connection pool or a command."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from thoughtgate.config.settings import ServerSettings
from thoughtgate.gate.state_directory import server_environment
from thoughtgate.transports.child_process import ChildCommand
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.tls import client_context


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
