"""The faces of the gate: every command and transport through which an agent reaches a server.

A ``Face`` says what to start. ``Gate`` is one running gate of a face: the real command, a real
server behind it, and everything a scenario looks at afterwards (the record, what reached the
server, the gate's standard error).
"""

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from tests.faces.agents import PATIENCE_S, Agent, HttpAgent, PipeAgent
from tests.support.commands import ROOT, shim, thoughtgate, with_state
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

SERVER: Final = "sample"
"""The id of the one server behind every gate."""

_LISTENING: Final = re.compile(r"https?://(127\.0\.0\.\d+):(\d+)/mcp")
_START_S: Final = 20.0
_STEP_S: Final = 0.02
"""How often a condition is looked at: several gates share two cores with this process."""

Transport = Literal["stdio", "http"]


class Face(NamedTuple):
    """One way through the gate."""

    name: str
    product: Literal["shim", "wrap", "proxy", "serve"]
    agent: Transport
    server: Transport

    @property
    def prefix(self) -> str:
        """What the face puts before the names of tools and prompts."""
        return f"{SERVER}." if self.product == "serve" else ""


FACES: Final = (
    Face("shim", "shim", "stdio", "stdio"),
    Face("wrap", "wrap", "stdio", "stdio"),
    Face("wrap-http", "wrap", "stdio", "http"),
    Face("proxy-stdio-stdio", "proxy", "stdio", "stdio"),
    Face("proxy-stdio-http", "proxy", "stdio", "http"),
    Face("proxy-http-stdio", "proxy", "http", "stdio"),
    Face("proxy-http-http", "proxy", "http", "http"),
    Face("serve-stdio", "serve", "stdio", "stdio"),
    Face("serve-http", "serve", "http", "stdio"),
    Face("serve-http-http", "serve", "http", "http"),
)
NAMES: Final = tuple(face.name for face in FACES)
STDIO_AGENT: Final = tuple(face.name for face in FACES if face.agent == "stdio")
HTTP_AGENT: Final = tuple(face.name for face in FACES if face.agent == "http")
STDIO_SERVER: Final = tuple(face.name for face in FACES if face.server == "stdio")
HTTP_SERVER: Final = tuple(face.name for face in FACES if face.server == "http")
SERVE: Final = tuple(face.name for face in FACES if face.product == "serve")
SHIMS: Final = ("shim", "wrap")


@dataclass(frozen=True)
class Setup:
    """What a gate is started with, the same on every face."""

    policy: Mapping[str, Any]
    """The config but for its servers."""
    entry: Mapping[str, Any] = field(default_factory=dict)
    """Further keys of the server's entry."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files beside the config."""
    server_flags: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    """Where a gate listens whose agents come over HTTP."""
    flags: tuple[str, ...] = ()
    """Further flags of the gate."""
    url: str = ""
    """Where the server is, if it is not the suite's own."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the gate."""
    machine: Callable[[list[str]], list[str]] = list
    """What a command line becomes on the machine that the gate runs on."""


class JsonLines:
    """Files of JSON lines that another process appends to, read from where they were left."""

    def __init__(self, *paths: Path) -> None:
        self._at = dict.fromkeys(paths, 0)
        self._lines: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        """Return every whole line so far."""
        for path, at in self._at.items():
            if path.exists():
                with path.open("rb") as file:
                    file.seek(at)
                    data = file.read()
                whole = data[: data.rfind(b"\n") + 1]
                self._at[path] += len(whole)
                self._lines += map(json.loads, whole.splitlines())
        return self._lines


class Gate:
    """A running gate and its server."""

    def __init__(self, face: Face, root: Path, setup: Setup) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.face = face
        self.root = root
        self.setup = setup
        self.state = root / "state"
        self.log = root / "server.jsonl"
        self._received = JsonLines(self.log)
        record = self.state / "audit.jsonl"
        self._records = JsonLines(record, record.with_suffix(".traffic.jsonl"))
        self.config = root / "thoughtgate.yaml"
        self.patience_s = PATIENCE_S
        self.is_modern = False
        """Whether the scenario at hand speaks revision 2026-07-28, which opens no session."""
        self.behind: StdioPeer | None = None
        self.port = 0
        self._started: list[StdioPeer] = []
        self._agents: list[Agent] = []
        self._early_agent: Agent | None = None
        self._early: dict[str, tuple[int, dict[str, str]]] = {}
        for name, text in setup.files.items():
            (root / name).write_text(text, "utf-8")

    # Its life.

    def start(self) -> "Gate":
        """Start the server where it is not the gate's child, then the gate."""
        if self.setup.url:
            self.url = self.setup.url
        elif self.face.server == "http" and self.behind is None:
            self.start_server()
        self.write_policy(self.setup.policy)
        env = {"THOUGHTGATE_STATE_DIR": str(self.state), "HOME": str(self.root)}
        self._started.append(
            StdioPeer(
                self.setup.machine(self._command()),
                env={**env, "PYTHONPATH": str(ROOT), **self.setup.env},
                cwd=self.root,
            )
        )
        if self.face.agent == "http":
            self.port = int(self._listening()[2])
        return self

    def start_server(self, port: int = 0) -> None:
        """Start the HTTP server behind the gate."""
        flags = ["--http", "--port", str(port)]
        self.behind = StdioPeer(self._server_command(*flags), cwd=self.root)
        self.url = f"http://127.0.0.1:{self.behind.receive(_START_S)}/mcp"

    def restart_server(self) -> None:
        """Kill the HTTP server behind the gate, and start it again at the same address."""
        assert self.behind is not None
        port = int(self.url.rpartition(":")[2].partition("/")[0])
        self.behind.destroy()
        self.start_server(port)

    @property
    def process(self) -> StdioPeer:
        """The gate's process."""
        return self._started[-1]

    @property
    def stderr(self) -> str:
        """What all processes of this gate have written to standard error."""
        return "\n".join(peer.stderr for peer in self._started)

    def describe(self) -> str:
        """Return what helps to understand a failed wait."""
        behind = self.behind.stderr if self.behind is not None else ""
        code = self.process.process.poll()
        return f"face {self.face.name}, exit code {code}, standard error:\n{self.stderr}\n{behind}"

    def terminate(self, number: int = signal.SIGTERM) -> int:
        """End the gate by a signal and return its exit code."""
        self.process.signal(number)
        return self.process.wait(_START_S)

    def close(self) -> None:
        """Leave nothing behind."""
        for agent in self._agents:
            agent.close()
        self._agents.clear()
        for peer in [*self._started, *([self.behind] if self.behind is not None else [])]:
            peer.destroy()

    def write_policy(self, policy: Mapping[str, Any]) -> None:
        """Write the config. JSON is YAML too."""
        entry: dict[str, Any] = {"isolation": "session", **self.setup.entry}
        if self.face.server == "http":
            entry = {key: entry[key] for key in entry if key not in {"isolation", "idle"}}
            entry["url"] = self.url
        else:
            command, *args = self._server_command()
            entry |= {"command": command, "args": args}
        whole = {"schema": 1, "manager_tools": False, "servers": {SERVER: entry}, **policy}
        self.config.write_text(json.dumps(whole, indent=1), "utf-8")

    def _server_command(self, *flags: str) -> list[str]:
        script = Path(__file__).with_name("servers.py")
        return [
            sys.executable,
            str(script),
            "--log",
            str(self.log),
            *self.setup.server_flags,
            *flags,
        ]

    def _command(self) -> list[str]:
        config, place = str(self.config), f"{self.setup.host}:0"
        more = self.setup.flags
        if self.face.product == "shim":
            return shim(self._server_command(), "-c", config, *more, server_id=SERVER)
        if self.face.product == "wrap":
            return self._wrap_command()
        if self.face.product == "proxy":
            side = ["--stdio"] if self.face.agent == "stdio" else ["--listen", place]
            return with_state(thoughtgate("proxy", "-c", config, *side, *more))
        side = ["--stdio"] if self.face.agent == "stdio" else ["--http", place]
        return with_state(thoughtgate("serve", "-c", config, *side, *more))

    def _wrap_command(self) -> list[str]:
        agents = self.root / "mcp.json"
        if self.face.server == "http":
            headers = self.setup.entry.get("headers", {})
            entry: dict[str, Any] = {"type": "http", "url": self.url, "headers": headers}
        else:
            command, *args = self._server_command()
            entry = {"command": command, "args": args}
        agents.write_text(json.dumps({"mcpServers": {SERVER: entry}}), "utf-8")
        place = ["--agent-type", "custom", "--config-path", str(agents), "-c", str(self.config)]
        # This agent's process becomes the shim, so the test speaks to the shim itself.
        agent = [sys.executable, "-m", "tests.support.piped_agent", str(agents)]
        return thoughtgate("wrap", *place, *self.setup.flags, "--", *agent)

    def _listening(self) -> re.Match[str]:
        def said() -> re.Match[str] | None:
            assert self.process.process.poll() is None, self.describe()
            return _LISTENING.search(self.process.stderr)

        return wait_for(said, _START_S, what="a listening gate")

    # Its agents.

    def agent(self, version: str = "2025-11-25") -> Agent:
        """Return a connection with an open session, where the era has sessions; stdio has one."""
        if self.face.agent == "http":
            agent: Agent = HttpAgent(self.port, self.face.prefix, self.describe, self.setup.host)
        elif self._agents and self.process is getattr(self._agents[-1], "peer", None):
            self._agents[-1].inbox.patience_s = self.patience_s
            return self._agents[-1]
        else:
            agent = PipeAgent(self.process, self.face.prefix, self.describe)
        self._agents.append(agent)
        agent.inbox.patience_s = self.patience_s
        if not self.is_modern:
            agent.open(version)
        return agent

    def agent_without_session(self) -> Agent:
        """Return a connection that only ever speaks revision 2026-07-28."""
        self.is_modern = True
        return self.agent()

    def close_sessions(self) -> None:
        """End the sessions of agents over HTTP; the agent on stdio stays."""
        if self.face.agent == "http":
            for agent in self._agents:
                if agent is not self._early_agent:
                    agent.close()
            self._agents = [agent for agent in self._agents if agent is self._early_agent]

    def call_early(self, **tools: str) -> None:
        """Make calls whose outcome takes its time, for a scenario that comes later."""
        self._early_agent = self.agent()
        for tool, do in tools.items():
            arguments = {"mark": f"early-{tool}", "do": do}
            self._early[tool] = (self._early_agent.start_call(tool, arguments), arguments)

    def early(self, tool: str) -> tuple[Agent, int, dict[str, str]]:
        """Return the agent, the id and the arguments of a call that was made early."""
        assert self._early_agent is not None
        return (self._early_agent, *self._early[tool])

    # What came of it.

    def wait(self, condition: Callable[[], Any], what: str, timeout: float | None = None) -> Any:
        """Wait for a condition; a failure carries the gate's standard error."""
        limit = self.patience_s if timeout is None else timeout
        deadline = time.monotonic() + limit
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come within {limit} s; {self.describe()}")
            time.sleep(_STEP_S)
        return found

    def received(self, mark: str = "") -> list[dict[str, Any]]:
        """Return the messages that reached the server, or those that carry a mark."""
        return [
            entry["body"]
            for entry in self.received_entries()
            if isinstance(entry["body"], dict) and mark in json.dumps(entry["body"])
        ]

    def received_entries(self) -> list[dict[str, Any]]:
        """Return what reached the server, with HTTP headers where there were any."""
        return self._received.read()

    def records(self) -> list[dict[str, Any]]:
        """Return the events on record so far."""
        return self._records.read()
