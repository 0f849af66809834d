"""The agent's side of every face: one way to speak, over pipes and over HTTP."""

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from tests.support.stdio_peer import StdioPeer

PATIENCE_S: Final = 20.0
MODERN: Final = "2026-07-28"
SPEC: Final = "io.modelcontextprotocol/"
ACCEPT: Final = "application/json, text/event-stream"
CAPABILITIES: Final[dict[str, Any]] = {"sampling": {}, "roots": {}, "elicitation": {}}
NAMED: Final = ("tools/call", "prompts/get")
"""Requests whose ``name`` a face may have to translate."""

Body = dict[str, Any]


def envelope(*, tasks: bool = False) -> Body:
    """Return the ``_meta`` of a request of revision 2026-07-28."""
    can = {**CAPABILITIES, "extensions": {f"{SPEC}tasks": {}}} if tasks else dict(CAPABILITIES)
    return {
        f"{SPEC}protocolVersion": MODERN,
        f"{SPEC}clientInfo": {"name": "faces", "version": "1"},
        f"{SPEC}clientCapabilities": can,
    }


class Inbox:
    """What came from the gate, with waits that have a deadline."""

    def __init__(self, describe: Callable[[], str]) -> None:
        self.patience_s = PATIENCE_S
        self.messages: list[Body] = []
        """Requests and notifications of the server."""
        self._answers: dict[Any, list[Body]] = {}
        self._changed = threading.Condition()
        self._describe = describe

    def take(self, body: Any) -> None:
        """Sort one message in."""
        with self._changed:
            if isinstance(body, list):
                for each in body:
                    self.take(each)
            elif isinstance(body, dict) and "method" in body:
                self.messages.append(body)
            elif isinstance(body, dict):
                self._answers.setdefault(body.get("id"), []).append(body)
            self._changed.notify_all()

    def answer(self, ident: Any, timeout: float | None = None) -> Body:
        """Return the response to a request."""
        self.wait(lambda: self._answers.get(ident), f"the answer to {ident!r}", timeout)
        with self._changed:
            found = self._answers[ident].pop(0)
            if not self._answers[ident]:
                del self._answers[ident]
            return found

    def has_answer(self, ident: Any) -> bool:
        """Tell whether the response to a request is here."""
        with self._changed:
            return bool(self._answers.get(ident))

    def message(self, method: str, timeout: float | None = None) -> Body:
        """Return the next message of a method and take it out."""

        def found() -> Body | None:
            return next((each for each in self.messages if each["method"] == method), None)

        body: Body = self.wait(found, f"{method} from the server", timeout)
        with self._changed:
            self.messages.remove(body)
        return body

    def wait(self, condition: Callable[[], Any], what: str, timeout: float | None = None) -> Any:
        """Wait until a condition holds, and return what it returned."""
        limit = self.patience_s if timeout is None else timeout
        deadline = time.monotonic() + limit
        with self._changed:
            while not (found := condition()):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(
                        f"{what} did not come within {limit} s; {self._describe()}"
                    )
                self._changed.wait(left)
            return found


class Agent:
    """One connection of an agent to a gate."""

    def __init__(self, prefix: str, describe: Callable[[], str]) -> None:
        self.prefix = prefix
        """What the face puts before the names of tools and prompts."""
        self.handshake: Body = {}
        """The server's answer to the last handshake."""
        self.inbox = Inbox(describe)
        self.opened: Body = {}
        """The server's answer to the handshake."""
        self._ids = count(1)

    # What differs by transport.

    def send(self, body: Any, headers: Mapping[str, str] | None = None) -> None:
        """Send a message."""
        self.send_raw(json.dumps(body).encode(), body, headers)

    def send_raw(
        self, data: bytes, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send bytes as they are."""
        raise NotImplementedError

    def hang_up(self, ident: Any) -> None:
        """Leave while a request is open."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection."""
        raise NotImplementedError

    # What does not.

    def open(self, version: str = "2025-11-25") -> Body:
        """Initialize as revisions up to 2025-11-25 do."""
        client = {"name": "faces", "version": "1"}
        can = dict(CAPABILITIES)
        params = {"protocolVersion": version, "capabilities": can, "clientInfo": client}
        result = self.opened = self.ask("initialize", params)
        self.handshake = result.get("result", {})
        self.notify("notifications/initialized")
        return result

    def request(self, method: str, params: Body | None = None, *, modern: bool = False) -> int:
        """Send a request and return its id."""
        ident = next(self._ids)
        self.send(self.message(ident, method, params, modern=modern))
        return ident

    def message(
        self, ident: Any, method: str, params: Body | None = None, *, modern: bool = False
    ) -> Body:
        """Return a request as this face wants it."""
        given = dict(params or {})
        if method in NAMED and "name" in given:
            given["name"] = self.prefix + given["name"]
        if modern:
            given["_meta"] = {**envelope(), **given.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": ident, "method": method, "params": given}

    def ask(self, method: str, params: Body | None = None, *, modern: bool = False) -> Body:
        """Send a request and return the whole response."""
        return self.inbox.answer(self.request(method, params, modern=modern))

    def start_call(
        self, tool: str, arguments: Body | None = None, *, modern: bool = False, **more: Any
    ) -> int:
        """Call a tool without waiting, and return the id of the request."""
        params = {"name": tool, "arguments": arguments or {}, **more}
        return self.request("tools/call", params, modern=modern)

    def call(
        self, tool: str, arguments: Body | None = None, *, modern: bool = False, **more: Any
    ) -> Body:
        """Call a tool and return the whole response."""
        return self.inbox.answer(self.start_call(tool, arguments, modern=modern, **more))

    def notify(self, method: str, params: Body | None = None) -> None:
        """Send a notification."""
        body: Body = {"jsonrpc": "2.0", "method": method}
        self.send(body if params is None else {**body, "params": params})

    def respond(self, ident: Any, result: Body) -> None:
        """Answer a request of the server."""
        self.send({"jsonrpc": "2.0", "id": ident, "result": result})

    def names(
        self, method: str, member: str, *, modern: bool = False, key: str = "name"
    ) -> list[str]:
        """Return the names in a list, without what the face puts before them."""
        entries = self.ask(method, modern=modern)["result"][member]
        return [str(entry[key]).removeprefix(self.prefix) for entry in entries]


class PipeAgent(Agent):
    """An agent on the gate's standard streams."""

    def __init__(self, peer: StdioPeer, prefix: str, describe: Callable[[], str]) -> None:
        super().__init__(prefix, describe)
        self.peer = peer
        threading.Thread(target=self._read, daemon=True).start()

    def send_raw(
        self, data: bytes, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Write a line."""
        del body, headers
        self.peer.write_line(data)

    def hang_up(self, ident: Any) -> None:
        """Close the gate's input: on pipes there is one caller."""
        del ident
        self.peer.close_stdin()

    def close(self) -> None:
        """Nothing: the pipes live as long as the gate."""

    def _read(self) -> None:
        # Ends with the gate's standard output, however long that is silent: a warm gate may wait
        # for the next scenario longer than any time that could be set here.
        while True:
            with contextlib.suppress(AssertionError):
                line = self.peer.read_line()
                if line is None:
                    return
                self.inbox.take(json.loads(line))


@dataclass
class Posted:
    """The answer to one HTTP request."""

    status: int
    headers: dict[str, str]
    messages: list[Any] = field(default_factory=list)


class HttpAgent(Agent):
    """An agent that sends every message as a POST of its own."""

    def __init__(
        self, port: int, prefix: str, describe: Callable[[], str], host: str = "127.0.0.1"
    ) -> None:
        super().__init__(prefix, describe)
        self.session = ""
        self._place = (host, port)
        self._open: dict[Any, http.client.HTTPConnection] = {}
        self._listening: http.client.HTTPConnection | None = None
        self._threads: list[threading.Thread] = []

    def open(self, version: str = "2025-11-25") -> Body:
        """Initialize, then open the stream on which the server speaks unasked."""
        result = super().open(version)
        self._listening = self._connection()
        self._listening.request("GET", "/mcp", headers={"accept": ACCEPT, **self._identity()})
        self._follow(self._listening, 200)
        return result

    def send_raw(
        self, data: bytes, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """POST in a thread; what is no request is waited for."""
        connection = self._connection()
        connection.request("POST", "/mcp", data, {**self._headers(body), **(headers or {})})
        ident = body.get("id") if isinstance(body, dict) and "method" in body else None
        if isinstance(body, dict) and ident is None:
            connection.getresponse().read()
            connection.close()
            return
        self._open[ident] = connection
        self._follow(connection)

    def post(self, body: Any, headers: Mapping[str, str] | None = None) -> Posted:
        """POST a message, or bytes, and return everything that came back."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self._connection()
        with contextlib.closing(connection):
            sent = {**self._headers(body), **(headers or {})}
            connection.request("POST", "/mcp", data, sent)
            response = connection.getresponse()
            posted = Posted(
                response.status, {name.lower(): value for name, value in response.getheaders()}
            )
            _each_message(response, posted.messages.append)
            return posted

    def hang_up(self, ident: Any) -> None:
        """Close the connection of one request."""
        _shut(self._open.pop(ident))

    def close(self) -> None:
        """End the session and leave no connection behind."""
        if self.session:
            connection = self._connection()
            with contextlib.closing(connection), contextlib.suppress(OSError):
                connection.request("DELETE", "/mcp", headers=self._identity())
                connection.getresponse().read()
        for connection in [*self._open.values(), *filter(None, [self._listening])]:
            _shut(connection)
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self._place, timeout=60)

    def _identity(self) -> dict[str, str]:
        return {"mcp-session-id": self.session} if self.session else {}

    def _headers(self, body: Any) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": ACCEPT}
        params = (body.get("params") or {}) if isinstance(body, dict) else {}
        version = (params.get("_meta") or {}).get(f"{SPEC}protocolVersion")
        if version is None:
            return headers | self._identity()
        headers |= {"mcp-protocol-version": version, "mcp-method": body["method"]}
        named = params.get("name") or params.get("uri") or params.get("taskId")
        headers |= {"mcp-name": named} if named else {}
        region = (params.get("arguments") or {}).get("region")
        return headers | ({"mcp-param-region": region} if region else {})

    def _follow(self, connection: http.client.HTTPConnection, wanted: int | None = None) -> None:
        thread = threading.Thread(target=self._receive, args=(connection, wanted), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _receive(self, connection: http.client.HTTPConnection, wanted: int | None = None) -> None:
        # The other side may close at any moment, and so may a test.
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            response = connection.getresponse()
            with response:
                self.session = response.getheader("mcp-session-id") or self.session
                if wanted in {None, response.status}:
                    _each_message(response, self.inbox.take)
        connection.close()


def _each_message(response: http.client.HTTPResponse, take: Callable[[Any], object]) -> None:
    if (response.getheader("content-type") or "").startswith("text/event-stream"):
        for line in response:
            if line.startswith(b"data:") and line[5:].strip():
                take(json.loads(line[5:]))
        return
    data = response.read()
    if data:
        take(json.loads(data))


def _shut(connection: http.client.HTTPConnection) -> None:
    held = connection.sock
    if held is not None:
        with contextlib.suppress(OSError):
            held.shutdown(socket.SHUT_RDWR)
