"""A terminal to look at: a tmux server of a test's own, with one window."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.waiting import PATIENCE_S, wait_for

needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is needed: make notifications (apt-get with root)"
)


class Terminal:
    """One window of a tmux server, in which a command runs."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def tmux(self, *args: str) -> str:
        """Run a tmux command and return what it prints."""
        ended = subprocess.run(
            ["tmux", "-S", str(self._socket), "-f", "/dev/null", *args],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return ended.stdout

    @property
    def screen(self) -> str:
        """Everything that was shown, with wrapped lines joined."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    @property
    def title(self) -> str:
        """The title of the terminal."""
        return self.tmux("display-message", "-p", "#{pane_title}").strip()

    @property
    def has_rung(self) -> bool:
        """Whether the bell has rung."""
        return self.tmux("display-message", "-p", "#{window_bell_flag}").strip() == "1"

    def type(self, line: str) -> None:
        """Type a line, and Enter."""
        self.tmux("send-keys", "-l", line)
        self.tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        """Press one key."""
        self.tmux("send-keys", key)

    def sees(self, words: str, timeout: float = PATIENCE_S) -> None:
        """Wait until the words are on the screen."""
        try:
            wait_for(lambda: words in self.screen, timeout, what=repr(words))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen}") from None


@contextmanager
def a_terminal(
    folder: Path, command: Sequence[str], env: Mapping[str, str], cwd: Path, *, width: int = 250
) -> Iterator[Terminal]:
    """Run a command in a terminal; the terminal stays open when the command has ended."""
    terminal = Terminal(folder / "tmux.sock")
    kept = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    pairs = [f"{name}={value}" for name, value in {**kept, **env}.items()]
    inner = shlex.join(["env", "-u", "TMUX", *pairs, *command])
    size = ("-x", str(width), "-y", "50")
    try:
        terminal.tmux("new-session", "-d", *size, "-c", str(cwd), "sh")
        terminal.type(f"{inner}; echo ended with $?")
        yield terminal
    finally:
        terminal.tmux("kill-server")
