"""Sessions and requests over three gates on one PostgreSQL, behind a round-robin balancer."""

import asyncio
import contextlib
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from mcp import Client, types
from tests.support.frames import envelope
from tests.support.gate_cluster import TOKEN, Cluster, running_gates
from tests.support.http_agent import HttpAgent
from tests.support.http_upstream import free_port
from tests.support.postgres import PostgresServer
from tests.support.proxy_process import ProxyProcess, proxy_command, sample_server, serve_command
from tests.support.waiting import PATIENCE_S, run_async, wait_for

from thoughtgate.core.approval import PENDING, Approval, Vote
from thoughtgate.core.grant import Remember
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.stores.open_database import StoreLocation

pytestmark = pytest.mark.long

META: Final = "io.modelcontextprotocol/"
HTTP_SERVER: Final = Path(__file__).parents[1] / "interop" / "http_asking_server.py"


def stdio_server(**more: Any) -> dict[str, Any]:
    command, *args = sample_server()
    return {"command": command, "args": args, **more}


@contextlib.contextmanager
def http_server() -> Iterator[dict[str, Any]]:
    port = free_port()
    process = subprocess.Popen([sys.executable, str(HTTP_SERVER), str(port)])
    try:
        wait_for(lambda: _accepts(port), what="the HTTP server")
        yield {"url": f"http://127.0.0.1:{port}/mcp"}
    finally:
        process.kill()
        process.wait(20)


def _accepts(port: int) -> bool:
    import socket

    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


Kind = tuple[Callable[..., list[str]], dict[str, Any], str]

KINDS: Final = ("proxy-http", "proxy-stdio", "proxy-session", "serve", "serve-single")


@pytest.fixture(params=KINDS)
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer
) -> Iterator[tuple[Cluster, str, str]]:
    """Return a cluster, the URL of an endpoint, and the prefix of its tools."""
    kind, prefix, path = request.param, "", "/mcp"
    with contextlib.ExitStack() as stack:
        command = proxy_command
        if kind == "proxy-http":
            server = stack.enter_context(http_server())
        elif kind == "proxy-stdio":
            server = stdio_server()
        else:
            server = stdio_server(isolation="session")
        if kind.startswith("serve"):
            command = serve_command
            path, prefix = ("/servers/one/mcp", "") if kind == "serve-single" else ("/mcp", "one.")
        config = {"servers": {"one": server}}
        made = stack.enter_context(
            running_gates(tmp_path / "gates", config, postgres.url(), command=command)
        )
        yield made, f"http://127.0.0.1:{made.port}{path}", prefix


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_official_client_works_whichever_gate_answers(
    cluster: tuple[Cluster, str, str], mode: str
) -> None:
    gates, url, prefix = cluster

    async def work() -> None:
        async with asyncio.timeout(60), Client(url, mode=mode) as client:
            listed = await client.list_tools()
            assert f"{prefix}echo" in [tool.name for tool in listed.tools]
            for number in range(12):
                said = await client.call_tool(f"{prefix}echo", {"text": f"call {number}"})
                assert f"call {number}" in said.content[0].text  # type: ignore[union-attr]  # a text

    run_async(work(), 90)
    served = gates.served()
    assert sum(served) == 12
    assert min(served) >= 1, served


@pytest.mark.parametrize("cluster", [one for one in KINDS if one != "proxy-stdio"], indirect=True)
def test_the_official_client_answers_a_server_through_whichever_gate(
    cluster: tuple[Cluster, str, str],
) -> None:
    gates, url, prefix = cluster
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        del context
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "42", "name": "42"})

    async def work() -> None:
        async with (
            asyncio.timeout(60),
            Client(url, mode="legacy", elicitation_callback=elicit) as client,
        ):
            for number in range(6):
                said = await client.call_tool(f"{prefix}elicit", {"question": f"number {number}?"})
                assert "42" in said.content[0].text  # type: ignore[union-attr]  # a text

    run_async(work(), 90)
    assert asked == [f"number {number}?" for number in range(6)]
    assert min(gates.served()) >= 1


def agents_of(gates: Cluster, capabilities: dict[str, Any] | None = None) -> list[HttpAgent]:
    """Return one agent as three: each speaks to a gate of its own, in the same session."""
    agents = [HttpAgent(gate.port, TOKEN) for gate in gates.gates]
    agents[0].greet(capabilities)
    for agent in agents[1:]:
        agent.session = agents[0].session
    return agents


def held(gates: Cluster, tool: str, ident: int) -> dict[str, Any]:
    body = {"name": tool, "arguments": {"a": ident, "b": 1}}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": body}


def state_after(gate: ProxyProcess, kind: str) -> list[dict[str, Any]]:
    return wait_for(lambda: gate.records(kind), what=f"{kind} on record")


ASKS_AGENT: Final = {
    "rules": [{"tool": "add", "action": "approve"}],
    "approval": {"default": {"channel": "console", "allow_elicitation": True}},
    "listen": {"auth": {"type": "bearer", "token_env": "AGENT_TOKEN"}},
}


@pytest.fixture(params=["proxy", "serve"])
def asking(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer
) -> Iterator[tuple[Cluster, str]]:
    """Return gates that ask in the agent itself, and the prefix of their tools."""
    command = proxy_command if request.param == "proxy" else serve_command
    config = {**ASKS_AGENT, "servers": {"one": stdio_server()}}
    with running_gates(tmp_path / "gates", config, postgres.url(), command=command) as gates:
        yield gates, "" if request.param == "proxy" else "one."


def test_a_prompt_of_one_gate_is_answered_at_another(asking: tuple[Cluster, str]) -> None:
    gates, prefix = asking
    agents = agents_of(gates, {"elicitation": {}})
    for number, (asker, answerer) in enumerate([(0, 1), (1, 2), (2, 0)], 1):
        agents[asker].send(held(gates, f"{prefix}add", number))
        (prompt,) = wait_for(lambda: agents[asker].notices, what="the prompt")  # noqa: B023  in this turn
        agents[asker].notices.clear()
        said = {"action": "accept", "content": {"decision": "approve"}}
        assert agents[answerer].respond(prompt["id"], said) == 202
        assert "result" in agents[asker].answer(number)
        assert agents[answerer].respond(prompt["id"], said) == 400, "it was answered"


def test_an_answer_that_nobody_wants_is_refused_and_recorded(asking: tuple[Cluster, str]) -> None:
    gates, _ = asking
    agents = agents_of(gates)
    assert agents[1].respond("never asked", {}) == 400
    (refused,) = state_after(gates.gates[1], "frame_refused")
    assert refused["frame"]["check"] == "unknown_response"


def test_a_cancellation_reaches_the_gate_that_holds_the_call(asking: tuple[Cluster, str]) -> None:
    gates, prefix = asking
    agents = agents_of(gates)
    agents[0].send(held(gates, f"{prefix}add", 7))
    state_after(gates.gates[0], "approval_requested")
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 7, "reason": "enough"}}
    agents[2].send({"jsonrpc": "2.0", **cancel})
    (decided,) = state_after(gates.gates[0], "approval_decided")
    assert decided["approval"]["outcome"] == "withdrawn"


def test_a_session_that_is_deleted_at_one_gate_has_ended_at_all(
    asking: tuple[Cluster, str],
) -> None:
    gates, prefix = asking
    agents = agents_of(gates)
    ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
    for agent in agents[:2]:
        assert "result" in agent.ask(ping)
    agents[1].send(held(gates, f"{prefix}add", 5))
    state_after(gates.gates[1], "approval_requested")
    assert delete(gates.gates[0], agents[0].session) == 204
    # The third gate has never seen the session, the second one has a call of it.
    assert status_of(gates.gates[2], agents[0].session) == 404
    wait_for(lambda: status_of(gates.gates[1], agents[0].session) == 404, what="the end")
    assert "error" in agents[1].answer(5)
    (decided,) = state_after(gates.gates[1], "approval_decided")
    assert decided["approval"]["outcome"] == "withdrawn"
    assert delete(gates.gates[2], agents[0].session) == 404


def test_what_is_remembered_for_a_session_holds_at_every_gate_and_for_no_other_session(
    asking: tuple[Cluster, str], tmp_path: Path
) -> None:
    gates, prefix = asking
    agents = agents_of(gates)
    config = json.loads((tmp_path / "gates" / "thoughtgate.yaml").read_text())
    with contextlib.closing(open_store(StoreLocation(tmp_path, config["store"]))) as store:
        for agent in agents:
            # Only a tool that the gate knows can be remembered.
            assert "result" in agent.ask({"jsonrpc": "2.0", "id": "l", "method": "tools/list"})
        agents[0].send(held(gates, f"{prefix}add", 1))
        (question,) = wait_for(lambda: store.listed(PENDING), what="the question")
        now, remember = time.time(), Remember("session", "tool")
        vote = Vote("terminal:ann", True, now, "go")
        voted = store.vote(question.id, [vote], now, remember=remember, grant_id="g1")
        assert isinstance(voted, Approval), voted
        assert "result" in agents[0].answer(1)
        for number, agent in enumerate(agents, 2):
            assert "result" in agent.ask(held(gates, f"{prefix}add", number))
        assert store.listed(PENDING) == []
        other = HttpAgent(gates.gates[0].port, TOKEN)
        other.greet()
        other.send(held(gates, f"{prefix}add", 9))
        (question,) = wait_for(lambda: store.listed(PENDING), what="the other session's question")
        now = time.time()
        store.vote(question.id, [Vote("terminal:ann", False, now, "no")], now)
        assert "error" in other.answer(9)


def request_to(gate: ProxyProcess, method: str, session: str, body: Any = None) -> int:
    link = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=PATIENCE_S)
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "mcp-session-id": session,
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    with contextlib.closing(link):
        link.request(method, "/mcp", json.dumps(body) if body else None, headers)
        response = link.getresponse()
        response.read()
        return response.status


def delete(gate: ProxyProcess, session: str) -> int:
    return request_to(gate, "DELETE", session)


def status_of(gate: ProxyProcess, session: str) -> int:
    return request_to(gate, "POST", session, {"jsonrpc": "2.0", "id": "p", "method": "ping"})


def modern_call(ident: int, tool: str, **capabilities: Any) -> dict[str, Any]:
    meta = {**envelope(), f"{META}clientCapabilities": capabilities}
    params = {"name": tool, "arguments": {"a": ident, "b": 2}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


def test_a_prompt_of_the_newest_revision_needs_no_affinity(asking: tuple[Cluster, str]) -> None:
    gates, prefix = asking
    agents = [HttpAgent(gate.port, TOKEN) for gate in gates.gates]
    call = modern_call(1, f"{prefix}add", elicitation={})
    prompt = agents[0].ask(call)["result"]
    assert prompt["resultType"] == "input_required"
    said = {"action": "accept", "content": {"decision": "approve"}}
    answers = dict.fromkeys(prompt["inputRequests"], said)
    state = {"requestState": prompt["requestState"], "inputResponses": answers}
    done = agents[1].ask({**call, "id": 2, "params": {**call["params"], **state}})
    assert done["result"]["resultType"] == "complete", done
    other = {**call["params"], "arguments": {"a": 3, "b": 3}, **state}
    refused = agents[2].ask({**call, "id": 3, "params": other})
    assert refused.get("result", {}).get("resultType") != "complete", "it was for another call"


def test_a_task_of_the_newest_revision_needs_no_affinity(
    asking: tuple[Cluster, str], tmp_path: Path
) -> None:
    gates, prefix = asking
    agents = [HttpAgent(gate.port, TOKEN) for gate in gates.gates]
    extensions: dict[str, Any] = {f"{META}tasks": {}}
    task = agents[0].ask(modern_call(1, f"{prefix}add", extensions=extensions))["result"]
    assert task["resultType"] == "task"
    config = json.loads((tmp_path / "gates" / "thoughtgate.yaml").read_text())
    with contextlib.closing(open_store(StoreLocation(tmp_path, config["store"]))) as store:
        (question,) = wait_for(lambda: store.listed(PENDING), what="the question")
        now = time.time()
        store.vote(question.id, [Vote("terminal:ann", True, now, "go")], now)

    def ask_about(number: int) -> dict[str, Any]:
        params = {
            "taskId": task["taskId"],
            "_meta": modern_call(0, "", extensions=extensions)["params"]["_meta"],
        }
        body = {"jsonrpc": "2.0", "id": f"t{number}", "method": "tasks/get", "params": params}
        found: dict[str, Any] = agents[number % 3].ask(body)["result"]
        return found

    numbers = count(1)
    done = wait_for(
        lambda: said if (said := ask_about(next(numbers)))["status"] != "working" else None,
        what="the end of the task",
    )
    assert done["status"] == "completed", done
    for number in range(3):
        assert ask_about(100 + number)["status"] == "completed"


def test_a_session_outlives_the_gate_that_opened_it(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    config = {**ASKS_AGENT, "servers": {"one": stdio_server()}}
    store = postgres.url()
    with running_gates(tmp_path / "gates", config, store, checked=True) as gates:
        agents = agents_of(gates)
        gates.gates[0].process.kill()
        gates.gates[0].process.wait(PATIENCE_S)
        balanced = HttpAgent(gates.port, TOKEN)
        balanced.session = agents[0].session
        ping = {"jsonrpc": "2.0", "method": "ping"}
        for number in range(6):
            wait_for(lambda: _answers(balanced, ping), what=f"answer {number}")


def _answers(agent: HttpAgent, body: dict[str, Any]) -> bool:
    """Tell whether a request is answered; the balancer may still know the gate that was killed."""
    try:
        return "result" in agent.ask({**body, "id": f"p{time.monotonic_ns()}"}, 5)
    except (AssertionError, OSError):
        return False


def test_a_session_goes_on_where_it_is_known_while_the_database_is_away(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        server.start()
        config = {**ASKS_AGENT, "servers": {"one": stdio_server()}}
        with running_gates(tmp_path / "gates", config, server.url(), count=2) as gates:
            agents = agents_of(gates)
            server.stop()
            assert status_of(gates.gates[0], agents[0].session) == 200
            assert status_of(gates.gates[1], agents[0].session) == 503, "it may have ended"
            assert delete(gates.gates[0], agents[0].session) == 204
            server.start()
            wait_for(lambda: status_of(gates.gates[1], agents[0].session) == 404, what="the end")
    finally:
        server.remove()


def test_keys_are_replaced_while_sessions_go_on(tmp_path: Path, postgres: PostgresServer) -> None:
    old, new = "a1" * 32, "b2" * 32
    config = {**ASKS_AGENT, "servers": {"one": stdio_server()}}
    store = postgres.url()
    with contextlib.ExitStack() as stack:
        steps = [(old,), (old, new), (new, old), (new,)]
        gates = [
            stack.enter_context(
                running_gates(tmp_path / f"step{number}", config, store, count=1, keys=keys)
            ).gates[0]
            for number, keys in enumerate(steps)
        ]
        first = HttpAgent(gates[0].port, TOKEN)
        first.greet()
        found = [status_of(gate, first.session) for gate in gates]
        assert found == [200, 200, 200, 404]
        later = HttpAgent(gates[2].port, TOKEN)
        later.greet()
        assert [status_of(gate, later.session) for gate in gates] == [404, 200, 200, 200]
