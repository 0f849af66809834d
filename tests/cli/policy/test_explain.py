"""``policy explain`` as a process."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.warm_command import run_warm


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
    assert "Expecting" not in result.stderr


def test_scopes_of_the_token_are_explained(folder: Path) -> None:
    config = folder / "thoughtgate.yaml"
    bound = "  - {tool: audit, action: forward, scope: [tools:read, tools:write]}\n"
    config.write_text(config.read_text().replace("rules:\n", "rules:\n" + bound))
    lacking = explained(folder, "--tool", "audit", "--scope", "tools:read")["verdict"]
    assert (lacking["kind"], lacking["missing_scopes"]) == ("insufficient_scope", "tools:write")
    scopes = ("--scope", "tools:read", "--scope", "tools:write")
    assert explained(folder, "--tool", "audit", *scopes)["verdict"]["action"] == "forward"
    told = policy("explain", "--server", "bank", "--tool", "audit", cwd=folder).stdout
    assert "needs the scopes tools:read tools:write" in told
    assert "its token needs tools:read tools:write" in told


def test_facts_can_be_assumed(tmp_path: Path) -> None:
    (tmp_path / "thoughtgate.yaml").write_text(
        "schema: 1\ndefault: forward\nservers: {bank: {provides: [private]}}\n"
        "rules: [{id: no, when_facts: [private], action: deny}]\n"
    )
    assert explained(tmp_path, "--tool", "t")["verdict"]["action"] == "forward"
    assert explained(tmp_path, "--tool", "t", "--fact", "private")["verdict"]["rule"] == "no"
    wrong = policy("explain", "--server", "bank", "--tool", "t", "--fact", "x", cwd=tmp_path)
    assert wrong.returncode == 2
