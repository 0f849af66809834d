"""Warnings about agents that give up on a held call before a person has to answer."""

import json
from pathlib import Path

import pytest
from tests.support.wraps import Machine

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import discover
from thoughtgate.agents.tool_timeouts import TIMEOUTS, short_timeouts


def warnings(home: Path, agent: str, approval_s: float = 300.0, **environ: str) -> list[str]:
    env = {"HOME": str(home), **environ}
    search = Search(agent, env, cwd=home, home=home, platform="linux")
    return short_timeouts(discover(search), approval_s, env)


def codex(home: Path, more: str = "") -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text(f'[mcp_servers.notes]\ncommand = "notes"\n{more}', "utf-8")


def test_codex_gives_up_after_a_minute_unless_its_config_says_more(tmp_path: Path) -> None:
    codex(tmp_path)
    (told,) = warnings(tmp_path, "codex")
    assert "gives up on a call of notes after 60s, but an approval may take 300s" in told
    assert f"set tool_timeout_sec in {tmp_path}/.codex/config.toml to 330" in told
    assert warnings(tmp_path, "codex", 60.0) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [("900", 0), ("299.5", 1), ("20", 1), ("true", 1), ('"long"', 1)],
)
def test_the_value_in_the_entry_counts(tmp_path: Path, said: str, expected: int) -> None:
    codex(tmp_path, f"tool_timeout_sec = {said}\n")
    assert len(warnings(tmp_path, "codex")) == expected


def test_claude_code_has_a_variable_and_a_key_in_milliseconds(tmp_path: Path) -> None:
    servers = {"slow": {"command": "x", "timeout": 900_000}, "other": {"command": "y"}}
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")

    assert warnings(tmp_path, "claude-code") == []
    (told,) = warnings(tmp_path, "claude-code", MCP_TOOL_TIMEOUT="60000")
    assert "of other after 60s" in told
    assert "set MCP_TOOL_TIMEOUT to 330000" in told
    assert warnings(tmp_path, "claude-code", MCP_TOOL_TIMEOUT="never") == []


def test_gemini_waits_ten_minutes_by_default(tmp_path: Path) -> None:
    path = tmp_path / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "x"}}}), "utf-8")
    assert warnings(tmp_path, "gemini") == []
    assert len(warnings(tmp_path, "gemini", 1200.0)) == 1


def test_an_agent_whose_timeout_is_not_known_is_not_warned_about(tmp_path: Path) -> None:
    assert "cursor" not in TIMEOUTS
    assert warnings(tmp_path, "cursor") == []


def test_wrap_warns_at_its_start_and_not_in_development(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    codex(machine.home)
    for profile, expected in (("production", True), ("development", False)):
        run = machine.run("wrap", "--agent-type", "codex", "--profile", profile, "--", "true")
        assert ("gives up on a call of notes" in run.stderr) is expected, run.stderr
