"""How commands print: JSON on stdout, messages on stderr, text that is safe for a terminal."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from thoughtgate.errors import visible

REFRESH_S: Final = 1.0
"""How often ``--watch`` reads the result again."""

_CLEAR: Final = "\x1b[H\x1b[2J\x1b[3J"


def write_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def write_line(line: str) -> None:
    """Print data as it is, but with every character visible on a terminal, which would obey some."""
    sys.stdout.write((visible(line, "\n") if sys.stdout.isatty() else line) + "\n")


def write_report(value: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result on stdout, as JSON or as lines of text."""
    if as_json:
        write_json(value)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)


def watch_report(
    read: Callable[[], tuple[Any, Iterable[str]]],
    *,
    as_json: bool,
    watch: bool = False,
    nothing: str = "",
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Print a result like ``write_report``; with ``watch``, again whenever it has changed.

    A terminal shows only the newest result. Elsewhere, each result is printed below the previous
    one; as JSON, each is one line, so that a program can read them one by one. An empty result is
    reported with ``nothing`` on stderr, because a program that reads stdout expects rows there.
    """
    shown = None
    clears = watch and not as_json and sys.stdout.isatty()
    while True:
        value, lines = read()
        if as_json:
            text = json.dumps(value, indent=None if watch else 2) + "\n"
        else:
            text = "".join(f"{line}\n" for line in lines)
        if text != shown:
            sys.stdout.write(f"{_CLEAR}{text}" if clears else text)
            sys.stdout.flush()
            if not text and nothing:
                sys.stderr.write(f"{nothing}\n")
        if not watch:
            return
        shown = text
        pause(REFRESH_S)


def create_file(path: Path, text: str) -> None:
    """Create a file that only its owner can read.

    Raises:
        FileExistsError: there is such a file or link; it is not changed.
    """
    # O_EXCL does not follow a symbolic link either, so the target of a link is never overwritten.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def say(text: str) -> None:
    """Print a message of a running gate on stderr, because stdout may carry MCP or the record."""
    sys.stderr.write(f"thoughtgate: {visible(text)}\n")
    sys.stderr.flush()


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 call, 2 calls."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def is_without_colour() -> bool:
    """Return whether the user has turned colours off (https://no-color.org)."""
    return bool(os.environ.get("NO_COLOR"))
