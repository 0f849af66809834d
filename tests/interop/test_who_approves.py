"""An agent cannot approve its own calls: real gates, a real agent, and the real command.

The agent runs below the test. Whatever it starts is refused, however it detaches the process; the
test itself, beside the agent, is the person in another terminal.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server, shim, thoughtgate
from tests.support.first_of import first_of
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, wait_for
from tests.support.wraps import HOLD, Machine, entry

DETACH = [sys.executable, "-m", "tests.support.detached_command"]

FREE = ["env", "-u", "THOUGHTGATE_ACTIVE", "-u", "THOUGHTGATE_WRAPPED"]
"""Removes the marks of a wrapped agent, as an agent can."""

WAYS = {
    "child": [*FREE, *DETACH, "child"],
    "shell": ["sh", "-c", 'exec "$@"', "sh", *FREE, *DETACH, "child"],
    "nohup": [*FREE, "nohup", *DETACH, "orphan"],
    "double fork": [*FREE, *DETACH, "orphan"],
    "setsid": [*FREE, "setsid", *DETACH, "session"],
}
"""How an agent may start a command that answers."""

HIDING = [*FREE, "unshare", "--pid", "--fork", "--mount-proc", *DETACH, "child"]


class Agent:
    """An agent with a shell, and a call of it that waits for a person."""

    def __init__(self, machine: Machine, command: list[str]) -> None:
        self.machine = machine
        self.peer = StdioPeer(command, env=machine.env, cwd=machine.project, is_warm=False)

    def hold(self, tool: str) -> str:
        """Make a call that a person must approve, and return the id of the request."""
        self.peer.receive()
        self.order("open")
        params = {"name": tool, "arguments": {"id": "a"}}
        self.call_id = self.order("send", method="tools/call", params=params)
        return str(wait_for(self.pending, what="the request")[0]["id"])

    def order(self, what: str, **order: Any) -> Any:
        self.peer.send({"do": what, **order})
        return self.peer.receive()["said"]

    def run(self, way: str, *words: str, state: Path | None = None) -> dict[str, Any]:
        """Have the agent run a command of ours, and return what came of it."""
        output = self.machine.top / f"{way}-{'-'.join(words).replace('/', '-')}.json"
        chosen = ["env", f"THOUGHTGATE_STATE_DIR={state}"] if state is not None else []
        command = [*WAYS.get(way, HIDING), str(output), *thoughtgate(*words)]
        self.order("run", command=[*chosen, *command])
        wait_for(output.exists, what=way)
        told: dict[str, Any] = json.loads(output.read_text("utf-8"))
        return told

    def person(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside the agent: as a child of this process."""
        return subprocess.run(
            thoughtgate(*words),
            env={**os.environ, **self.machine.env},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def pending(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            self.machine.run("approvals", "list", "--json").stdout
        )
        return found


GATES = ["shim", "proxy", "serve", "wrap"]


@pytest.fixture
def agent(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Agent]:
    machine = Machine(tmp_path, HOLD)
    config, state = str(machine.policy), ["--state-dir", str(machine.state)]
    if request.param in {"proxy", "serve"}:
        command, *args = sample_server()
        servers = {"sample": {"command": command, "args": args}}
        machine.policy.write_text(f"{HOLD}servers: {json.dumps(servers)}\n", "utf-8")
    commands = {
        "shim": shim(sample_server(), "-c", config),
        "proxy": thoughtgate("proxy", "--stdio", "-c", config, *state),
        "serve": thoughtgate("serve", "--stdio", "-c", config, *state),
    }
    if request.param == "wrap":
        machine.write_config({"sample": entry()})
        told = ["--agent-type", "custom", "--config-path", str(machine.config)]
        command_line = thoughtgate("wrap", *told, "--", *machine.agent())
    else:
        command, *args = commands[request.param]
        machine.write_config({"sample": {"command": command, "args": args}})
        command_line = machine.agent()
    made = Agent(machine, command_line)
    yield made
    made.peer.destroy()


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.parametrize("agent", GATES, indirect=True)
def test_nothing_that_the_agent_starts_can_approve_and_a_person_beside_it_can(
    agent: Agent, request: pytest.FixtureRequest
) -> None:
    served = "serve" in request.node.name
    ident = agent.hold("sample.delete_note" if served else "delete_note")
    for way in WAYS:
        told = agent.run(way, "approvals", "approve", ident)
        assert (told["code"], told["stdout"]) == (2, ""), (way, told)
        assert "governed agent" in told["stderr"]
        assert "run 'thoughtgate approvals approve' in a" in told["stderr"]
    assert [one["id"] for one in agent.pending()] == [ident]

    done = agent.person("approvals", "approve", ident)

    assert done.returncode == 0, done.stderr
    assert "error" not in agent.order("wait", id=agent.call_id)


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.parametrize("agent", ["shim"], indirect=True)
def test_another_terminal_can_approve(agent: Agent) -> None:
    ident = agent.hold("delete_note")
    done = agent.machine.run("approvals", "approve", ident)
    assert done.returncode == 0, done.stderr


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.skipif(os.geteuid() != 0, reason="not every system lets users make namespaces")
@pytest.mark.parametrize("agent", ["shim", "wrap"], indirect=True)
def test_a_process_namespace_does_not_hide_the_agent(agent: Agent) -> None:
    ident = agent.hold("delete_note")
    told = agent.run("namespace", "approvals", "approve", ident)
    assert (told["code"], told["stdout"]) == (2, ""), told
    assert "cannot be seen" in told["stderr"]


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.parametrize("agent", ["shim", "wrap"], indirect=True)
@pytest.mark.parametrize("words", first_of(["console --port 0", "unwrap", "init new.yaml"]))
def test_the_agent_gets_no_console_and_ends_no_governance(agent: Agent, words: str) -> None:
    agent.hold("delete_note")
    before = agent.machine.config.read_bytes()
    for way in ("child", "setsid"):
        told = agent.run(way, *words.split())
        assert (told["code"], told["stdout"]) == (2, ""), told
        assert "governed agent" in told["stderr"]
    assert agent.machine.config.read_bytes() == before


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.parametrize("agent", ["shim"], indirect=True)
def test_the_option_of_the_gate_does_not_let_the_agent_unwrap_a_file(agent: Agent) -> None:
    agent.hold("delete_note")
    left = agent.machine.top / "left.json"
    command, *args = thoughtgate("shim", "--server-id", "s", "--run", "/gone.json", "--", "server")
    before = agent.machine.write_config({"s": {"command": command, "args": args}}, path=left)
    told = agent.run("child", "unwrap", "--key", "x", "--config-path", str(left))
    assert (told["code"], told["stdout"]) == (2, ""), told
    assert left.read_bytes() == before


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.parametrize(
    ("agent", "way"),
    first_of([("wrap", "double fork"), ("shim", "child"), ("wrap", "child")]),
    indirect=["agent"],
)
def test_another_state_directory_does_not_hide_the_agent(agent: Agent, way: str) -> None:
    ident = agent.hold("delete_note")
    elsewhere = agent.machine.top / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    for file in agent.machine.state.iterdir():
        if file.name != "gates":
            (elsewhere / file.name).symlink_to(file)
    before = agent.machine.config.read_bytes()
    config = str(agent.machine.config)
    for command in (
        ["approvals", "approve", ident],
        ["init", "new.yaml"],
        ["unwrap", "--config-path", config],
    ):
        told = agent.run(way, *command, state=elsewhere)
        assert (told["code"], told["stdout"]) == (2, ""), told
        assert "governed agent" in told["stderr"]
    assert [one["id"] for one in agent.pending()] == [ident]
    assert agent.machine.config.read_bytes() == before


@pytest.mark.parametrize("agent", ["wrap"], indirect=True)
def test_wrap_reaps_the_orphans_of_its_agent(agent: Agent) -> None:
    agent.peer.receive()
    agent.order("open")
    agent.run("double fork", "status", "--json")

    def zombies() -> list[str]:
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text("utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if fields[:2] == ["Z", str(agent.peer.pid)]:
                found.append(stat.parent.name)
        return found

    wait_for(lambda: not zombies(), what="the end of the zombies")
    assert agent.peer.finish() == 0
