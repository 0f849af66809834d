"""The governance service's socket and its HTTP server, on the loopback and nowhere else."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Final

import uvicorn

from thoughtgate.errors import UsageError
from thoughtgate.runtime.governance_http import App
from thoughtgate.runtime.tasks import spawn

HOST: Final = "127.0.0.1"

KEEP_ALIVE_S: Final = 3600
"""Idle connections are kept: a shim notices by its connection that the service is gone."""

MAX_CONNECTIONS: Final = 4096
"""A shim has three and one for each held call."""

BACKLOG: Final = 512
"""An agent starts all its servers at once."""


@contextlib.contextmanager
def open_listener(port: int, option: str = "--governance-port") -> Iterator[socket.socket]:
    """Open the service's socket; ``option`` is where the operator chose the port.

    Raises:
        UsageError: the port is taken.
    """
    # Named as TCP, or asyncio would leave small answers to Nagle's algorithm: 40 ms for a verdict.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        if port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen(BACKLOG)
        except OSError as error:
            raise UsageError(
                f"{option} {port} cannot be used: {error.strerror}; "
                "choose another, or 0 for any free port"
            ) from None
        yield listener


@contextlib.asynccontextmanager
async def serve(app: App, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an application until the context ends; connections are not waited for then."""
    server = _Quiet(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=KEEP_ALIVE_S,
            limit_concurrency=MAX_CONNECTIONS,
            server_header=False,
            ws="none",
        )
    )
    serving = spawn(server.serve([listener]))
    try:
        yield
    finally:
        server.should_exit = True
        server.force_exit = True
        await asyncio.wait({serving})


class _Quiet(uvicorn.Server):
    """Leaves signals to the wrap."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle none."""
        yield
