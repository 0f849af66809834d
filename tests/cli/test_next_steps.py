"""A message about a mistake says what to do next."""

import subprocess
from pathlib import Path

import pytest
from tests.support.warm_command import run_warm

MISTAKES = {
    "approvals approve zzzzzz": "thoughtgate approvals list --all",
    "audit query": "-c",
    "audit verify": "-c",
    "servers remove x": "thoughtgate init",
    "servers add": "-- COMMAND",
    "trust": "thoughtgate init",
    "validate-config": "thoughtgate init",
    "validate-config -c nope.yaml": "thoughtgate init",
    "policy test nope.yaml": "tests: [",
    "policy explain": "thoughtgate policy explain -h",
    "policy accept": "thoughtgate init",
    "policy replay": "-c",
    "login nope": "thoughtgate status",
    "tools diff nope": "thoughtgate tools list",
    "limits reset x": "thoughtgate limits list",
    "facts clear x": "thoughtgate facts list",
    "resume --all": "thoughtgate stop --list",
    "stop --all": "--reason",
    "stop": "--server",
    "wrap -- nosuch": "--agent-type custom",
    "proxy": "--upstream URL",
    "init --pack nope": "filesystem",
    "scan": "thoughtgate servers add",
    "tui": "thoughtgate status --watch",
    "completion tcsh": "bash, zsh, fish",
    "audit export --format x": "jsonl",
}
"""A command line that cannot work in a new home -> a part of what the message tells to do."""


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_answered_with_the_next_step(line: str, tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    done: subprocess.CompletedProcess[str] = run_warm(*line.split(), env=env, cwd=tmp_path)

    assert MISTAKES[line] in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
