"""Load on an HTTP server that costs little itself, and what the server paid for it.

Each connection is a protocol that writes ready-made bytes and counts answers: on a small
machine a load that thinks takes the very cores away from what it measures.
"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httptools

from thoughtgate.transports.http_client import HttpPool

HEADERS: Final = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", b"2025-06-18"),
]
BODY: Final = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
    b'{"name":"echo","arguments":{"text":"hello world","number":7}}}'
)
OK: Final = 200
PATIENCE_S: Final = 300.0
"""A load that is not through by then has met a server that stopped answering."""


class Variant(NamedTuple):
    """Something that answers calls."""

    name: str
    url: str
    pids: tuple[int, ...]
    """Whose CPU it costs."""
    tool: str = "echo"
    """The name that its clients call the tool by."""


class Load(NamedTuple):
    """What a load measured."""

    per_second: float
    cpu_us: float
    latencies_ms: list[float]


class _Caller(asyncio.Protocol):
    """One connection that makes one call after the other."""

    def __init__(self, run: "_Run") -> None:
        self._run = run
        self._parser: Any = httptools.HttpResponseParser(self)
        self._transport: Any = None
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._call()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._run.lost()

    def on_message_complete(self) -> None:
        """One answer is whole: make the next call."""
        status = self._parser.get_status_code()
        if status != OK:
            self._run.fail(f"status {status}")
        self._run.latencies.append((time.perf_counter() - self._began) * 1000)
        self._parser = httptools.HttpResponseParser(self)
        self._call()

    def _call(self) -> None:
        body = self._run.next_body()
        if body is None:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(self._run.head % len(body) + body)


class _Run:
    """A number of calls over some connections."""

    def __init__(self, head: bytes, body: bytes, calls: int) -> None:
        self.head = head
        self._body = body
        self.latencies: list[float] = []
        self.done = asyncio.get_running_loop().create_future()
        self._calls = calls
        self._left = calls

    def next_body(self) -> bytes | None:
        if not self._left:
            return None
        self._left -= 1
        return self._body % (self._left + 1)

    def lost(self) -> None:
        if self._left:
            self.fail("the connection was closed")
        elif len(self.latencies) == self._calls and not self.done.done():
            self.done.set_result(None)

    def fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(reason))


async def run_load(variant: Variant, calls: int, connections: int) -> Load:
    """Make calls over some connections and measure.

    Raises:
        RuntimeError: a call was not answered with 200.
    """
    session = await _open_session(variant.url)
    address = urlsplit(variant.url)
    assert address.hostname is not None
    assert address.port is not None
    head = f"POST {address.path} HTTP/1.1\r\nhost: {address.netloc}\r\n".encode()
    head += b"".join(b"%b: %b\r\n" % header for header in [*HEADERS, *session])
    body = BODY.replace(b'"echo"', json.dumps(variant.tool).encode())
    run = _Run(head + b"content-length: %d\r\n\r\n", body, calls)
    loop = asyncio.get_running_loop()
    spent, began = cpu_s(variant.pids), time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(lambda: _Caller(run), address.hostname, address.port)
    await asyncio.wait_for(run.done, PATIENCE_S)
    took = time.perf_counter() - began
    used = cpu_s(variant.pids) - spent
    return Load(calls / took, used / calls * 1e6, run.latencies)


async def _open_session(url: str) -> list[tuple[bytes, bytes]]:
    """Shake hands where a proxy needs it; a server without sessions gives none."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    pool = HttpPool(url)
    try:
        answer = await pool.request("POST", HEADERS, json.dumps(hello).encode(), timeout_s=30.0)
        ident = answer.header(b"mcp-session-id")
        if ident is None:
            return []
        session = [(b"mcp-session-id", ident)]
        ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        await pool.request("POST", [*HEADERS, *session], ready, timeout_s=30.0)
        return session
    finally:
        await pool.close()


def cpu_s(pids: tuple[int, ...]) -> float:
    """Return the CPU time of processes, user and system, as the scheduler counted it."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9
