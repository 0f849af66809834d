"""Causes that need more than a broken answer: servers that are off, tokens, and gates that close.

Together with the scenarios of ``test_failures`` and ``test_failed_starts``, every cause of the
registry is provoked.
"""

import contextlib
import json
import os
import signal
import subprocess
from typing import Any, Final

import pytest
from tests.faces.conftest import Start
from tests.faces.face import FACES, SERVER, STDIO_SERVER, Gate, Setup
from tests.faces.test_failed_starts import BROKEN
from tests.faces.test_failures import BAD, UNREACHABLE, call_ends, events, lines, status_of
from tests.faces.test_lifecycle import NOT_SERVE, OPEN
from tests.support.commands import thoughtgate
from tests.support.logins import KEY, KEY_ENV
from tests.support.small_oauth import SmallOAuth

from thoughtgate.errors import CAUSES, EXIT_CONFIG
from thoughtgate.gate.control_socket import ask_control
from thoughtgate.status.overview import control_path

SECRET: Final = "client-secret-of-the-tests"
PROXY: Final = tuple(face.name for face in FACES if face.product == "proxy")
NOT_PROXY: Final = tuple(face.name for face in FACES if face.product != "proxy")

ELSEWHERE: Final = {
    **dict.fromkeys(("answer_timeout", "idle_timeout", "connect_timeout"), "test_failures: slow"),
    **dict.fromkeys(("proxy_failed", "status_407"), "test_failures: a_proxy_that_does_not_connect"),
    "session_lost": "test_failures: an_agent_whose_session_is_lost_is_told_so",
    "start_failed": "test_failed_starts: a_command_that_cannot_be_executed",
}
"""Causes with a scenario of their own, and where it is."""

NOT_PROVOKED: Final = {
    "connection_failed": "for errors of the system that no other cause names; test_connect_errors",
}
"""Causes that no server of a test leads to, with the reason."""

HERE: Final = (
    "disabled",
    "gate_closing",
    "login_required",
    "renewal_failed",
    "stopped",
    "stopped_by_hand",
)


def test_every_cause_is_provoked() -> None:
    answers = {cause for _, cause, _ in BAD.values()}
    provoked = answers | {*UNREACHABLE, *BROKEN, *ELSEWHERE, *HERE}
    assert provoked.isdisjoint(NOT_PROVOKED)
    assert provoked | set(NOT_PROVOKED) == set(CAUSES)


def gate_facts(gate: Gate) -> dict[str, Any]:
    """Return what ``status`` says about the gate."""
    environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(gate.state), "HOME": str(gate.root)}
    command = thoughtgate("status", "--json")
    done = subprocess.run(command, env=environ, capture_output=True, timeout=30, check=True)
    (found,) = json.loads(done.stdout)["gates"]
    facts: dict[str, Any] = found
    return facts


def control(gate: Gate, op: str) -> Any:
    """Start or stop the server by hand, as the terminal interface and the console do."""
    path = control_path(str(gate.state), gate_facts(gate))
    return ask_control(path, op, server=SERVER)


def check_call(gate: Gate, answer: dict[str, Any], cause: str) -> dict[str, Any]:
    """Compare what an agent was told with the registry and the record; return the error's data."""
    data: dict[str, Any] = answer["error"]["data"]
    kind, _ = CAUSES[cause]
    assert (data["kind"], data["cause"]) == (kind, cause), data
    assert data["reason"] == answer["error"]["message"]
    named = gate.wait(
        lambda: [
            one
            for one in call_ends(gate)
            if one["call"]["call_id"] == data["correlation_id"] and "error" in one
        ],
        "the end of the call on record",
    )
    assert [(one["error"]["kind"], one["error"]["cause"]) for one in named] == [(kind, cause)]
    return data


@pytest.mark.not_for("other products have no interface to stop a server", *NOT_SERVE)
def test_a_server_that_was_stopped_by_hand(start: Start) -> None:
    gate = start(Setup(OPEN))
    agent = gate.agent()
    ident = agent.start_call("echo", {"do": "hang", "mark": "in-flight"})
    gate.wait(lambda: gate.received("in-flight"), "the call at the server")
    control(gate, "stop")
    check_call(gate, agent.inbox.answer(ident), "stopped")
    data = check_call(gate, agent.call("echo", {"mark": "too-late"}), "stopped_by_hand")
    assert gate.received("too-late") == []
    told = gate.wait(lambda: events(gate, "server_exited"), "the end on record")
    assert "stopped_by_hand" in {one["cause"] for one in told}
    gate.wait(lambda: lines(gate, "server ended", "stopped_by_hand"), "the end on standard error")
    shown = status_of(gate)
    error = {"kind": data["kind"], "cause": "stopped_by_hand"}
    assert (shown["status"], shown["error"], shown["reason"]) == ("halted", error, data["reason"])
    control(gate, "start")
    assert "result" in agent.call("echo", {"mark": "again"})
    assert "error" not in status_of(gate)


@pytest.mark.not_for("proxy does not start: see a_proxy_of_a_disabled_server", *PROXY)
def test_a_server_that_is_disabled(start: Start) -> None:
    gate = start(Setup(OPEN, {"enabled": False}))
    answer = gate.agent().call("echo", {"mark": "off"})
    # An agent cannot tell a disabled server from one that is not there.
    assert answer["error"]["data"]["kind"] == "not_exposed"
    assert gate.received("off") == []
    if gate.face.product == "serve":
        shown = status_of(gate)
        kind, reason = CAUSES["disabled"]
        assert shown["status"] == "disabled"
        assert (shown["error"], shown["reason"]) == ({"kind": kind, "cause": "disabled"}, reason)


@pytest.mark.not_for("the others start, and hide the server", *NOT_PROXY)
def test_a_proxy_of_a_disabled_server(start: Start) -> None:
    gate = start(Setup(OPEN, {"enabled": False}), at_once=False)
    with contextlib.suppress(AssertionError):  # an HTTP gate is waited for until it listens
        gate.start()
    assert gate.process.wait(20) == EXIT_CONFIG
    gate.wait(lambda: lines(gate, SERVER, CAUSES["disabled"][1]), "the reason on standard error")
    assert lines(gate, SERVER, CAUSES["disabled"][1]) == 1


@pytest.mark.not_for("only HTTP servers need a login", *STDIO_SERVER)
@pytest.mark.parametrize("cause", ["login_required", "renewal_failed"])
def test_a_server_without_a_token(start: Start, cause: str) -> None:
    with SmallOAuth() as server:
        auth: dict[str, Any] = {"type": "oauth"}
        if cause == "renewal_failed":
            auth |= {"grant": "client_credentials", "client_id": "gate", "issuer": server.base}
            auth["client_secret_env"] = "GATE_SECRET"
            server.metadata = None
        policy = {**OPEN, "keys": {"tokens_env": KEY_ENV}}
        variables = {KEY_ENV: KEY, "GATE_SECRET": SECRET}
        gate = start(Setup(policy, {"auth": auth}, url=f"{server.base}/mcp", env=variables))
        answer = gate.agent_without_session().call("echo", {}, modern=True)
        data = check_call(gate, answer, cause)
        told = gate.wait(lambda: events(gate, "server_unreachable"), "the failure on record")
        names: dict[str, Any] = {
            key: data[key] for key in ("kind", "cause", "status") if key in data
        }
        assert told == [{"state": "degraded", **names, "reason": data["reason"]}]
        gate.wait(lambda: lines(gate, data["reason"], cause), "the failure on standard error")
        shown = status_of(gate)
        assert (shown["error"], shown["reason"]) == (names, data["reason"])
        assert SECRET not in json.dumps([gate.records(), data, shown]) + gate.stderr


def test_a_gate_that_closes(start: Start) -> None:
    gate = start(Setup({**OPEN, "listen": {"drain": "1s"}}))
    agent = gate.agent()
    ident = agent.start_call("echo", {"do": "hang", "mark": "endless"})
    gate.wait(lambda: gate.received("endless"), "the call at the server")
    gate.process.signal(signal.SIGTERM)
    gate.process.wait(20)
    check_call(gate, agent.inbox.answer(ident), "gate_closing")
    # It is no failure of the server.
    assert events(gate, "server_unreachable") == []
