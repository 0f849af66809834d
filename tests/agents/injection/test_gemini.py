"""Gemini CLI gets a system settings file, where only root could have written it."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.agents.injection import gemini
from thoughtgate.agents.injection.gemini import VARIABLE
from thoughtgate.agents.injection.injection import Injection
from thoughtgate.agents.injection.ways import choose_way


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="gemini", argv=("gemini", "-p", "hi"))
    entry = server("user", env={"K": "$KEY"})
    made.write(made.home / ".gemini" / "settings.json", {"mcpServers": {"usr": entry}})
    return made


def _values(made: Injection) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(made.files[0].content)
    return values


def test_a_variable_names_the_file_and_the_command_line_stays(scene: Scene) -> None:
    scene.write(scene.project / ".gemini" / "settings.json", {"mcpServers": {"proj": server("p")}})
    made = scene.inject()

    assert made.command == ("gemini", "-p", "hi")
    assert made.variables == {VARIABLE: str(made.files[0].path)}
    assert set(made.governed) == set(_values(made)["mcpServers"]) == {"usr", "proj"}
    assert _values(made)["mcpServers"]["usr"]["env"] == {"K": "$KEY"}


def test_the_administrators_settings_stay_in_force(scene: Scene) -> None:
    system = {"mcp": {"allowed": ["usr"]}, "mcpServers": {"adm": server("adm")}}
    scene.write(scene.top / "machine/etc/gemini-cli/settings.json", system)
    made = scene.inject()

    assert _values(made)["mcp"] == {"allowed": ["usr"]}
    assert set(made.governed) == {"usr", "adm"}


def test_extensions_are_named(scene: Scene) -> None:
    manifest = scene.home / ".gemini" / "extensions" / "ext" / "gemini-extension.json"
    scene.write(manifest, {"name": "ext", "mcpServers": {"srv": server()}})
    assert [one.place for one in scene.inject().outside] == [str(manifest)]


def test_a_home_of_geminis_own_is_used(scene: Scene) -> None:
    moved = scene.top / "moved"
    scene.write(moved / ".gemini" / "settings.json", {"mcpServers": {"moved": server("moved")}})
    made = replace(scene, env={"GEMINI_CLI_HOME": str(moved)}).inject()
    assert made.governed == ("moved",)


def test_a_directory_that_others_can_write_is_of_no_use(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_way(scene.plan_to_inject(), None, state=scene.state).way == "rewrite"
    monkeypatch.setattr(gemini, "is_roots", lambda _: True)
    assert choose_way(scene.plan_to_inject(), None, state=scene.state) == ("inject", "")
    sandboxed = replace(scene, argv=("gemini", "-s", "-p", "hi"))
    assert "sandbox" in choose_way(sandboxed.plan_to_inject(), None, state=scene.state).reason


def test_only_what_root_alone_can_change_is_roots(tmp_path: Path) -> None:
    assert gemini.is_roots(Path("/"))
    tmp_path.chmod(0o777)
    assert not gemini.is_roots(tmp_path)
    tmp_path.chmod(0o755)
    assert gemini.is_roots(tmp_path) is (os.geteuid() == 0)
    assert gemini.is_roots(tmp_path / "missing") is (os.geteuid() == 0)
