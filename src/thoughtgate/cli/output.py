"""How commands print: JSON on stdout, messages on stderr, text that is safe for a terminal."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from thoughtgate.errors import visible


def write_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def write_report(value: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result on stdout, as JSON or as lines of text."""
    if as_json:
        write_json(value)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)


def create_file(path: Path, text: str) -> None:
    """Create a file that only its owner can read.

    Raises:
        FileExistsError: there is such a file or link; it is not changed.
    """
    # O_EXCL also refuses to follow a symlink, so the target of a link is never overwritten.
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
