"""The tutorial, played in a real terminal: by keys, and with the answer from another one."""

import re
from pathlib import Path

import pytest
from tests.support.commands import thoughtgate
from tests.support.tmux import Terminal, a_terminal, needs_tmux
from tests.support.waiting import wait_for
from tests.support.warm_command import run_warm

pytestmark = needs_tmux


def play(terminal: Terminal, answer: str) -> None:
    """Press the keys of a reader; ``answer`` is typed at the held call, unless it is empty."""
    terminal.sees("1 of 4.")
    terminal.press("Enter")
    terminal.sees("2 of 4.")
    terminal.press("Enter")
    terminal.sees("Type a letter and press Enter:")
    if answer:
        terminal.type(answer)


def finish(terminal: Terminal) -> None:
    terminal.sees("3 of 4.")
    terminal.press("Enter")
    terminal.sees("4 of 4.")
    terminal.press("Enter")
    terminal.sees("\nended with ")


@pytest.mark.parametrize(
    ("answer", "said"), [("y", "deleted draft"), ("n not yet", "approval_rejected")]
)
def test_a_reader_drives_the_agent_from_the_first_step_to_the_last(
    tmp_path: Path, answer: str, said: str
) -> None:
    command = thoughtgate("demo", "--play", "--folder", str(tmp_path / "demo"))
    with a_terminal(tmp_path, command, {"HOME": str(tmp_path)}, tmp_path) as terminal:
        play(terminal, answer)
        terminal.sees(said)
        finish(terminal)
        screen = terminal.screen
    assert "ended with 0" in screen
    assert "tools:   echo, add, read_note" in screen
    assert "before:  dear diary" in screen
    assert "after:   error -32014: denied by a rule (governance_denied)" in screen
    for word in ("delete_note", "read_note", "BLOCK", "ALLOW"):
        assert word in screen.partition("4 of 4.")[2], "the record is shown"
    assert re.search(r"audit\.jsonl: .*(intact|sound|verified|ok)", screen), screen
    assert "Traceback" not in screen


def test_the_held_call_can_be_answered_in_another_terminal(tmp_path: Path) -> None:
    command = thoughtgate("demo", "--play", "--folder", str(tmp_path / "demo"))
    with a_terminal(tmp_path, command, {"HOME": str(tmp_path)}, tmp_path) as terminal:
        play(terminal, "")
        state = re.search(r"export THOUGHTGATE_STATE_DIR=(\S+)", terminal.screen)
        assert state is not None
        env = {"HOME": str(tmp_path), "THOUGHTGATE_STATE_DIR": state[1], "PATH": "/usr/bin:/bin"}
        held = run_warm("approvals", "list", env=env, cwd=tmp_path).stdout.splitlines()[1]
        done = run_warm("approvals", "approve", held.split()[0], env=env, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        terminal.sees("deleted draft")
        finish(terminal)
        wait_for(lambda: "ended with 0" in terminal.screen, what="the end")


def test_without_a_terminal_the_plain_demo_is_named(tmp_path: Path) -> None:
    done = run_warm(
        "demo",
        "--play",
        "--folder",
        str(tmp_path / "demo"),
        env={"HOME": str(tmp_path)},
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "--play needs a terminal; without one, run: thoughtgate demo" in done.stderr
