"""``tools`` has its commands."""

from typer.main import get_command

from thoughtgate.cli.agent_shell import walk_commands
from thoughtgate.cli.definitions.group import app


def test_every_command_is_there() -> None:
    names = {name for name, _ in walk_commands(get_command(app), "tools")}
    assert names == {
        f"tools {word}" for word in ("list", "diff", "accept", "refuse", "lock", "check")
    }
