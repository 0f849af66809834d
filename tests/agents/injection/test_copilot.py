"""Copilot CLI gets a private file for a prompt, and project servers only from trusted folders."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.agents.injection.copilot import obstacle
from thoughtgate.agents.injection.injection import Injection
from thoughtgate.agents.injection.ways import choose_way


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="copilot", argv=("copilot", "-p", "hi"))
    entry = server("user", env={"K": "$KEY"})
    made.write(made.home / ".copilot" / "mcp-config.json", {"mcpServers": {"usr": entry}})
    return made


def _servers(made: Injection) -> dict[str, Any]:
    servers: dict[str, Any] = json.loads(made.files[0].content)["mcpServers"]
    return servers


def _trust(scene: Scene, *folders: Path, key: str = "trustedFolders") -> None:
    scene.write(scene.home / ".copilot" / "config.json", {key: [str(one) for one in folders]})


def test_the_file_comes_first_and_references_are_left_to_copilot(scene: Scene) -> None:
    made = scene.inject()

    assert made.command == (
        "copilot",
        f"--additional-mcp-config=@{made.files[0].path}",
        "-p",
        "hi",
    )
    assert _servers(made)["usr"]["env"] == {"K": "$KEY"}
    assert made.variables == {}


def test_servers_of_the_command_line_are_folded_in(scene: Scene) -> None:
    text = json.dumps({"mcpServers": {"own": server("own"), "usr": server("mine")}})
    argv = ("copilot", "--additional-mcp-config", text, "-p", "hi")
    made = replace(scene, argv=argv).inject()

    assert set(made.governed) == {"usr", "own"}
    assert text not in made.command
    assert "mine" in _servers(made)["usr"]["args"]


@pytest.mark.parametrize("key", ["trustedFolders", "trusted_folders"])
def test_a_project_server_needs_a_trusted_folder(scene: Scene, key: str) -> None:
    scene.write(scene.project / ".mcp.json", {"mcpServers": {"proj": server("project")}})
    assert [one.reason for one in scene.inject().left_out] == [
        "the folder is not trusted in Copilot CLI"
    ]
    _trust(scene, scene.project.parent, key=key)
    assert set(scene.inject().governed) == {"usr", "proj"}
    _trust(scene, scene.project / "below", scene.project.with_name("shopping"), key=key)
    assert set(scene.inject().governed) == {"usr"}


def test_an_entry_of_an_untrusted_folder_does_not_replace_the_users(scene: Scene) -> None:
    scene.write(scene.project / ".mcp.json", {"mcpServers": {"usr": server("project")}})
    made = scene.inject()

    assert "user" in _servers(made)["usr"]["args"]
    _trust(scene, scene.project)
    assert "project" in _servers(scene.inject())["usr"]["args"]


def test_the_file_below_github_counts_only_alone(scene: Scene) -> None:
    _trust(scene, scene.project)
    scene.write(scene.project / ".github" / "mcp.json", {"mcpServers": {"git": server("git")}})
    assert set(scene.inject().governed) == {"usr", "git"}
    scene.write(scene.project / ".mcp.json", {"mcpServers": {"proj": server("project")}})
    made = scene.inject()
    assert set(made.governed) == {"usr", "proj"}
    assert "git" not in _servers(made)


def test_builtin_servers_and_plugins_are_named(scene: Scene) -> None:
    plugin = scene.home / ".copilot" / "installed-plugins" / "market" / "plug"
    scene.write(plugin / ".mcp.json", {"mcpServers": {"srv": server()}})
    assert [one.place for one in scene.inject().outside] == [str(plugin), "github-mcp-server"]


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("copilot",), "interactive session"),
        (("copilot", "-i", "hi"), "interactive session"),
        (("copilot", "-p", "hi", "--agent=x"), "--agent"),
        (("copilot", "--acp"), "--acp"),
        (("copilot", "--prompt=hi"), ""),
        (("copilot", "--continue", "-p", "hi"), ""),
    ],
)
def test_only_a_prompt_can_be_given_servers(
    scene: Scene, argv: tuple[str, ...], reason: str
) -> None:
    said = obstacle(argv)
    assert reason in said
    choice = choose_way(replace(scene, argv=argv).plan_to_inject(), None, state=scene.state)
    assert choice.way == ("rewrite" if reason else "inject")
