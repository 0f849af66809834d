"""A wrapped agent starts a gate of its own, to answer there what its own gate would then use."""

import json
import sys
from pathlib import Path
from typing import Final

import pytest
from tests.support.commands import sample_server
from tests.support.wraps import HOLD, Machine

AGENT: Final = """
import http.client, json, os, pty, re, signal, sys, time
command = [sys.executable, "-m", "thoughtgate.cli.entry", "proxy", "--listen", "127.0.0.1:0"]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], [*command, "-c", sys.argv[1]])
seen, deadline = "", time.monotonic() + 30

def read_until(pattern):
    global seen
    while not (found := re.search(pattern, seen)):
        assert time.monotonic() < deadline, seen
        seen += os.read(terminal, 65536).decode("utf-8", "replace")
    seen = seen[found.end():]
    return found

connection = http.client.HTTPConnection("127.0.0.1", int(read_until(r"listening on .*:(\\d+)/")[1]))
params = {"name": "delete_note", "arguments": {"id": "1"}}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
accepted = "application/json, text/event-stream"
connection.request("POST", "/mcp", body, {"content-type": "application/json", "accept": accepted})
read_until("delete_note")
read_until("press Enter: ")
os.write(terminal, b"y\\n")
print(read_until("Approved|Not done: [a-z ]*")[0], flush=True)
os.kill(pid, signal.SIGKILL)
"""


@pytest.mark.promise("agent-cannot-approve")
def test_a_wrapped_agent_cannot_answer_at_the_terminal_of_its_own_proxy(tmp_path: Path) -> None:
    command, *arguments = sample_server()
    servers = json.dumps({"sample": {"command": command, "args": arguments}})
    machine = Machine(tmp_path, f"{HOLD}servers: {servers}\n")
    machine.write_sample()
    program = tmp_path / "agent.py"
    program.write_text(AGENT)

    done = machine.wrap_once(agent=[sys.executable, str(program), str(machine.policy)])

    assert done.stdout.strip() == "Not done: a governed agent started this process", done.stderr
    assert [one["type"] for one in machine.events("approval_decided")] == []
