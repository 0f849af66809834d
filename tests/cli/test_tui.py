"""The ``tui`` command, and that the serving path never loads it."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.commands import thoughtgate
from tests.support.tmux import a_terminal, needs_tmux


def test_it_explains_itself() -> None:
    done = subprocess.run(thoughtgate("tui", "--help"), capture_output=True, timeout=20, check=True)

    assert b"answer approval requests" in done.stdout


def test_the_serving_path_never_imports_it() -> None:
    script = (
        "import json, sys, thoughtgate.cli.serve, thoughtgate.hub.run;"
        "print(json.dumps([name for name in sys.modules if 'textual' in name or 'tui' in name]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=20, check=True
    )

    assert json.loads(done.stdout) == []


@needs_tmux
def test_it_runs_in_a_terminal_of_80_columns(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    with a_terminal(tmp_path, thoughtgate("tui"), env, tmp_path, width=80) as terminal:
        terminal.sees("No calls on record in the last day.")
        terminal.press("2")
        terminal.sees("Nothing waits for you.")
        terminal.press("q")
        terminal.sees("ended with 0")
