"""A real ``serve --http`` process and plain HTTP to it."""

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.commands import thoughtgate
from tests.support.frames import MODERN_VERSION, envelope, initialize
from tests.support.hub import write_config
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, wait_for

ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Answer:
    """A whole HTTP answer."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages it carries, whether JSON or a stream."""
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            lines = self.body.decode().splitlines()
            return [json.loads(line[5:]) for line in lines if line.startswith("data:")]
        return [json.loads(self.body)] if self.body else []


class HttpHub:
    """Talks to the process."""

    def __init__(self, peer: StdioPeer, state: Path, config: Path) -> None:
        self.peer = peer
        self.state = state
        self.config = config
        found = wait_for(lambda: re.search(r"http://127\.0\.0\.1:(\d+)/mcp", peer.stderr))
        assert found is not None
        self.port = int(found[1])

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def send(
        self,
        method: str,
        body: Any = None,
        path: str = "/mcp",
        **headers: str,
    ) -> Answer:
        """Make one request on a connection of its own."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.connection() as link:
            data = None if body is None else json.dumps(body)
            link.request(method, path, data, {**(ACCEPT if data else {}), **named})
            return Answer(link.getresponse())

    def post(self, body: Any, **headers: str) -> Answer:
        """POST a message."""
        return self.send("POST", body, **headers)

    def modern(self, ident: int, method: str, params: dict[str, Any] | None = None) -> Answer:
        """POST a self-describing request with the headers it must have."""
        given = params or {}
        headers = {"MCP-Protocol-Version": MODERN_VERSION, "Mcp-Method": method}
        named = given.get("name") or given.get("uri")
        if named is not None:
            headers["Mcp-Name"] = named
        body = {
            "jsonrpc": "2.0",
            "id": ident,
            "method": method,
            "params": {**given, "_meta": envelope()},
        }
        return self.send("POST", body, **headers)

    def open_session(self, **headers: str) -> str:
        """Initialize and return the session's id."""
        answer = self.post(initialize(0), **headers)
        assert answer.status == 200, answer.body
        return answer.headers["mcp-session-id"]

    @contextmanager
    def connection(self) -> Iterator[http.client.HTTPConnection]:
        """Open a connection."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            yield link
        finally:
            link.close()


@contextmanager
def serving_http(
    tmp_path: Path,
    servers: dict[str, Any],
    *flags: str,
    env: dict[str, str] | None = None,
    **more: Any,
) -> Iterator[HttpHub]:
    """Run ``serve --http`` on a free port, and be sure nothing is left of it."""
    config = write_config(tmp_path / "thoughtgate.yaml", servers, **more)
    state = tmp_path / "state"
    command = thoughtgate("serve", "--http", "127.0.0.1:0", "-c", str(config), *flags)
    with StdioPeer(command, env={"THOUGHTGATE_STATE_DIR": str(state), **(env or {})}) as peer:
        yield HttpHub(peer, state, config)
        peer.signal(15)
        assert peer.wait() == 0
        peer.assert_nothing_left()
