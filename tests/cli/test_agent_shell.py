"""Commands for people do not run in a shell that a governed agent started."""

import importlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.warm_command import run_warm
from typer.main import get_command

from thoughtgate.cli.agent_shell import (
    ANYBODY,
    PERSON,
    UNATTENDED,
    WHO_MAY_RUN,
    guard_commands,
    walk_commands,
)
from thoughtgate.cli.app import COMMANDS
from thoughtgate.errors import UsageError
from thoughtgate.gate.approvals.started_by_agent import MARKS


def every_command() -> dict[str, Any]:
    """Return all commands that do something, by their full name."""
    found: dict[str, Any] = {}
    for command in COMMANDS:
        if command.module:
            module = importlib.import_module(f"thoughtgate.cli.{command.module}")
            found.update(walk_commands(get_command(module.app), command.name))
        else:
            found[command.name] = None
    return found


@pytest.mark.promise("agent-cannot-approve")
def test_every_command_is_classified() -> None:
    assert set(every_command()) == set(WHO_MAY_RUN)
    assert set(WHO_MAY_RUN.values()) == {PERSON, ANYBODY}


def test_the_options_of_unattended_runs_exist() -> None:
    commands = every_command()
    for name, options in UNATTENDED.items():
        assert set(options) <= {parameter.name for parameter in commands[name].params}


ARGUMENTS = {
    "approvals approve": ("a1",),
    "approvals deny": ("a1",),
    "approvals grants add": ("a1",),
    "limits reset": ("searches",),
    "facts clear": ("local",),
    "servers add": ("new", "--", "true"),
    "servers remove": ("old",),
    "login": ("search",),
    "logout": ("search",),
    "tools accept": ("search",),
    "tools refuse": ("search",),
}
"""What the parser wants before a command runs at all."""


def run_inside(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path), "THOUGHTGATE_ACTIVE": "1"}
    return run_warm(*words, env=env, cwd=tmp_path)


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.parametrize("name", [name for name, who in WHO_MAY_RUN.items() if who == PERSON])
def test_a_command_for_people_is_refused_and_says_where_to_run_it(
    tmp_path: Path, name: str
) -> None:
    done = run_inside(tmp_path, *name.split(), *ARGUMENTS.get(name, ()))
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"run 'thoughtgate {name}' in another terminal" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] in ([], ["gates"])


@pytest.mark.parametrize("words", [("status",), ("approvals", "list"), ("console", "--help")])
def test_commands_that_only_read_and_help_are_for_anybody(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert run_inside(tmp_path, *words).returncode == 0


def test_the_gate_itself_restores_configs_after_a_kill(tmp_path: Path) -> None:
    done = run_inside(tmp_path, "unwrap", "--key", "none", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_that_is_missing_in_the_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("THOUGHTGATE_ACTIVE", "1")
    app = typer.Typer()
    ran: list[str] = []
    app.command("forgotten")(lambda: ran.append("forgotten"))
    program: Any = get_command(app)
    guard_commands(program, "forgotten")

    with pytest.raises(UsageError, match="thoughtgate forgotten"):
        program.main([], standalone_mode=False)
    for mark in MARKS:
        monkeypatch.delenv(mark, raising=False)
    program.main([], standalone_mode=False)
    assert ran == ["forgotten"]
