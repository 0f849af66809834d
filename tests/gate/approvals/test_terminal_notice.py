"""Bell and title of a wrapped agent's terminal: in a real tmux, and on a pseudo-terminal."""

import contextlib
import json
import os
import pty
from pathlib import Path

import pytest
from tests.support.approvals import an_approval
from tests.support.commands import thoughtgate
from tests.support.tmux import a_terminal, needs_tmux
from tests.support.waiting import wait_for
from tests.support.wraps import HOLD, Machine

from thoughtgate.gate.approvals.terminal_notice import (
    RESTORE_TITLE,
    SAVE_TITLE,
    TerminalNotice,
    open_terminal_notice,
)

CALL = {
    "do": "ask",
    "method": "tools/call",
    "params": {"name": "delete_note", "arguments": {"name": "draft"}},
}


@needs_tmux
def test_a_held_call_rings_and_is_in_the_title_until_it_is_answered(tmp_path: Path) -> None:
    machine = Machine(tmp_path, HOLD)
    machine.write_sample()
    told = ["--agent-type", "custom", "--config-path", str(machine.config)]
    command = thoughtgate("wrap", *told, "--", *machine.agent())
    with a_terminal(tmp_path, command, machine.env, machine.project) as terminal:
        terminal.sees('"ready"')
        assert "answer held calls and see what agents do; this link works once" in terminal.screen
        terminal.tmux("select-pane", "-T", "my own title")
        terminal.type(json.dumps({"do": "open"}))
        terminal.sees('"said"')
        assert not terminal.has_rung
        terminal.type(json.dumps(CALL))
        wait_for(lambda: terminal.has_rung, what="the bell")
        assert terminal.title == "ThoughtGate: delete_note on sample waits for approval"
        before = terminal.screen
        held = machine.wait_for_event("approval_requested")["approval"]["approval_id"]
        assert terminal.screen == before, "nothing is printed into the agent's screen"
        assert machine.run("approvals", "approve", held).returncode == 0
        terminal.sees("deleted draft")
        wait_for(lambda: terminal.title == "my own title", what="the old title")


def test_titles_count_what_waits_and_the_old_one_comes_back_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = Seen(monkeypatch)
    notice = TerminalNotice(seen.terminal)
    notice.show_request(an_approval(id="a", tool="x\a\x1b]2;evil"))
    notice.show_request(an_approval(id="b"))
    notice.show_outcome(an_approval(id="a"))
    notice.show_outcome(an_approval(id="unknown"))
    notice.show_outcome(an_approval(id="b"))
    notice.show_request(an_approval(id="c"))
    notice.stop()

    told = "\x1b]2;ThoughtGate: {} for approval\x1b\\"
    expected = "".join(
        [
            SAVE_TITLE,
            told.format("x[U+0007][U+001B]]2;evil on files waits"),
            "\a",
            told.format("2 calls wait"),
            "\a",
            told.format("delete_file on files waits"),
            RESTORE_TITLE,
            SAVE_TITLE,
            told.format("delete_file on files waits"),
            "\a",
            RESTORE_TITLE,
        ]
    )
    wait_for(lambda: len(seen.text()) >= len(expected), what="all of it")
    assert seen.text() == expected


def test_a_terminal_that_another_job_uses_or_that_is_gone_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = Seen(monkeypatch)
    notice = TerminalNotice(seen.terminal)
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
    notice.show_request(an_approval())
    monkeypatch.undo()
    notice.show_request(an_approval())  # of a terminal that is not ours, nothing can be asked
    assert seen.text() == ""


def test_without_a_terminal_there_is_no_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_terminal_notice() is None, "pytest captures stderr"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert open_terminal_notice("/nowhere/tty") is None


class Seen:
    """A pseudo-terminal in whose foreground this process seems to be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._near, self.terminal = pty.openpty()
        self._read = ""
        monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())

    def text(self) -> str:
        """Return what was written so far."""
        os.set_blocking(self._near, False)
        with contextlib.suppress(OSError):
            self._read += os.read(self._near, 65536).decode()
        return self._read
