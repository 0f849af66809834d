"""Servers that no rewrite reaches are named."""

import os
from pathlib import Path

import pytest
from tests.support.agent_files import Scene, server


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _places(scene: Scene) -> list[str]:
    return [one.place for one in scene.plan().outside]


def test_servers_given_as_text_on_the_command_line_are_named(scene: Scene) -> None:
    scene.agent, scene.argv = "claude-code", ["claude", "--mcp-config", '{"mcpServers": {}}']
    assert _places(scene) == ["--mcp-config"]


def test_servers_of_plugins_are_named(scene: Scene) -> None:
    scene.agent = "claude-code"
    plugin = scene.write(scene.home / "p" / ".mcp.json", {"db": server()})
    installed = {"plugins": {"db@x": [{"installPath": str(plugin.parent)}, {"installPath": "/no"}]}}
    scene.write(scene.home / ".claude/plugins/installed_plugins.json", installed)
    assert _places(scene) == [str(plugin)]


def test_servers_in_codex_flags_are_named_without_their_values(scene: Scene) -> None:
    scene.agent = "codex"
    scene.argv = ["codex", "-c", "mcp_servers.db.env.T=secret", "--config=model=x"]
    assert _places(scene) == ["-c mcp_servers.db"]


def test_servers_of_extensions_are_named(scene: Scene) -> None:
    scene.agent = "gemini"
    extensions = scene.home / ".gemini/extensions"
    scene.write(extensions / "a/gemini-extension.json", {"mcpServers": {"x": server()}})
    scene.write(extensions / "b/gemini-extension.json", {"name": "b"})
    scene.write(extensions / "c/gemini-extension.json", "not json")
    assert _places(scene) == [str(extensions / "a/gemini-extension.json")]


@pytest.mark.parametrize("agent", ["opencode", "kilo"])
def test_servers_in_a_variable_are_named(scene: Scene, agent: str) -> None:
    name = f"{agent.upper()}_CONFIG_CONTENT"
    scene.agent, scene.env = agent, {name: '{"mcp": {}}'}
    assert _places(scene) == [name]


@pytest.mark.promise("repository-servers")
@pytest.mark.parametrize("injects", [False, True])
@pytest.mark.parametrize("folder", [".kilocode", ".kilo"])
def test_servers_in_the_former_format_of_kilo_are_named(
    scene: Scene, folder: str, *, injects: bool
) -> None:
    scene.agent, scene.argv = "kilo", ["kilo"]
    scene.write(scene.project / "kilo.json", {"mcp": {"a": {"type": "local", "command": ["run"]}}})
    files = [
        scene.write(scene.project / folder / "mcp.json", {"mcpServers": {"x": server()}}),
        scene.write(scene.project / folder / "mcp" / "y.json", server()),
    ]
    outside = scene.inject().outside if injects else scene.plan().outside
    assert [one.place for one in outside] == [str(file) for file in files]


@pytest.mark.promise("repository-servers")
@pytest.mark.parametrize("injects", [False, True])
def test_files_of_the_main_checkout_that_kilo_reads_in_a_work_tree_are_named(
    scene: Scene, *, injects: bool
) -> None:
    scene.agent, scene.argv = "kilo", ["kilo"]
    main, tree = scene.top / "main", scene.top / "main" / ".git" / "worktrees" / "one"
    scene.write(scene.project / ".git", f"gitdir: {tree}\n")
    scene.write(scene.project / "kilo.json", {"mcp": {"a": {"type": "local", "command": ["run"]}}})
    entry = {"mcp": {"x": {"type": "local", "command": ["run"]}}}
    files = [
        scene.write(main / ".kilocode" / "opencode.json", entry),
        scene.write(main / ".kilo" / "kilo.jsonc", entry),
    ]
    outside = scene.inject().outside if injects else scene.plan().outside
    assert [one.place for one in outside] == [str(file) for file in files]


def test_a_named_file_is_all_that_counts(scene: Scene) -> None:
    scene.agent, scene.env = "opencode", {"OPENCODE_CONFIG_CONTENT": '{"mcp": {}}'}
    scene.config_path = scene.write(scene.top / "x.json", "{}")
    assert _places(scene) == []


def test_other_agents_have_no_such_way(scene: Scene) -> None:
    assert _places(scene) == []


def test_a_server_joined_to_the_short_flag_of_codex_is_named(scene: Scene) -> None:
    scene.agent, scene.argv = "codex", ["codex", "-cmcp_servers.db.command=x"]
    assert _places(scene) == ["-c mcp_servers.db"]


@pytest.mark.promise("repository-servers")
@pytest.mark.parametrize(
    ("agent", "folder", "key"),
    [
        ("claude-code", ".claude/agents", "mcpServers:"),
        ("claude-code", ".claude/agents/deep", '"mcp\\x53ervers":'),
        ("copilot", ".github/agents", "mcp-servers:"),
    ],
)
def test_servers_of_subagents_are_named(scene: Scene, agent: str, folder: str, key: str) -> None:
    scene.agent = agent
    scene.argv = [agent, "--disable-builtin-mcps"]
    file = scene.write(scene.project / folder / "a.md", f"---\nname: a\n{key}\n  x: 1\n---\nhi")
    scene.write(scene.project / folder / "b.md", "---\nname: b\n---\nabout mcpServers")
    assert _places(scene) == [str(file)]


def test_more_subagents_than_are_read_are_named_by_their_folder(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.agents.ungoverned_servers._MAX_SUBAGENTS", 1)
    scene.agent = "claude-code"
    for name in ("a.md", "b.md"):
        scene.write(scene.project / ".claude" / "agents" / name, "---\nname: a\n---\n")
    assert _places(scene) == [str(scene.project / ".claude" / "agents")]


def test_a_pipe_in_place_of_a_manifest_does_not_block(scene: Scene) -> None:
    scene.agent = "gemini"
    extension = scene.home / ".gemini/extensions/a"
    extension.mkdir(parents=True)
    os.mkfifo(extension / "gemini-extension.json")
    assert _places(scene) == []
