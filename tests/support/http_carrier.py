"""A carrier as ``proxy --stdio`` uses it, in front of a scripted HTTP server."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.http_upstream import HttpUpstream, Received
from tests.support.waiting import run_async

from thoughtgate.core.commands import ToServer
from thoughtgate.core.events import Event, NotSent, ServerSent
from thoughtgate.proxy.stdio import HttpServer
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.upstream.health import ServerHealth
from thoughtgate.upstream.http_carrier import HttpCarrier
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Fault, Message


class Driver:
    """Keeps what a session driver would be told."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.lost: list[tuple[Any, str]] = []
        self.causes: list[Any] = []

    def feed(self, happened: Event, sink: object) -> int:
        del sink
        if isinstance(happened, ServerSent):
            if isinstance(happened.message, Message):
                self.heard.append(json.loads(happened.line))
        elif isinstance(happened, NotSent):
            self.lost.append((happened.key, happened.kind))
            self.causes.append((happened.facts or {}).get("cause"))
        return 1


class Client:
    """A carrier as ``proxy --stdio`` uses it, and the scripted server behind it."""

    def __init__(self, carrier: HttpCarrier, upstream: HttpUpstream) -> None:
        self.driver = Driver()
        self.upstream = upstream
        self.server = HttpServer(carrier, self.driver, None)  # type: ignore[arg-type]  # stand-ins

    @property
    def told(self) -> bool:
        return bool(self.driver.heard or self.driver.lost)

    @property
    def streams(self) -> list[Received]:
        """The GET requests that arrived."""
        return [one for one in self.upstream.received if one.method == "GET"]

    def send(self, data: bytes) -> None:
        """Send a frame of the agent."""
        message = read_frame(data)
        if isinstance(message, Fault):
            self.server.send(ToServer(data, 1))
        else:
            self.server.send(ToServer(data, message.id, message))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110  the server is a thread without events for this
                await asyncio.sleep(0.005)

    async def initialize(self) -> None:
        """Shake hands; the server's own stream is opened after that."""
        self.send(frame(0, "initialize"))
        await self.until(lambda: self.driver.heard)
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        await self.until(lambda: self.streams)


def frame(ident: Any, method: str = "tools/call", **params: Any) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": {"name": "x", **params}}
    return json.dumps(body if ident is None else {**body, "id": ident}).encode()


def with_client(
    script: Any,
    work: Callable[[Client], Awaitable[None]],
    health: ServerHealth | None = None,
) -> Client:
    async def main() -> Client:
        with HttpUpstream(script) as upstream:
            carrier = HttpCarrier(HttpPool(upstream.url), health=health)
            client = Client(carrier, upstream)
            await carrier.open(client.server)
            await work(client)
            await carrier.close()
        return client

    return run_async(main())
