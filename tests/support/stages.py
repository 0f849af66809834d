"""The gate in every place where it can stand, with one way to speak to it.

A stage is a real gate process before a real sample server, an agent that speaks to it,
and the store in which a person decides. Scenarios are written once, for all of them.
"""

import contextlib
import json
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tests.support.commands import ROOT, sample_server, shim, thoughtgate, with_state
from tests.support.http_agent import HttpAgent
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, wait_for

from thoughtgate.core.approval import PENDING, Approval, Refusal, Vote
from thoughtgate.core.grant import Remember
from thoughtgate.gate.approvals.queue import new_approval_id, open_store

RULES: Final = """
schema: 1
default: forward
rules:
  - {tool: add, action: approve, redact: true}
  - {tool: transfer, action: approve, approval: strict}
  - {tool: write_note, action: approve, approval: lenient}
  - {tool: delete_note, action: approve, approval: patient}
  - {tool: fail, action: approve}
approval:
  default: {channel: console}
  strict: {channel: console, timeout: 5s}
  lenient: {channel: console, timeout: 5s, on_timeout: approve}
  patient: {channel: console, timeout: 12s}
limits:
  - {tool: fail, budget: 1}
reload: auto
"""
"""Five seconds is the shortest timeout that a config may set; progress is told every ten. Scenarios
that change the rules change them back, which would otherwise need a person."""

DRIFTED: Final = RULES.replace(
    "{tool: add, action: approve, redact: true}", "{tool: add, action: deny}"
)

TOKEN: Final = "stage-token-0123456789"
VERSION: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"
EXTENSION: Final = f"{_META}tasks"
PERSON: Final = "terminal:ann"


class Stage:
    """One gate, its agent and its person. ``send``, ``answer`` and ``leave`` differ by transport."""

    prefix = ""
    """What the gate puts before the names of tools."""
    capabilities: Mapping[str, Any] = MappingProxyType({})
    """What the agent says that it can do, when it opens a session."""

    def __init__(self, root: Path, rules: str = RULES) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.state = root / "state"
        self.log = root / "server.jsonl"
        self.config = root / "thoughtgate.yaml"
        self.write_rules(rules)
        self._ids = count(1)
        self.env = {"THOUGHTGATE_STATE_DIR": str(self.state), "AGENT_TOKEN": TOKEN}
        self.started: list[StdioPeer] = []

    # The agent.

    def send(self, body: dict[str, Any]) -> None:
        """Send a message."""
        raise NotImplementedError

    def answer(self, ident: Any, timeout: float = PATIENCE_S) -> dict[str, Any]:
        """Return the response to a request."""
        raise NotImplementedError

    def leave(self, ident: Any) -> None:
        """The caller of a request goes away."""
        raise NotImplementedError

    @property
    def notices(self) -> list[dict[str, Any]]:
        """Notifications that came so far."""
        raise NotImplementedError

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its response."""
        ident = next(self._ids)
        self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}})
        return self.answer(ident)

    def call(
        self, tool: str = "add", *, modern: bool = False, token: Any = None, **more: Any
    ) -> int:
        """Call a tool, without waiting; every call can be told from every other."""
        ident = next(self._ids)
        arguments = {"a": ident, "b": 1, "mark": mark(ident)}
        params: dict[str, Any] = {"name": self.prefix + tool, "arguments": arguments, **more}
        if modern:
            params["_meta"] = envelope()
        if token is not None:
            params["_meta"] = {**params.get("_meta", {}), "progressToken": token}
        self.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})
        return ident

    def about(self, method: str, task_id: str, *, modern: bool = False) -> dict[str, Any]:
        """Ask about a task."""
        params: dict[str, Any] = {"taskId": task_id}
        return self.ask(method, {**params, "_meta": envelope()} if modern else params)

    # The person.

    def question(self, ident: int) -> Approval:
        """Return the question about a call, once it is put."""
        return wait_for(lambda: self._asked(ident), what=f"a question about call {ident}")

    def is_asked(self, ident: int) -> bool:
        """Tell whether a question about a call waits."""
        return self._asked(ident) is not None

    def decide(
        self, ident: int, *, approve: bool = True, remember: Remember | None = None
    ) -> Approval | Refusal:
        """Answer the question about a call."""
        return self.vote(self.question(ident), approve=approve, remember=remember)

    def vote(
        self, question: Approval, *, approve: bool = True, remember: Remember | None = None
    ) -> Approval | Refusal:
        """Answer a question, perhaps too late."""
        now = time.time()
        with contextlib.closing(open_store(str(self.state))) as store:
            grant = new_approval_id()
            given = [Vote(PERSON, approve, now, "as the test says")]
            return store.vote(question.id, given, now, remember=remember, grant_id=grant)

    def _asked(self, ident: int) -> Approval | None:
        with contextlib.closing(open_store(str(self.state))) as store:
            waiting = store.listed(PENDING)
        return next((each for each in waiting if mark(ident) in each.arguments), None)

    # What came of it.

    def ran(self, ident: int) -> int:
        """Count how often a call reached the server."""
        text = self.log.read_text("utf-8") if self.log.exists() else ""
        lines = [line for line in text.splitlines() if "tools/call" in line]
        return sum(mark(ident) in line for line in lines)

    def records(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a type on record."""
        path = self.state / "audit.jsonl"
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [each for each in map(json.loads, lines) if each["type"] == kind]

    def outcome(self, ident: int) -> str:
        """Return how the question about a call ended, as the record has it."""
        starts = self.records("tool_call_start")
        calls = {
            each["call"]["call_id"]
            for each in starts
            if mark(ident) in each["call"]["preview"]["args_preview"]
        }
        decided = self.records("approval_decided")
        ends = [each["approval"]["outcome"] for each in decided if each["call"]["call_id"] in calls]
        return ends[-1] if ends else ""

    # The gate.

    @property
    def gate(self) -> StdioPeer:
        """The gate's process."""
        return self.started[-1]

    def start(self) -> None:
        """Start the gate and open the session."""
        raise NotImplementedError

    def write_rules(self, rules: str) -> None:
        """Write the config."""
        self.config.write_text(rules, "utf-8")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End the gate by a signal, and wait until it is gone."""
        self.gate.signal(number)
        self.gate.wait()

    def close(self) -> None:
        """Leave nothing behind."""
        for peer in self.started:
            peer.destroy()

    def run(self, command: list[str], **env: str) -> StdioPeer:
        """Start a process that ``close`` ends."""
        peer = StdioPeer(command, env={**self.env, **env}, cwd=self.root)
        self.started.append(peer)
        return peer


class StdioStage(Stage):
    """A gate on the agent's pipes."""

    def __init__(self, root: Path, rules: str = RULES) -> None:
        super().__init__(root, rules)
        self._answers: dict[Any, dict[str, Any]] = {}
        self._notices: list[dict[str, Any]] = []

    def start(self) -> None:
        """Start the gate and open the session."""
        self.run(self.command())
        client = {"name": "test", "version": "1"}
        can = dict(self.capabilities)
        params = {"protocolVersion": "2025-11-25", "capabilities": can, "clientInfo": client}
        self.ask("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def command(self) -> list[str]:
        """Return the gate's command line."""
        raise NotImplementedError

    def send(self, body: dict[str, Any]) -> None:
        """Write a line."""
        self.gate.send(body)

    def answer(self, ident: Any, timeout: float = PATIENCE_S) -> dict[str, Any]:
        """Read up to the response; what comes before it is kept."""
        deadline = time.monotonic() + timeout
        while ident not in self._answers:
            body = self.gate.receive(max(0.01, deadline - time.monotonic()))
            if "method" in body:
                self._notices.append(body)
            else:
                self._answers[body.get("id")] = body
        return self._answers.pop(ident)

    def leave(self, ident: Any) -> None:
        """On stdio there is one caller: the agent itself."""
        del ident
        self.gate.finish()

    @property
    def notices(self) -> list[dict[str, Any]]:
        """Notifications that were read so far."""
        return self._notices


class ShimStage(StdioStage):
    """A shim that judges by itself."""

    def command(self) -> list[str]:
        """``shim`` before the sample server."""
        return shim(sample_server("--log", str(self.log)), "-c", str(self.config))


class WrapStage(StdioStage):
    """A shim under ``wrap``, which asks the governance service."""

    def command(self) -> list[str]:
        """``wrap`` around an agent whose place the shim takes."""
        command, *args = sample_server("--log", str(self.log))
        agents = self.root / "mcp.json"
        entry = {"command": command, "args": args}
        agents.write_text(json.dumps({"mcpServers": {"sample": entry}}), "utf-8")
        self.env |= {"HOME": str(self.root), "PYTHONPATH": str(ROOT)}
        place = ["--agent-type", "custom", "--config-path", str(agents), "-c", str(self.config)]
        agent = [command, "-m", "tests.support.piped_agent", str(agents)]
        return thoughtgate("wrap", *place, "--", *agent)


class ServeStage(StdioStage):
    """``serve`` on stdio before one server."""

    prefix = "sample."

    def write_rules(self, rules: str) -> None:
        """Write the config with its server."""
        super().write_rules(rules + served(sample_server("--log", str(self.log))))

    def command(self) -> list[str]:
        """``serve --stdio``."""
        return with_state(thoughtgate("serve", "--stdio", "-c", str(self.config)))


class HttpStage(Stage):
    """A gate that agents reach over HTTP, before a stdio server."""

    def __init__(self, root: Path, rules: str = RULES) -> None:
        super().__init__(root, rules)
        self.agent = HttpAgent(0)

    def start(self, *, dies_at: str = "") -> None:
        """Start the gate and open a session; see ``mortal_gate`` for where it can die."""
        command = self.command()
        if dies_at:
            command = [sys.executable, "-m", "tests.support.mortal_gate", dies_at, *command[1:]]
        self.run(command, PYTHONPATH=str(ROOT))
        self.agent = HttpAgent(port_of(self.gate), TOKEN)
        self.agent.greet(self.capabilities)

    token = TOKEN
    auth = "{type: bearer, token_env: AGENT_TOKEN}"
    """How agents show who they are."""

    def write_rules(self, rules: str) -> None:
        """Write the config with its server and the agents' token."""
        listen = f"listen: {{transport: http, auth: {self.auth}}}\n"
        super().write_rules(rules + listen + self.server())

    def server(self) -> str:
        """Return the config of the server."""
        return served(sample_server("--log", str(self.log)))

    def command(self) -> list[str]:
        """``proxy --listen``."""
        return thoughtgate("proxy", "-c", str(self.config), "--listen", "127.0.0.1:0")

    def send(self, body: dict[str, Any]) -> None:
        """POST a message."""
        self.agent.send(body)

    def answer(self, ident: Any, timeout: float = PATIENCE_S) -> dict[str, Any]:
        """Return what a POST brought."""
        return self.agent.answer(ident, timeout)

    def leave(self, ident: Any) -> None:
        """Close the connection of a POST."""
        self.agent.leave(ident)

    @property
    def notices(self) -> list[dict[str, Any]]:
        """Notifications on the streams of POSTs."""
        return self.agent.notices


class ServeHttpStage(HttpStage):
    """``serve`` over HTTP before one server."""

    prefix = "sample."

    def command(self) -> list[str]:
        """``serve --http``."""
        return thoughtgate("serve", "--http", "127.0.0.1:0", "-c", str(self.config))


class HttpToHttpStage(HttpStage):
    """A gate over HTTP before a server over HTTP, which is an open gate before a stdio server."""

    def server(self) -> str:
        """Start the server once, and return the config that names it."""
        if not hasattr(self, "_url"):
            behind = self.root / "behind"
            behind.mkdir(exist_ok=True)
            config = behind / "thoughtgate.yaml"
            command = sample_server("--log", str(self.log))
            text = f"schema: 1\ndefault: forward\n{served(command)}"
            config.write_text(text, "utf-8")
            self.behind = StdioPeer(
                thoughtgate("proxy", "-c", str(config), "--listen", "127.0.0.1:0"),
                env={"THOUGHTGATE_STATE_DIR": str(behind / "state")},
            )
            self._url = f"http://127.0.0.1:{port_of(self.behind)}/mcp"
        return f'servers: {{sample: {{url: "{self._url}"}}}}\n'

    def close(self) -> None:
        """End the server too."""
        super().close()
        self.behind.destroy()


STAGES: Final[dict[str, Callable[..., Stage]]] = {
    "shim": ShimStage,
    "wrap": WrapStage,
    "proxy-http-http": HttpToHttpStage,
    "proxy-http-stdio": HttpStage,
    "serve-stdio": ServeStage,
}


def mark(ident: int) -> str:
    """Return the text by which a call is known wherever it comes."""
    return f"call-{ident:05d}"


def envelope() -> dict[str, Any]:
    """Return the ``_meta`` of a modern request whose caller can poll tasks."""
    return {
        f"{_META}protocolVersion": VERSION,
        f"{_META}clientInfo": {"name": "test", "version": "1"},
        f"{_META}clientCapabilities": {"extensions": {EXTENSION: {}}},
    }


def served(command: list[str]) -> str:
    """Return the part of a config that names a stdio server."""
    entry = {"command": command[0], "args": command[1:]}
    return f"servers: {json.dumps({'sample': entry})}\n"


def port_of(gate: StdioPeer) -> int:
    """Return the port that a gate says it listens on."""
    pattern = re.compile(r"http://127\.0\.0\.1:(\d+)/mcp")

    def said() -> re.Match[str] | None:
        assert gate.process.poll() is None, gate.stderr
        return pattern.search(gate.stderr)

    return int(wait_for(said, what="a listening gate").group(1))


def kind_of(answer: dict[str, Any]) -> str:
    """Return the kind of the error in a response."""
    assert "error" in answer, answer
    return str(answer["error"]["data"]["kind"])
