"""Codex gets an override for every name that its files know, and none that grants trust."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, head

from thoughtgate.agents.injection.codex import without_overrides
from thoughtgate.agents.injection.injection import Injection

USER = '[mcp_servers.usr]\ncommand = "user"\nargs = ["--x"]\nenv = {TOKEN = "hush"}\n'


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="codex", argv=("codex", "exec", "hi"))
    made.write(made.home / ".codex" / "config.toml", USER)
    return made


def _overrides(made: Injection) -> dict[str, Any]:
    """Return what the options say, each read as Codex does."""
    words = list(made.command)
    values = [words[at + 1] for at, word in enumerate(words) if word == "-c"]
    found: dict[str, Any] = {}
    for value in values:
        key, _, text = value.partition("=")
        assert key == "mcp_servers"
        found = tomllib.loads(f"x = {text}")["x"]  # a second one replaces the first
    return found


def _project(scene: Scene, trust: str = "") -> None:
    scene.write(scene.project / ".codex" / "config.toml", '[mcp_servers.proj]\ncommand = "p"\n')
    if trust:
        text = f'{USER}[projects."{scene.project}"]\ntrust_level = "{trust}"\n'
        scene.write(scene.home / ".codex" / "config.toml", text)


def test_command_and_arguments_are_given_whole_and_secrets_stay_in_the_file(scene: Scene) -> None:
    made = scene.inject()

    assert made.command[0] == "codex"
    assert made.command[3:] == ("exec", "hi")
    assert _overrides(made) == {
        "usr": {"command": head("usr")[0], "args": [*head("usr")[1:], "user", "--x"]}
    }
    assert "hush" not in " ".join(made.command)


@pytest.mark.parametrize("trust", ["", "untrusted"])
def test_servers_of_a_folder_that_is_not_trusted_stay_off_even_if_it_is_trusted_later(
    scene: Scene, trust: str
) -> None:
    _project(scene, trust)

    made = scene.inject()

    assert made.governed == ("usr",)
    assert [one.place for one in made.left_out] == ["proj"]
    disabled = _overrides(made)["proj"]
    assert disabled["enabled"] is False
    assert disabled["command"] == head("proj")[0]
    assert not any("trust_level" in word for word in made.command)


def test_servers_of_a_trusted_folder_are_governed(scene: Scene) -> None:
    _project(scene, "trusted")
    assert set(scene.inject().governed) == {"usr", "proj"}


def test_a_remote_server_of_a_folder_that_is_not_trusted_stays_off(scene: Scene) -> None:
    text = '[mcp_servers.far]\nurl = "https://example.org/?key=hush"\n'
    scene.write(scene.project / ".codex" / "config.toml", text)

    given = _overrides(scene.inject(remote=False))["far"]

    assert given == {"url": "http://127.0.0.1:9/", "enabled": False}


def test_a_disabled_server_stays_as_it_is(scene: Scene) -> None:
    text = USER + '[mcp_servers.off]\ncommand = "o"\nenabled = false\n'
    scene.write(scene.home / ".codex" / "config.toml", text)
    assert list(_overrides(scene.inject())) == ["usr"]


def test_a_server_that_cannot_be_governed_is_named(scene: Scene) -> None:
    text = USER + '[mcp_servers.far]\nurl = "https://example.org"\n'
    scene.write(scene.home / ".codex" / "config.toml", text)

    made = scene.inject(remote=False)

    assert [one.place for one in made.outside] == ["far"]
    assert list(_overrides(made)) == ["usr"]


def test_odd_names_and_arguments_reach_codex_as_they_are(scene: Scene) -> None:
    text = '[mcp_servers."a.b"]\ncommand = "o"\nargs = ["ä→", "\\u007f", "\\"", "\\\\", "\\n"]\n'
    scene.write(scene.home / ".codex" / "config.toml", text)
    given = _overrides(scene.inject())["a.b"]
    assert given["args"][-5:] == ["ä→", "\x7f", '"', "\\", "\n"]


def test_the_users_own_overrides_are_folded_in(scene: Scene) -> None:
    scene.argv = (
        *("codex", "-c", "model=o3", "-c", "mcp_servers.own.command=run"),
        *("--config=mcp_servers.own.args=['a']", '-cmcp_servers.usr.args=["z"]', "hi"),
    )

    made = scene.inject()

    given = _overrides_but(made, "model=o3")
    assert given["own"]["args"][-2:] == ["run", "a"]
    assert given["usr"]["args"][-2:] == ["user", "z"]
    assert made.command[-3:] == ("-c", "model=o3", "hi")


def _overrides_but(made: Injection, other: str) -> dict[str, Any]:
    words = [word for word in made.command if word != other]
    at = [index for index, word in enumerate(words) if word == "-c"][-1]
    del words[at]
    return _overrides(Injection(tuple(words), ()))


def test_other_options_stay_where_they_are() -> None:
    words = ["codex", "-c", "model=x", "--config", "y=1", "--", "-c", "mcp_servers.a=1"]
    assert without_overrides(words) == words
    assert without_overrides(["codex", "-c"]) == ["codex", "-c"]


@pytest.mark.promise("repository-servers")
def test_a_folder_that_is_trusted_later_cannot_enable_a_server_that_the_user_disabled(
    scene: Scene,
) -> None:
    off = '[mcp_servers.off]\ncommand = "o"\nenabled = false\n'
    scene.write(scene.home / ".codex" / "config.toml", USER + off)
    scene.write(
        scene.project / ".codex" / "config.toml",
        '[mcp_servers.off]\ncommand = "evil"\nenabled = true\n',
    )
    assert _overrides(scene.inject())["off"] == {"enabled": False}


@pytest.mark.promise("repository-servers")
def test_a_key_that_codex_ignores_leaves_no_server_outside_the_gate(scene: Scene) -> None:
    _project(scene, "trusted")
    scene.write(
        scene.project / ".codex" / "config.toml",
        '[mcp_servers.x]\ncommand = "e"\ndisabled = true\n',
    )
    assert set(scene.inject().governed) == {"usr", "x"}


def test_a_server_that_the_command_line_disables_stays_disabled(scene: Scene) -> None:
    scene.write(
        scene.home / ".codex" / "config.toml", USER + '[mcp_servers.other]\ncommand = "o"\n'
    )
    scene.argv = ("codex", "-c", "mcp_servers.usr.enabled=false", "exec", "hi")

    made = scene.inject()

    assert _overrides(made)["usr"] == {"enabled": False}
    assert made.governed == ("other",)
