"""A preview shows what the agent is started with, without secrets."""

import json
from pathlib import Path

from thoughtgate.agents.injection.injection import Injection, PrivateFile
from thoughtgate.agents.injection.preview import preview


def test_command_variables_and_files_are_shown_and_secrets_hidden() -> None:
    content = {
        "mcpServers": {"a": {"command": "x", "env": {"T": "hush"}, "headers": {"A": "hush"}}}
    }
    file = PrivateFile(Path("/state/mcp.json"), json.dumps(content).encode())
    text = json.dumps({"mcp": [{"environment": {"T": "hush"}}]})

    shown = preview(Injection(("claude", "a b\x1b"), (), {"VAR": text, "PLAIN": "x"}, (file,)))

    assert "claude 'a b" in shown
    assert "\x1b" not in shown
    assert "/state/mcp.json" in shown
    assert '"command": "x"' in shown
    assert "VAR=" in shown
    assert "PLAIN=x" in shown
    assert "hush" not in shown
    assert '"T": "***"' in shown
