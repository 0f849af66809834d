"""The ``stop`` command."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.warm_command import run_warm


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"),
        "COLUMNS": "160",
    }
    return run_warm(*words, env=env, cwd=tmp_path)


def test_an_order_is_given_listed_and_shown_in_status(tmp_path: Path) -> None:
    stopped = run(tmp_path, "stop", "--server", "github", "--reason", "incident 12")
    assert stopped.returncode == 0
    assert "thoughtgate resume --server github" in stopped.stdout
    (order,) = json.loads(run(tmp_path, "stop", "--list", "--json").stdout)
    assert (order["scope"], order["name"], order["reason"]) == ("server", "github", "incident 12")
    assert order["by"].startswith("terminal:")
    assert "server github" in run(tmp_path, "stop", "--list").stdout
    status = run(tmp_path, "status").stdout
    assert "STOPPED server github" in status
    assert json.loads(run(tmp_path, "status", "--json").stdout)["stopped"] == [order]


def test_a_server_that_nothing_here_has_is_stopped_with_a_warning(tmp_path: Path) -> None:
    policy = tmp_path / "tg.yaml"
    policy.write_text("schema: 1\ndefault: deny\nservers: {github: {command: x}}\n")
    words = ("--reason", "x", "-c", str(policy))
    known = run(tmp_path, "stop", "--server", "github", *words)
    assert (known.returncode, known.stderr) == (0, "")
    unknown = run(tmp_path, "stop", "--server", "gitub", *words)
    assert unknown.returncode == 0
    assert "has a server 'gitub' (known: github)" in unknown.stderr
    assert "server gitub" in run(tmp_path, "stop", "--list").stdout


def test_without_orders_the_list_says_so(tmp_path: Path) -> None:
    listed = run(tmp_path, "stop", "--list")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "Nothing is stopped" in listed.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--reason", "x"),
        ("--all",),
        ("--all", "--reason", " "),
        ("--all", "--server", "x", "--reason", "x"),
        ("--list", "--all"),
    ],
)
def test_an_incomplete_order_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = run(tmp_path, "stop", *words)
    assert result.returncode == 2
    assert result.stderr.startswith("Error: ")
    assert "Nothing is stopped" in run(tmp_path, "stop", "--list").stderr
