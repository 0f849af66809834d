"""The pages that the gateway itself serves: is it alive, is it ready, what does it count."""

import json
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from thoughtgate.transports.http_server import Exchange

_JSON: Final = b"content-type: application/json\r\ncache-control: no-store\r\n"
_TEXT: Final = (
    b"content-type: text/plain; version=0.0.4; charset=utf-8\r\ncache-control: no-store\r\n"
)


Page: TypeAlias = tuple[int, bytes, bytes]
"""Status, rendered headers and body of a page that the gate itself serves."""


class Meter(Protocol):
    """Counts what is recorded."""

    def set(self, name: str, value: float) -> None:
        """Say what a number is now."""

    def take(self, name: str, value: float) -> None:
        """Put a value into a histogram."""

    def render(self) -> bytes:
        """Return the counts in the text format of Prometheus."""


class Pages:
    """Health, readiness and metrics, beside MCP or on a port of their own."""

    def __init__(self, meter: Meter | None = None) -> None:
        self.is_serving = False
        self.is_draining = False
        self.is_up: Callable[[], bool] = lambda: False
        """Tells whether the servers behind the gate can be used now, as far as is known."""
        self.connections: Callable[[], int] = lambda: 0
        self.prevented: Callable[[], int] = lambda: 0
        """Tells how many calls were not made because their caller had left."""
        self._meter = meter

    def batch_came(self, size: int) -> None:
        """Count a batch."""
        if self._meter is not None:
            self._meter.take("mcp_batch_size_histogram", size)

    def routes(self) -> Mapping[bytes, Callable[[], Page]]:
        """Return every page."""
        return {b"/health": self.health, b"/ready": self.ready, b"/metrics": self.metrics}

    def public_routes(self) -> Mapping[bytes, Callable[[], Page]]:
        """Return the pages that stay beside MCP when there is an admin port."""
        return {b"/health": self.health}

    def health(self) -> Page:
        """The process is alive."""
        return 200, _JSON, b'{"status":"ok"}'

    def ready(self) -> Page:
        """The gate takes calls and can make them."""
        upstream_up = self.is_up()
        if self.is_serving and upstream_up and not self.is_draining:
            return 200, _JSON, b'{"status":"ready"}'
        status = "draining" if self.is_draining else "starting"
        return 503, _JSON, json.dumps({"status": status, "upstream": upstream_up}).encode()

    def metrics(self) -> Page:
        """What the gate counts."""
        if self._meter is None:
            return 404, _TEXT, b""
        self.refresh()
        return 200, _TEXT, self._meter.render()

    def refresh(self) -> None:
        """Have the numbers that no record tells counted as they are now."""
        if self._meter is not None:
            self._meter.set("mcp_connections_active", self.connections())
            self._meter.set("thoughtgate_zombie_execution_prevented_total", self.prevented())


class AdminPort:
    """Serves pages on a port of their own."""

    def __init__(self, pages: Mapping[bytes, Callable[[], Page]]) -> None:
        self._pages = pages

    def opened(self, exchange: Exchange) -> None:
        """Nothing is refused before it is read."""

    def completed(self, exchange: Exchange) -> None:
        """Serve a page."""
        page = self._pages.get(exchange.target.partition(b"?")[0])
        if page is None:
            exchange.respond(404)
        elif exchange.method != b"GET":
            exchange.respond(405, b"allow: GET\r\n")
        else:
            exchange.respond(*page())

    def refused(self, exchange: Exchange, status: int) -> None:
        """The request cannot be read."""
        exchange.respond(status)
