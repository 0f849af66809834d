"""A scripted HTTP server on a real socket: what it answers is a function of the request.

It is plain threads and the standard library, so that nothing of the code under test takes
part. Everything it receives is kept; what reached it is the proof of what was let through.
"""

import contextlib
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Final, Self

JSON: Final = "application/json"
STREAM: Final = "text/event-stream"


@dataclass
class Received:
    """One request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def message(self) -> Any:
        """The body as JSON; None when it is not."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def tool(self) -> str:
        """The tool that is called, if one is."""
        message = self.message
        params = message.get("params") if isinstance(message, dict) else None
        name = params.get("name") if isinstance(params, dict) else None
        return name if isinstance(name, str) else ""


@dataclass
class Reply:
    """What to answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    parts: list[bytes] | None = None
    """For a stream: sent one by one, each flushed."""
    wait: threading.Event | None = None
    """Waited for before the last part."""
    raw: bytes | None = None
    """Sent instead of everything else, then the connection is closed."""
    endless: bytes = b""
    """Sent after ``raw`` again and again, until the client leaves."""


Script = Callable[[Received], Reply]


def result(received: Received, value: Any) -> Reply:
    """Answer a request with a result."""
    body = {"jsonrpc": "2.0", "id": received.message["id"], "result": value}
    return Reply(body=json.dumps(body).encode())


def text_result(received: Received, text: str) -> Reply:
    """Answer a tool call with a text."""
    return result(received, {"content": [{"type": "text", "text": text}]})


def event(body: Any, head: str = "") -> bytes:
    """Return one server-sent event that carries a message."""
    return f"{head}event: message\ndata: {json.dumps(body)}\n\n".encode()


SMALL_TOOLS: Final = [
    {"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "secret", "slow")
]


def small_server(received: Received) -> Reply:
    """Answer like a small MCP server without sessions."""
    message = received.message
    if received.method != "POST" or not isinstance(message, dict):
        return Reply(405)
    if "id" not in message or "method" not in message:
        return Reply(202)
    if message["method"] == "tools/list":
        return result(received, {"tools": SMALL_TOOLS, "cacheScope": "public", "ttlMs": 5})
    if message["method"] == "tools/call":
        return text_result(received, json.dumps(message["params"].get("arguments")))
    return result(received, {"method": message["method"]})


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128
    home: "HttpUpstream"
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Speak TLS in the connection's own thread, where a slow client holds up nobody."""
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(10)
        with self.tls.wrap_socket(
            request, server_side=True, do_handshake_on_connect=False
        ) as secured:
            try:
                secured.do_handshake()
            except ssl.SSLError:
                # Closing with unread data would reset the connection, and the client could lose
                # the alert that says what is wrong.
                secured.shutdown(socket.SHUT_WR)
                while secured.recv(65536):
                    pass
                raise
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name in the library
        """Say nothing."""

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else b""
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.command, self.path, headers, body)
        home = self.server.home
        home.received.append(received)
        reply = home.script(received)
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            self.close_connection = True
            with contextlib.suppress(OSError):
                while reply.endless:
                    self.wfile.write(reply.endless)
                    self._pause()
            return
        if reply.parts is not None:
            self._stream(reply)
            return
        if reply.wait is not None:
            reply.wait.wait(10)
        self.send_response(reply.status)
        if reply.body or reply.status == 200:
            self.send_header("content-type", reply.content_type)
        self.send_header("content-length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def _pause(self) -> None:
        """Wait for a moment, as a slow server does; a client that leaves ends it."""
        self.connection.settimeout(0.02)
        with contextlib.suppress(TimeoutError):
            self.connection.recv(1, socket.MSG_PEEK)

    def _stream(self, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", STREAM)
        self.send_header("transfer-encoding", "chunked")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        parts = reply.parts or []
        try:
            for number, part in enumerate(parts):
                if reply.wait is not None and number == len(parts) - 1:
                    self.server.home.waiting.set()
                    self._wait(reply.wait)
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.server.home.broken += 1
            self.close_connection = True

    def _wait(self, event: threading.Event) -> None:
        """Wait for the test, but notice a client that leaves."""
        self.connection.settimeout(0.05)
        for _ in range(200):
            if event.wait(0.01):
                break
            try:
                if self.connection.recv(1, socket.MSG_PEEK) == b"":
                    raise BrokenPipeError
            except TimeoutError:
                continue
        self.connection.settimeout(None)

    do_GET = do_POST = do_DELETE = do_PUT = _serve  # noqa: N815  the names in the library


class HttpUpstream:
    """The server, in a thread of its own."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        """Answer by a script; with ``tls``, over https."""
        self.script = script
        self.received: list[Received] = []
        self.broken = 0
        """Streams whose reader left before the end."""
        self.waiting = threading.Event()
        """Set when a stream has sent all but its last part."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.home = self
        self._server.tls = tls
        self.port: int = self._server.server_address[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}/mcp"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def calls(self, tool: str = "") -> list[Received]:
        """Return the tool calls that arrived."""
        called = [one for one in self.received if one.tool]
        return [one for one in called if not tool or one.tool == tool]


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port
