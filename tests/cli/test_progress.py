import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import NamedTuple, TextIO

import pytest
from tests.support.audit_cli import sample_record
from tests.support.waiting import PATIENCE_S, read_some

from thoughtgate.cli import progress
from thoughtgate.cli.progress import Progress, Reading

_AT_ONCE = (
    "import sys; from thoughtgate.cli import app, progress; "
    "progress.SHOWN_AFTER_S = progress.SHOWN_EVERY_S = 0; sys.exit(app.run(sys.argv[1:]))"
)
"""The command line with long work's line shown for short work."""


_MARK = b"<the end of this look>"


def _read_to_mark(screen: int) -> str:
    """Return what the terminal got before the mark.

    One read may return a part, and what was written arrives a moment later: only the mark,
    written after everything else, says that all of it is here.
    """
    got = b""
    while not got.endswith(_MARK):
        chunk = read_some(screen)
        assert chunk, got
        got += chunk
    return got.removesuffix(_MARK).decode()


class Terminal(NamedTuple):
    """A terminal, and the stream of a program on it."""

    screen: int
    stream: TextIO

    def seen(self) -> str:
        """Return what was written since the last look."""
        os.write(self.stream.fileno(), _MARK)
        return _read_to_mark(self.screen)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """Open a terminal."""
    screen, own = pty.openpty()
    with os.fdopen(own, "w", encoding="utf-8") as stream:
        yield Terminal(screen, stream)
    os.close(screen)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the line of work however short."""
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(progress, "SHOWN_EVERY_S", 0.0)


def on_a_terminal(*arguments: str, state: Path) -> tuple[str, str]:
    """Run a command with stderr on a terminal; return its stdout and what the terminal got."""
    screen, own = pty.openpty()
    environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(state)}
    command = [sys.executable, "-c", _AT_ONCE, *arguments]
    # Read meanwhile: a terminal that nobody reads holds its writers back when it is full.
    with ThreadPoolExecutor(1) as pool:
        got = pool.submit(_read_to_mark, screen)
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=own,
                env=environ,
                cwd=state,
                check=True,
                timeout=PATIENCE_S,
            )
        finally:
            os.write(own, _MARK)
        shown = got.result(PATIENCE_S)
    os.close(own)
    os.close(screen)
    return done.stdout.decode(), shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "verify", "FILE"),
        ("audit", "stats", "--record", "FILE"),
        ("audit", "export", "--record", "FILE"),
        ("audit", "export", "--format", "flat", "--record", "FILE"),
        ("audit", "export", "--format", "ocsf", "--record", "FILE"),
    ],
)
def test_a_record_being_read_shows_how_far_it_is(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    path = sample_record(tmp_path)
    named = [str(path) if word == "FILE" else word for word in arguments]
    out, got = on_a_terminal(*named, state=tmp_path)
    assert "\rreading the record: 19 lines, 100 %" in got
    assert got.endswith(" \r")
    assert "reading" not in out


def test_calls_being_replayed_and_learned_show_how_far_they_are(tmp_path: Path) -> None:
    path = str(sample_record(tmp_path))
    _, replayed = on_a_terminal("policy", "replay", "--record", path, state=tmp_path)
    assert "\rreading calls: 0 of 3" in replayed
    assert "\rreplaying calls: 0 of 3" in replayed
    assert replayed.endswith(" \r")
    _, learned = on_a_terminal("policy", "learn", "--record", path, state=tmp_path)
    assert "\rreading calls: 0 of 3" in learned


@pytest.mark.usefixtures("at_once")
def test_the_line_is_updated_in_place_and_cleared(terminal: Terminal, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes(b"x" * 100)
    second.write_bytes(b"x" * 300)
    with redirect_stderr(terminal.stream), Reading([first, second, tmp_path / "gone"]) as reading:
        reading.read(first, 1_000_000, 100)
        reading.read(second, 2_000, 92)
        shown = ["1,000,000 lines, 25 %", "1,002,000 lines, 48 %"]
        expected = "".join(f"\rreading the record: {one}" for one in shown)
        assert terminal.seen() == expected
        reading.read(second, 5_000, 400)
        assert "1,005,000 lines, 100 %" in terminal.seen(), "a record that grows"
    assert terminal.seen() == f"\r{' ' * 42}\r"


@pytest.mark.usefixtures("at_once")
def test_a_shorter_text_leaves_nothing_of_the_longer_one(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream), Progress() as one:
        one.show("longer")
        one.show("short")
        assert terminal.seen() == "\rlonger\rshort "


@pytest.mark.usefixtures("at_once")
def test_work_that_fails_leaves_a_clear_line(terminal: Terminal) -> None:
    with suppress(KeyboardInterrupt), redirect_stderr(terminal.stream), Progress() as one:
        one.show("so far")
        raise KeyboardInterrupt
    assert terminal.seen() == "\rso far\r      \r"


@pytest.mark.usefixtures("at_once")
def test_a_line_is_cut_to_the_terminal(terminal: Terminal) -> None:
    termios.tcsetwinsize(terminal.stream.fileno(), (24, 11))
    with redirect_stderr(terminal.stream), Progress() as one:
        one.show("wider than that")
        assert terminal.seen() == "\rwider than"


def test_short_work_shows_nothing(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream), Progress() as one:
        assert list(one.count(range(5000), 5000, "counting")) == list(range(5000))
    assert not terminal.seen()


def test_updates_are_a_tenth_of_a_second_apart(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter((50.0, 50.9, 51.0, 51.0, 51.05, 51.2, 51.2))
    monkeypatch.setattr("time.monotonic", lambda: next(moments))
    with redirect_stderr(terminal.stream), Progress() as one:
        due = [one.is_due(), one.is_due()]
        one.show("x")
        due += [one.is_due(), one.is_due()]
        one.show("x")
        monkeypatch.undo()
        assert due == [False, True, False, True]
        assert terminal.seen() == "\rx\rx"


@pytest.mark.usefixtures("at_once")
def test_nothing_is_shown_where_nobody_watches(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with Reading([tmp_path]) as reading:
        reading.read(tmp_path, 1, 1)
        assert list(reading.count("ab", 2, "counting")) == ["a", "b"]
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("at_once")
def test_nothing_is_shown_beside_output_on_the_same_terminal(
    terminal: Terminal, tmp_path: Path
) -> None:
    with redirect_stderr(terminal.stream), Reading([tmp_path], wanted=False) as reading:
        reading.read(tmp_path, 1, 1)
    assert not terminal.seen()


@pytest.mark.usefixtures("at_once")
def test_a_terminal_that_went_away_does_not_stop_the_work() -> None:
    screen, own = pty.openpty()
    stream = os.fdopen(own, "w", encoding="utf-8")
    with redirect_stderr(stream), Progress() as one:
        one.show("seen")
        os.close(screen)
        one.show("unseen")
    with suppress(OSError):
        stream.close()
