"""Holding a call over stdio: the real shim, a real server, answers by the real command."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server, shim
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for
from tests.support.warm_command import run_warm

CONFIG = """
schema: 1
profile: {profile}
default: forward
rules:
  - {{tool: add, action: approve, approval: {workflow}}}
approval:
  default: {{channel: console}}
  short: {{channel: slack, timeout: 5s, slack: {{channel: "#nobody", token_env: NO_TOKEN}}}}
  lenient: {{channel: console, timeout: 5s, on_timeout: approve}}
"""

SILENCE_S = 20.0
"""Enough for the shortest timeout a config may set (5 s) to pass."""


class Desk:
    """A shim before the sample server, and the person who answers."""

    def __init__(self, root: Path, workflow: str, profile: str) -> None:
        self.log = root / "server.jsonl"
        self.state = root / "state"
        config = root / "thoughtgate.yaml"
        config.write_text(CONFIG.format(workflow=workflow, profile=profile), "utf-8")
        self.environment = {"THOUGHTGATE_STATE_DIR": str(self.state), "NO_TOKEN": "xoxb-none"}
        command = shim(sample_server("--log", str(self.log)), "-c", str(config))
        self.agent = StdioPeer(command, env=self.environment)

    def greet(self) -> None:
        """Open the session as an agent does."""
        self.agent.ask(
            {
                "jsonrpc": "2.0",
                "id": "init",
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"},
                },
            }
        )
        self.agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, ident: int, **more: Any) -> None:
        params = {"name": "add", "arguments": {"a": ident, "b": 1}, **more}
        self.agent.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})

    def person(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run the command in another terminal: this process plays the agent."""
        return run_warm("approvals", *args, env={**os.environ, **self.environment})

    def listed(self, *flags: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.person("list", "--json", *flags).stdout)
        return found

    def waiting(self) -> dict[str, Any]:
        """Return the question that waits, once there is one."""
        return wait_for(self.listed, what="a question")[0]

    def ran(self) -> int:
        """Count the held calls that reached the server."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        return sum("tools/call" in line for line in lines)


@pytest.fixture
def open_approvals(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    opened: list[Desk] = []

    def open_one(workflow: str = "default", profile: str = "production") -> Desk:
        opened.append(Desk(tmp_path, workflow, profile))
        opened[-1].greet()
        return opened[-1]

    yield open_one
    for desk in opened:
        desk.agent.destroy()


@pytest.mark.requirement("S004-LIVE-1")
def test_an_approved_call_runs_while_other_traffic_flows(
    open_approvals: Callable[..., Desk],
) -> None:
    desk = open_approvals()
    desk.call(1)
    asked = desk.waiting()
    assert (asked["tool"], asked["arguments"]) == ("add", {"a": 1, "b": 1})
    assert desk.agent.ask({"jsonrpc": "2.0", "id": "p", "method": "ping"})["result"] == {}
    assert desk.ran() == 0
    assert desk.person("approve", asked["id"]).returncode == 0
    assert "result" in desk.agent.receive_answer(1)
    assert desk.ran() == 1
    again = desk.person("approve", asked["id"])
    assert again.returncode != 0
    assert "already used" in again.stderr


@pytest.mark.requirement("S004-LIVE-5")
def test_a_refused_call_is_answered_and_never_runs(open_approvals: Callable[..., Desk]) -> None:
    desk = open_approvals()
    desk.call(1)
    desk.person("deny", desk.waiting()["id"], "--reason", "secret reason")
    error = desk.agent.receive_answer(1)["error"]
    assert (error["code"], error["data"]["kind"]) == (-32007, "approval_rejected")
    assert "secret reason" not in json.dumps(error)
    assert desk.ran() == 0


@pytest.mark.requirement("S004-LIVE-3", "EC-STDIO-021")
def test_a_channel_nobody_can_reach_ends_in_a_timeout_that_may_be_retried(
    open_approvals: Callable[..., Desk],
) -> None:
    desk = open_approvals("short")
    desk.call(1)
    error = desk.agent.receive_answer(1, SILENCE_S)["error"]
    assert (error["code"], error["data"]["kind"]) == (-32008, "approval_timeout")
    assert "tried again" in error["message"]
    assert desk.ran() == 0
    (asked,) = desk.listed("--all")
    assert asked["status"] == "expired"


@pytest.mark.requirement("EC-STDIO-021")
def test_in_development_nobody_has_to_be_asked(open_approvals: Callable[..., Desk]) -> None:
    desk = open_approvals("short", profile="development")
    desk.call(1)
    assert "result" in desk.agent.receive_answer(1)
    record = (desk.state / "audit.jsonl").read_text("utf-8")
    assert '"auto_approved":true' in record
    assert desk.listed("--all") == []


def test_silence_can_mean_yes(open_approvals: Callable[..., Desk]) -> None:
    desk = open_approvals("lenient")
    desk.call(1)
    assert "result" in desk.agent.receive_answer(1, SILENCE_S)
    (asked,) = desk.listed("--all")
    assert (asked["status"], asked["decided_by"]) == ("used", "system:on_timeout")


@pytest.mark.requirement("EC-STDIO-031")
def test_a_cancelled_call_takes_its_question_back_and_is_passed_on(
    open_approvals: Callable[..., Desk],
) -> None:
    desk = open_approvals()
    desk.call(1)
    asked = desk.waiting()
    cancel = {"requestId": 1, "reason": "changed my mind"}
    desk.agent.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
    wait_for(lambda: not desk.listed(), what="the withdrawal")
    late = desk.person("approve", asked["id"])
    assert late.returncode != 0
    assert "withdrawn" in late.stderr
    desk.agent.ask({"jsonrpc": "2.0", "id": "p", "method": "ping"})
    assert desk.ran() == 0
    wait_for(lambda: "notifications/cancelled" in desk.log.read_text("utf-8"))


@pytest.mark.requirement("S004-LIVE-2", "S004-LIVE-4")
def test_a_caller_that_is_gone_runs_nothing(open_approvals: Callable[..., Desk]) -> None:
    desk = open_approvals()
    desk.call(1)
    asked = desk.waiting()
    desk.agent.finish()
    late = desk.person("approve", asked["id"])
    assert late.returncode != 0
    assert desk.ran() == 0
    assert desk.listed() == []
    lines = (desk.state / "audit.jsonl").read_text("utf-8").splitlines()
    summary = json.loads(lines[-1])["run"]["summary"]
    assert (summary["approvals_requested"], summary["approvals_withdrawn"]) == (1, 1)


@pytest.mark.requirement("EC-STDIO-022")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_withdraws_the_question_and_the_stop_goes_on(
    open_approvals: Callable[..., Desk], number: int
) -> None:
    desk = open_approvals()
    desk.call(1)
    asked = desk.waiting()
    desk.agent.signal(number)
    desk.agent.wait()
    desk.agent.assert_nothing_left()
    assert "withdrawn" in desk.person("approve", asked["id"]).stderr
    assert desk.ran() == 0


def test_a_killed_gate_leaves_a_question_that_runs_nothing(
    open_approvals: Callable[..., Desk],
) -> None:
    desk = open_approvals()
    desk.call(1)
    asked = desk.waiting()
    desk.agent.signal(signal.SIGKILL)
    desk.agent.wait()
    late = desk.person("approve", asked["id"])
    assert late.returncode != 0
    assert "the gate that asked is gone" in late.stderr
    desk.agent.assert_nothing_left()
    assert desk.ran() == 0


def test_a_caller_that_wants_a_task_gets_one_and_the_call_runs_when_approved(
    open_approvals: Callable[..., Desk],
) -> None:
    desk = open_approvals()
    desk.call(1, task={"ttl": 60_000})
    task = desk.agent.receive_answer(1)["result"]["task"]
    assert task["status"] == "working"
    known = {"taskId": task["taskId"]}
    desk.person("approve", desk.waiting()["id"])

    def status() -> str:
        body = {"jsonrpc": "2.0", "id": time.monotonic_ns(), "method": "tasks/get", "params": known}
        return str(desk.agent.ask(body)["result"]["status"])

    wait_for(lambda: status() == "completed", what="the call, without anybody fetching its result")
    assert desk.ran() == 1
    result = {"jsonrpc": "2.0", "id": 3, "method": "tasks/result", "params": known}
    assert "content" in desk.agent.ask(result)["result"]
    assert desk.ran() == 1


def test_a_remembered_answer_lasts_for_the_session_and_not_for_the_next(
    open_approvals: Callable[..., Desk],
) -> None:
    desk = open_approvals()
    desk.agent.ask({"jsonrpc": "2.0", "id": 9, "method": "tools/list"})
    desk.call(1)
    desk.person("approve", desk.waiting()["id"], "--remember", "session", "--scope", "tool")
    desk.agent.receive_answer(1)
    desk.call(2)
    assert "result" in desk.agent.receive_answer(2)
    desk.agent.finish()
    later = open_approvals()
    later.call(3)
    assert later.waiting()["arguments"] == {"a": 3, "b": 1}
