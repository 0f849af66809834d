"""Qoder gets one private file, and starts nothing else."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.agents.injection.injection import Injection
from thoughtgate.agents.injection.ways import choose_way


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="qoder", argv=("qodercli", "-p", "hi"), env={"KEY": "hush"})
    entry = server("user", env={"K": "$KEY"})
    made.write(made.home / ".qoder" / "settings.json", {"mcpServers": {"usr": entry}})
    return made


def _servers(made: Injection) -> dict[str, Any]:
    servers: dict[str, Any] = json.loads(made.files[0].content)["mcpServers"]
    return servers


def test_the_file_is_the_only_one_and_references_are_resolved(scene: Scene) -> None:
    made = scene.inject()

    assert made.command == (
        "qodercli",
        f"--mcp-config={made.files[0].path}",
        "--strict-mcp-config",
        "-p",
        "hi",
    )
    assert _servers(made)["usr"]["env"] == {"K": "hush"}
    assert "hush" not in " ".join(made.command)


def test_the_local_entry_wins_over_the_projects_and_the_users(scene: Scene) -> None:
    for path, word in {".mcp.json": "project", ".qoder/settings.local.json": "local"}.items():
        scene.write(scene.project / path, {"mcpServers": {"usr": server(word)}})
        assert _servers(scene.inject())["usr"]["args"][-1] == word


def test_servers_of_the_command_line_are_folded_in(scene: Scene) -> None:
    text = json.dumps({"mcpServers": {"own": server("own")}})
    made = replace(scene, argv=("qodercli", "--mcp-config", text, "-p", "hi")).inject()

    assert set(made.governed) == {"usr", "own"}
    assert text not in made.command


def test_an_interactive_session_asks_about_the_servers_of_a_project_itself(scene: Scene) -> None:
    talking = replace(scene, argv=("qodercli",))
    assert choose_way(talking.plan_to_inject(), None, state=scene.state).way == "inject"
    scene.write(scene.project / ".mcp.json", {"mcpServers": {"proj": server("project")}})
    assert "may ask" in choose_way(talking.plan_to_inject(), None, state=scene.state).reason
    assert choose_way(scene.plan_to_inject(), None, state=scene.state).way == "inject"
