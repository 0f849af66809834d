"""A gate over HTTP that a person runs in a terminal asks there; a real pseudo-terminal."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.http_agent import HttpAgent
from tests.support.stages import TOKEN, HttpStage, ServeHttpStage, mark
from tests.support.stdio_peer import StdioPeer

SPAWN = "import pty, sys; pty.spawn(sys.argv[1:])"
"""Runs a command on a terminal of its own, with our pipes as the person's eyes and fingers."""


class Terminal:
    """A gate at a terminal: what it shows, and keys for it."""

    def __init__(self, stage: HttpStage) -> None:
        self.peer: StdioPeer = stage.run([sys.executable, "-c", SPAWN, *stage.command()])

    def shows(self, words: str) -> str:
        """Read up to a line that holds some words."""
        shown: list[str] = []
        while True:
            line = self.peer.read_line(20.0)
            assert line is not None, f"the terminal is gone; it showed {shown}"
            shown.append(text := line.decode())
            if re.search(words, text):
                return text

    def types(self, keys: str) -> None:
        self.peer.write(keys.encode())


@pytest.fixture(params=[HttpStage, ServeHttpStage], ids=["proxy", "serve"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HttpStage]:
    made: HttpStage = request.param(tmp_path)
    yield made
    made.close()


def test_whoever_runs_the_gate_is_asked_and_answers(stage: HttpStage) -> None:
    terminal = Terminal(stage)
    found = re.search(r":(\d+)/mcp", terminal.shows(r"http://127\.0\.0\.1:\d+/mcp"))
    assert found is not None
    stage.agent = HttpAgent(int(found.group(1)), TOKEN)
    stage.agent.greet()
    first = stage.call()
    terminal.shows("add on sample")
    terminal.shows(mark(first))
    terminal.types("y\n")
    assert "result" in stage.answer(first)
    terminal.shows("Approved")
    second = stage.call()
    terminal.shows(mark(second))
    terminal.types("n\n")
    assert stage.answer(second)["error"]["data"]["kind"] == "approval_rejected"
    assert (stage.ran(first), stage.ran(second)) == (1, 0)
