"""A real ``serve`` process in front of real sample servers, and a client on its pipes."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.commands import thoughtgate
from tests.support.frames import call, envelope, initialize, notification, request
from tests.support.stdio_peer import StdioPeer

ALLOW_ALL: dict[str, Any] = {"schema": 1, "default": "forward"}


def sample(*flags: str, **more: Any) -> dict[str, Any]:
    """Return the config entry of a sample server."""
    args = ["-m", "thoughtgate.testing.sample_server", *flags]
    return {"command": sys.executable, "args": args, **more}


def write_config(path: Path, servers: dict[str, Any], **more: Any) -> Path:
    """Write a config; JSON is YAML too."""
    path.write_text(json.dumps({**ALLOW_ALL, "servers": servers, **more}, indent=1), "utf-8")
    return path


class Served(StdioPeer):
    """A client of a running ``serve --stdio``."""

    def __init__(
        self, config: Path, state: Path, *flags: str, agent: Sequence[str] = (), **env: str
    ) -> None:
        self.config = config
        self.state = state
        super().__init__(
            [
                *agent,
                *thoughtgate(
                    "serve", "--stdio", "-c", str(config), "--state-dir", str(state), *flags
                ),
            ],
            env={"THOUGHTGATE_STATE_DIR": str(state), **env},
        )

    def open(self, capabilities: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Initialize as a legacy client and return the result."""
        opening = initialize(0, **more)
        opening["params"]["capabilities"] = capabilities or {}
        result: dict[str, Any] = self.ask(opening)["result"]
        self.send(notification("notifications/initialized"))
        return result

    def tools(self, ident: int = 900) -> list[dict[str, Any]]:
        """List the tools."""
        listed: list[dict[str, Any]] = self.ask(request(ident, "tools/list"))["result"]["tools"]
        return listed

    def names(self, ident: int = 901) -> list[str]:
        """List the names of the tools that are not the hub's own."""
        names = (tool["name"] for tool in self.tools(ident))
        return [name for name in names if not name.startswith("thoughtgate")]

    def text(self, ident: int, tool: str, arguments: dict[str, Any] | None = None) -> str:
        """Call a tool and return the text of its result."""
        answer = self.ask(call(ident, tool, arguments))
        assert "result" in answer, answer
        said: str = answer["result"]["content"][0]["text"]
        return said

    def kind(self, ident: int, tool: str, arguments: dict[str, Any] | None = None) -> str:
        """Call a tool and return the kind of the error it gets."""
        answer = self.ask(call(ident, tool, arguments))
        assert "error" in answer, answer
        kind: str = answer["error"]["data"]["kind"]
        return kind

    def server(self, ident: str, number: int = 700) -> dict[str, Any]:
        """Return how a server is, by the manager tool."""
        listed = json.loads(self.text(number, "thoughtgate.servers_list"))
        found: dict[str, Any] = next(one for one in listed if one["id"] == ident)
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return the record so far."""
        path = self.state / "audit.jsonl"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def modern(ident: int | str, method: str, params: dict[str, Any] | None = None, **meta: Any) -> Any:
    """Return a self-describing request."""
    return request(ident, method, {**(params or {}), "_meta": envelope(**meta)})


@contextmanager
def serving(
    tmp_path: Path,
    servers: dict[str, Any],
    *flags: str,
    agent: Sequence[str] = (),
    **more: Any,
) -> Iterator[Served]:
    """Run ``serve`` with a config that allows everything, and be sure nothing is left of it."""
    config = write_config(tmp_path / "thoughtgate.yaml", servers, **more)
    with Served(config, tmp_path / "state", *flags, agent=agent) as peer:
        yield peer
        peer.close_stdin()
        peer.wait()
        peer.assert_nothing_left()


def odd(way: str, **more: Any) -> dict[str, Any]:
    """Return the config entry of a server that is wrong in one way; see ``odd_server``."""
    script = Path(__file__).with_name("odd_server.py")
    return {"command": sys.executable, "args": [str(script), way], **more}
