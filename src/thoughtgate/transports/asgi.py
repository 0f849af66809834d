"""An adapter that serves an ASGI application, such as the console, with our own HTTP server.

The application gets complete requests; its responses may be streams. Websockets and the lifespan
protocol are not supported, since the console uses neither.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

from thoughtgate.transports.http_server import Exchange

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


MAX_BODY: Final = 131_072
"""Maximum bytes of a request: twice the limit of forms and webhooks."""


class AsgiHandler:
    """A handler for ``HttpServer`` that passes every request to the application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()

    def opened(self, exchange: Exchange) -> None:
        """Refuse large bodies now: the application runs only after the whole body has arrived."""
        # Chunked bodies too, because their length is not known in advance.
        length = exchange.headers.get(b"content-length", b"0")
        if b"transfer-encoding" in exchange.headers:
            exchange.respond(HTTPStatus.LENGTH_REQUIRED)
        elif int(length) > MAX_BODY:
            exchange.respond(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def completed(self, exchange: Exchange) -> None:
        """Run the application in its own task."""
        task = asyncio.get_running_loop().create_task(_Run(exchange).run(self._app))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def refused(self, exchange: Exchange, status: int) -> None:
        """Respond to a malformed request."""
        exchange.respond(status)


class _Run:
    """The run of the application for one request."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._body: bytes | None = exchange.body
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        self._status = 0
        self._headers = b""
        exchange.on_gone = self._gone.set
        exchange.on_writable = self._writable.set

    async def run(self, app: App) -> None:
        exchange = self._exchange
        try:
            await app(self._scope(), self._receive, self._send)
        except Exception:  # noqa: BLE001 - the edge of a request: one page fails, not the gate
            self._fail()
        if not exchange.is_answered:
            self._fail()

    def _fail(self) -> None:
        exchange = self._exchange
        if exchange.is_streaming:
            exchange.drop()  # A truncated response must not look complete.
        else:
            exchange.respond(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _scope(self) -> Scope:
        exchange = self._exchange
        path, _, query = exchange.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": exchange.method.decode("latin-1"),
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": exchange.wire_headers,
            "client": (exchange.peer, 0),
            "server": None,
        }

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, event: MutableMapping[str, Any]) -> None:
        exchange = self._exchange
        if event["type"] == "http.response.start":
            self._status = event["status"]
            self._headers = b"".join(
                b"%b: %b\r\n" % (name, value)
                for name, value in event.get("headers", ())
                # Our server adds these itself; two of them would make the response ambiguous.
                if name.lower() not in {b"content-length", b"transfer-encoding"}
            )
            return
        body, more = event.get("body", b""), event.get("more_body", False)
        if not more and not exchange.is_streaming:
            exchange.respond(self._status, self._headers, body)
            return
        exchange.start(self._status, self._headers)
        exchange.write(body)
        if not more:
            exchange.end()
        elif exchange.is_stalled and not exchange.is_gone:
            await self._until_writable()

    async def _until_writable(self) -> None:
        """Wait until a slow client can be written to again, or disconnects."""
        self._writable.clear()
        waits = [asyncio.ensure_future(one.wait()) for one in (self._writable, self._gone)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for one in waits:
            one.cancel()
