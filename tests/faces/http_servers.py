"""The HTTP side of the suite's server: Streamable HTTP in both eras, on plain threads."""

import contextlib
import json
import os
import queue
import select
import socket
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.faces.servers import PATIENCE_S, Client, Server

JSON: Final = "application/json"
STREAM: Final = "text/event-stream"
END: Final = None
Body = dict[str, Any]


class Session(Client):
    """A session of the older revisions, or the one that all stateless requests share."""

    def __init__(self) -> None:
        super().__init__()
        self.unasked_queue: queue.SimpleQueue[Body | None] = queue.SimpleQueue()
        self.unasked = self.unasked_queue.put
        self.end_stream = lambda: self.unasked_queue.put(END)


class Listener(ThreadingHTTPServer):
    """The listening socket and the open sessions."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, server: Server, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.behind = server
        self.sessions: dict[str, Session] = {"": Session()}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of many scenarios."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Listener

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's name
        """Say nothing."""

    def _session(self) -> Session:
        return self.server.sessions.get(self.headers.get("mcp-session-id") or "", Session())

    def _is_forgotten(self) -> bool:
        """Tell whether the request names a session that this process does not know."""
        ident = self.headers.get("mcp-session-id") or ""
        return ident not in self.server.sessions

    def do_POST(self) -> None:
        """Take one message."""
        text = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(text)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.behind.log.note(body, headers=headers)
        if self._is_forgotten():
            error = {"code": -32001, "message": "Session not found"}
            self._plain(404, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())
            return
        if "method" not in body or "id" not in body:
            self.server.behind.note(body)
            self._plain(202, b"")
            return
        if body["method"] in {"tools/call", "subscriptions/listen", "prompts/list"}:
            self._stream(body)
            return
        said: list[Body] = []
        self.server.behind.answer(body, self._session(), said.append)
        more = {}
        if body["method"] == "initialize":
            ident = uuid.uuid4().hex
            self.server.sessions[ident] = Session()
            more = {"mcp-session-id": ident}
        self._plain(200, json.dumps(said[0]).encode(), **more)

    def do_GET(self) -> None:
        """Open the stream on which the server speaks unasked."""
        self.server.behind.log.note({"method": "GET"})
        if self._is_forgotten():
            self._plain(404, b"")
            return
        session = self._session()
        self._start_stream()
        with contextlib.suppress(OSError):
            # An id lets the client resume, as servers of 2025-11-25 do it.
            self._chunk(f"id: {uuid.uuid4().hex}\nretry: 50\ndata:\n\n".encode())
            while True:
                try:
                    body = session.unasked_queue.get(timeout=PATIENCE_S)
                except queue.Empty:
                    self._chunk(b": open\n\n")
                    continue
                if body is END:
                    break
                self._event(body)
            self._chunk(b"")
        self.close_connection = True

    def do_DELETE(self) -> None:
        """End a session."""
        self.server.sessions.pop(self.headers.get("mcp-session-id") or "?", None)
        self._plain(200, b"")

    def _plain(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        if body:
            self.send_header("content-type", JSON)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, body: Body) -> None:
        self._start_stream()
        writing = threading.Lock()

        def say(message: Body) -> None:
            with writing:
                self._event(message)

        with contextlib.suppress(OSError):
            self.server.behind.answer(body, self._session(), say, self._is_gone)
            self._chunk(b"")

    def _is_gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", STREAM)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _event(self, body: Body) -> None:
        self._chunk(f"data: {json.dumps(body)}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


def serve_http(server: Server, port: int) -> None:
    """Listen on a port, 0 for a free one, print it, and serve until killed."""
    listener = Listener(server, port)
    print(listener.server_address[1], flush=True)
    threading.Thread(target=_end_with_input, daemon=True).start()
    listener.serve_forever(0.05)


def _end_with_input() -> None:
    """End when the test that started this server is gone."""
    sys.stdin.read()
    os._exit(0)
