"""The pages that the gateway itself serves: is it alive, is it ready, what does it count."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from thoughtgate.transports.http_server import Exchange

if TYPE_CHECKING:
    from thoughtgate.front.listener import Gateway, Page

_JSON: Final = b"content-type: application/json\r\ncache-control: no-store\r\n"
_TEXT: Final = (
    b"content-type: text/plain; version=0.0.4; charset=utf-8\r\ncache-control: no-store\r\n"
)


class Checked(Protocol):
    """An upstream that can say whether it works."""

    @property
    def is_up(self) -> bool:
        """Whether the server can be used now, as far as is known."""


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
        self._meter = meter
        self._gateway: Gateway | None = None
        self._upstream: Checked | None = None
        self._connections: Callable[[], int] = lambda: 0

    def attach(self, gateway: "Gateway", upstream: Checked, connections: Callable[[], int]) -> None:
        """Tell the pages what they are about."""
        self._gateway = gateway
        self._upstream = upstream
        self._connections = connections

    def batch_came(self, size: int) -> None:
        """Count a batch."""
        if self._meter is not None:
            self._meter.take("mcp_batch_size_histogram", size)

    def routes(self) -> "Mapping[bytes, Callable[[], Page]]":
        """Return every page."""
        return {b"/health": self.health, b"/ready": self.ready, b"/metrics": self.metrics}

    def public_routes(self) -> "Mapping[bytes, Callable[[], Page]]":
        """Return the pages that stay beside MCP when there is an admin port."""
        return {b"/health": self.health}

    def health(self) -> "Page":
        """The process is alive."""
        return 200, _JSON, b'{"status":"ok"}'

    def ready(self) -> "Page":
        """The gate takes calls and can make them."""
        upstream_up = self._upstream is not None and self._upstream.is_up
        draining = self._gateway is not None and self._gateway.is_draining
        if self.is_serving and upstream_up and not draining:
            return 200, _JSON, b'{"status":"ready"}'
        status = "draining" if draining else "starting"
        return 503, _JSON, json.dumps({"status": status, "upstream": upstream_up}).encode()

    def metrics(self) -> "Page":
        """What the gate counts."""
        if self._meter is None:
            return 404, _TEXT, b""
        self.refresh()
        return 200, _TEXT, self._meter.render()

    def refresh(self) -> None:
        """Have the numbers that no record tells counted as they are now."""
        meter, gateway = self._meter, self._gateway
        if meter is not None and gateway is not None:
            meter.set("mcp_connections_active", self._connections())
            meter.set("thoughtgate_zombie_execution_prevented_total", gateway.held.prevented)


class AdminPort:
    """Serves pages on a port of their own."""

    def __init__(self, pages: "Mapping[bytes, Callable[[], Page]]") -> None:
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
