"""The diff that a dry run prints."""

from pathlib import Path

import pytest
from tests.support.agent_files import OURS, Scene, put_behind_gate, server

from thoughtgate.agents.diff import unified_diff


@pytest.mark.requirement("EC-STDIO-038")
def test_a_diff_shows_the_change_and_touches_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write(scene.desktop, {"mcpServers": {"a": server("npx")}})
    before = scene.desktop.read_bytes()
    text = unified_diff(put_behind_gate(scene.plan()).files)
    lines = text.splitlines()
    assert lines[0] == f"--- {scene.desktop}"
    assert lines[1] == f"+++ {scene.desktop} (wrapped)"
    assert '-      "command": "npx",' in lines
    assert f'+      "command": "{OURS}",' in lines
    assert scene.desktop.read_bytes() == before
    assert scene.litter() == []


def test_a_missing_final_newline_is_said(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write(scene.desktop, '{"mcpServers": {"a": {"command": "x"}}}')
    assert unified_diff(put_behind_gate(scene.plan()).files).count("\\ No newline at end") == 2


def test_a_diff_cannot_steer_the_terminal(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="cursor")
    scene.write(
        scene.project / ".cursor/mcp.json", '// \x1b[2J\n{"mcpServers": {"a": {"command": "x"}}}\n'
    )
    text = unified_diff(put_behind_gate(scene.plan()).files)
    assert "\x1b" not in text
    assert "[U+001B][2J" in text


def test_no_change_is_no_diff() -> None:
    assert unified_diff(()) == ""
