"""The server behind every proxy that is measured: it answers at once and does nothing else."""

import asyncio
import json
import sys
from typing import Any

import uvloop

from thoughtgate.transports.http_server import Exchange, HttpServer

JSON = b"content-type: application/json\r\n"


class Answers:
    """Answers MCP requests without looking much at them."""

    def opened(self, exchange: Exchange) -> None:
        """Everything is welcome."""

    def completed(self, exchange: Exchange) -> None:
        """Answer."""
        message = json.loads(exchange.body) if exchange.body else {}
        if exchange.method != b"POST" or "id" not in message:
            exchange.respond(405 if exchange.method == b"GET" else 202)
            return
        body = {"jsonrpc": "2.0", "id": message["id"], "result": _result(message)}
        exchange.respond(200, JSON, json.dumps(body).encode())

    def refused(self, exchange: Exchange, status: int) -> None:
        """The request cannot be read."""
        exchange.respond(status)


def _result(message: dict[str, Any]) -> dict[str, Any]:
    if message.get("method") == "tools/list":
        count = (message.get("params") or {}).get("count", 1)
        tools = [{"name": f"tool_{one}", "inputSchema": {"type": "object"}} for one in range(count)]
        return {"tools": tools}
    return {"content": [{"type": "text", "text": "hello"}]}


async def main() -> None:
    """Serve until killed."""
    await HttpServer(Answers()).listen("127.0.0.1", int(sys.argv[1]))
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
