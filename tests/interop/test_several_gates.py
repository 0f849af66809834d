"""Three proxies with a state directory each, on one PostgreSQL: who holds what, and who dies."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import ROOT, thoughtgate
from tests.support.gate_cluster import write_keys
from tests.support.http_agent import HttpAgent
from tests.support.http_gate import call_of
from tests.support.http_upstream import HttpUpstream, Received, Reply, small_server
from tests.support.postgres import PostgresServer
from tests.support.proxy_process import ProxyProcess, environment, proxy_command
from tests.support.stages import TOKEN, envelope
from tests.support.waiting import wait_for

from thoughtgate.gate.approvals.queue import TAKEN_OVER
from thoughtgate.stores.gates import LIFE_S

ENVIRON = {"AGENT_TOKEN": TOKEN, "PYTHONPATH": str(ROOT)}
CONFIG = """
schema: 1
default: forward
store: {store}
keys: {{file: {keys}}}
servers:
  up: {{url: "{url}"}}
rules:
  - {{tool: drop, action: approve}}
listen: {{transport: http, auth: {{type: bearer, token_env: AGENT_TOKEN}}}}
"""


class Gates:
    """Some proxies, their agents, and a person at another machine."""

    def __init__(self, root: Path, upstream: HttpUpstream, store: str, stack: ExitStack) -> None:
        self.root = root
        self.upstream = upstream
        self.config = root / "thoughtgate.yaml"
        self.config.write_text(
            CONFIG.format(store=store, url=upstream.url, keys=write_keys(root / "keys")), "utf-8"
        )
        self.proxies: list[ProxyProcess] = []
        self.agents: list[HttpAgent] = []
        self._stack = stack

    def start(self, count: int = 1, *, ahead_s: float = 0.0) -> None:
        """Start some more proxies, at once."""
        made: list[ProxyProcess] = []
        for _ in range(count):
            directory = self.root / f"gate{len(self.proxies) + len(made)}"
            directory.mkdir()
            made.append(ProxyProcess(directory, self.arguments(), environ=ENVIRON, ahead_s=ahead_s))
        for proxy in made:
            self.proxies.append(self._stack.enter_context(proxy))
            self.agents.append(HttpAgent(proxy.port, TOKEN))

    def arguments(self) -> list[str]:
        return ["-c", str(self.config), "--listen", "127.0.0.1:0"]

    def drop(self, gate: int, ident: int, path: str = "/a") -> None:
        """Call the tool that needs approval, without waiting."""
        self.agents[gate].send(call_of("drop", {"path": path}, ident=ident))

    def run(self, *arguments: str) -> Any:
        """Run a command on a machine of its own, and return what it says."""
        (self.root / "person").mkdir(exist_ok=True)
        done = subprocess.run(
            thoughtgate(*arguments, "-c", str(self.config), "--json"),
            env=environment(self.root / "person", ENVIRON),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def questions(self, count: int = 1) -> list[str]:
        """Return the ids of the pending requests, once there are so many."""

        def asked() -> list[str]:
            found = [each["id"] for each in self.run("approvals", "list")]
            return found if len(found) >= count else []

        return wait_for(asked, what="the request for approval")

    def approve(self, ident: str) -> None:
        """Approve from another machine."""
        self.run("approvals", "approve", ident)


@pytest.fixture
def gates(tmp_path: Path, postgres: PostgresServer) -> Iterator[Gates]:
    with ExitStack() as stack:
        upstream = stack.enter_context(HttpUpstream(small_server))
        yield Gates(tmp_path, upstream, f"'{postgres.url()}'", stack)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def end_rows(postgres: PostgresServer, gates: Gates, pid: int) -> None:
    """Let the row of a gate end now, as it would some seconds later."""
    schema = gates.config.read_text("utf-8").partition("search_path%3D")[2].partition("'")[0]
    postgres.execute(
        f"UPDATE {schema}.gates SET expires_at = expires_at - 60 WHERE facts LIKE '%\"pid\": {pid},%'"
    )


def kind_of(answer: dict[str, Any]) -> Any:
    return answer["error"]["data"]["kind"]


def test_a_call_held_anywhere_is_seen_and_approved_from_another_machine(gates: Gates) -> None:
    gates.start(3)
    gates.drop(1, 1)
    (ident,) = gates.questions()

    def complete() -> Any:
        found = gates.run("status")
        return found if all("url" in gate for gate in found["store"]["gates"]) else None

    status = wait_for(complete, what="the addresses")

    assert len(status["store"]["gates"]) == 3
    assert [one["gate"] for one in status["approvals"]] == [
        f"{holder['host']}:{holder['pid']}"
        for holder in status["store"]["gates"]
        if holder["holds"]
    ]
    (holder,) = [gate for gate in status["store"]["gates"] if gate["holds"] == [ident]]
    assert holder["pid"] == gates.proxies[1].process.pid
    assert holder["url"] == gates.proxies[1].url, "facts are written soon after they change"
    assert {gate["status"] for gate in status["store"]["gates"]} == {"running"}
    assert all(gate["differs"] == gate["degraded"] == [] for gate in status["store"]["gates"])
    assert "postgresql" not in json.dumps(status)
    gates.approve(ident)
    assert "result" in gates.agents[1].answer(1)
    assert len(gates.upstream.calls("drop")) == 1
    assert gates.proxies[0].stop() == 0
    assert len(gates.run("status")["store"]["gates"]) == 2


@pytest.mark.long
def test_a_killed_holders_call_asked_elsewhere_is_one_question_and_one_execution(
    gates: Gates, postgres: PostgresServer
) -> None:
    gates.start(3)
    gates.drop(0, 1)
    (ident,) = gates.questions()
    dead = gates.proxies[0].process
    dead.kill()
    dead.wait(30)
    end_rows(postgres, gates, dead.pid)
    (gone,) = [one for one in gates.run("status")["store"]["gates"] if one["status"] != "running"]
    assert (gone["pid"], gone["holds"]) == (dead.pid, [ident])

    gates.drop(1, 2)
    wait_for(lambda: gates.proxies[1].records("approval_requested"), what="the taken-over request")
    assert gates.questions() == [ident]
    gates.drop(2, 3)
    first, second = sorted(gates.questions(2), key=lambda each: each != ident)
    assert first == ident

    gates.approve(ident)
    assert "result" in gates.agents[1].answer(2)
    assert len(gates.upstream.calls("drop")) == 1
    assert second in gates.questions()


@pytest.mark.long
def test_a_gate_stopped_past_its_expiry_spends_nothing_that_was_taken_over(
    gates: Gates, postgres: PostgresServer
) -> None:
    gates.start(2)
    gates.drop(0, 1)
    (ident,) = gates.questions()
    late = gates.proxies[0].process
    late.send_signal(signal.SIGSTOP)
    end_rows(postgres, gates, late.pid)
    gates.drop(1, 2)
    wait_for(lambda: gates.proxies[1].records("approval_requested"), what="the taken-over request")
    gates.approve(ident)
    assert "result" in gates.agents[1].answer(2)

    late.send_signal(signal.SIGCONT)

    answer = gates.agents[0].answer(1)
    assert kind_of(answer) == "approval_withdrawn"
    assert len(gates.upstream.calls("drop")) == 1
    (decided,) = gates.proxies[0].records("approval_decided")
    assert decided["approval"]["executes"] is False
    assert TAKEN_OVER in json.dumps(decided)


@pytest.mark.long
@pytest.mark.parametrize("ahead_s", [-60.0, 60.0])
def test_a_gate_whose_clock_is_a_minute_off_asks_and_runs_like_the_others(
    gates: Gates, ahead_s: float
) -> None:
    gates.start(1, ahead_s=ahead_s)
    gates.start()
    gates.drop(0, 1)
    gates.drop(1, 2, "/b")
    for ident in gates.questions(2):
        gates.approve(ident)
    assert "result" in gates.agents[0].answer(1)
    assert "result" in gates.agents[1].answer(2)
    assert {gate["status"] for gate in gates.run("status")["store"]["gates"]} == {"running"}


@pytest.mark.long
def test_a_task_of_a_killed_gate_is_carried_on_by_another(
    gates: Gates, postgres: PostgresServer
) -> None:
    gates.start(2)
    call = call_of("drop", {"path": "/a"}, ident=1)
    call["params"]["_meta"] = envelope()
    task = gates.agents[0].ask(call)["result"]["taskId"]
    (ident,) = gates.questions()
    dead = gates.proxies[0].process
    dead.kill()
    dead.wait(30)
    end_rows(postgres, gates, dead.pid)
    wait_for(lambda: gates.proxies[1].records("approval_requested"), what="the claimed task")
    assert gates.questions() == [ident]
    gates.approve(ident)

    def finished() -> dict[str, Any] | None:
        params = {"taskId": task, "_meta": envelope()}
        about = {"jsonrpc": "2.0", "id": 9, "method": "tasks/get", "params": params}
        found: dict[str, Any] = gates.agents[1].ask(about)["result"]
        return found if found["status"] == "completed" else None

    wait_for(finished, what="the result of the task")
    assert len(gates.upstream.calls("drop")) == 1


@pytest.mark.long
def test_a_call_that_ran_when_its_gate_was_killed_is_recorded_as_unknown(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    never = threading.Event()

    def slow(received: Received) -> Reply:
        reply = small_server(received)
        if received.tool == "drop":
            reply.wait = never
        return reply

    with ExitStack() as stack:
        upstream = stack.enter_context(HttpUpstream(slow))
        stack.callback(never.set)
        gates = Gates(tmp_path, upstream, f"'{postgres.url()}'", stack)
        gates.start(2)
        gates.drop(0, 1)
        gates.approve(*gates.questions())
        wait_for(lambda: upstream.calls("drop"), what="the call")
        dead = gates.proxies[0].process
        dead.kill()
        dead.wait(30)
        end_rows(postgres, gates, dead.pid)

        (end,) = wait_for(lambda: gates.proxies[1].records("tool_call_end"), what="the record")
        assert end["error"]["kind"] == "outcome_unknown"
        (asked,) = gates.proxies[0].records("approval_requested")
        assert end["call"]["call_id"] == asked["call"]["call_id"]
        wait_for(lambda: "whether it took effect" in gates.proxies[1].stderr, what="the message")
        assert len(upstream.calls("drop")) == 1


@pytest.mark.long
def test_without_the_database_other_calls_go_on_and_everything_heals(
    tmp_path: Path, own_server: PostgresServer
) -> None:
    with ExitStack() as stack:
        upstream = stack.enter_context(HttpUpstream(small_server))
        gates = Gates(tmp_path, upstream, f"'{own_server.url()}'", stack)
        gates.start()
        (agent,), (proxy,) = gates.agents, gates.proxies
        own_server.stop()
        agent.send(call_of("drop", {"path": "/a"}, ident=1))
        refused = agent.answer(1)
        assert kind_of(refused) == "service_unavailable"
        assert refused["error"]["data"]["retry_after"] > 0
        assert "result" in agent.ask(call_of("echo", ident=2))
        wait_for(lambda: "refused until it is back" in proxy.stderr, what="the message")
        assert page(proxy, "/ready") == (200, {"status": "degraded", "degraded": ["store"]})

        own_server.start()

        wait_for(lambda: "store     reached again" in proxy.stderr, what="the second message")
        wait_for(lambda: page(proxy, "/ready")[1] == {"status": "ready"}, what="readiness")
        gates.drop(0, 3)
        gates.approve(*gates.questions())
        assert "result" in agent.answer(3)
        assert proxy.stderr.count("refused until it is back") == 1
        assert own_server.url("t1") not in proxy.stderr


def page(proxy: ProxyProcess, path: str) -> tuple[int, Any]:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    body = json.loads(response.read())
    connection.close()
    return response.status, body


def test_without_the_database_no_gate_starts(tmp_path: Path, own_server: PostgresServer) -> None:
    own_server.stop()
    store = own_server_url(own_server).replace("gate@", "gate:hunter2@")
    with ExitStack() as stack:
        upstream = stack.enter_context(HttpUpstream(small_server))
        gates = Gates(tmp_path, upstream, f"'{store}'", stack)
        done = subprocess.run(
            proxy_command(*gates.arguments()),
            env=environment(tmp_path, ENVIRON),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 2
    assert "database thoughtgate on 127.0.0.1" in done.stderr
    assert "start the database, or correct the key store in the config" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout


def own_server_url(server: PostgresServer) -> str:
    return f"postgresql://gate@127.0.0.1:{server.port}/thoughtgate"


@pytest.mark.long
def test_the_row_of_a_killed_gate_ends_by_itself(gates: Gates) -> None:
    gates.start(2)
    gates.drop(0, 1)
    (ident,) = gates.questions()
    gates.proxies[0].process.kill()
    gates.proxies[0].process.wait(30)

    def is_gone() -> bool:
        rows = gates.run("status")["store"]["gates"]
        return [row["status"] for row in rows].count("gone") == 1

    wait_for(is_gone, LIFE_S * 3, what="the end of the row")
    gates.drop(1, 2)
    wait_for(lambda: gates.proxies[1].records("approval_requested"), what="the taken-over request")
    assert gates.questions() == [ident]
    gates.approve(ident)
    assert "result" in gates.agents[1].answer(2)
    assert len(gates.upstream.calls("drop")) == 1
