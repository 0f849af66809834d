"""Command lines of installed shims, and what is kept for them."""

from pathlib import Path

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.agents.discovery import discover
from thoughtgate.config.load import load_settings
from thoughtgate.wrap.installation import EntryCommands, InstallOptions, is_tracked

CONFIG = """\
schema: 1
default: forward
servers:
  far: {url: "https://example.com/mcp", auth: {type: bearer, token_env: FAR_TOKEN}}
"""


def _commands(
    scene: Scene, text: str = "schema: 1\ndefault: deny\n", **more: object
) -> EntryCommands:
    settings = load_settings(text, file="c.yaml", env={}, read_text=str)
    options = InstallOptions(str(scene.state), settings, "/etc/my/c.yaml", **more)  # type: ignore[arg-type]
    plan = discover(scene.plan().search, lasting=True)
    return EntryCommands(plan, scene.env, options)


def _reasons(scene: Scene, text: str, **more: object) -> list[str]:
    return [one.note for one in _commands(scene, text, **more).rewrite().ungoverned]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path, agent="cursor")


def test_the_profile_is_on_the_command_line(scene: Scene) -> None:
    scene.write(scene.home / ".cursor/mcp.json", {"mcpServers": {"a": server()}})

    (file,) = _commands(scene, profile="development").rewrite().files

    words = file.records[0].head
    own = ("shim", "--server-id", "a", "-c", "/etc/my/c.yaml", "--state-dir", str(scene.state))
    assert words[-10:] == (*own, "--profile", "development", "--")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"url": "https://${env:HOST}/mcp"}, "refers to variables"),
        ({"url": "https://a.example/mcp", "headers": {"X": "${env:T}"}}, "refers to variables"),
        ({"url": "https://example.com/mcp"}, "needs the variable FAR_TOKEN at each start"),
        ({"url": "https://a.example/mcp", "headersHelper": "x"}, "only the agent can reach it"),
    ],
)
def test_a_remote_server_that_needs_the_agent_is_left_alone_with_the_reason(
    scene: Scene, entry: dict[str, object], reason: str
) -> None:
    scene.env = {"HOST": "h", "T": "secret", "FAR_TOKEN": "secret"}
    scene.write(scene.home / ".cursor/mcp.json", {"mcpServers": {"far": entry}})

    (found,) = _reasons(scene, CONFIG)

    assert found.startswith(reason)
    assert _reasons(scene, CONFIG, remote=False) == ["remote server"]


def test_a_key_for_tokens_cannot_be_given_to_an_installed_proxy(scene: Scene) -> None:
    entry = {"url": "https://a.example/mcp"}
    scene.write(scene.home / ".cursor/mcp.json", {"mcpServers": {"far": entry}})
    text = "schema: 1\ndefault: deny\nkeys: {tokens_env: TOKENS_KEY}\n"

    assert _reasons(scene, text) == [
        "needs the variable TOKENS_KEY at each start; use thoughtgate wrap"
    ]


def test_a_file_outside_a_work_tree_is_not_tracked(tmp_path: Path) -> None:
    assert not is_tracked(tmp_path / "mcp.json")


def test_the_variables_of_a_merging_agent_are_those_up_to_the_entry(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="codex")
    user = '[mcp_servers.a]\ncommand = "x"\nenv = {HOME = "/user", XDG_A = "1"}\n'
    scene.write(scene.home / ".codex/config.toml", user)
    scene.write(scene.project / ".codex/config.toml", '[mcp_servers.a.env]\nHOME = "/project"\n')

    contents = _commands(scene).variables.contents

    assert list(contents.values()) == [
        {"env": {"HOME": "/user", "XDG_A": "1"}},
        {"env": {"HOME": "/project", "XDG_A": "1"}},
    ]
