"""A complete HTTP response, collected up to a limit."""

import asyncio
from dataclasses import dataclass

from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.transports.http_heads import Headers, ResponseHead


@dataclass(slots=True)
class Response:
    """A complete response."""

    status: int
    headers: Headers
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """Return the first header of a name, given in lower case."""
        return next((value for key, value in self.headers if key == name), None)


class Collector:
    """A receiver that collects a complete response."""

    def __init__(self, limit: int) -> None:
        self.response: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._limit = limit
        self._status = 0
        self._headers: Headers = []
        self._body = bytearray()

    def started(self, head: ResponseHead) -> None:
        """Keep the head."""
        self._status = head.status
        self._headers = head.headers

    def received(self, chunk: bytes) -> None:
        """Add a part of the body."""
        self._body += chunk
        if len(self._body) > self._limit:
            self.failed(upstream_error("too_large"))

    def ended(self) -> None:
        """Complete the response."""
        if not self.response.done():
            self.response.set_result(Response(self._status, self._headers, bytes(self._body)))

    def failed(self, error: PeerError) -> None:
        """Raise an error where the response is awaited."""
        if not self.response.done():
            self.response.set_exception(error)
