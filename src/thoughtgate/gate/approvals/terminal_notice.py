"""Bell and title of the terminal that a wrapped agent uses, while one of its calls is held.

The agent may draw on the whole screen, so nothing is printed. The terminal is opened by its own
name: stdin and stdout belong to the agent.
"""

import contextlib
import os
import sys
from typing import Final

from thoughtgate.channels.answer_places import subject
from thoughtgate.core.approval import Approval
from thoughtgate.gate.approvals.terminal_prompt import BELL, TERMINAL

SAVE_TITLE: Final = "\x1b[22;2t"
"""xterm control sequences, XTWINOPS: push the title. Terminals without a stack ignore it."""
RESTORE_TITLE: Final = "\x1b]2;\x1b\\\x1b[23;2t"
"""An empty title first, for terminals without a stack: better none than one that is wrong."""


class TerminalNotice:
    """A channel that only notifies, with the bell and the title of a terminal."""

    name = "terminal-notice"

    def __init__(self, terminal: int) -> None:
        """Write to a terminal that was opened for this alone."""
        self._terminal = terminal
        self._waiting: dict[str, Approval] = {}

    def show_request(self, approval: Approval) -> None:
        """Ring the bell and show in the title what waits."""
        first = SAVE_TITLE if not self._waiting else ""
        self._waiting[approval.id] = approval
        self._write(f"{first}{self._title()}{BELL}")

    def show_outcome(self, approval: Approval) -> None:
        """Show what still waits, or the title that was there before."""
        if self._waiting.pop(approval.id, None) is not None:
            self._write(self._title() if self._waiting else RESTORE_TITLE)

    def stop(self) -> None:
        """Restore the title and close the terminal."""
        if self._waiting:
            self._waiting.clear()
            self._write(RESTORE_TITLE)
        os.close(self._terminal)

    def _title(self) -> str:
        count = len(self._waiting)
        what = subject(next(iter(self._waiting.values()))) if count == 1 else f"{count} calls"
        verb = "waits" if count == 1 else "wait"
        return f"\x1b]2;ThoughtGate: {what} {verb} for approval\x1b\\"

    def _write(self, text: str) -> None:
        # A terminal that takes nothing now (Ctrl-S), or is gone, must not hold up the gate.
        with contextlib.suppress(OSError):
            # Only in the foreground: otherwise another program is using the terminal.
            if os.tcgetpgrp(self._terminal) == os.getpgrp():
                os.write(self._terminal, text.encode())


def open_terminal_notice(path: str = TERMINAL) -> TerminalNotice | None:
    """Return the notice for the terminal that this process was started in; None if there is none."""
    if not sys.stderr.isatty():
        return None
    flags = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return TerminalNotice(os.open(path, flags))
    except OSError:
        return None
