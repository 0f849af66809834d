"""The server behind every proxy that is measured: it answers at once and does nothing else.

Its answers are ready but for the id, so that it takes as little as it can of the cores
that the proxies run on.
"""

import asyncio
import json
import re
import sys
from typing import Any, Final

import httptools
import uvloop

_ID: Final = re.compile(rb'"id":\s*(\d+)')
_HEAD: Final = b"HTTP/1.1 %d OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_CALLED: Final = b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"hello"}]}}'
_LISTS: Final = b"tools/list"
_OPENS: Final = b'"initialize"'


class Answers(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._parser: Any = httptools.HttpRequestParser(self)
        self._transport: Any = None
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A proxy has come."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """A part of a request's body."""
        self._body += data

    def on_message_complete(self) -> None:
        """Answer."""
        body, self._body = self._body, b""
        found = _ID.search(body)
        if found is None:
            method = self._parser.get_method()
            self._transport.write(_HEAD % (405 if method == b"GET" else 202, 0))
            return
        answer = _CALLED % found[1]
        if _LISTS in body:
            answer = _listed(json.loads(body))
        elif _OPENS in body:
            answer = _opened(json.loads(body))
        self._transport.write(_HEAD % (200, len(answer)) + answer)


def _listed(message: dict[str, Any]) -> bytes:
    count = (message.get("params") or {}).get("count", 1)
    names = ["echo", *(f"tool_{one}" for one in range(1, count))]
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}}).encode()


def _opened(message: dict[str, Any]) -> bytes:
    """A hub calls only a server that has shaken hands."""
    result = {
        "protocolVersion": message["params"]["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bench", "version": "1"},
    }
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


async def main() -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    await loop.create_server(Answers, "127.0.0.1", int(sys.argv[1]), backlog=1024)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
