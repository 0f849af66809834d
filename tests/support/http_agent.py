"""An agent over HTTP: every request a POST of its own, read in a thread, left when told."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Mapping
from typing import Any, Final

from tests.support.waiting import PATIENCE_S, wait_for

ACCEPT: Final = "application/json, text/event-stream"
_META: Final = "io.modelcontextprotocol/"


class HttpAgent:
    """Sends messages to one address and keeps what comes back."""

    def __init__(self, port: int, token: str = "", *, source: str = "127.0.0.1") -> None:
        self.port = port
        self._source = (source, 0)
        self.session = ""
        self.notices: list[dict[str, Any]] = []
        self._token = token
        self._answers: dict[Any, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._open: dict[Any, http.client.HTTPConnection] = {}
        self.accept = ACCEPT

    def greet(self, capabilities: Mapping[str, Any] | None = None) -> None:
        """Open a session as revisions before 2026-07-28 do."""
        client = {"name": "test", "version": "1"}
        can = dict(capabilities or {})
        params = {"protocolVersion": "2025-11-25", "capabilities": can, "clientInfo": client}
        self.ask({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, body: dict[str, Any]) -> None:
        """POST a message; a notification is waited for, a request is not."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=60, source_address=self._source
        )
        connection.request("POST", "/mcp", json.dumps(body).encode(), self._headers(body))
        ident = body.get("id")
        if ident is None:
            connection.getresponse().read()
            connection.close()
            return
        self._open[ident] = connection
        threading.Thread(target=self._read, args=(ident, connection), daemon=True).start()

    def respond(self, ident: Any, result: Any) -> int:
        """POST the response to a request of the other side and return the status."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=60, source_address=self._source
        )
        body = {"jsonrpc": "2.0", "id": ident, "result": result}
        connection.request("POST", "/mcp", json.dumps(body).encode(), self._headers(body))
        with contextlib.closing(connection):
            return connection.getresponse().status

    def ask(self, body: dict[str, Any], timeout: float = PATIENCE_S) -> dict[str, Any]:
        """POST a request and return its response."""
        self.send(body)
        return self.answer(body["id"], timeout)

    def answer(self, ident: Any, timeout: float = PATIENCE_S) -> dict[str, Any]:
        """Return the response to a request, once it is here."""
        wait_for(lambda: ident in self._answers, timeout, what=f"the answer to {ident}")
        return self._answers.pop(ident)

    def leave(self, ident: Any) -> None:
        """Close the connection of one request."""
        connection = self._open.pop(ident)
        if connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _headers(self, body: dict[str, Any]) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": self.accept}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        params = body.get("params") or {}
        version = (params.get("_meta") or {}).get(f"{_META}protocolVersion")
        if version is not None:
            named = params.get("name") or params.get("taskId")
            headers |= {"mcp-protocol-version": version, "mcp-method": body["method"]}
            return {**headers, "mcp-name": named} if named else headers
        return {**headers, "mcp-session-id": self.session} if self.session else headers

    def _read(self, ident: Any, connection: http.client.HTTPConnection) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            response = connection.getresponse()
            self.session = response.getheader("mcp-session-id") or self.session
            kind = response.getheader("content-type") or ""
            if kind.startswith("text/event-stream"):
                for line in response:
                    if line.startswith(b"data:") and line[5:].strip():
                        self._take(ident, json.loads(line[5:]))
            else:
                self._take(ident, json.loads(response.read()))
        connection.close()

    def _take(self, ident: Any, body: dict[str, Any]) -> None:
        with self._lock:
            if "method" in body:
                self.notices.append(body)
            else:
                self._answers[ident] = body
