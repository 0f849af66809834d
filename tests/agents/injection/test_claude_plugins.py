"""Servers of plugins that are in use are governed under their own names."""

import json
from pathlib import Path

import pytest
from tests.support.agent_files import Scene, server


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="claude-code", argv=("claude",))
    made.write(made.home / ".claude.json", {"mcpServers": {"usr": server("user")}})
    return made


def _install(scene: Scene, name: str, *, enabled: bool = True, **place: str) -> Path:
    folder = scene.top / name
    entry = server("${CLAUDE_PLUGIN_ROOT}/run", "--in", "${CLAUDE_PLUGIN_ROOT}")
    scene.write(folder / ".mcp.json", {"mcpServers": {"srv": entry}})
    plugins = {"version": 2, "plugins": {f"{name}@m": [{"installPath": str(folder), **place}]}}
    scene.write(scene.home / ".claude" / "plugins" / "installed_plugins.json", plugins)
    settings = {"enabledPlugins": {f"{name}@m": enabled}}
    scene.write(scene.home / ".claude" / "settings.json", settings)
    return folder


def test_a_plugins_server_keeps_its_name_and_finds_its_directory(scene: Scene) -> None:
    folder = _install(scene, "plug")

    made = scene.inject()

    assert set(made.governed) == {"usr", "plugin:plug:srv"}
    value = json.loads(made.files[0].content)["mcpServers"]["plugin:plug:srv"]
    assert value["args"][-3:] == [f"{folder}/run", "--in", str(folder)]


def test_plugins_that_are_off_or_of_another_project_are_not_given(scene: Scene) -> None:
    _install(scene, "plug", enabled=False)
    assert scene.inject().governed == ("usr",)
    _install(scene, "plug", projectPath="/elsewhere")
    assert scene.inject().governed == ("usr",)
    _install(scene, "plug", projectPath=str(scene.project))
    assert len(scene.inject().governed) == 2


@pytest.mark.promise("repository-servers")
def test_a_repository_switches_on_no_plugin_before_its_folder_is_trusted(scene: Scene) -> None:
    _install(scene, "plug", enabled=False)
    settings = {"enabledPlugins": {"plug@m": True}}
    scene.write(scene.project / ".claude" / "settings.json", settings)
    assert scene.inject().governed == ("usr",)

    projects = {str(scene.project): {"hasTrustDialogAccepted": True}}
    own = {"mcpServers": {"usr": server("user")}, "projects": projects}
    scene.write(scene.home / ".claude.json", own)
    assert set(scene.inject().governed) == {"usr", "plugin:plug:srv"}


def test_servers_in_a_manifest_and_in_files_that_it_names_count(scene: Scene) -> None:
    folder = scene.top / "dir"
    named = {"name": "plug", "mcpServers": ["./more.json", {"inline": server("i")}]}
    scene.write(folder / ".claude-plugin" / "plugin.json", named)
    scene.write(folder / "more.json", {"flat": server("f")})
    scene.argv = ("claude", f"--plugin-dir={folder}")

    assert set(scene.inject().governed) == {"usr", "plugin:plug:flat", "plugin:plug:inline"}


def test_with_the_users_own_strict_no_plugin_counts(scene: Scene) -> None:
    _install(scene, "plug")
    text = json.dumps({"mcpServers": {"own": server("o")}})
    scene.argv = ("claude", "--strict-mcp-config", "--mcp-config", text)
    assert scene.inject().governed == ("own",)
