"""No test writes to the home directory of the account that runs it."""

import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.commands import isolated_command, thoughtgate
from tests.support.real_home import FORBIDDEN, VIOLATIONS, is_stray_gate
from tests.support.warm_command import run_warm

STATE = FORBIDDEN[0]


@pytest.mark.parametrize(
    "reach",
    [
        lambda: Path(STATE).mkdir(parents=True),
        lambda: Path(STATE, "audit.jsonl").write_text("x", "utf-8"),
        lambda: os.open(f"{STATE}/lock", os.O_RDWR | os.O_CREAT),
        lambda: sqlite3.connect(f"{STATE}/thoughtgate.db"),
        lambda: subprocess.run(thoughtgate("shim", "--", "true"), check=False, timeout=5),
    ],
    ids=["directory", "file", "descriptor", "database", "gate"],
)
def test_what_reaches_for_the_real_home_is_refused_and_noted(reach: Callable[[], object]) -> None:
    with pytest.raises(AssertionError, match="the real home directory"):
        reach()
    assert len(VIOLATIONS) == 1
    VIOLATIONS.clear()


@pytest.mark.parametrize(
    ("arguments", "stray"),
    [
        (("shim", "--", "server", "--state-dir", "x"), True),
        (("proxy", "--stdio"), True),
        (("serve", "--stdio", "-c", "x"), True),
        (("shim", "--state-dir", "x", "--", "server"), False),
        (("proxy", "--listen", "127.0.0.1:0"), False),
        (("shim", "--run", "x", "--", "server"), False),
        (("shim", "--help"), False),
        (("status",), False),
    ],
)
def test_a_gate_on_stdio_needs_a_state_directory(arguments: tuple[str, ...], stray: bool) -> None:
    command = thoughtgate(*arguments)
    assert is_stray_gate(command) == stray
    assert is_stray_gate(["sh", "-c", "cat", *command]) == stray
    assert is_stray_gate(["python", "-m", *["thoughtgate", *arguments]]) == stray


def test_a_command_with_another_home_is_none(tmp_path: Path) -> None:
    assert not is_stray_gate([str(isolated_command(tmp_path)), "shim", "--", "server"])


def test_a_warm_command_has_the_home_of_its_test(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("schema: 1\ndefault: forward\nservers: {s: {command: 'true'}}\n", "utf-8")
    run_warm("proxy", "--stdio", "-c", str(config), cwd=tmp_path)
    assert Path(os.environ["HOME"], ".local", "state", "thoughtgate").is_dir()
