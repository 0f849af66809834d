"""Qwen Code gets one private file, and may start nothing else."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.agents.injection.injection import Injection


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="qwen", argv=("qwen", "-p", "hi"), env={"KEY": "hush"})
    entry = server("user", env={"K": "$KEY"})
    made.write(made.home / ".qwen" / "settings.json", {"mcpServers": {"usr": entry}})
    return made


def _servers(made: Injection) -> dict[str, Any]:
    servers: dict[str, Any] = json.loads(made.files[0].content)["mcpServers"]
    return servers


def _project(scene: Scene, entry: dict[str, Any]) -> None:
    scene.write(scene.project / ".mcp.json", {"mcpServers": {"proj": entry}})


def _approve(scene: Scene, entry: dict[str, Any], status: str = "approved") -> None:
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
    record = {"hash": hashlib.sha256(text.encode()).hexdigest(), "status": status}
    scene.write(scene.home / ".qwen" / "mcpApprovals.json", {str(scene.project): {"proj": record}})


def test_names_and_file_come_before_the_prompt_and_references_are_resolved(scene: Scene) -> None:
    made = scene.inject()

    allowed, config = made.command[1:3]
    assert allowed == "--allowed-mcp-server-names=usr"
    assert config == f"--mcp-config={made.files[0].path}"
    assert made.command[3:] == ("-p", "hi")
    assert _servers(made)["usr"]["env"] == {"K": "hush"}
    assert "hush" not in " ".join(made.command)


def test_a_project_server_needs_an_approval_of_just_this_entry(scene: Scene) -> None:
    entry = server("project")
    _project(scene, entry)
    assert "not approved" in scene.inject().left_out[0].reason
    _approve(scene, entry)
    assert set(scene.inject().governed) == {"usr", "proj"}
    _approve(scene, entry, "rejected")
    assert "rejected" in scene.inject().left_out[0].reason
    _approve(scene, server("another"))
    assert "not approved" in scene.inject().left_out[0].reason


def test_an_approved_url_is_recognised_in_the_form_that_qwen_stores(scene: Scene) -> None:
    _project(scene, {"type": "http", "url": "https://example.org"})
    _approve(scene, {"httpUrl": "https://example.org"})
    assert "proj" in scene.inject().governed
    made = scene.inject(remote=False)
    assert [one.place for one in made.outside] == ["proj"]


def test_lists_in_the_settings_and_flags_of_the_user_hold(scene: Scene) -> None:
    settings = {"mcp": {"excluded": ["us*"]}}
    scene.write(scene.project / ".qwen" / "settings.json", settings)
    made = scene.inject()
    assert made.governed == ()
    assert "--allowed-mcp-server-names=no-server" in made.command

    scene.write(scene.project / ".qwen" / "settings.json", {"mcp": {"allowed": ["usr"]}})
    assert scene.inject().governed == ("usr",)
    scene.argv = ("qwen", "--allowed-mcp-server-names", "x", "-p", "hi")
    made = scene.inject()
    assert made.governed == ()
    assert "x" not in made.command


def test_servers_of_extensions_are_named(scene: Scene) -> None:
    manifest = scene.home / ".qwen" / "extensions" / "e" / "qwen-extension.json"
    scene.write(manifest, {"mcpServers": {"x": server()}})
    assert [one.place for one in scene.inject().left_out] == [str(manifest)]


def test_the_users_own_config_is_folded_in(scene: Scene) -> None:
    text = json.dumps({"mcpServers": {"own": server("o")}})
    scene.argv = ("qwen", "--mcp-config", text, "-p", "hi")
    made = scene.inject()
    assert set(made.governed) == {"usr", "own"}
    assert text not in made.command


@pytest.mark.promise("repository-servers")
@pytest.mark.parametrize("name", ["*", "us?"])
def test_a_name_that_is_a_pattern_lets_no_other_server_start(scene: Scene, name: str) -> None:
    servers = {name: server("any"), "usr": server("user")}
    scene.write(scene.home / ".qwen" / "settings.json", {"mcpServers": servers})

    made = scene.inject()

    assert made.governed == ("usr",)
    assert [one for one in made.command if name in one] == []
    assert "its name is a pattern" in made.left_out[0].reason
