"""A config with a sample server that can say something else about its tools."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import shim
from tests.support.stdio_peer import StdioPeer
from tests.support.warm_command import run_warm

PATIENCE_S = 20.0


class Place:
    """A directory with a config, and the state of the gates there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said = root / "said.json"
        self.config = root / "thoughtgate.yaml"
        self.server = [
            sys.executable,
            "-m",
            "thoughtgate.testing.sample_server",
            "--said",
            str(self.said),
        ]
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "THOUGHTGATE_STATE_DIR": str(root / "state"),
        }
        self.write_config()

    def write_config(self, **more: Any) -> None:
        """Write the config; ``more`` are further servers."""
        entry = {"command": self.server[0], "args": self.server[1:], "definitions": "pin"}
        whole = {"schema": 1, "default": "forward", "servers": {"sample": entry, **more}}
        self.config.write_text(json.dumps(whole))

    def pull(self, **tools: Any) -> None:
        """Have the server say something else."""
        self.said.write_text(json.dumps(tools))

    def list_tools(self) -> list[str]:
        """Have an agent list the tools through a gate, and return them."""
        command = shim(self.server, "-c", str(self.config), server_id="sample")
        peer = StdioPeer(command, env=self.env, cwd=self.root)
        try:
            opening = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            }
            peer.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening})
            peer.receive(PATIENCE_S)
            peer.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
            listed = peer.receive(PATIENCE_S)
        finally:
            peer.destroy()
        return [one["name"] for one in listed["result"]["tools"]]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the config."""
        return run_warm(*words, "-c", str(self.config), env=self.env, cwd=self.root)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
