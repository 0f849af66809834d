"""The HTTP server of the governance service and the console, by default on the loopback interface."""

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Final

from thoughtgate.errors import UsageError
from thoughtgate.transports.asgi import App, AsgiHandler
from thoughtgate.transports.http_server import Handler, HttpServer
from thoughtgate.transports.server_limits import ServerLimits

HOST: Final = "127.0.0.1"

KEEP_ALIVE_S: Final = 7 * 24 * 3600
"""Idle connections are kept open: a closed connection tells a shim that the service has ended.

A week, because all connections of a service that was stopped (Ctrl-Z) were idle meanwhile."""

MAX_BODY: Final = 16 * 1024 * 1024
"""Maximum bytes of a request: the largest call, as JSON inside JSON."""

BACKLOG: Final = 512
"""Large, because an agent starts all its servers at the same time."""


@contextlib.contextmanager
def open_listener(
    port: int, option: str = "--governance-port", host: str = HOST
) -> Iterator[socket.socket]:
    """Open a listening socket; ``option`` is the command line option that sets the port.

    Raises:
        UsageError: the port cannot be used.
    """
    # With the protocol stated, asyncio disables Nagle's algorithm, which would delay small
    # responses, such as verdicts, by 40 ms.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        # A restarted service gets its port back while old connections are still closing.
        if port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)
        except OSError as error:
            raise UsageError(
                f"{option} {port} cannot be used: {error.strerror}; "
                "choose another, or 0 for any free port"
            ) from None
        yield listener


def serve_app(
    app: App, listener: socket.socket, tls: ssl.SSLContext | None = None
) -> AbstractAsyncContextManager[None]:
    """Serve an ASGI application until the context ends."""
    return serve(AsgiHandler(app), listener, tls)


@contextlib.asynccontextmanager
async def serve(
    handler: Handler, listener: socket.socket, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """Serve until the context ends; then close all connections without waiting."""
    server = HttpServer(handler, ServerLimits(max_body=MAX_BODY, keep_alive_s=KEEP_ALIVE_S))
    await server.listen_on(listener, tls)
    try:
        yield
    finally:
        await server.drain(0.0)
