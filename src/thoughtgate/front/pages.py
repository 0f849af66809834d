"""The gate's own HTTP pages: health, readiness and metrics."""

import json
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias

from thoughtgate.transports.http_server import Exchange

# Not stored by caches: a probe must see the state of this moment.
_JSON: Final = b"content-type: application/json\r\ncache-control: no-store\r\n"
_TEXT: Final = (
    b"content-type: text/plain; version=0.0.4; charset=utf-8\r\ncache-control: no-store\r\n"
)


Page: TypeAlias = tuple[int, bytes, bytes]
"""Status, rendered headers and body of a page that the gate itself serves."""


class Meter(Protocol):
    """Counts what is put on the record."""

    def set(self, name: str, value: float) -> None:
        """Set a gauge to its current value."""

    def take(self, name: str, value: float) -> None:
        """Add a value to a histogram."""

    def render(self) -> bytes:
        """Return the metrics in the Prometheus text format."""


class Pages:
    """Health, readiness and metrics, served on the MCP port or on a separate admin port."""

    def __init__(self, meter: Meter | None = None) -> None:
        self.is_serving = False
        self.is_draining = False
        self.can_record: Callable[[], bool] = lambda: True
        """Returns whether the record can be written, as far as is known."""
        self.parts: dict[str, Callable[[], bool]] = {}
        """Parts without which the gate still works, by name, and whether each is usable. The names
        say nothing about the config: anyone who can connect may read them."""
        self.connections: Callable[[], int] = lambda: 0
        self.prevented: Callable[[], int] = lambda: 0
        """Returns how many calls were not made because their caller had disconnected."""
        self.degraded: Callable[[], list[str]] = list
        """Returns the parts that do not work now, although the gate goes on."""
        self._meter = meter

    def batch_came(self, size: int) -> None:
        """Count a batch by its size."""
        if self._meter is not None:
            self._meter.take("mcp_batch_size_histogram", size)

    def routes(self) -> Mapping[bytes, Callable[[], Page]]:
        """Return every page."""
        return {b"/health": self.health, b"/ready": self.ready, b"/metrics": self.metrics}

    def public_routes(self) -> Mapping[bytes, Callable[[], Page]]:
        """Return the pages that stay on the MCP port when there is an admin port."""
        return {b"/health": self.health}

    def health(self) -> Page:
        """Report that the process is alive."""
        return 200, _JSON, b'{"status":"ok"}'

    def ready(self) -> Page:
        """Report whether the gate accepts, judges and records calls.

        A server or a store that is away is reported, but does not count: other gates would not
        reach it either, and the gate still answers calls, if only with the reason.
        """
        if self.is_draining:
            return 503, _JSON, b'{"status":"draining"}'
        if not self.is_serving:
            return 503, _JSON, b'{"status":"starting"}'
        if not self.can_record():
            return 503, _JSON, b'{"status":"unavailable","reason":"the record cannot be written"}'
        degraded = [name for name, is_up in self.parts.items() if not is_up()]
        degraded += self.degraded()
        if degraded:
            return 200, _JSON, json.dumps({"status": "degraded", "degraded": degraded}).encode()
        return 200, _JSON, b'{"status":"ready"}'

    def metrics(self) -> Page:
        """Report the metrics."""
        if self._meter is None:
            return 404, _TEXT, b""
        self.refresh()
        return 200, _TEXT, self._meter.render()

    def refresh(self) -> None:
        """Update the metrics that are not derived from records."""
        if self._meter is not None:
            self._meter.set("mcp_connections_active", self.connections())
            self._meter.set("thoughtgate_zombie_execution_prevented_total", self.prevented())
            self._meter.set("thoughtgate_degraded_parts", len(self.degraded()))


class AdminPort:
    """Serves the gate's own pages on a separate port."""

    def __init__(self, pages: Mapping[bytes, Callable[[], Page]]) -> None:
        self._pages = pages

    def opened(self, exchange: Exchange) -> None:
        """Accept every head: the admin port has no authentication."""

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
        """Refuse a request that cannot be parsed."""
        exchange.respond(status)
