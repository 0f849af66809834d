"""The scripted agent against the real sample server."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server

from thoughtgate.errors import PeerGone
from thoughtgate.testing.scripted_agent import ScriptedAgent, play


@pytest.mark.parametrize("modern", [False, True])
def test_it_opens_a_session_in_either_era_and_calls(modern: bool) -> None:
    with ScriptedAgent(sample_server(), modern=modern) as agent:
        assert "result" in agent.open()
        answer = agent.call("add", {"a": 1, "b": 2})

    assert answer["result"]["content"][0]["text"] == "3"


def test_it_answers_what_the_server_asks() -> None:
    with ScriptedAgent(sample_server()) as agent:
        answer = agent.call("sample", {"prompt": "hi"})

    assert "as the script says" in answer["result"]["content"][0]["text"]


def test_answers_find_their_requests_in_any_order() -> None:
    with ScriptedAgent(sample_server()) as agent:
        slow = agent.send("tools/call", {"name": "slow", "arguments": {"seconds": 0.05}})
        quick = agent.send("ping")

        assert agent.wait_for(slow)["id"] == slow
        assert agent.wait_for(quick)["id"] == quick


def test_notifications_are_kept() -> None:
    with ScriptedAgent(sample_server()) as agent:
        agent.call("grow", {"name": "more"})

        assert agent.notifications[0]["method"] == "notifications/tools/list_changed"


def test_a_server_that_dies_is_reported() -> None:
    with (
        ScriptedAgent(sample_server("--crash-on", "echo")) as agent,
        pytest.raises(PeerGone, match="closed"),
    ):
        agent.call("echo")


def test_an_answer_that_does_not_come_is_reported() -> None:
    with (
        ScriptedAgent(sample_server("--never-answer", "echo"), patience_s=0.05) as agent,
        pytest.raises(PeerGone, match="no answer"),
    ):
        agent.call("echo")


def test_lines_that_are_not_json_are_passed_over() -> None:
    with ScriptedAgent(sample_server("--garbage")) as agent:
        assert "result" in agent.ask("ping")


def test_the_exit_code_is_the_servers() -> None:
    agent = ScriptedAgent(sample_server("--exit-code", "4"))

    assert agent.close() == 4


def test_steps_come_back_with_their_answers() -> None:
    steps: list[dict[str, Any]] = [
        {"method": "notifications/initialized", "notify": True},
        {"label": "p", "method": "ping"},
        {"raw": '{"jsonrpc":"2.0","id":ID,"method":"none"}'},
    ]
    with ScriptedAgent(sample_server()) as agent:
        played = list(play(agent, steps))

    assert played[0]["answer"] is None
    assert played[1]["label"] == "p"
    assert "result" in played[1]["answer"]
    assert played[2]["answer"]["error"]["code"] == -32601


def _run(script: Path, *server: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "thoughtgate.testing.scripted_agent", str(script), "--"]
    return subprocess.run(
        [*program, *server], capture_output=True, text=True, timeout=20, check=False
    )


def test_as_a_program_it_prints_a_line_a_step(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"method": "ping"}, {"method": "tools/list"}]))

    run = _run(script, *sample_server())

    assert run.returncode == 0, run.stderr
    assert [json.loads(line)["method"] for line in run.stdout.splitlines()] == [
        "ping",
        "tools/list",
    ]


def test_as_a_program_it_needs_a_server(tmp_path: Path) -> None:
    run = _run(tmp_path / "script.json")

    assert run.returncode == 2
    assert "no server" in run.stderr


def test_as_a_program_it_fails_when_the_server_dies(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"method": "tools/call", "params": {"name": "echo"}}]))

    run = _run(script, *sample_server("--crash-on", "echo"))

    assert run.returncode == 2
    assert "closed" in run.stderr
