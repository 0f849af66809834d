"""Real agents list, and call, the servers that ``wrap`` put behind the gate."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server
from tests.support.real_agents import wrap_agent
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for
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
    peer.assert_nothing_left()
    text = b"\n".join(lines).decode("utf-8", "replace") + peer.stderr
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _assert_governed(machine: Machine) -> None:
    assert machine.events("server_started")[0]["server_name"] == "probe"
    assert machine.events("run_end")[0]["run"]["status"] == "SUCCEEDED"
    machine.assert_record_is_sound()


def test_claude_code_lists_the_wrapped_server_as_connected(machine: Machine) -> None:
    path = machine.home / ".claude.json"
    machine.write_config({"probe": entry()}, path=path)

    with wrap_agent(machine, "claude", "mcp", "list") as peer:
        said = _finish(peer)

    assert re.search(r"probe: .*thoughtgate shim --server-id probe .*✔ Connected", said), said
    _assert_governed(machine)
    assert machine.events("tools_list")[0]["list"]["method"] == "tools/list"
    after = json.loads(path.read_text("utf-8"))
    assert after["mcpServers"]["probe"] == entry()
    # Claude Code writes its own keys into the file while it runs; they are kept.
    assert len(after) > 1


def test_opencode_lists_the_wrapped_server_as_connected(machine: Machine) -> None:
    path = machine.project / "opencode.json"
    probe = {"type": "local", "command": sample_server()}
    path.write_text(json.dumps({"mcp": {"probe": probe}}, indent=2), "utf-8")

    with wrap_agent(machine, "opencode", "mcp", "list") as peer:
        said = _finish(peer)

    assert re.search(r"✓ probe\s+connected", said), said
    _assert_governed(machine)
    assert json.loads(path.read_text("utf-8"))["mcp"]["probe"] == probe


def test_gemini_lists_the_wrapped_server_as_connected(machine: Machine) -> None:
    path = machine.home / ".gemini" / "settings.json"
    original = machine.write_config({"probe": entry()}, path=path)

    with wrap_agent(machine, "gemini", "mcp", "list") as peer:
        said = _finish(peer)

    assert re.search(r"✓ probe: .*shim.* - Connected", said), said
    _assert_governed(machine)
    assert path.read_bytes() == original


def _codex_config(machine: Machine) -> tuple[Path, str]:
    path = machine.home / ".codex" / "config.toml"
    path.parent.mkdir()
    sample = entry()
    text = (
        "# my servers\n[mcp_servers.probe]  # the one\n"
        f"command = {json.dumps(sample['command'])}\nargs = {json.dumps(sample['args'])}\n"
    )
    path.write_text(text, "utf-8")
    return path, text


def _ask_codex(peer: StdioPeer, ident: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    peer.send({"id": ident, "method": method, "params": params})
    answer: dict[str, Any] = peer.receive_answer(ident, SLOW_S)
    return answer


def test_codex_lists_and_calls_the_tools_of_the_wrapped_server(machine: Machine) -> None:
    path, text = _codex_config(machine)
    rules = "schema: 1\ndefault: forward\nrules: [{tool: add, action: deny}]\n"
    (machine.project / "thoughtgate.yaml").write_text(rules, "utf-8")

    with wrap_agent(machine, "codex", "app-server") as peer:
        client = {"clientInfo": {"name": "test", "title": "test", "version": "1"}}
        _ask_codex(peer, 1, "initialize", client)
        peer.send({"method": "initialized"})
        listed = _ask_codex(peer, 2, "mcpServerStatus/list", {})["result"]["data"]
        assert listed[0]["serverInfo"]["name"] == "thoughtgate-sample"
        assert "echo" in listed[0]["tools"]
        thread = _ask_codex(peer, 3, "thread/start", {"cwd": str(machine.project)})
        ident = thread["result"]["thread"]["id"]
        params = {"threadId": ident, "server": "probe", "tool": "echo", "arguments": {"text": "hi"}}
        called = _ask_codex(peer, 4, "mcpServer/tool/call", params)
        assert called["result"]["content"] == [{"type": "text", "text": "hi"}]
        params = {
            "threadId": ident,
            "server": "probe",
            "tool": "add",
            "arguments": {"a": 1, "b": 2},
        }
        refused = _ask_codex(peer, 5, "mcpServer/tool/call", params)
        assert "error" in refused
        # Codex kills its servers as soon as it exits, and the shim reports ends in steps.
        wait_for(lambda: len(machine.events("tool_call_end")) == 2, what="the ends on the record")
        _finish(peer)

    assert path.read_text("utf-8") == text
    _assert_governed(machine)
    ends = [(one["call"]["tool_name"], one["status"]) for one in machine.events("tool_call_end")]
    assert ends == [("echo", "OK"), ("add", "ERROR")]


def test_copilot_connects_to_the_wrapped_server(machine: Machine) -> None:
    path = machine.home / ".copilot" / "mcp-config.json"
    probe = {"type": "local", "tools": ["*"], **entry()}
    original = machine.write_config({"probe": probe}, path=path)

    with wrap_agent(machine, "copilot", "--headless", "--no-auto-update", "--stdio") as peer:
        where = {"workingDirectory": str(machine.project), "enableConfigDiscovery": True}
        _frame(peer, 1, "session.create", {**where, "model": "gpt-5"})
        session = _await(peer, r'"sessionId":"([^"]+)"')
        # A body has no line end of its own: the next message brings it.
        for ident in (2, 3):
            _frame(peer, ident, "session.mcp.list", {"sessionId": session})
        assert _await(peer, r'"servers":\[\{"name":"probe","status":"([^"]+)"') == "connected"
        machine.wait_for_event("tools_list")
        peer.signal(signal.SIGTERM)
        peer.wait(SLOW_S)
        peer.assert_nothing_left()

    assert path.read_bytes() == original
    assert machine.events("tools_list")[0]["server_name"] == "probe"
    assert machine.events("run_end")[0]["run"]["status"] == "TERMINATED"


def _await(peer: StdioPeer, pattern: str) -> str:
    """Read what Copilot prints until something is in it."""
    while True:
        line = peer.read_line(SLOW_S)
        assert line is not None, peer.stderr
        if found := re.search(pattern, line.decode("utf-8", "replace")):
            return found.group(1)


def _frame(peer: StdioPeer, ident: int, method: str, params: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()
    peer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
