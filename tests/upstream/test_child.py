"""Agents over HTTP before a stdio server: one process for all, or one a session."""

import contextlib
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_gate import (
    MODERN_META,
    Gate,
    call_of,
    decide,
    http_post,
    modern_call_of,
    modern_headers,
    pending,
    read_until,
)
from tests.support.waiting import wait_for

from thoughtgate.errors import ThoughtGateError

RULES = """rules:
  - {tool: 'delete_*', action: deny}
  - {tool: transfer, action: approve}
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"roots": {}, "sampling": {}},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def _config(log: Path, *flags: str, isolation: str = "shared", expose: str = "") -> str:
    words = json.dumps(["-m", "thoughtgate.testing.sample_server", "--log", str(log), *flags])
    server = f"command: {json.dumps(sys.executable)}, args: {words}, isolation: {isolation}{expose}"
    return f"schema: 1\ndefault: forward\nservers:\n  kid: {{{server}}}\n{RULES}"


def _lines(log: Path) -> list[dict[str, Any]]:
    entries = log.read_text().splitlines() if log.exists() else []
    return [json.loads(json.loads(entry)["line"]) for entry in entries]


def _children(named: Path) -> int:
    """Return how many children of this process were given a file, as their command lines say."""
    found = 0
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += os.fsencode(named) in status.read_bytes()
    return found


class _Agent:
    """An agent with a session."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        opened = gate.post(INITIALIZE)
        assert opened.status == 200
        self.welcome = opened.json["result"]
        self.session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        assert gate.post(INITIALIZED, self.session).status == 202

    def call(self, tool: str, arguments: dict[str, Any] | None = None, *, ident: Any = 1) -> Any:
        return self._gate.post(call_of(tool, arguments, ident=ident), self.session)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


@pytest.fixture
def gate(tmp_path: Path, log: Path) -> Iterator[Gate]:
    with Gate(tmp_path, _config(log, expose=", expose: {block: [big]}")) as running:
        yield running


@pytest.mark.requirement("FR1", "FR11", "FR12")
def test_an_agent_over_http_talks_to_a_stdio_server(gate: Gate, log: Path) -> None:
    agent = _Agent(gate)
    assert agent.welcome["protocolVersion"] == "2025-06-18"
    answer = agent.call("echo", {"text": "hi"})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["id"] == 1
    assert "hi" in answer.json["result"]["content"][0]["text"]
    assert [one.get("method") for one in _lines(log)] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]


@pytest.mark.requirement("FR6", "FR7")
def test_the_gates_judge_before_the_pipe(gate: Gate, log: Path) -> None:
    agent = _Agent(gate)
    listed = gate.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, agent.session)
    names = [tool["name"] for tool in listed.json["result"]["tools"]]
    assert "echo" in names
    assert "big" not in names
    assert agent.call("delete_note", {"name": "x"}).error["code"] == -32014
    assert agent.call("big", {"bytes": 1}).error["code"] == -32015
    assert all(one.get("params", {}).get("name") != "delete_note" for one in _lines(log))


@pytest.mark.requirement("FR2")
def test_many_agents_share_one_process_and_never_see_each_others_answers(
    gate: Gate, log: Path
) -> None:
    agents = [_Agent(gate) for _ in range(5)]
    answers: dict[int, Any] = {}

    def call(number: int) -> None:
        text = f"agent {number}"
        answers[number] = agents[number].call("echo", {"text": text}, ident=1).json

    threads = [threading.Thread(target=call, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    for number, answer in answers.items():
        assert answer["id"] == 1
        assert f"agent {number}" in answer["result"]["content"][0]["text"]
    methods = [one.get("method") for one in _lines(log)]
    assert methods.count("initialize") == 1
    numbers = [one["id"] for one in _lines(log) if "id" in one]
    assert len(numbers) == len(set(numbers))
    opened = next(one for one in _lines(log) if one.get("method") == "initialize")
    assert opened["params"]["capabilities"] == {}


def test_progress_comes_back_with_the_callers_own_token(gate: Gate, log: Path) -> None:
    agent = _Agent(gate)
    message = call_of("slow", {"seconds": 0.2}, ident="mine")
    message["params"]["_meta"] = {"progressToken": "token"}
    answer = gate.post(message, agent.session)
    assert answer.headers["content-type"] == "text/event-stream"
    tokens = {one["params"]["progressToken"] for one in answer.events if "method" in one}
    assert tokens == {"token"}
    assert answer.events[-1]["id"] == "mine"
    sent = next(one for one in _lines(log) if one.get("method") == "tools/call")
    assert sent["params"]["_meta"]["progressToken"] == sent["id"]


def test_the_newest_revision_is_served_beside_the_older_ones(gate: Gate, log: Path) -> None:
    agent = _Agent(gate)
    modern = gate.call_modern("echo", {"text": "new"}, ident=1)
    assert "new" in modern.json["result"]["content"][0]["text"]
    assert "mcp-session-id" not in modern.headers
    assert agent.call("echo", {"text": "old"}).status == 200
    discover = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "server/discover",
        "params": {"_meta": MODERN_META},
    }
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
    assert "2026-07-28" in gate.post(discover, headers).json["result"]["supportedVersions"]


def test_a_client_without_a_session_is_served_by_a_shared_process(gate: Gate) -> None:
    answer = gate.call("echo", {"text": "bare"})
    assert "bare" in answer.json["result"]["content"][0]["text"]


def test_an_ended_session_is_gone(gate: Gate) -> None:
    agent = _Agent(gate)
    assert gate.request("DELETE", headers=agent.session).status == 204
    assert agent.call("echo").status == 404
    assert gate.request("DELETE", headers=agent.session).status == 404


def test_a_shared_server_cannot_ask_an_agent_anything(gate: Gate) -> None:
    agent = _Agent(gate)
    answer = agent.call("sample", {"prompt": "x"})
    body = answer.events[-1] if b"data:" in answer.body else answer.json
    assert "error" in body or body["result"].get("isError") is True


def test_a_change_of_the_tools_reaches_every_agent_that_listens(gate: Gate) -> None:
    agents = [_Agent(gate), _Agent(gate)]
    connections = []
    for agent in agents:
        connection = socket.create_connection(("127.0.0.1", gate.port), 10)
        head = f"GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{gate.port}\r\naccept: text/event-stream\r\n"
        head += f"mcp-session-id: {agent.session['mcp-session-id']}\r\n\r\n"
        connection.sendall(head.encode())
        read_until(connection, b": open")
        connections.append(connection)
    assert agents[0].call("grow", {"name": "another"}).status == 200
    for connection in connections:
        assert b"list_changed" in read_until(connection, b"list_changed")
        connection.close()


def test_a_held_call_waits_before_the_pipe(gate: Gate, log: Path) -> None:
    agent = _Agent(gate)
    answers: list[Any] = []
    thread = threading.Thread(
        target=lambda: answers.append(agent.call("transfer", {"amount": 5}).json)
    )
    thread.start()
    decide(gate, approve=True)
    thread.join(10)
    assert "result" in answers[0]
    assert [one["params"]["name"] for one in _lines(log) if one.get("method") == "tools/call"] == [
        "transfer"
    ]


def test_a_batch_is_spread_over_the_pipe(gate: Gate) -> None:
    agent = _Agent(gate)
    answer = gate.post(
        [call_of("echo", {"text": "a"}, ident=1), call_of("delete_x", ident=2), INITIALIZED],
        agent.session,
    )
    assert {one["id"] for one in answer.json} == {1, 2}


@pytest.mark.requirement("EC-MCP-012")
def test_a_caller_that_leaves_cancels_its_request_on_the_pipe(gate: Gate, log: Path) -> None:
    with gate.raw() as connection:
        message = modern_call_of("slow", {"seconds": 30}, ident="x")
        headers = {"host": f"127.0.0.1:{gate.port}", **modern_headers("slow")}
        connection.sendall(http_post(message, headers=headers))
        wait_for(
            lambda: any(one.get("method") == "tools/call" for one in _lines(log)), what="the call"
        )
    wait_for(
        lambda: any(one.get("method") == "notifications/cancelled" for one in _lines(log)),
        what="the cancellation",
    )
    sent = next(one for one in _lines(log) if one.get("method") == "tools/call")
    told = next(one for one in _lines(log) if one.get("method") == "notifications/cancelled")
    assert told["params"]["requestId"] == sent["id"]


@pytest.mark.requirement("NFR-R2")
def test_a_server_that_crashes_is_told_and_started_again(tmp_path: Path, log: Path) -> None:
    with Gate(tmp_path, _config(log, "--crash-on", "fail")) as gate:
        agent = _Agent(gate)
        assert agent.call("fail", ident=1).error["code"] == -32000
        assert "back" in agent.call("echo", {"text": "back"}, ident=2).body.decode()
        assert gate.request("GET", "/ready").status == 200


@pytest.mark.requirement("NFR-R2")
def test_a_server_that_prints_garbage_does_not_disturb_anybody(tmp_path: Path, log: Path) -> None:
    with Gate(tmp_path, _config(log, "--garbage")) as gate:
        agent = _Agent(gate)
        assert agent.call("echo", {"text": "x"}).status == 200
        refused = [one["frame"]["direction"] for one in gate.records("frame_refused")]
        assert "server_to_agent" in refused


def test_a_command_that_does_not_exist_stops_the_start(tmp_path: Path) -> None:
    for isolation in ("shared", "session"):
        server = f"command: /nonexistent/server, isolation: {isolation}"
        config = f"schema: 1\ndefault: deny\nservers:\n  kid: {{{server}}}\n"
        with pytest.raises(ThoughtGateError, match="could not be started"):
            Gate(tmp_path, config).__enter__()


# A process for each session.


@pytest.fixture
def alone(tmp_path: Path, log: Path) -> Iterator[Gate]:
    with Gate(tmp_path, _config(log, isolation="session")) as running:
        yield running


def test_each_session_has_a_process_of_its_own(alone: Gate, log: Path) -> None:
    first, second = _Agent(alone), _Agent(alone)
    first.call("write_note", {"name": "mine", "text": "secret"})
    read = second.call("read_note", {"name": "mine"})
    assert read.json["result"]["isError"] is True
    assert [one.get("method") for one in _lines(log)].count("initialize") == 2
    opened = next(one for one in _lines(log) if one.get("method") == "initialize")
    assert opened["params"]["capabilities"] == {"roots": {}, "sampling": {}}
    assert alone.request("DELETE", headers=first.session).status == 204
    assert second.call("echo", {"text": "still"}).status == 200


def test_a_request_without_a_session_is_refused(alone: Gate, log: Path) -> None:
    answer = alone.call("echo")
    assert (answer.status, answer.error["code"]) == (400, -32600)
    assert answer.error["message"].startswith("this needs a session")
    assert answer.json["id"] == 1
    assert _lines(log) == []


@pytest.mark.parametrize("tool", ["echo", "delete_note", "transfer"])
def test_a_call_without_a_session_is_refused_before_it_is_judged(
    alone: Gate, log: Path, tool: str
) -> None:
    assert alone.call(tool).status == 400
    assert pending(alone) == 0
    assert alone.records("tool_call_start") == []
    (refused,) = alone.records("frame_refused")
    assert refused["frame"]["check"] == "missing_session"
    assert refused["frame"]["direction"] == "agent_to_server"
    assert "thoughtgate_calls_in_flight 0" in alone.request("GET", "/metrics").body.decode()
    assert _lines(log) == []


def test_nothing_without_a_session_starts_a_process(alone: Gate, log: Path) -> None:
    assert alone.post(INITIALIZED).status == 400
    refused = alone.post([call_of("echo"), INITIALIZED])
    assert (refused.status, refused.error["data"]["kind"]) == (400, "invalid_request")
    checks = [one["frame"]["check"] for one in alone.records("frame_refused")]
    assert checks == ["missing_session", "missing_session"]
    assert _children(log) == 0
    assert _lines(log) == []


def test_a_handshake_that_ends_in_no_session_leaves_no_process(tmp_path: Path, log: Path) -> None:
    program = tmp_path / "refuses.py"
    program.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    ident = json.loads(line).get('id')\n"
        "    error = {'code': -32602, 'message': 'no'}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': ident, 'error': error}), flush=True)\n"
    )
    server = f"command: {sys.executable}, args: [{program}], isolation: session"
    config = f"schema: 1\ndefault: forward\nservers:\n  kid: {{{server}}}\n"
    with Gate(tmp_path, config) as gate:
        assert gate.post(INITIALIZE).error["message"] == "no"
        wait_for(lambda: _children(program) == 0, what="the end of the process")


def test_a_server_that_speaks_before_its_handshake_is_answered_has_a_session(
    tmp_path: Path,
) -> None:
    program = tmp_path / "early.py"
    program.write_text(
        "import json, sys\n"
        "def say(**body): print(json.dumps({'jsonrpc': '2.0', **body}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    body = json.loads(line)\n"
        "    if body.get('method') == 'initialize':\n"
        "        opening = body['id']\n"
        "        say(method='notifications/message', params={'level': 'info', 'data': 'early'})\n"
        "        say(id='p-1', method='ping')\n"
        "    elif body.get('id') == 'p-1':\n"
        "        info = {'name': 'early', 'version': '1'}\n"
        "        say(id=opening, result={'protocolVersion': '2025-06-18', 'capabilities': {},"
        " 'serverInfo': info})\n"
        "    elif 'id' in body:\n"
        "        say(id=body['id'], result={'content': [{'type': 'text', 'text': 'late'}]})\n"
    )
    server = f"command: {sys.executable}, args: [{program}], isolation: session"
    config = f"schema: 1\ndefault: forward\nservers:\n  kid: {{{server}}}\n"
    with Gate(tmp_path, config) as gate, gate.raw() as connection:
        headers = {"host": f"127.0.0.1:{gate.port}"}
        connection.sendall(http_post(INITIALIZE, headers=headers))
        told = read_until(connection, b'"ping"')
        found = re.search(rb"mcp-session-id: (\S+)", told)
        assert found is not None
        session = {"mcp-session-id": found[1].decode()}
        assert gate.post({"jsonrpc": "2.0", "id": "p-1", "result": {}}, session).status == 202
        assert b'"serverInfo"' in read_until(connection, b"0\r\n\r\n")
        answer = gate.post(call_of("echo"), session)
        assert answer.json["result"]["content"][0]["text"] == "late"


def test_a_session_that_made_room_takes_its_process_with_it(tmp_path: Path, log: Path) -> None:
    listen = "listen: {transport: http, max_sessions: 2}\n"
    with Gate(tmp_path, _config(log, isolation="session") + listen) as gate:
        agents = [_Agent(gate) for _ in range(4)]
        wait_for(lambda: _children(log) == 2, what="the end of the processes")
        assert agents[0].call("echo", {"text": "x"}).status == 404
        assert agents[3].call("echo", {"text": "x"}).status == 200


def test_what_waits_for_a_person_is_not_made_once_its_session_has_ended(
    alone: Gate, log: Path
) -> None:
    agent = _Agent(alone)
    answers: list[Any] = []
    caller = threading.Thread(target=lambda: answers.append(agent.call("transfer", {"amount": 1})))
    caller.start()
    wait_for(lambda: pending(alone), what="the question")
    assert alone.request("DELETE", headers=agent.session).status == 204
    caller.join(10)
    assert answers[0].error["data"]["kind"] == "approval_withdrawn"
    wait_for(lambda: _children(log) == 0, what="the end of the process")
    assert not pending(alone)
    assert "tools/call" not in [one.get("method") for one in _lines(log)]


def test_a_server_asks_its_agent_and_gets_the_answer(alone: Gate, log: Path) -> None:
    agent = _Agent(alone)
    with alone.raw() as connection:
        message = call_of("sample", {"prompt": "x"}, ident=7)
        headers = {"host": f"127.0.0.1:{alone.port}", **agent.session}
        connection.sendall(http_post(message, headers=headers))
        told = read_until(connection, b"\n\n", 100_000)
        while b"sampling/createMessage" not in told:
            told += read_until(connection, b"\n\n", 100_000)
        line = next(one for one in told.split(b"\n") if one.startswith(b"data:"))
        question = json.loads(line[5:])
        result = {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}
        said = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        assert alone.post(said, agent.session).status == 202
        assert alone.post(said, agent.session).status == 400
        assert b'"id":7' in read_until(connection, b'"id":7')


def test_a_session_whose_process_died_starts_anew(tmp_path: Path, log: Path) -> None:
    with Gate(tmp_path, _config(log, "--crash-on", "fail", isolation="session")) as gate:
        agent = _Agent(gate)
        assert agent.call("fail").error["code"] == -32000
