"""Real agents, started as always, use the shims that ``install`` wrote; ``wrap`` goes on top."""

import json
import re
from pathlib import Path

import pytest
from tests.support.commands import sample_server
from tests.support.real_agents import program, run_agent, wrap_agent
from tests.support.stdio_peer import StdioPeer
from tests.support.wraps import Machine, entry

pytestmark = pytest.mark.long

SLOW_S = 60.0
"""Real agents start in seconds; on a busy machine it may be many."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    # The usual place of the state, because the agents below filter what would move it.
    made.state = made.home / ".local" / "state" / "thoughtgate"
    return made


def _finish(peer: StdioPeer) -> str:
    """Let an agent end; return what it printed, without colours."""
    peer.close_stdin()
    lines = peer.remaining_lines(SLOW_S)
    assert peer.finish(SLOW_S) == 0, peer.stderr
    text = b"\n".join(lines).decode("utf-8", "replace") + peer.stderr
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _install(machine: Machine, kind: str) -> None:
    done = machine.run("install", kind)
    assert done.returncode == 0, done.stderr


def _governed(machine: Machine) -> int:
    """Return how often a governed server was started."""
    return sum(one["server_name"] == "probe" for one in machine.events("server_started"))


def test_claude_code_uses_installed_servers_with_and_without_wrap(machine: Machine) -> None:
    program("claude")
    path = machine.home / ".claude.json"
    machine.write_config({"probe": entry()}, path=path)
    _install(machine, "claude-code")

    with run_agent(machine, "claude", "mcp", "list") as peer:
        said = _finish(peer)
    assert re.search(r"probe: .*shim --server-id probe .*✔ Connected", said), said
    assert _governed(machine) == 1
    with wrap_agent(machine, "claude", "mcp", "list") as peer:
        said = _finish(peer)
    assert "✔ Connected" in said
    assert _governed(machine) == 2
    machine.assert_record_is_sound()

    assert machine.run("uninstall").returncode == 0
    after = json.loads(path.read_text("utf-8"))
    assert after["mcpServers"]["probe"] == entry()
    assert len(after) > 1


def test_gemini_uses_installed_servers(machine: Machine) -> None:
    program("gemini")
    path = machine.home / ".gemini" / "settings.json"
    original = machine.write_config({"probe": entry()}, path=path)
    _install(machine, "gemini")

    with run_agent(machine, "gemini", "mcp", "list") as peer:
        said = _finish(peer)

    assert re.search(r"✓ probe: .*shim.* - Connected", said), said
    assert _governed(machine) == 1
    assert machine.run("uninstall").returncode == 0
    assert path.read_bytes() == original


def test_opencode_uses_installed_servers(machine: Machine) -> None:
    program("opencode")
    path = machine.project / "opencode.json"
    probe = {"type": "local", "command": sample_server()}
    path.write_text(json.dumps({"mcp": {"probe": probe}}, indent=2), "utf-8")
    original = json.loads(path.read_text("utf-8"))
    _install(machine, "opencode")

    with run_agent(machine, "opencode", "mcp", "list") as peer:
        said = _finish(peer)

    assert re.search(r"✓ probe\s+connected", said), said
    assert _governed(machine) == 1
    assert machine.run("uninstall").returncode == 0
    assert json.loads(path.read_text("utf-8"))["mcp"] == original["mcp"]


def test_codex_lists_installed_servers(machine: Machine) -> None:
    program("codex")
    path = machine.home / ".codex" / "config.toml"
    path.parent.mkdir()
    sample = entry()
    text = (
        "# my servers\n[mcp_servers.probe]  # the one\n"
        f"command = {json.dumps(sample['command'])}\nargs = {json.dumps(sample['args'])}\n"
    )
    path.write_text(text, "utf-8")
    _install(machine, "codex")

    with run_agent(machine, "codex", "mcp", "list", "--json") as peer:
        said = _finish(peer)

    assert "shim" in said
    assert machine.run("uninstall").returncode == 0
    assert path.read_text("utf-8") == text
