"""A scripted server of the HTTP+SSE transport on a real socket, with its bytes in a test's hand."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Self

ENDPOINT: Final = b"event: endpoint\ndata: /messages?s=%d\n\n"
_OPEN: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


@dataclass
class Posted:
    """One request with a body."""

    path: str
    headers: dict[str, str]
    message: Any


@dataclass
class SseServer:
    """The server; a stream is kept open until the test ends it."""

    first: bytes = ENDPOINT
    """What a stream begins with; it may contain the stream's number."""
    refusal: bytes = b""
    """The answer to GET, if it is not a stream."""
    statuses: dict[str, str] = field(default_factory=dict)
    """The status of POSTs by path, without the query; 202 for others."""
    answer: Callable[[Any], Any] = lambda _: None
    """Returns the answer to a request; None for none."""
    posted: list[Posted] = field(default_factory=list)
    opened: list[dict[str, str]] = field(default_factory=list)
    """The headers of the requests that opened streams."""
    streams: list[asyncio.StreamWriter] = field(default_factory=list)
    after_open: bytes = b""
    """Sent in one piece when the first message has come, instead of its answer."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client has closed a stream."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/sse"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for stream in self.streams:
            stream.close()

    async def say(self, body: Any, stream: int = -1) -> None:
        """Send a message on a stream."""
        await self.write(f"event: message\ndata: {json.dumps(body)}\n\n".encode(), stream)

    async def write(self, data: bytes, stream: int = -1) -> None:
        """Send bytes on a stream."""
        self.streams[stream].write(data)
        await self.streams[stream].drain()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")[:-2]
                method, path, _ = first.split(" ")
                headers = dict(line.split(": ", 1) for line in lines)
                if method == "GET":
                    await self._open(reader, writer, headers)
                    return
                body = await reader.readexactly(int(headers["content-length"]))
                await self._take(writer, Posted(path, headers, json.loads(body)))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _open(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        headers: dict[str, str],
    ) -> None:
        self.opened.append(headers)
        number = len(self.opened)
        begins = self.first % number if b"%d" in self.first else self.first
        writer.write(self.refusal or _OPEN + begins)
        await writer.drain()
        if self.refusal:
            writer.close()
            return
        self.streams.append(writer)
        await reader.read(1)
        self.ended.set()
        writer.close()

    async def _take(self, writer: asyncio.StreamWriter, posted: Posted) -> None:
        self.posted.append(posted)
        path = posted.path.partition("?")[0]
        status = self.statuses.get(path, "202 Accepted" if path != "/sse" else "405 No")
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        if self.after_open and len(self.posted) == 1:
            await self.write(self.after_open)
            return
        said = self.answer(posted.message) if status.startswith("2") else None
        if said is not None:
            await self.say(said)


Work = Callable[[SseServer], Awaitable[None]]
