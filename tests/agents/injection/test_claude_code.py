"""Claude Code gets one private file with exactly the servers that it would have used."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, head, server

from thoughtgate.agents.injection.claude_code import managed_file
from thoughtgate.agents.injection.injection import Injection


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="claude-code", argv=("claude", "-p", "hi"))
    made.write(made.home / ".claude.json", {"mcpServers": {"usr": server("user")}})
    return made


def _servers(made: Injection) -> dict[str, Any]:
    (file,) = made.files
    servers: dict[str, Any] = json.loads(file.content)["mcpServers"]
    return servers


def test_the_flags_come_first_so_that_no_prompt_is_taken_for_a_file(scene: Scene) -> None:
    made = scene.inject()

    path = made.files[0].path
    assert made.command == ("claude", f"--mcp-config={path}", "--strict-mcp-config", "-p", "hi")
    assert made.governed == ("usr",)
    assert _servers(made)["usr"]["args"] == [*head("usr")[1:], "user"]


def test_secrets_stay_in_the_private_file(scene: Scene) -> None:
    entry = server("user", env={"TOKEN": "hush", "REF": "${HOME}"})
    scene.write(scene.home / ".claude.json", {"mcpServers": {"usr": entry}})

    made = scene.inject()

    assert _servers(made)["usr"]["env"] == entry["env"]
    assert "hush" not in " ".join(made.command)


def test_a_project_server_is_left_out_until_the_user_has_approved_it(scene: Scene) -> None:
    project = {"proj": server("project"), "usr": server("other")}
    scene.write(scene.project / ".mcp.json", {"mcpServers": project})

    made = scene.inject()

    assert list(_servers(made)) == ["usr"]
    assert _servers(made)["usr"]["args"][-1] == "user", "the file's own entry is not hidden"
    assert [one.place for one in made.left_out] == ["proj"]

    scene.write(
        scene.home / ".claude" / "settings.json", {"enabledMcpjsonServers": ["proj", "usr"]}
    )
    made = scene.inject()
    assert set(made.governed) == {"usr", "proj"}
    assert _servers(made)["usr"]["args"][-1] == "other"
    assert not made.left_out


def test_only_the_projects_own_local_servers_are_given(scene: Scene) -> None:
    (scene.project / ".git").mkdir()
    projects = {
        str(scene.project): {"mcpServers": {"loc": server("local")}},
        str(scene.project.parent): {"mcpServers": {"above": server("above")}},
    }
    scene.write(scene.home / ".claude.json", {"projects": projects})

    assert scene.inject().governed == ("loc",)


def test_the_users_own_configs_are_folded_in(scene: Scene) -> None:
    file = scene.write(scene.project / "mine.json", {"mcpServers": {"file": server("f")}})
    text = json.dumps({"mcpServers": {"text": server("t")}})
    scene.argv = ("claude", "--mcp-config", str(file), text, "-p", "hi")

    made = scene.inject()

    assert set(made.governed) == {"usr", "file", "text"}
    assert made.command[1].startswith("--mcp-config=")
    assert made.command[2:] == ("--strict-mcp-config", "-p", "hi")


def test_with_the_users_own_strict_only_their_configs_are_governed(scene: Scene) -> None:
    text = json.dumps({"mcpServers": {"text": server("t")}})
    scene.argv = ("claude", "--strict-mcp-config", f"--mcp-config={text}")

    made = scene.inject()

    assert made.governed == ("text",)
    assert made.command.count("--strict-mcp-config") == 1


def test_a_server_that_only_the_agent_can_reach_is_kept_and_named(scene: Scene) -> None:
    far = {"type": "http", "url": "https://example.org/mcp"}
    scene.write(scene.home / ".claude.json", {"mcpServers": {"usr": server("user"), "far": far}})

    governed = scene.inject()
    assert set(governed.governed) == {"usr", "far"}
    assert "url" not in _servers(governed)["far"]

    kept = scene.inject(remote=False)
    assert kept.governed == ("usr",)
    assert _servers(kept)["far"] == far
    assert [one.place for one in kept.outside] == ["far"]


def test_servers_of_subagents_and_sessions_in_the_background_are_warned_about(scene: Scene) -> None:
    agent = scene.write(
        scene.project / ".claude" / "agents" / "a.md", "---\nname: a\nmcpServers: {}\n---\nhi\n"
    )
    scene.write(scene.project / ".claude" / "agents" / "b.md", "---\nname: b\n---\nmcpServers:\n")
    scene.argv = ("claude", "--bg", "hi")

    background, subagent = scene.inject().warnings

    assert "background" in background
    assert subagent.startswith(str(agent))


def test_an_administrators_file_is_named(scene: Scene) -> None:
    assert managed_file(scene.search()) == ""
    place = scene.top / "machine" / "etc" / "claude-code" / "managed-mcp.json"
    scene.write(place, {"mcpServers": {}})
    assert managed_file(scene.search()) == str(place)
