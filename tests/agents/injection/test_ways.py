"""Injection is chosen where the agent can be told; otherwise its files are rewritten."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.agents.catalog import AGENTS, INJECTED, Way
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.agents.injection.ways import (
    MAX_TEXT,
    Choice,
    can_inject,
    choose_way,
    search_for_injection,
)
from thoughtgate.errors import ConfigError, UsageError


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="claude-code", argv=("claude", "-p", "hi"))
    made.write(made.home / ".claude.json", {"mcpServers": {"usr": server("user")}})
    return made


def _choose(plan: Plan, wanted: Way | None, *, remote: bool = True) -> Choice:
    return choose_way(plan, wanted, state=Path("/nowhere/state"), remote=remote)


def test_every_agent_that_is_injected_by_default_can_be() -> None:
    assert all(can_inject(kind) for kind in INJECTED)
    assert not can_inject("vscode")
    assert "custom" in AGENTS


def test_the_user_may_choose(scene: Scene) -> None:
    plan = scene.plan_to_inject()
    assert _choose(plan, None) == ("inject", "")
    assert _choose(plan, "inject") == ("inject", "")
    assert _choose(plan, "rewrite") == ("rewrite", "")


@pytest.mark.parametrize(
    "argv",
    [("claude", "mcp", "list"), ("claude", "--debug", "mcp", "get", "x"), ("claude", "doctor")],
)
def test_a_subcommand_that_uses_the_files_has_them_rewritten(
    scene: Scene, argv: tuple[str, ...]
) -> None:
    scene.argv = argv
    choice = _choose(scene.plan_to_inject(), None)
    assert choice.way == "rewrite"
    assert "uses the servers in the files" in choice.reason
    with pytest.raises(UsageError, match="--rewrite"):
        _choose(scene.plan_to_inject(), "inject")


def test_an_agent_that_takes_servers_only_from_files_is_rewritten_without_a_word(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path)
    scene.write(scene.desktop, {"mcpServers": {"a": server()}})
    assert _choose(scene.plan_to_inject(), None) == ("rewrite", "")
    with pytest.raises(UsageError, match="only from its files"):
        _choose(scene.plan_to_inject(), "inject")


def test_a_program_that_is_only_said_to_be_the_agent_is_rewritten(scene: Scene) -> None:
    search = replace(scene.search(), is_agent=False)
    assert _choose(discover(search_for_injection(search)), None).way == "rewrite"


def test_one_file_to_govern_is_rewritten(scene: Scene) -> None:
    scene.config_path = scene.home / ".claude.json"
    assert "--config-path" in _choose(scene.plan_to_inject(), None).reason


def test_an_administrators_file_is_respected(scene: Scene) -> None:
    place = scene.top / "machine" / "etc" / "claude-code" / "managed-mcp.json"
    scene.write(place, {"mcpServers": {"m": server()}})
    choice = _choose(scene.plan_to_inject(), None)
    assert choice.way == "rewrite"
    assert str(place) in choice.reason


def test_codex_with_remote_servers_is_rewritten_unless_they_are_left_to_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="codex", argv=("codex",))
    text = '[mcp_servers.a]\ncommand = "x"\n[mcp_servers.b]\nurl = "https://example.org"\n'
    scene.write(scene.home / ".codex" / "config.toml", text)
    plan = scene.plan_to_inject()
    assert _choose(plan, None).way == "rewrite"
    assert _choose(plan, None, remote=False).way == "inject"


def test_what_is_too_large_for_a_command_line_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="codex", argv=("codex",))
    text = f'[mcp_servers.a]\ncommand = "x"\nargs = ["{"x" * MAX_TEXT}"]\n'
    scene.write(scene.home / ".codex" / "config.toml", text)
    with pytest.raises(ConfigError, match="--rewrite"):
        scene.inject()
