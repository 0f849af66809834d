"""Two gates behind HAProxy, with the config that ``deploy/compose.yaml`` uses."""

import http.client
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.commands import ROOT
from tests.support.frames import call, initialize, notification
from tests.support.proxy_process import ProxyProcess, sample_server
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("haproxy") is None, reason="HAProxy is not installed (Debian: haproxy)"
    ),
]

CONFIG = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
SESSIONS = 6
HOST = "balancer"
"""On the loopback interface, a gate refuses names that it does not know and ports of others."""


class Cluster(NamedTuple):
    """The gates, and the port of their balancer."""

    gates: list[ProxyProcess]
    port: int

    def post(self, body: Any, session: str = "") -> tuple[int, str]:
        """Send a message; return the status and the id of the session."""
        headers = {
            "Host": HOST,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if session:
            headers["Mcp-Session-Id"] = session
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("POST", "/mcp", json.dumps(body), headers)
            response = connection.getresponse()
            response.read()
            return response.status, response.getheader("Mcp-Session-Id") or ""
        finally:
            connection.close()

    def open_session(self) -> str:
        """Open a session, at the gate that the balancer chooses."""
        status, session = self.post(initialize())
        assert status == 200
        self.post(notification("notifications/initialized"), session)
        return session


def _gate(folder: Path) -> ProxyProcess:
    command, *arguments = sample_server()
    settings = {
        "schema": 1,
        "default": "forward",
        "servers": {"sample": {"command": command, "args": arguments, "expose": "all"}},
        "listen": {"transport": "http", "host": "127.0.0.1", "hosts": [HOST]},
    }
    folder.mkdir()
    file = folder / "gate.json"
    file.write_text(json.dumps(settings), "utf-8")
    return ProxyProcess(folder, ["-c", str(file), "--listen", "127.0.0.1:0"])


def _balancer_config(gates: list[ProxyProcess], descriptor: int) -> str:
    """Return the shipped config with the addresses of this test."""
    text = CONFIG.read_text("utf-8")
    for name, gate in zip(("gate-1", "gate-2"), gates, strict=True):
        address = gate.url.removeprefix("http://").removesuffix("/mcp")
        text = text.replace(f"{name}:8080", address)
    # A port can be lost between its choice and its use, so HAProxy inherits a listening socket.
    text = text.replace("bind :8080", f"bind fd@{descriptor}")
    check = f"http-check send meth GET uri /ready ver HTTP/1.1 hdr Host {HOST}"
    text = text.replace("option httpchk GET /ready", f"option httpchk\n    {check}")
    return text.replace(" port 9090", "").replace(" resolvers docker", "")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        gates = [stack.enter_context(_gate(tmp_path / name)) for name in ("one", "two")]
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        config = tmp_path / "haproxy.cfg"
        config.write_text(_balancer_config(gates, listening.fileno()), "utf-8")
        balancer = subprocess.Popen(
            ["haproxy", "-db", "-f", str(config)],
            pass_fds=[listening.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            found = Cluster(gates, listening.getsockname()[1])
            wait_for(lambda: found.post(initialize())[0] == 200, what="the balancer")
            yield found
        finally:
            balancer.kill()
            balancer.wait(PATIENCE_S)


def test_a_session_stays_at_the_gate_that_opened_it(cluster: Cluster) -> None:
    sessions = [cluster.open_session() for _ in range(SESSIONS)]

    # The gates have different keys: at the other one, the session would be unknown.
    for number in range(3):
        answers = {cluster.post(call(number, "echo", {"text": "a"}), one)[0] for one in sessions}
        assert answers == {200}
    assert all(gate.records("tool_call_start") for gate in cluster.gates)


def test_new_sessions_avoid_a_gate_that_stops(cluster: Cluster) -> None:
    assert cluster.gates[0].stop() == 0

    assert all(cluster.open_session() for _ in range(SESSIONS))
