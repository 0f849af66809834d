"""``policy explain`` as a process."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.warm_command import run_warm

CONFIG = """\
schema: 1
default: deny
servers:
  bank: {expose: {block: [wipe]}}
  "*": {}
rules:
  - {tool: transfer, when: {amount: {gt: 100}}, action: approve, reason: large}
  - {tool: transfer, action: forward}
  - {resource: "file:///etc/*", action: deny}
  - {tool: ask, action: policy}
cedar: {policies: [p.cedar]}
limits:
  - {tool: transfer, budget: 5}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "thoughtgate.yaml").write_text(CONFIG)
    (tmp_path / "p.cedar").write_text(
        '@id("yes") permit(principal == Agent::"me", action, resource);'
    )
    return tmp_path


def policy(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with the config in a folder, if there is one."""
    config = ["-c", "thoughtgate.yaml"] if (cwd / "thoughtgate.yaml").exists() else []
    return run_warm("policy", *args, *config, cwd=cwd)


def explained(cwd: Path, *args: str) -> dict[str, Any]:
    result = policy("explain", "--server", "bank", *args, "--json", cwd=cwd)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_a_verdict_is_explained_gate_by_gate(folder: Path) -> None:
    large = explained(folder, "--tool", "transfer", "--args", '{"amount": 500}')
    assert large["verdict"]["action"] == "approve"
    assert large["verdict"]["rule"] == "rules[0]"
    assert [step["said"] for step in large["steps"]] == ["passes", "approve"]
    assert large["limits"] == ["limits[0]"]
    small = explained(folder, "--tool", "transfer", "--args", '{"amount": 5}')
    assert small["verdict"]["rule"] == "rules[1]"


def test_resources_prompts_and_hidden_tools_are_explained(folder: Path) -> None:
    assert explained(folder, "--resource", "file:///etc/passwd")["verdict"]["rule"] == "rules[2]"
    assert explained(folder, "--prompt", "greet")["verdict"]["gate"] == "default"
    assert explained(folder, "--tool", "wipe")["verdict"]["kind"] == "not_exposed"


def test_cedar_is_asked_as_the_principal(folder: Path) -> None:
    assert explained(folder, "--tool", "ask")["verdict"]["action"] == "deny"
    allowed = explained(folder, "--tool", "ask", "--principal", "me")
    assert (allowed["verdict"]["action"], allowed["verdict"]["rule"]) == ("forward", "yes")


def test_the_table_is_for_people(folder: Path) -> None:
    result = policy(
        "explain", "--server", "bank", "--tool", "transfer", "--args", '{"amount": 500}', cwd=folder
    )
    assert (
        "verdict     approve; approval through workflow default; by rules[0]; large"
        in result.stdout
    )
    assert "limits      counted by limits[0]" in result.stdout
    denied = policy("explain", "--server", "bank", "--tool", "zzz", cwd=folder)
    assert "the agent gets governance_denied" in denied.stdout


def test_without_a_file_the_starter_policy_is_explained(tmp_path: Path) -> None:
    result = policy(
        "explain",
        "--server",
        "s",
        "--tool",
        "x",
        "--annotations",
        '{"destructiveHint": true}',
        cwd=tmp_path,
    )
    assert "built-in starter policy" in result.stdout
    assert "approve" in result.stdout
    assert "starter policy applies" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["--tool", "x", "--prompt", "y"],
        [],
        ["--tool", "x", "--args", "[1]"],
        ["--tool", "x", "--args", "{"],
        ["--tool", "x", "--args", '{"a": 1, "a": 2}'],
        ["--tool", "x", "--args", '{"a": NaN}'],
        ["--tool", "x", "--args", '{"a": ' + "[" * 50_000],
    ],
)
def test_a_call_that_makes_no_sense_is_a_usage_error(args: list[str], folder: Path) -> None:
    result = policy("explain", "--server", "bank", *args, cwd=folder)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
