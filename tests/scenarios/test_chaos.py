"""Three gates, a database and a balancer that are killed and paused at random.

At the end, every call that reached the server is on record exactly once, and no approval ran more
than one call. ``CHAOS_S`` sets the duration: a minute by default.
"""

import contextlib
import faulthandler
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.http_upstream import HttpUpstream, Received, Reply, free_port, small_server
from tests.support.postgres import PostgresServer
from tests.support.proxy_process import environment, proxy_command
from tests.support.waiting import PATIENCE_S, wait_for

from thoughtgate.core.approval import PENDING, USED, Vote
from thoughtgate.errors import StoreError
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation, open_database

DURATION_S: Final = float(os.environ.get("CHAOS_S", "60"))
LIMIT_S: Final = 300.0
"""How long starting, stopping and comparing may take."""
GATES: Final = 3
AGENTS: Final = 4
BUDGET: Final = 50
CALL_S: Final = 20.0
"""How long an agent waits for a call before it gives up and asks again."""
HOST: Final = "gates.test"
META: Final = "io.modelcontextprotocol/"
RECORD: Final = re.compile(r"audit(\.traffic)?\.jsonl(\.\d+)?")

CONFIG: Final = """
schema: 1
default: forward
store: '{store}'
keys: {{file: '{keys}'}}
servers: {{up: {{url: '{url}'}}}}
rules: [{{tool: drop, action: approve}}]
limits: [{{id: few, tool: scarce, budget: {budget}}}]
approval: {{default: {{timeout: 10m}}}}
listen: {{transport: http, hosts: ['{host}']}}
"""

BALANCER: Final = """
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  retries 0
frontend agents
  bind 127.0.0.1:{port}
  http-request set-header Host {host}
  default_backend gates
backend gates
  balance roundrobin
  option httpchk
  http-check send meth GET uri /health hdr Host {host}
{servers}
"""


class Part:
    """A process that is killed, paused and started again."""

    def __init__(self, command: list[str], environ: dict[str, str], port: int, log: Path) -> None:
        self._command = command
        self._environ = environ
        self._log = log
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process and wait until it listens."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

        def listens() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self._log.read_text()[-2000:]
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            return False

        wait_for(listens, 60, what="a port")

    def kill(self) -> None:
        """End the process at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE_S)

    def signal(self, number: int) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)


class Scene:
    """Everything that runs, and what the agents did."""

    def __init__(self, place: Path, stack: contextlib.ExitStack) -> None:
        self.server = PostgresServer("fsync=on")
        stack.callback(self.server.remove)
        self.server.start()
        self.store = self.server.url("chaos")
        self.reached: Counter[str] = Counter()
        self._lock = threading.Lock()
        upstream = stack.enter_context(HttpUpstream(self._serve))
        keys = place / "keys"
        keys.touch(0o600)
        keys.write_text("0f" * 32 + "\n")
        config = place / "thoughtgate.yaml"
        config.write_text(
            CONFIG.format(store=self.store, keys=keys, url=upstream.url, budget=BUDGET, host=HOST)
        )
        self.homes = [place / f"gate{number}" for number in range(GATES)]
        self.gates = []
        for home in self.homes:
            home.mkdir()
            port = free_port()
            command = proxy_command("-c", str(config), "--listen", f"127.0.0.1:{port}")
            self.gates.append(Part(command, environment(home), port, home / "log"))
        port = free_port()
        servers = "\n".join(
            f"  server g{gate.port} 127.0.0.1:{gate.port} check inter 500ms fall 1 rise 1"
            for gate in self.gates
        )
        balancer = place / "haproxy.cfg"
        balancer.write_text(BALANCER.format(port=port, host=HOST, servers=servers))
        self.balancer = Part(
            ["haproxy", "-db", "-q", "-f", str(balancer)], dict(os.environ), port, place / "log"
        )
        for part in (*self.gates, self.balancer):
            stack.callback(part.kill)
            part.start()
        self.over = threading.Event()
        self.failures: list[str] = []

    def _serve(self, received: Received) -> Reply:
        message = received.message
        if isinstance(message, dict) and message.get("method") == "tools/call":
            with self._lock:
                self.reached[message["params"]["arguments"]["mark"]] += 1
        return small_server(received)

    def call(self, tool: str, mark: str) -> dict[str, Any] | None:
        """Call a tool once; return the response, or None if there was none."""
        meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
        params = {"name": tool, "arguments": {"mark": mark}, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        connection = HTTPConnection("127.0.0.1", self.balancer.port, timeout=CALL_S)
        try:
            connection.request("POST", "/mcp", body, headers)
            answer = read_until(connection.getresponse(), time.monotonic() + CALL_S).decode()
            lines = [line.removeprefix("data: ") for line in answer.splitlines()]
            found = [json.loads(line) for line in lines if line.startswith("{")]
            return found[-1] if found else None
        except (OSError, HTTPException, ValueError):
            return None
        finally:
            connection.close()

    def act(self, name: str) -> None:
        """Make calls until the end; a call that needs approval is asked again until it ends."""
        number = 0
        while not self.over.is_set():
            number += 1
            self.call("echo", f"{name}-echo-{number}")
            self.call("scarce", f"{name}-scarce-{number}")
            mark = f"{name}-drop-{number}"
            for _ in range(20):
                if self.over.is_set() or self.call("drop", mark) is not None:
                    break

    def decide(self) -> None:
        """Approve whatever waits, until the end."""
        while not self.over.is_set():
            with contextlib.suppress(StoreError):
                store = ApprovalStore(open_database(StoreLocation(Path("/nowhere"), self.store)))
                with contextlib.closing(store):
                    while not self.over.wait(0.05):
                        for one in store.listed(PENDING):
                            at = time.time()
                            store.vote(one.id, [Vote("console:ann", approve=True, at=at)], at)
            self.over.wait(0.2)

    def disturb(self) -> None:
        """Kill or pause one part, and bring it back."""
        gate = random.choice(self.gates)
        how: Callable[[], None] = random.choice(
            [
                lambda: self._restart(gate),
                lambda: self._restart(gate),
                lambda: self._pause(gate, random.choice([1.0, 3.0, 20.0])),
                lambda: self._pause(gate, 1.0),
                lambda: self._restart(self.balancer),
                self._crash_database,
                self._pause_database,
            ]
        )
        how()

    def _restart(self, part: Part) -> None:
        part.kill()
        self.over.wait(random.random())
        part.start()

    def _pause(self, part: Part, for_s: float) -> None:
        part.signal(signal.SIGSTOP)
        self.over.wait(for_s)
        part.signal(signal.SIGCONT)

    def _crash_database(self) -> None:
        self.server.stop(signal.SIGQUIT)
        self.over.wait(random.random() * 2)
        self.server.start()

    def _pause_database(self) -> None:
        self.server.pause()
        self.over.wait(random.random() * 4)
        self.server.resume()

    def recorded(self) -> Iterator[dict[str, Any]]:
        """Return the events of all records."""
        for home in self.homes:
            for path in home.rglob("audit*.jsonl*"):
                if not RECORD.fullmatch(path.name):
                    continue
                for line in path.read_text("utf-8").splitlines():
                    yield json.loads(line)


@pytest.mark.long
@pytest.mark.timeout(DURATION_S + LIMIT_S)
@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed")
@pytest.mark.promise("approval-is-exact", "nothing-unrecorded")
def test_whatever_dies_nothing_runs_twice_and_nothing_is_unrecorded(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    random.seed(seed)
    print(f"seed {seed}, {DURATION_S:.0f} s", file=sys.stderr)
    # Otherwise the limit of a usual test would end the process.
    faulthandler.dump_traceback_later(DURATION_S + LIMIT_S + 60, exit=True)
    with contextlib.ExitStack() as stack:
        scene = Scene(tmp_path, stack)
        people = [threading.Thread(target=scene.decide, daemon=True) for _ in range(2)]
        agents = [
            threading.Thread(target=scene.act, args=(f"a{number}",), daemon=True)
            for number in range(AGENTS)
        ]
        for thread in (*people, *agents):
            thread.start()
        end = time.monotonic() + DURATION_S
        disturbed = 0
        while time.monotonic() < end:
            scene.over.wait(0.5 + random.random() * 2)
            scene.disturb()
            disturbed += 1
        scene.over.set()
        ended = time.monotonic() + CALL_S + PATIENCE_S
        for thread in (*people, *agents):
            thread.join(max(0.0, ended - time.monotonic()))
            assert not thread.is_alive(), "an agent or a reviewer did not come back"
        for gate in scene.gates:
            gate.signal(signal.SIGTERM)
        for gate in scene.gates:
            assert gate.process is not None
            gate.process.wait(PATIENCE_S)
        check(scene, disturbed)


def check(scene: Scene, disturbed: int) -> None:
    """Compare what reached the server with the records and the store."""
    starts: Counter[str] = Counter()
    for event in scene.recorded():
        if event["type"] == "tool_call_start":
            starts[mark_of(event)] += 1
    drops = {mark: times for mark, times in scene.reached.items() if "-drop-" in mark}
    others = {mark: times for mark, times in scene.reached.items() if "-drop-" not in mark}
    scarce = [mark for mark in others if "-scarce-" in mark]
    store = ApprovalStore(open_database(StoreLocation(Path("/nowhere"), scene.store)))
    used = Counter(
        json.loads(one.arguments)["mark"] for one in store.listed() if one.status == USED
    )
    store.close()
    print(
        f"{disturbed} disturbances; {sum(scene.reached.values())} calls reached the server, "
        f"{sum(drops.values())} of them approved, {len(scarce)} of {BUDGET} scarce",
        file=sys.stderr,
    )
    assert len(others) > DURATION_S
    assert drops
    assert set(others.values()) == {1}, "a call that was made once reached the server twice"
    assert [mark for mark in others if starts[mark] != 1] == []
    assert [mark for mark in drops if not starts[mark]] == []
    assert [mark for mark, times in drops.items() if times > used[mark]] == []
    assert len(scarce) <= BUDGET


def read_until(response: HTTPResponse, deadline: float) -> bytes:
    """Return the body; the comments that keep a stream open do not extend the wait."""
    parts = []
    while part := response.read1():
        parts.append(part)
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(parts)


def mark_of(event: dict[str, Any]) -> str:
    """Return which call an event is about."""
    preview = event["call"]["preview"]["args_preview"]
    return str((json.loads(preview) if isinstance(preview, str) else preview)["mark"])
