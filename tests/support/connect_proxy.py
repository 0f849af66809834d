"""A small HTTP proxy: CONNECT tunnels for https, and whole URLs for http.

Whatever host a client asks for is reached on this machine, at a port that the test names, so that
names need no resolver. What was asked for is kept.
"""

import base64
import contextlib
import select
import socket
import socketserver
import threading
from typing import Final, Self

_LIMIT: Final = 65_536
_PATIENCE_S: Final = 10.0


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    home: "ConnectProxy"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of some tests."""


class _Handler(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        home, client = self.server.home, self.request
        client.settimeout(_PATIENCE_S)
        head = b""
        while b"\r\n\r\n" not in head and len(head) < _LIMIT:
            chunk = client.recv(_LIMIT)
            if not chunk:
                return
            head += chunk
        first, _, rest = head.partition(b"\r\n")
        method, target, _ = first.decode("latin-1").split(" ")
        home.asked.append((method, target))
        if home.answer:
            client.sendall(home.answer)
            return
        if not home.is_welcome(rest):
            client.sendall(
                b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
            )
            return
        with socket.create_connection(("127.0.0.1", home.leads_to), _PATIENCE_S) as server:
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = "/" + target.split("/", 3)[3]
                server.sendall(f"{method} {path} HTTP/1.1\r\n".encode() + rest)
            _pump(client, server)


def _pump(client: socket.socket, server: socket.socket) -> None:
    """Pass bytes on, both ways, until one side closes; a client sends no second request."""
    with contextlib.suppress(OSError):
        while True:
            readable, _, _ = select.select([client, server], [], [], _PATIENCE_S)
            if not readable:
                return
            for one in readable:
                data = one.recv(_LIMIT)
                if not data:
                    return
                (server if one is client else client).sendall(data)


class ConnectProxy:
    """The proxy, in a thread of its own."""

    def __init__(self, leads_to: int, *, user: str = "", password: str = "") -> None:
        self.leads_to = leads_to
        self.asked: list[tuple[str, str]] = []
        """The method and target of every request."""
        self.answer = b""
        """Sent instead of what was asked for."""
        self._credentials = base64.b64encode(f"{user}:{password}".encode()) if user else b""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.home = self
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def url(self) -> str:
        """Where it listens, without credentials."""
        return f"http://127.0.0.1:{self.port}"

    def is_welcome(self, head: bytes) -> bool:
        """Whether a request has the right credentials."""
        return b"proxy-authorization: Basic %b\r\n" % self._credentials in head or (
            not self._credentials
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_PATIENCE_S)
