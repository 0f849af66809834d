"""A project server counts as approved only where Claude Code itself would say so."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene, server

from thoughtgate.agents.injection.claude_approvals import ClaudeApprovals

APPROVED = {"enabledMcpjsonServers": ["proj"]}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, agent="claude-code")
    made.write(made.project / ".mcp.json", {"mcpServers": {"proj": server("run", "--x")}})
    return made


def _refusal(scene: Scene) -> str:
    (entry,) = scene.plan().entries
    return ClaudeApprovals(scene.search()).refusal(entry)


def _own(scene: Scene, **values: Any) -> None:
    scene.write(scene.home / ".claude.json", {"projects": {str(scene.project): values}})


def test_nothing_on_record_is_no_approval(scene: Scene) -> None:
    assert "not approved" in _refusal(scene)


@pytest.mark.parametrize("key", [APPROVED, {"enableAllProjectMcpServers": True}])
def test_the_users_settings_approve_without_trust(scene: Scene, key: dict[str, Any]) -> None:
    scene.write(scene.home / ".claude" / "settings.json", key)
    assert _refusal(scene) == ""


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_a_repositorys_settings_approve_only_in_a_trusted_folder(scene: Scene, name: str) -> None:
    scene.write(scene.project / ".claude" / name, APPROVED)
    assert "not approved" in _refusal(scene)
    _own(scene, hasTrustDialogAccepted=True)
    assert _refusal(scene) == ""


def test_the_projects_own_record_needs_trust_too(scene: Scene) -> None:
    _own(scene, **APPROVED)
    assert "not approved" in _refusal(scene)
    _own(scene, **APPROVED, hasTrustDialogAccepted=True)
    assert _refusal(scene) == ""


def test_a_refusal_counts_wherever_it_is_and_beats_an_approval(scene: Scene) -> None:
    scene.write(scene.home / ".claude" / "settings.json", {"enableAllProjectMcpServers": True})
    refused = {"disabledMcpjsonServers": ["proj"]}
    scene.write(scene.project / ".claude" / "settings.json", refused)
    assert "rejected" in _refusal(scene)


def test_the_settings_move_with_the_config_directory(scene: Scene) -> None:
    scene.env = {"CLAUDE_CONFIG_DIR": str(scene.home / "other")}
    scene.write(scene.home / "other" / "settings.json", APPROVED)
    assert _refusal(scene) == ""


@pytest.mark.parametrize(
    "denial",
    [{"serverName": "proj"}, {"serverCommand": ["run", "--x"]}],
)
def test_a_denial_that_the_gate_would_hide_still_counts(
    scene: Scene, denial: dict[str, Any]
) -> None:
    settings = {**APPROVED, "deniedMcpServers": [denial, "odd"]}
    scene.write(scene.home / ".claude" / "settings.json", settings)
    assert "deniedMcpServers" in _refusal(scene)


def test_an_administrators_denial_of_a_url_counts_for_every_scope(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="claude-code")
    far = {"url": "https://evil.example.org/mcp", "type": "http"}
    scene.write(scene.home / ".claude.json", {"mcpServers": {"far": far}})
    assert _refusal(scene) == ""
    managed = tmp_path / "machine" / "etc" / "claude-code" / "managed-settings.json"
    scene.write(managed, {"deniedMcpServers": [{"serverUrl": "https://*.example.org/*"}]})
    assert "deniedMcpServers" in _refusal(scene)
