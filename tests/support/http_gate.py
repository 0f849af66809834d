"""The HTTP gateway in a thread of the test process, on real sockets, and a client for it."""

import asyncio
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import uvloop
from tests.support.waiting import wait_for

from thoughtgate.core.approval import PENDING, Vote
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.proxy.http import HttpProxy, plan_proxy

PATIENCE_S: Final = 10.0
ACCEPT: Final = "application/json, text/event-stream"

MODERN_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Answer:
    """A whole HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error in the body."""
        error: dict[str, Any] = self.json["error"]
        return error

    @property
    def events(self) -> list[Any]:
        """The messages of a stream."""
        lines = self.body.decode().splitlines()
        return [
            json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip()
        ]


class Gate:
    """A running gateway."""

    def __init__(
        self,
        directory: Path,
        config: str,
        *,
        environ: Mapping[str, str] | None = None,
        listen: str = "127.0.0.1:0",
    ) -> None:
        self.state = directory / "state"
        self.state.mkdir(mode=0o700, exist_ok=True)
        path = directory / "thoughtgate.yaml"
        path.write_text(config, "utf-8")
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "THOUGHTGATE_STATE_DIR": str(self.state),
            **(environ or {}),
        }
        loaded = load_configuration(str(path), self.environ, str(directory))
        self.plan = plan_proxy(loaded, self.environ, str(self.state), listen=listen)
        self.port = 0
        self.proxy: HttpProxy | None = None
        self.error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S), "the gate did not start"
        if self.error is not None:
            raise self.error
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop it gently and wait for its end."""
        if self._loop is not None and self.proxy is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.proxy.stop)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the gate did not stop"

    def _run(self) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self.proxy = HttpProxy(self.plan)
            await self.proxy.run(self._is_ready)

        try:
            uvloop.run(main())
        except BaseException as error:  # noqa: BLE001  handed to the test's own thread
            self.error = error
        finally:
            self._ready.set()

    def _is_ready(self, proxy: HttpProxy) -> None:
        self.port = proxy.port
        self._ready.set()

    # A client.

    @property
    def url(self) -> str:
        """Where agents connect."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def request(
        self,
        method: str,
        path: str = "/mcp",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            data = response.read()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, data)
        finally:
            connection.close()

    def post(
        self, message: Any, headers: Mapping[str, str] | None = None, path: str = "/mcp"
    ) -> Answer:
        """POST one message, or raw bytes."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        sent = {"content-type": "application/json", "accept": ACCEPT, **(headers or {})}
        return self.request("POST", path, body, sent)

    def call(
        self,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        ident: Any = 1,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Call a tool as clients without a revision do."""
        return self.post(call_of(tool, arguments, ident=ident), headers)

    def call_modern(
        self, tool: str, arguments: dict[str, Any] | None = None, *, ident: Any = 1
    ) -> Answer:
        """Call a tool as 2026-07-28 has it."""
        return self.post(modern_call_of(tool, arguments, ident=ident), modern_headers(tool))

    @contextmanager
    def raw(self) -> Iterator[socket.socket]:
        """Give a bare connection."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as connection:
            yield connection

    def records(self, kind: str = "") -> list[dict[str, Any]]:
        """Return the events on record."""
        path = self.state / "audit.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        events = [json.loads(line) for line in lines]
        return [one for one in events if not kind or one["type"] == kind]


def call_of(
    tool: str, arguments: dict[str, Any] | None = None, *, ident: Any = 1
) -> dict[str, Any]:
    """Return a tool call."""
    params = {"name": tool, "arguments": arguments or {}}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


def modern_call_of(
    tool: str, arguments: dict[str, Any] | None = None, *, ident: Any = 1
) -> dict[str, Any]:
    """Return a tool call of 2026-07-28."""
    message = call_of(tool, arguments, ident=ident)
    message["params"]["_meta"] = MODERN_META
    return message


def modern_headers(tool: str, method: str = "tools/call") -> dict[str, str]:
    """Return the headers that repeat such a call."""
    return {"mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": tool}


def read_until(connection: socket.socket, mark: bytes, limit: int = 1_000_000) -> bytes:
    """Read until a mark was seen or the peer closed."""
    connection.settimeout(PATIENCE_S)
    data = b""
    while mark not in data and len(data) < limit:
        chunk = connection.recv(65_536)
        if not chunk:
            break
        data += chunk
    return data


def http_post(message: Any, *, headers: Mapping[str, str] | None = None) -> bytes:
    """Render a POST for a bare connection."""
    body = json.dumps(message).encode()
    sent = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": ACCEPT,
        "content-length": str(len(body)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


def config_for(url: str, extra: str = "", *, default: str = "forward", server: str = "") -> str:
    """Return a config for one HTTP server."""
    return f'schema: 1\ndefault: {default}\nservers:\n  up: {{url: "{url}"{server}}}\n{extra}'


def decide(gate: Gate, *, approve: bool, count: int = 1) -> None:
    """Wait for questions and answer them as a person would."""
    store = open_store(str(gate.state))
    try:
        asked = wait_for(
            lambda: found if len(found := store.listed(PENDING)) >= count else [],
            what="the question",
        )
        for one in asked:
            now = time.time()
            store.vote(one.id, [Vote("terminal:ann", approve, now, "")], now)
    finally:
        store.close()


def pending(gate: Gate) -> int:
    """Return how many questions wait for people."""
    store = open_store(str(gate.state))
    try:
        return len(store.listed(PENDING))
    finally:
        store.close()
