"""A user's machine for tests of ``wrap``: a home, a project, a state directory, an agent."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.support.commands import ROOT, sample_server, thoughtgate
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, wait_for
from tests.support.warm_command import run_warm

ALLOW: Final = "schema: 1\ndefault: forward\n"
HOLD: Final = """\
schema: 1
default: forward
rules:
  - {tool: "delete_*", action: approve}
  - {tool: divide, action: deny, reason: sums are secret}
approval:
  default: {channel: console, timeout: 60s}
"""
"""Forwards all but ``delete_note``, which a person decides, and ``divide``, which is denied."""


class Machine:
    """One user's directories."""

    def __init__(self, top: Path, policy: str = ALLOW) -> None:
        self.top = top
        self.home = top / "home"
        self.project = top / "project"
        self.state = top / "state"
        for directory in (self.home, self.project):
            directory.mkdir(parents=True)
        self.config = self.project / "mcp.json"
        self.policy = top / "thoughtgate.yaml"
        self.policy.write_text(policy, "utf-8")

    @property
    def env(self) -> dict[str, str]:
        """What moves a process onto this machine."""
        return {
            "HOME": str(self.home),
            "THOUGHTGATE_STATE_DIR": str(self.state),
            "THOUGHTGATE_CONFIG": str(self.policy),
            "PYTHONPATH": str(ROOT),
        }

    @property
    def record(self) -> Path:
        """Where the record is."""
        return self.state / "audit.jsonl"

    def write_config(self, servers: Mapping[str, Any], *, path: Path | None = None) -> bytes:
        """Write an agent's config with these servers and return its bytes."""
        target = path or self.config
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps({"mcpServers": servers}, indent=2) + "\n", "utf-8")
        return target.read_bytes()

    def write_sample(self, *flags: str, **more: Any) -> bytes:
        """Write a config with the sample server and return its bytes."""
        return self.write_config({"sample": entry(*flags, **more)})

    def agent(self, *flags: str, config: Path | None = None) -> list[str]:
        """Return the command of an agent that obeys the test."""
        path = str(config or self.config)
        return [sys.executable, "-m", "tests.support.obedient_agent", path, *flags]

    def wrap(self, *flags: str, agent: Sequence[str] | None = None) -> "WrappedAgent":
        """Start ``wrap`` with an obedient agent on this machine's config."""
        told = ["--agent-type", "custom", "--config-path", str(self.config), *flags]
        return WrappedAgent(self, thoughtgate("wrap", *told, "--", *(agent or self.agent())))

    def stand_in(self, name: str) -> Path:
        """Return a program that takes its servers from where the agent of this name does."""
        script = self.top / "bin" / name
        script.parent.mkdir(exist_ok=True)
        module = "tests.support.stand_in_agent"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} {name} "$@"\n', "utf-8")
        script.chmod(0o755)
        return script

    def wrap_stand_in(self, name: str, *words: str, flags: Sequence[str] = ()) -> "WrappedAgent":
        """Start ``wrap`` with a stand-in for an agent, which obeys the test."""
        told = thoughtgate("wrap", *flags, "--", str(self.stand_in(name)), *words)
        return WrappedAgent(self, told)

    def run(self, *args: str, timeout: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """Run a command of ours to its end."""
        env = {**os.environ, **self.env}
        is_gate = args[0] == "wrap"
        return run_warm(*args, env=env, cwd=self.project, timeout=timeout, is_gate=is_gate)

    def run_below(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a child of this process, where who its ancestors are matters."""
        return subprocess.run(
            thoughtgate(*args),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            cwd=self.project,
            env={**os.environ, **self.env},
        )

    def wrap_once(
        self, *flags: str, agent: Sequence[str] = ("true",)
    ) -> subprocess.CompletedProcess[str]:
        """Wrap an agent that needs no orders, and wait for the end."""
        told = ["--agent-type", "custom", "--config-path", str(self.config), *flags]
        return self.run("wrap", *told, "--", *agent)

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the record's events so far, of one type or of all."""
        if not self.record.exists():
            return []
        lines = self.record.read_bytes().split(b"\n")[:-1]
        events = [json.loads(line) for line in lines]
        return [one for one in events if kind is None or one["type"] == kind]

    def wait_for_event(self, kind: str) -> dict[str, Any]:
        """Wait until the record holds an event of a type, and return the first."""
        return wait_for(lambda: self.events(kind), what=f"{kind} on the record")[0]

    def unfinished_calls(self) -> set[str]:
        """Return the calls that began and have no end on the record."""
        begun = {one["call"]["call_id"] for one in self.events("tool_call_start")}
        return begun - {one["call"]["call_id"] for one in self.events("tool_call_end")}

    def assert_record_is_sound(self) -> None:
        """Fail unless ``audit verify`` finds nothing edited, removed or moved."""
        done = self.run("audit", "verify", str(self.record))
        assert done.returncode == 0, done.stdout + done.stderr

    def left_in(self, directory: Path) -> list[str]:
        """Return what of ours is left in a directory."""
        return sorted(path.name for path in directory.iterdir() if "thoughtgate" in path.name)


class WrappedAgent:
    """A running ``wrap`` whose agent takes orders."""

    def __init__(self, machine: Machine, command: Sequence[str]) -> None:
        self.machine = machine
        self.peer = StdioPeer(command, env=machine.env, cwd=machine.project)
        self.agent_pid = 0
        self.shims: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.peer.destroy()

    @property
    def stderr(self) -> str:
        """What the user saw."""
        return self.peer.stderr

    def wait_until_ready(self) -> Self:
        """Wait until the agent runs."""
        self.agent_pid = self.peer.receive()["ready"]
        return self

    def open(self, **order: Any) -> Self:
        """Wait until the agent runs, and have it start its servers."""
        self.wait_until_ready()
        said = self.order("open", **order)["said"]
        self.shims = {name: facts["pid"] for name, facts in said.items()}
        return self

    def order(self, what: str, **order: Any) -> Any:
        """Have the agent do something and return what came of it."""
        self.tell(what, **order)
        return self.peer.receive()

    def tell(self, what: str, **order: Any) -> None:
        """Have the agent do something without waiting."""
        self.peer.send({"do": what, **order})

    def call(self, tool: str, arguments: dict[str, Any] | None = None, **order: Any) -> Any:
        """Have the agent call a tool and return the whole response."""
        params = {"name": tool, "arguments": arguments or {}}
        said = self.order("ask", method="tools/call", params=params, **order)
        assert "said" in said, (said, self.stderr)
        return said["said"]

    def tell_call(self, tool: str, arguments: dict[str, Any] | None = None) -> None:
        """Have the agent call a tool without waiting for the answer."""
        params = {"name": tool, "arguments": arguments or {}}
        self.tell("ask", method="tools/call", params=params)

    def finish(self, timeout: float = PATIENCE_S) -> int:
        """Let the agent end, and return wrap's exit code."""
        return self.peer.finish(timeout)

    def signal(self, number: int) -> None:
        """Send wrap a signal."""
        self.peer.signal(number)

    def wait(self, timeout: float = PATIENCE_S) -> int:
        """Wait for the end of wrap without ending the agent."""
        return self.peer.wait(timeout)

    def pid_of_server(self) -> int:
        """Return the process of the first server that a shim has started."""
        return int(self.machine.wait_for_event("server_started")["server"]["pid"])

    def assert_nothing_left(self) -> None:
        """Fail unless every process of this run is gone."""
        self.peer.assert_nothing_left(PATIENCE_S)


def entry(*flags: str, **more: Any) -> dict[str, Any]:
    """Return a config's entry for the sample server."""
    command, *args = sample_server(*flags)
    return {"command": command, "args": args, **more}


def text_of(answer: dict[str, Any]) -> str:
    """Return the text of a tool's result."""
    text: str = answer["result"]["content"][0]["text"]
    return text


def kind_of(answer: dict[str, Any]) -> str:
    """Return the kind of error in a response."""
    kind: str = answer["error"]["data"]["kind"]
    return kind


def pending(machine: Machine) -> Iterator[dict[str, Any]]:
    """Yield the approvals that wait for a person."""
    yield from json.loads(machine.run("approvals", "list", "--json").stdout)
