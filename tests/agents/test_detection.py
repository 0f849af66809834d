"""Which agent a command starts."""

import pytest

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.detection import agent_named, detect_agent
from thoughtgate.errors import UsageError


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("claude", "claude-code"),
        ("claude-code", "claude-code"),
        ("/usr/local/bin/claude", "claude-code"),
        ("/Applications/Claude.app/Contents/MacOS/Claude", "claude-desktop"),
        ("claude-desktop", "claude-desktop"),
        ("cursor", "cursor"),
        ("/Applications/Cursor.app/Contents/MacOS/Cursor", "cursor"),
        ("code", "vscode"),
        ("code-insiders", "vscode"),
        ("/Applications/Visual Studio Code - Insiders.app/Contents/MacOS/Electron", "vscode"),
        ("windsurf", "windsurf"),
        ("zed", "zed"),
        ("codex", "codex"),
        ("gemini", "gemini"),
        ("opencode", "opencode"),
        (r"C:\tools\codex.exe", "codex"),
    ],
)
def test_the_type_follows_from_the_command(command: str, expected: str) -> None:
    assert detect_agent([command, "--flag", "zed"]) == expected


def test_a_named_type_wins_over_the_command() -> None:
    assert detect_agent(["claude"], "custom") == "custom"


@pytest.mark.parametrize(
    "command", ["my-agent", "claudette", "Claude", "/Applications/Other.app/x"]
)
def test_an_unknown_command_is_answered_with_the_supported_types(command: str) -> None:
    with pytest.raises(UsageError, match="--agent-type") as caught:
        detect_agent([command])
    assert all(name in str(caught.value) for name in (*AGENTS, command))


def test_an_unknown_type_is_answered_with_the_supported_types() -> None:
    with pytest.raises(UsageError, match=r"is not a known agent.*\nKnown agents: claude-"):
        detect_agent(["claude"], "emacs")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("claude", "claude-code"), ("zed", "zed"), ("/bin/code-insiders", "vscode")],
)
def test_an_agent_can_be_named_by_its_program(name: str, expected: str) -> None:
    assert agent_named(name) == expected


def test_a_mistyped_name_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"did you mean claude\?") as caught:
        agent_named("clade")
    assert "--agent-type" not in str(caught.value)


def test_a_missing_command_is_answered_with_an_example() -> None:
    with pytest.raises(UsageError, match="thoughtgate wrap -- claude"):
        detect_agent([])
