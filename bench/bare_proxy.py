"""A proxy that only moves bytes: the least that a Python proxy on asyncio protocols can cost.

It parses both sides with httptools, keeps connections to the upstream open and judges and
records nothing. What the gate costs above it is what the gate does.
"""

import asyncio
import sys
from collections import deque
from typing import Any, Final

import httptools
import uvloop

_REQUEST: Final = (
    b"POST /mcp HTTP/1.1\r\nhost: up\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\ncontent-length: %d\r\n\r\n"
)
_ANSWER: Final = b"HTTP/1.1 %d OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
HOST: Final = "127.0.0.1"


class _Upstream(asyncio.Protocol):
    """One connection to the server, used by one request at a time."""

    def __init__(self, idle: "deque[_Upstream]") -> None:
        self._idle = idle
        self._body = b""
        self._parser: Any = httptools.HttpResponseParser(self)
        self.transport: Any = None
        self.client: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """A part of an answer's body."""
        self._body += data

    def on_message_complete(self) -> None:
        """Pass the answer on."""
        body, self._body = self._body, b""
        status = self._parser.get_status_code()
        self._parser = httptools.HttpResponseParser(self)
        self._idle.append(self)
        self.client.write(_ANSWER % (status, len(body)) + body)


class _Client(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, port: int, idle: "deque[_Upstream]") -> None:
        self._port = port
        self._idle = idle
        self._body = b""
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """A part of a request's body."""
        self._body += data

    def on_message_complete(self) -> None:
        """Pass the request on, over a new connection if all are in use."""
        body, self._body = self._body, b""
        if self._idle:
            self._send(self._idle.popleft(), body)
        else:
            asyncio.ensure_future(self._connect(body))  # noqa: RUF006 - the loop runs until killed

    async def _connect(self, body: bytes) -> None:
        loop = asyncio.get_running_loop()
        _, upstream = await loop.create_connection(lambda: _Upstream(self._idle), HOST, self._port)
        self._send(upstream, body)

    def _send(self, upstream: _Upstream, body: bytes) -> None:
        upstream.client = self._transport
        upstream.transport.write(_REQUEST % len(body) + body)


async def main(listen: int, port: int) -> None:
    """Serve until killed."""
    idle: deque[_Upstream] = deque()
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: _Client(port, idle), HOST, listen, backlog=1024)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
