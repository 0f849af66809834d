"""The getting-started guide, executed in real terminals from its first line to its last."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.doc_blocks import FENCE
from tests.support.tmux import Terminal, a_terminal, needs_tmux

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/getting-started.md"

NOT_RUN = ("text",)
"""Blocks that show a shape: the command line of a server, and what opens a browser."""

INSTALL_S = 420.0
"""``pip install .`` downloads all dependencies."""

AGENT = """\
import json, pathlib, subprocess, sys
given = [one.partition("=")[2] for one in sys.argv if one.startswith("--mcp-config=")]
config = pathlib.Path(given[0]) if given else pathlib.Path.home() / ".claude.json"
servers = json.loads(config.read_text())["mcpServers"]
for entry in servers.values():
    command = [entry["command"], *entry["args"]]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    asked = {"name": "read_note", "arguments": {"name": "welcome"}}
    for ident, method, params in ((1, "initialize", {"protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": {"name": "claude", "version": "1"}}),
            (2, "tools/call", asked)):
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        server.stdin.write(json.dumps(message) + "\\n")
        server.stdin.flush()
        print(server.stdout.readline())
    server.stdin.close()
    server.wait()
"""
"""Stands in for the agent of the guide's reader: it calls one tool of each of its servers."""


class Reader:
    """Types the commands of the guide into a terminal, and waits for each to end."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._typed = 0

    def run(self, command: str, timeout: float = 60.0) -> str:
        """Run a command; return what it printed."""
        self._typed += 1
        mark = f"end of {self._typed}:"
        plain = re.sub(r"\s+#.*", "", command)
        self.terminal.type(f"clear; {plain}; echo; echo {mark} $?")
        self.terminal.sees(f"\n{mark} ", timeout)
        screen = self.terminal.screen
        assert f"\n{mark} 0" in screen, f"{command}\n{screen}"
        return screen


@pytest.mark.long
@needs_tmux
def test_the_guide_holds_from_the_first_line_to_the_last(tmp_path: Path) -> None:
    clone, home, tools = _clone(tmp_path), tmp_path / "home", tmp_path / "tools"
    _prepare(home, tools)
    env = {
        "HOME": str(home),
        "PATH": f"{tools}:{tmp_path}/venv/bin:/usr/bin:/bin",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **{name: value for name, value in os.environ.items() if name.startswith(("PIP_", "http"))},
    }
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=120)
    shell = ["sh", "-c", "PS1='> ' exec sh"]
    with (
        a_terminal(_folder(tmp_path, "one"), shell, env, clone) as first,
        a_terminal(_folder(tmp_path, "two"), shell, env, clone) as second,
    ):
        reader, other = Reader(first), Reader(second)
        for found in FENCE.finditer(GUIDE.read_text("utf-8")):
            _follow(found["info"].split()[0], found["body"], reader, other, clone)
    record = home / ".local/state/thoughtgate/audit.jsonl"
    assert '"tool_name":"read_note"' in record.read_text("utf-8")


def _follow(language: str, body: str, reader: Reader, other: Reader, clone: Path) -> None:
    """Do what one block of the guide says."""
    if language == "yaml":
        config = clone / "thoughtgate.yaml"
        rules = body.removeprefix("rules:\n")
        config.write_text(config.read_text("utf-8").replace("\nrules:\n", f"\nrules:\n{rules}", 1))
    elif language == "console":
        for command, expected in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", body, re.MULTILINE):
            verdict = expected.strip().splitlines()[-1].split(";")[0]
            assert verdict in reader.run(command), command
    elif language == "sh":
        for line in filter(None, body.splitlines()):
            if "--play" in line:
                _begin_to_play(reader.terminal, other, line)
            elif line.startswith("thoughtgate approvals"):
                _answer(line, reader.terminal, other)
            else:
                reader.run(line, INSTALL_S if line.startswith("pip") else 60.0)
    else:
        assert language in NOT_RUN, f"nothing runs a block of {language!r}"


def _begin_to_play(terminal: Terminal, other: Reader, command: str) -> None:
    """Play the tutorial up to the held call, and paste its line into the other terminal."""
    terminal.type(f"clear; {command}")
    for step in ("1 of 4.", "2 of 4."):
        terminal.sees(step)
        terminal.press("Enter")
    terminal.sees("Type a letter and press Enter:")
    exported = re.search(r"export THOUGHTGATE_STATE_DIR=\S+", terminal.screen)
    assert exported is not None
    other.run(exported[0])


def _answer(command: str, terminal: Terminal, other: Reader) -> None:
    """Answer the held call in the other terminal, and finish the tutorial."""
    if "ID" not in command.split():
        assert "delete_note" in other.run(command)
        return
    held = re.search(r"^(\w{6})  pending", other.run("thoughtgate approvals list"), re.MULTILINE)
    assert held is not None
    other.run(command.replace("ID", held[1]))
    terminal.sees("deleted draft")
    for step in ("3 of 4.", "4 of 4."):
        terminal.sees(step)
        terminal.press("Enter")
    terminal.sees("You can delete")


def _clone(folder: Path) -> Path:
    clone = folder / "clone"
    clone.mkdir()
    for name in ("src", "docs"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, clone)
    return clone


def _prepare(home: Path, tools: Path) -> None:
    """Make a home with an agent that has one server, and the agent itself."""
    for directory in (home, tools):
        directory.mkdir()
    python = str(home.parent / "venv/bin/python")
    notes = {"command": python, "args": ["-m", "thoughtgate.testing.sample_server"]}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"notes": notes}}), "utf-8")
    agent = tools / "claude"
    agent.write_text(f"#!{sys.executable}\n{AGENT}", "utf-8")
    agent.chmod(0o755)


def _folder(top: Path, name: str) -> Path:
    made = top / name
    made.mkdir()
    return made
