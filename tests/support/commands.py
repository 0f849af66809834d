"""Command lines of the real programs that tests start."""

import contextlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The top of the repository."""


def thoughtgate(*args: str) -> list[str]:
    """Return the installed command, as a user would run it."""
    return [str(Path(sys.executable).with_name("thoughtgate")), *args]


def sample_server(*flags: str) -> list[str]:
    """Return the command of the sample MCP server; see its ``--help`` for the flags."""
    return [sys.executable, "-m", "thoughtgate.testing.sample_server", *flags]


def shim(server: list[str], *flags: str, server_id: str = "sample") -> list[str]:
    """Return the command of a shim before a server."""
    return [*thoughtgate("shim", "--server-id", server_id, *flags), "--", *server]


AGENT = ("sh", "-c", 'cat | "$@" | cat', "agent")
"""An agent between a test and a gate, so that the test can be a person outside the agent.

It starts the command that follows on pipes of its own."""


def own_children() -> set[int]:
    """Return the processes that this one has started and not waited for, ended ones included."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(stat.read_bytes().rpartition(b")")[2].split()[1])
            if parent == os.getpid():
                found.add(int(stat.parent.name))
    return found
