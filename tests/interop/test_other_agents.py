"""Real agents with files of their own: each connects to every server through the gate."""

import json
import re
import signal
from pathlib import Path

import pytest
from tests.support.real_agents import wrap_agent
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, entry

pytestmark = pytest.mark.long

SLOW_S = 60.0
"""Real agents start in seconds; on a busy machine it may be many."""

NO_MODEL = {
    "GOOSE_DISABLE_KEYRING": "1",
    "GOOSE_PROVIDER": "ollama",
    "GOOSE_MODEL": "none",
    "OLLAMA_HOST": "http://127.0.0.1:9",
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    # The usual place of the state, because agents filter what would move it.
    made.state = made.home / ".local" / "state" / "thoughtgate"
    return made


def _finish(peer: StdioPeer) -> str:
    peer.close_stdin()
    lines = peer.remaining_lines(SLOW_S)
    assert peer.finish(SLOW_S) == 0, peer.stderr
    peer.assert_nothing_left()
    return b"\n".join(lines).decode("utf-8", "replace")


def _listed(machine: Machine) -> set[str]:
    return {one["server_name"] for one in machine.events("tools_list")}


def _toml(name: str) -> str:
    server = entry()
    words = json.dumps(server["args"])
    return f"[mcp_servers.{name}]\ncommand = {json.dumps(server['command'])}\nargs = {words}\n"


def test_droid_connects_to_the_servers_of_user_and_project(machine: Machine) -> None:
    user, project = (top / ".factory" / "mcp.json" for top in (machine.home, machine.project))
    before = [
        machine.write_config({"user": entry(), "off": entry(disabled=True)}, path=user),
        machine.write_config({"project": entry()}, path=project),
    ]
    with wrap_agent(machine, "droid", "mcp", "list") as peer:
        said = _finish(peer)
        assert "governed  2 servers: project, user" in peer.stderr
    assert re.search(r"project\s+stdio\s+connected", said), said
    assert re.search(r"user\s+stdio\s+connected", said), said
    assert [user.read_bytes(), project.read_bytes()] == before


def test_grok_connects_to_its_own_servers_and_those_of_other_agents(machine: Machine) -> None:
    own = machine.home / ".grok" / "config.toml"
    own.parent.mkdir()
    own.write_text(_toml("own"), "utf-8")
    project = machine.project / ".grok" / "config.toml"
    project.parent.mkdir()
    project.write_text(_toml("project"), "utf-8")
    state = machine.home / ".claude.json"
    local = {"projects": {str(machine.project): {"mcpServers": {"local": entry()}}}}
    state.write_text(json.dumps({"mcpServers": {"claude": entry()}, **local}), "utf-8")
    machine.write_config({"cursor": entry()}, path=machine.project / ".cursor" / "mcp.json")
    machine.write_config({"shared": entry()}, path=machine.project / ".mcp.json")
    before = {path: path.read_bytes() for path in (own, project, state)}

    with wrap_agent(machine, "grok", "--trust", "mcp", "doctor", "--json") as peer:
        found = json.loads(_finish(peer))

    servers = {one["name"]: one for one in found["servers"]}
    assert set(servers) == {"own", "project", "claude", "local", "cursor", "shared"}
    assert all(one["healthy"] for one in servers.values()), servers
    assert all("thoughtgate shim" in one["target"] for one in servers.values()), servers
    assert _listed(machine) == set(servers)
    assert {path: path.read_bytes() for path in before} == before


def test_qwen_connects_to_a_rewritten_server(machine: Machine) -> None:
    path = machine.home / ".qwen" / "settings.json"
    machine.write_config({"probe": entry()}, path=path)
    with wrap_agent(machine, "qwen", "mcp", "reconnect", "--all") as peer:
        assert "probe: Reconnected successfully" in _finish(peer)
    assert _listed(machine) == {"probe"}
    # Qwen adds its version to the file; the entry is as before.
    assert json.loads(path.read_text("utf-8"))["mcpServers"] == {"probe": entry()}


def test_goose_connects_to_the_extension_in_its_yaml(machine: Machine) -> None:
    path = machine.home / ".config" / "goose" / "config.yaml"
    path.parent.mkdir(parents=True)
    server = entry()
    args = "".join(f"      - {json.dumps(word)}\n" for word in server["args"])
    text = (
        "# mine\nextensions:\n  probe:  # a comment\n    enabled: true\n    type: stdio\n"
        f"    name: probe\n    description: a server\n    cmd: {server['command']}\n"
        f"    args:\n{args}    timeout: 300\n"
    )
    path.write_text(text, "utf-8")
    with wrap_agent(
        machine, "goose", "run", "--no-session", "-t", "hi", variables=NO_MODEL
    ) as peer:
        wait_for(lambda: _listed(machine), SLOW_S, what="the list of tools")
        assert "thoughtgate" in path.read_text("utf-8")
        peer.signal(signal.SIGTERM)
        peer.wait(SLOW_S)
        assert "governed  1 server: probe" in peer.stderr
    assert path.read_text("utf-8") == text
