"""The servers of Codex's plugins are governed where they can be, and named where not."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import OURS, Scene, server

from thoughtgate.agents.injection.codex_plugins import plugin_layers, ungoverned_plugins
from thoughtgate.agents.injection.injection import Injection
from thoughtgate.agents.ungoverned_servers import find_ungoverned_servers

ENABLED = '[plugins."plug@market"]\nenabled = true\n'


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="codex", argv=("codex", "exec", "hi"))
    made.write(made.home / ".codex" / "config.toml", ENABLED)
    _plugin(made, {"plg": server("plugin", cwd="./sub", startup_timeout_sec=9, type="stdio")})
    return made


def _folder(scene: Scene, version: str = "1.0.0") -> Path:
    return scene.home / ".codex" / "plugins" / "cache" / "market" / "plug" / version


def _plugin(scene: Scene, servers: dict[str, Any], version: str = "1.0.0") -> None:
    scene.write(_folder(scene, version) / ".mcp.json", {"mcpServers": servers})


def _given(made: Injection) -> dict[str, Any]:
    word = next(one for one in made.command if one.startswith("mcp_servers="))
    servers: dict[str, Any] = tomllib.loads(word)["mcp_servers"]
    return servers


def test_a_plugins_server_is_given_whole_because_it_is_replaced_whole(scene: Scene) -> None:
    made = scene.inject()

    assert made.governed == ("plg",)
    given = _given(made)["plg"]
    assert given["command"] == OURS
    assert given["args"][-1] == "plugin"
    assert given["cwd"] == str(_folder(scene) / "sub")
    assert given["startup_timeout_sec"] == 9
    assert "type" not in given
    assert made.outside == ()


@pytest.mark.parametrize("entry", [server("x", env={"K": "hush"}), {"url": "http://127.0.0.1:9"}])
def test_what_cannot_be_given_is_named_and_its_secrets_are_not_on_the_command_line(
    scene: Scene, entry: dict[str, Any]
) -> None:
    _plugin(scene, {"plg": server("plugin"), "other": entry})
    made = scene.inject()

    assert made.governed == ("plg",)
    assert [one.place for one in made.outside] == ["other"]
    assert "hush" not in " ".join(made.command)


def test_a_server_of_the_same_name_in_a_file_takes_precedence(scene: Scene) -> None:
    scene.write(
        scene.home / ".codex" / "config.toml", ENABLED + '[mcp_servers.plg]\ncommand = "mine"\n'
    )
    made = scene.inject()

    assert _given(made)["plg"]["args"][-1] == "mine"
    assert "cwd" not in _given(made)["plg"]
    assert made.outside == ()


@pytest.mark.parametrize(
    "text",
    [ENABLED.replace("true", "false"), f"{ENABLED}[features]\nplugins = false\n", "a = 1\n"],
)
def test_a_plugin_that_is_not_enabled_has_no_servers(scene: Scene, text: str) -> None:
    scene.write(scene.home / ".codex" / "config.toml", text)
    assert plugin_layers(scene.search()) == ()
    assert list(ungoverned_plugins(scene.search())) == []


def test_the_highest_version_counts(scene: Scene) -> None:
    _plugin(scene, {"nine": server()}, "9.0.0")
    _plugin(scene, {"ten": server()}, "10.0.0")
    assert scene.inject().governed == ("ten",)


@pytest.mark.parametrize("said", [{"mine": server("inline")}, "./servers.json"])
def test_the_manifest_may_have_the_servers_or_name_their_file(scene: Scene, said: Any) -> None:
    scene.write(_folder(scene) / ".codex-plugin" / "plugin.json", {"mcpServers": said})
    scene.write(_folder(scene) / "servers.json", {"mine": server("file")})
    assert scene.inject().governed == ("mine",)


def test_plugins_are_named_if_the_files_are_rewritten(scene: Scene) -> None:
    (found,) = find_ungoverned_servers(scene.search())
    assert (found.place, found.reason) == (str(_folder(scene)), "servers of a plugin: plg")


def test_plugins_on_the_command_line_are_named(scene: Scene) -> None:
    scene.argv = ("codex", "-c", 'plugins={"p@m"={enabled=true}}', "exec", "hi")
    assert [one.place for one in scene.inject().outside] == ["-c plugins"]
