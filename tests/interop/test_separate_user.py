"""A gate that runs as another user than its agent: see ``docs/guides/separate-user.md``."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import ROOT
from tests.support.http_upstream import HttpUpstream, small_server
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can start processes of other users"
)

GATE, AGENT = 64001, 64002
"""User ids that need no account."""

TOKEN = "a-token-of-the-agent"


def as_user(user: int, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.other_user", str(user), *arguments]


class SeparateGate:
    """A gate with a user of its own, and its files."""

    def __init__(self, top: Path, upstream: str) -> None:
        top.chmod(0o755)
        self.state = top / "var" / "state"
        self.config = top / "etc" / "gate.yaml"
        for directory in (self.state.parent, self.config.parent):
            directory.mkdir(mode=0o755)
        self.state.mkdir(mode=0o700)
        os.chown(self.state, GATE, GATE)
        settings: dict[str, Any] = {
            "schema": 1,
            "default": "forward",
            "servers": {"small": {"url": upstream}},
            "rules": [{"tool": "secret", "action": "approve"}],
            "listen": {"transport": "http", "auth": {"type": "bearer", "token_env": "AGENT_TOKEN"}},
        }
        self.config.write_text(json.dumps(settings), "utf-8")
        self.config.chmod(0o640)
        os.chown(self.config, 0, GATE)
        self.env = {
            "THOUGHTGATE_STATE_DIR": str(self.state),
            "HOME": str(top),
            "PYTHONPATH": str(ROOT),
        }
        command = as_user(GATE, "proxy", "--listen", "127.0.0.1:0", "-c", str(self.config))
        self.peer = StdioPeer(command, env={**self.env, "AGENT_TOKEN": TOKEN}, cwd=Path("/"))
        self.port = 0

    def wait_until_it_listens(self) -> None:
        found = wait_for(lambda: re.search(r"http://127\.0\.0\.1:(\d+)/mcp", self.peer.stderr))
        assert found is not None
        self.port = int(found[1])

    def call(self, tool: str, token: str = TOKEN) -> tuple[int, str]:
        """Call a tool as an agent does."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        params = {"name": tool, "arguments": {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token}",
        }
        try:
            link.request("POST", "/mcp", json.dumps(body), headers)
            answer = link.getresponse()
            return answer.status, answer.read().decode()
        finally:
            link.close()

    def run(self, user: int, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a user."""
        return subprocess.run(
            as_user(user, *arguments),
            env={"PATH": os.environ["PATH"], **self.env},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def pending(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            self.run(GATE, "approvals", "list", "--json").stdout
        )
        return found


@pytest.fixture
def gate() -> Iterator[SeparateGate]:
    # The directory of pytest belongs to root alone.
    top = Path(tempfile.mkdtemp(prefix="thoughtgate-users-"))
    try:
        with HttpUpstream(small_server) as upstream:
            made = SeparateGate(top, upstream.url)
            with made.peer:
                made.wait_until_it_listens()
                yield made
    finally:
        shutil.rmtree(top)


@pytest.mark.promise("separate-user")
@pytest.mark.long
def test_an_agent_of_another_user_can_use_the_port_and_nothing_else(gate: SeparateGate) -> None:
    answers: list[tuple[int, str]] = []
    assert gate.call("echo")[0] == 200
    assert gate.call("echo", token="guessed")[0] == 401
    caller = threading.Thread(target=lambda: answers.append(gate.call("secret")))
    caller.start()
    ident = wait_for(gate.pending, what="the approval request")[0]["id"]

    tried = json.loads(
        gate.run(AGENT, "try", str(gate.state), str(gate.config), str(gate.peer.pid)).stdout
    )
    assert set(tried.values()) == {"PermissionError"}, tried
    for words in (("approvals", "approve", ident), ("approvals", "list"), ("console",)):
        refused = gate.run(AGENT, *words)
        assert refused.returncode == 2, refused.stdout
        assert refused.stdout == ""
    assert [one["id"] for one in gate.pending()] == [ident]

    approved = gate.run(GATE, "approvals", "approve", ident)
    assert approved.returncode == 0, approved.stderr
    caller.join(PATIENCE_S)
    assert [status for status, _ in answers] == [200]
    assert "result" in answers[0][1]
