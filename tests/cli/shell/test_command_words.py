"""What can follow on a command line."""

import pytest

from thoughtgate.cli.app import COMMANDS
from thoughtgate.cli.shell.command_words import next_words


def test_every_command_is_offered_first() -> None:
    assert set(next_words([""])) == {one.name for one in COMMANDS}
    assert next_words([]) == next_words([""])


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["serv"], ["serve", "servers"]),
        (["--v"], ["--version"]),
        (["servers", ""], ["add", "list", "remove"]),
        (["approvals", "grants", "r"], ["revoke"]),
        (["servers", "list", "--w"], ["--watch"]),
        (["servers", "add", "--move"], ["--move-secrets"]),
        (["shim", "--serv"], ["--server-id", "--server-name"]),
    ],
)
def test_what_follows_is_offered(typed: list[str], offered: list[str]) -> None:
    assert next_words(typed) == offered


@pytest.mark.parametrize(
    "typed",
    [
        ["wrap", "--", "s"],
        ["status", "--config", ""],
        ["nonsense", ""],
        ["validate-config", "./"],
        ["completion", "--n"],
    ],
)
def test_files_values_and_other_programs_are_left_to_the_shell(typed: list[str]) -> None:
    assert next_words(typed) == []
