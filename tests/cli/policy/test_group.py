"""``thoughtgate policy``: the commands it has."""

from typer.main import get_command

from thoughtgate.cli.policy.group import app


def test_every_policy_command_is_there() -> None:
    commands = getattr(get_command(app), "commands", {})

    assert set(commands) == {"explain", "lint", "test", "replay", "learn", "diff", "accept"}
