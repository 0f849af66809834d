"""Servers and gates that start, fail and end."""

import http.client
import resource
import signal
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from tests.faces.agents import Agent
from tests.faces.conftest import Start
from tests.faces.face import FACES, HTTP_SERVER, SERVE, STDIO_AGENT, STDIO_SERVER, Gate, Setup
from tests.faces.known_drift import part
from tests.faces.outcomes import text_of
from tests.faces.record_view import CallRecord, check_calls, events_since

OPEN: dict[str, Any] = {
    "default": "deny",
    "rules": [{"id": "open", "tool": "*", "action": "forward"}],
}
GONE = {
    "stdio": ("exited", "the server exited before it answered"),
    "http": ("connection_lost", "the server closed the connection before it answered"),
}
NOT_SERVE = tuple(face.name for face in FACES if face.name not in SERVE)
ONE_START = ("shim", "wrap", "proxy-stdio-stdio")


def kind_of(answer: dict[str, Any]) -> str:
    """Return the kind of the error in an answer."""
    assert "error" in answer, answer
    return str(answer["error"]["data"]["kind"])


def test_server_dies_during_a_call(start: Start) -> None:
    gate = start(Setup(OPEN))
    arguments = {"do": "die", "mark": "dies"}
    answer = gate.agent().call("echo", arguments)
    assert kind_of(answer) == "upstream_connection_failed"
    cause, message = GONE[gate.face.server]
    assert answer["error"]["data"]["cause"] == cause
    error = {"class": "transport", "kind": "upstream_connection_failed"}
    found = CallRecord("echo", arguments).allowed("open")
    with part("dead_server_on_record", gate):
        error |= {"message": message, "cause": cause}
        check_calls(gate, "dies", found.ended("ERROR", error))


@pytest.mark.not_for(
    "on stdio the server ends with the gate: see told_to_stop_with_a_call_that_does_not_end",
    *STDIO_AGENT,
)
def test_told_to_stop_with_a_call_in_flight(start: Start, tmp_path: Path) -> None:
    gate = start(Setup(OPEN))
    agent = gate.agent()
    until = tmp_path / "go"
    arguments = {"do": "wait", "until": str(until), "mark": "in-flight"}
    ident = agent.start_call("echo", arguments)
    gate.wait(lambda: gate.received("in-flight"), "the call at the server")
    gate.process.signal(signal.SIGTERM)
    gate.wait(lambda: not takes_calls(gate), "a gate that takes no new calls")
    until.touch()
    assert text_of(agent.inbox.answer(ident)) == "done"
    assert gate.process.wait(20) == 0
    check_calls(gate, "in-flight", CallRecord("echo", arguments).allowed("open").ended("OK"))


def takes_calls(gate: Gate) -> bool:
    """Tell whether a gate over HTTP is ready for calls."""
    connection = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=5)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def test_told_to_stop_with_a_call_that_does_not_end(start: Start) -> None:
    gate = start(Setup({**OPEN, "listen": {"drain": "1s"}}))
    agent = gate.agent()
    ident = agent.start_call("echo", {"do": "hang", "mark": "endless"})
    gate.wait(lambda: gate.received("endless"), "the call at the server")
    gate.process.signal(signal.SIGTERM)
    gate.process.wait(20)
    types = [one["type"] for one in gate.records()]
    assert types.count("tool_call_end") == 1
    assert types[-1] == "run_end"
    with part("last_word_to_a_call_in_flight", gate):
        assert kind_of(agent.inbox.answer(ident, gate.patience_s))


def test_record_cannot_be_written(start: Start) -> None:
    gate = start(Setup(OPEN))
    agent = gate.agent()
    assert text_of(agent.call("echo", {"mark": "written-before"})) == "done"
    gate.wait(lambda: ended(gate, 1), "the end of the first call on record")
    _, hard = resource.prlimit(gate.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(gate.process.pid, resource.RLIMIT_FSIZE, (1, hard))
    answer = agent.call("echo", {"mark": "not-written"})
    assert kind_of(answer) == "service_unavailable"
    assert gate.received("not-written") == []
    resource.prlimit(gate.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    gate.wait(
        lambda: "result" in agent.call("echo", {"mark": "written-after"}),
        "a call after the failure",
    )
    gate.wait(lambda: events_since(gate, 0, "record_gap"), "word of what was lost")


def ended(gate: Gate, count: int) -> bool:
    """Tell whether so many calls have ended on record."""
    return len(events_since(gate, 0, "tool_call_end")) >= count


@pytest.mark.not_for(
    "a shim, and proxy between two pipes, start their server once, with the agent", *ONE_START
)
@pytest.mark.not_for("the gate does not start an HTTP server", *HTTP_SERVER)
@pytest.mark.long
def test_server_fails_five_starts(start: Start, tmp_path: Path) -> None:
    counter = tmp_path / "starts"
    flags = ("--fail-starts", "5", "--fail-counter", str(counter))
    gate = start(Setup(OPEN, server_flags=flags))
    agent = gate.agent_without_session()

    def answered() -> bool:
        body = agent.message(f"s-{len(gate.records())}", "tools/call", call, modern=True)
        agent.send(body)
        return "result" in agent.inbox.answer(body["id"])

    call = {"name": "echo", "arguments": {"mark": "recovers"}}
    gate.wait(answered, "a server that has recovered", 2 * gate.patience_s)
    exits = events_since(gate, 0, "server_exited")
    assert len(exits) == 5
    assert events_since(gate, 0, "server_started")


@pytest.mark.not_for("`idle` is for the servers behind serve", *NOT_SERVE)
@pytest.mark.not_for("the gate does not start an HTTP server", *HTTP_SERVER)
def test_server_slower_to_start_than_its_idle_time(start: Start) -> None:
    flags = ("--start-delay", "2")
    gate = start(Setup(OPEN, {"idle": "1s"}, server_flags=flags))
    assert text_of(gate.agent().call("echo", {"mark": "slow-start"})) == "done"


@pytest.mark.not_for("the server does not use HTTP", *STDIO_SERVER)
@pytest.mark.not_for(
    "the stream is the agent's own: it ends there too, and the agent opens the next",
    "proxy-http-http",
)
def test_stream_of_the_server_ends(start: Start) -> None:
    gate = start(Setup(OPEN, server_flags=("--era", "legacy")))
    agent = gate.agent()
    assert text_of(agent.call("echo", {"mark": "stream"})) == "done"

    def streams() -> int:
        return sum(one.get("method") == "GET" for one in gate.received())

    gate.wait(lambda: streams() == 1, "the gate's stream at the server")
    agent.call("echo", {"do": "end_stream", "mark": "stream-ends"})
    gate.wait(lambda: streams() == 2, "the stream opened again")
    agent.call("echo", {"do": "grow", "name": "grown_stream", "mark": "stream-grow"})
    agent.inbox.message("notifications/tools/list_changed")


@pytest.mark.not_for("the server does not use HTTP", *STDIO_SERVER)
@pytest.mark.not_for(
    "the session is the agent's own: it gets the server's 404, and opens the next",
    "proxy-http-http",
)
def test_server_that_is_restarted_has_forgotten_the_session(start: Start) -> None:
    gate = start(Setup(OPEN, server_flags=("--era", "legacy")))
    agent = gate.agent()
    assert text_of(agent.call("echo", {"mark": "before"})) == "done"
    handshakes = [one["params"] for one in gate.received() if one.get("method") == "initialize"]
    gate.restart_server()
    arguments = {"mark": "after-restart"}
    assert text_of(agent.call("echo", arguments)) == "done"
    again = [one["params"] for one in gate.received() if one.get("method") == "initialize"]
    assert again == handshakes * 2
    reached = [one for one in gate.received_entries() if "after-restart" in str(one["body"])]
    assert len({one["headers"]["mcp-session-id"] for one in reached}) == len(reached) == 2
    check_calls(gate, "after-restart", CallRecord("echo", arguments).allowed("open").ended("OK"))
    hear_of_changed_lists(gate, agent)


@pytest.mark.not_for("a shim, and proxy between two pipes, end with their server", *ONE_START)
@pytest.mark.not_for("the gate does not start an HTTP server", *HTTP_SERVER)
def test_server_that_died_is_initialized_again(start: Start) -> None:
    gate = start(Setup(OPEN, server_flags=("--era", "legacy")))
    agent = gate.agent()
    assert kind_of(agent.call("echo", {"do": "die"})) == "upstream_connection_failed"
    assert text_of(agent.call("echo", {"mark": "after-death"})) == "done"
    entries = gate.received_entries()
    new = next(one["pid"] for one in entries if "after-death" in str(one["body"]))
    methods = [one["body"].get("method") for one in entries if one["pid"] == new]
    opening = methods.index("initialize")
    assert methods[opening : opening + 2] == ["initialize", "notifications/initialized"]
    assert "tools/call" not in methods[:opening]
    handshakes = [one["body"] for one in entries if one["body"].get("method") == "initialize"]
    assert len({str(one["params"]) for one in handshakes}) == 1
    ends = events_since(gate, 0, "server_exited")
    assert [one["server"]["exit_code"] for one in ends] == [70]
    assert len(events_since(gate, 0, "server_started")) >= 2
    hear_of_changed_lists(gate, agent)


def hear_of_changed_lists(gate: Gate, agent: Agent) -> None:
    """Wait until the agent is told that lists may have changed; `serve` knows whether they have."""
    if gate.face.name not in SERVE:
        agent.inbox.message("notifications/tools/list_changed")


@pytest.mark.not_for(
    "an agent over HTTP gives up server/discover by closing its connection",
    *(face.name for face in FACES if face.agent == "http" and face.product == "proxy"),
)
def test_server_that_answers_discover_late_is_not_suspected(start: Start, tmp_path: Path) -> None:
    answered_at = tmp_path / "discover"
    gate = start(Setup(OPEN, server_flags=("--era", "legacy", "--discover-at", str(answered_at))))
    agent = gate.agent()
    if gate.face.name not in SERVE:
        # Here the agent asks; `serve` asks by itself.
        ident = agent.request("server/discover")
        gate.wait(lambda: gate.received("server/discover"), "the request at the server")
        agent.notify("notifications/cancelled", {"requestId": ident})
    assert text_of(agent.call("echo", {"mark": "before-discover"})) == "done"
    answered_at.touch()
    gate.wait(lambda: gate.received("discovered-late"), "the late answer")
    assert text_of(agent.call("echo", {"mark": "after-discover"})) == "done"
    gate.wait(lambda: ended(gate, 2), "the end of both calls on record")
    assert events_since(gate, 0, "frame_refused") == []
