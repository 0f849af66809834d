"""opencode gets a variable with the shims' command lines and nothing secret."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, head

from thoughtgate.agents.injection.injection import Injection
from thoughtgate.agents.injection.opencode import VARIABLES

VARIABLE = VARIABLES["opencode"]

ENTRY = {"type": "local", "command": ["run"]}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="opencode", argv=("opencode", "run", "hi"))
    entry = {"type": "local", "command": ["run", "x"], "environment": {"T": "hush", "HOME": "/e"}}
    made.write(made.project / "opencode.json", {"mcp": {"usr": entry}})
    return made


def _content(made: Injection) -> Any:
    return json.loads(made.variables[VARIABLE])


def test_only_the_command_line_and_emptied_variables_are_given(scene: Scene) -> None:
    made = scene.inject()

    assert made.command == ("opencode", "run", "hi")
    assert _content(made) == {
        "mcp": {
            "usr": {
                "type": "local",
                "command": [*head("usr"), "run", "x"],
                "environment": {"HOME": ""},
            }
        }
    }


def test_a_remote_server_becomes_a_local_one(scene: Scene) -> None:
    far = {"type": "remote", "url": "https://example.org", "headers": {"A": "hush"}}
    scene.write(scene.project / "opencode.json", {"mcp": {"far": far}})

    given = _content(scene.inject())["mcp"]["far"]
    assert given["type"] == "local"
    assert given["command"][-2:] == ["--server", "far"]
    assert set(given) == {"type", "command"}
    assert [one.place for one in scene.inject(remote=False).outside] == ["far"]


def test_what_the_user_has_in_the_variable_is_kept_and_governed(scene: Scene) -> None:
    own = {"model": "m", "mcp": {"own": {"type": "local", "command": ["o"]}}}
    scene.env = {VARIABLE: json.dumps(own)}

    made = scene.inject()

    assert _content(made)["model"] == "m"
    assert set(made.governed) == {"usr", "own"}
    assert _content(made)["mcp"]["own"]["command"] == [*head("own"), "o"]


@pytest.mark.promise("repository-servers")
@pytest.mark.parametrize("agent", ["opencode", "kilo"])
def test_a_server_that_only_some_files_disable_stays_disabled(tmp_path: Path, agent: str) -> None:
    scene = Scene(tmp_path, agent=agent, argv=(agent,))
    # Kilo reads the folders from the working directory upwards, so that the outermost one wins.
    scene.write(scene.project / "opencode.json", {"mcp": {"x": ENTRY}})
    scene.write(scene.project / f".{agent}" / "opencode.json", {"mcp": {"x": {"enabled": False}}})

    given = json.loads(scene.inject().variables[VARIABLES[agent]])["mcp"]["x"]

    assert given["enabled"] is False
    assert given["command"] != ENTRY["command"]


@pytest.mark.promise("repository-servers")
@pytest.mark.parametrize(
    "off",
    [
        {"type": "local", "command": ["o"], "enabled": False},
        {"type": "remote", "url": "https://example.org", "enabled": False},
    ],
)
def test_a_disabled_server_that_is_switched_on_inside_the_agent_starts_nothing(
    scene: Scene, off: dict[str, Any]
) -> None:
    scene.write(scene.project / ".opencode" / "opencode.json", {"mcp": {"off": off}})

    made = scene.inject()

    # The agent merges this over the file, and starts the result without ``enabled``.
    assert _content(made)["mcp"]["off"] == {
        "type": "local",
        "command": ["thoughtgate"],
        "enabled": False,
    }
    assert made.governed == ("usr",)


def test_a_reference_to_a_file_stays_relative_to_its_config(scene: Scene) -> None:
    words = ["run", "{file:./key}", "{file:/abs}", "{env:V}"]
    entry = {"type": "local", "command": words}
    scene.write(scene.project / "opencode.json", {"mcp": {"usr": entry}})

    given = _content(scene.inject())["mcp"]["usr"]["command"][-3:]

    assert given == [f"{{file:{scene.project}/key}}", "{file:/abs}", "{env:V}"]


@pytest.mark.parametrize("words", [("attach", "http://x"), ("run", "--attach", "http://x", "hi")])
def test_a_running_server_has_servers_of_its_own(scene: Scene, words: tuple[str, ...]) -> None:
    scene.argv = ("opencode", *words)
    assert len(scene.inject().outside) == 1


def test_plugins_are_warned_about_unless_they_are_left_out(scene: Scene) -> None:
    plugin = scene.write(scene.project / ".opencode" / "plugin" / "p.ts", "x")
    (warning,) = scene.inject().warnings
    assert str(plugin) in warning
    scene.argv = ("opencode", "--pure")
    assert scene.inject().warnings == ()


@pytest.mark.parametrize("place", ["opencode.json", ".opencode/opencode.json"])
def test_a_plugin_that_a_config_names_is_warned_about(scene: Scene, place: str) -> None:
    file = scene.write(scene.project / place, {"plugin": ["./p.ts"], "mcp": {"a": ENTRY}})
    (warning,) = scene.inject().warnings
    assert str(file) in warning


@pytest.mark.promise("repository-servers")
def test_a_key_that_opencode_ignores_leaves_no_server_outside_the_gate(scene: Scene) -> None:
    scene.write(scene.project / "opencode.json", {"mcp": {"a": {**ENTRY, "disabled": True}}})
    assert scene.inject().governed == ("a",)


def test_kilo_gets_its_own_variable(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="kilo", argv=("kilo", "attach", "http://127.0.0.1:1"))
    entry = {"type": "local", "command": ["run"]}
    scene.write(scene.project / "kilo.json", {"mcp": {"usr": entry}})
    scene.write(scene.project / ".kilo" / "plugin" / "p.ts", "")

    made = scene.inject()

    assert set(made.variables) == {"KILO_CONFIG_CONTENT"}
    given = json.loads(made.variables["KILO_CONFIG_CONTENT"])["mcp"]["usr"]
    assert given["command"] == [*head("usr"), "run"]
    assert [one.place for one in made.outside] == ["the Kilo server that this attaches to"]
    assert "p.ts" in made.warnings[0]
