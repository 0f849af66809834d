"""A morning with three agents in three projects: every file is as before, every call is on record."""

import copy
import json
import os
import re
import signal
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.consoles import Client
from tests.support.desktop import Desktop, a_desktop, needs_desktop
from tests.support.model_server import ModelServer
from tests.support.real_agents import wrap_agent
from tests.support.stdio_peer import StdioPeer, marked_processes
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, entry, kind_of

pytestmark = [pytest.mark.long, needs_desktop]

SLOW_S = 180.0
"""Real agents start in seconds; on a busy machine it may be many."""

POLICY = """\
schema: 1
default: forward
rules:
  - {tool: echo, action: approve}
approval:
  default: {channel: console, timeout: 10m}
"""
ASKING = POLICY.replace("timeout: 10m", "timeout: 10m, allow_elicitation: true")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path, POLICY)
    # The usual place of the state, because agents filter what would move it.
    made.state = made.home / ".local" / "state" / "thoughtgate"
    return made


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Desktop]:
    with a_desktop(tmp_path) as desktop:
        yield desktop


def _project(machine: Machine, name: str) -> Machine:
    """Return the same user in a project of their own."""
    made = copy.copy(machine)
    made.project = machine.top / name
    made.project.mkdir()
    made.config = made.project / "mcp.json"
    _git(made, "init", "-q")
    return made


def _git(machine: Machine, *args: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(machine.project), *own, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout


def _claude(machine: Machine, variables: dict[str, str], url: str) -> StdioPeer:
    claude = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1"}
    prompt = ("-p", "hi", "--allowedTools", "mcp__claude")
    tools = {"ENABLE_TOOL_SEARCH": "false", "MCP_TOOL_TIMEOUT": "600000"}
    peer = wrap_agent(machine, "claude", *prompt, variables={**variables, **claude, **tools})
    peer.close_stdin()
    return peer


def _gemini(machine: Machine, variables: dict[str, str], url: str) -> StdioPeer:
    gemini = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none"}
    prompt = ("-m", "gemini-2.5-flash", "-y", "-p", "hi")
    peer = wrap_agent(machine, "gemini", *prompt, variables={**variables, **gemini})
    peer.close_stdin()
    return peer


def _signed_in(peer: StdioPeer) -> Client:
    """Follow the one-time link that a wrap printed at its start."""
    found = re.search(r"console   (http://127\.0\.0\.1:(\d+)(/\S+))", peer.stderr)
    assert found, peer.stderr
    client = Client(int(found[2]))
    assert client.get(found[3]).status == 200
    return client


def _approve(client: Client, path: str) -> None:
    fields = {"token": client.get(path).token(path), "decision": "approve"}
    assert client.post(path, fields).status in {200, 303}


def _held(machine: Machine, server: str) -> str:
    """Wait until a call to a server is held, and return the approval's id."""

    def found() -> list[Any]:
        asked = machine.events("approval_requested")
        return [one["approval"]["approval_id"] for one in asked if one["server_name"] == server]

    held: str = wait_for(found, SLOW_S, what=f"a held call to {server}")[0]
    return held


def _end(peer: StdioPeer) -> str:
    lines = peer.remaining_lines(SLOW_S)
    said = b"\n".join(lines).decode("utf-8", "replace") + peer.stderr
    assert peer.finish(SLOW_S) == 0, said
    return said


def _kill(machine: Machine, original: bytes) -> None:
    """Kill a wrap: its guardian ends the agent and restores the config."""
    with machine.wrap() as run:
        run.open()
        run.signal(signal.SIGKILL)
        run.wait()
        wait_for(lambda: machine.config.read_bytes() == original, what="the restored config")
        run.assert_nothing_left()


def _lose_power(machine: Machine) -> None:
    """Leave the files of a wrap behind, with no process that could clean up."""
    with machine.wrap() as run:
        run.open()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in marked_processes(run.peer.mark):
                os.kill(pid, number)
        run.assert_nothing_left()
    assert machine.left_in(machine.project) != []


def _write_configs(first: Machine, second: Machine, third: Machine) -> dict[Path, bytes]:
    """Write and commit what each agent has; return the bytes of every file."""
    first.write_config({"claude": entry()}, path=first.project / ".mcp.json")
    second.write_config({"gemini": entry()}, path=second.project / ".gemini" / "settings.json")
    third.write_config({"sample": entry()})
    settings = first.home / ".claude" / "settings.json"
    own = first.home / ".gemini" / "settings.json"
    for path, values in {
        settings: {"enabledMcpjsonServers": ["claude"]},
        own: {"security": {"auth": {"selectedType": "gemini-api-key"}}},
    }.items():
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(values), "utf-8")
    for one in (first, second, third):
        _git(one, "add", "-A")
        _git(one, "commit", "-qm", "config")
    files = [
        first.project / ".mcp.json",
        second.project / ".gemini" / "settings.json",
        third.config,
        settings,
        own,
    ]
    return {path: path.read_bytes() for path in files}


def test_a_morning_leaves_every_file_as_it_was_and_every_call_on_record(
    machine: Machine, model: ModelServer, screen: Desktop
) -> None:
    first, second, third = (_project(machine, name) for name in ("first", "second", "third"))
    before = _write_configs(first, second, third)

    _kill(third, before[third.config])
    _lose_power(third)
    installed = second.run("install", "gemini")
    assert installed.returncode == 0, installed.stderr
    third.policy = machine.top / "asking.yaml"
    third.policy.write_text(ASKING, "utf-8")

    policy = {"THOUGHTGATE_CONFIG": str(machine.policy)}
    with (
        _claude(first, {**policy, **screen.environ}, model.url) as claude,
        _gemini(second, policy, model.url) as gemini,
        third.wrap() as prompted,
    ):
        prompted.open()
        # Its program declines what it is asked: an answer from the agent's own prompt.
        assert kind_of(prompted.call("echo", {"text": "no"})) == "approval_rejected"

        noted = _held(machine, "claude")
        wait_for(lambda: screen.shown, SLOW_S, what="the notification")
        link = next(iter(re.findall(r"http://\S+?/approvals/\w+", screen.shown[0][2])))
        assert link.endswith(noted)
        _approve(_signed_in(claude), urllib.parse.urlsplit(link).path)

        _approve(_signed_in(gemini), f"/approvals/{_held(machine, 'gemini')}")

        said = [_end(claude), _end(gemini)]
        assert prompted.finish() == 0
        for peer in (claude, gemini, prompted.peer):
            peer.assert_nothing_left()
    assert "was killed" in prompted.stderr, "what the power failure left is restored, and said"
    removed = second.run("uninstall", "gemini")
    assert removed.returncode == 0, removed.stderr

    assert {path: path.read_bytes() for path in before} == before
    for one in (first, second, third):
        assert _git(one, "status", "--porcelain") == ""
        assert one.left_in(one.project) == []
    ends = {end["server_name"]: end["status"] for end in machine.events("tool_call_end")}
    assert ends == {"claude": "OK", "gemini": "OK", "sample": "ERROR"}, said
    decided = {one["server_name"]: one["approval"] for one in machine.events("approval_decided")}
    assert {name: one["outcome"] for name, one in decided.items()} == {
        "claude": "approved",
        "gemini": "approved",
        "sample": "rejected",
    }
    assert machine.unfinished_calls() == set()
    assert not list((machine.state / "wraps").glob("*"))
    assert not list((machine.state / "injected").glob("*"))
    machine.assert_record_is_sound()
