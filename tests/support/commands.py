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


def isolated_command(folder: Path, home: Path | None = None) -> Path:
    """Write a ``thoughtgate`` with another home directory of the account: what ``HOME`` says, or ``home``.

    Gates that an agent starts ask the password database, which a test cannot change.
    """
    script = folder / "thoughtgate"
    place = "os.environ['HOME']" if home is None else repr(str(home))
    script.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        "from thoughtgate.gate import state_directory\n"
        f"state_directory.account_home = lambda: {place}\n"
        "from thoughtgate.cli.entry import main\n"
        "sys.exit(main())\n",
        "utf-8",
    )
    script.chmod(0o755)
    return script


def sample_server(*flags: str) -> list[str]:
    """Return the command of the sample MCP server; see its ``--help`` for the flags."""
    return [sys.executable, "-m", "thoughtgate.testing.sample_server", *flags]


def shim(server: list[str], *flags: str, server_id: str = "sample") -> list[str]:
    """Return the command of a shim before a server; its state is beside its config by default."""
    gate = with_state(thoughtgate("shim", "--server-id", server_id, *flags))
    return [*gate, "--", *server]


def with_state(command: list[str]) -> list[str]:
    """Add the state directory to a gate that an agent starts: beside its config.

    Such a gate does not take its state directory from the environment.
    """
    if "-c" not in command or "--state-dir" in command:
        return command
    config = Path(command[command.index("-c") + 1])
    return [*command, "--state-dir", str(config.absolute().parent / "state")]


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
