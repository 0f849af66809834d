"""The pages of agents say what the code does, and what the installed programs do."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.commands import ROOT
from tests.support.real_agents import run_agent
from tests.support.wraps import Machine, entry
from tools.agent_pages import HOME, NOTES, PROJECT, files_of, render_pages

from thoughtgate.agents.catalog import AGENTS, INJECTED, Agent

FOLDER: Final = ROOT / "docs" / "guides" / "agents"
PAGES: Final = dict(render_pages())
SLOW_S: Final = 120.0


def test_every_agent_of_the_catalogue_has_a_fresh_page_and_no_other_is_left() -> None:
    found = {path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
    del found["README"]
    assert found == PAGES, "write them again: make docs"
    assert set(found) == set(AGENTS) - {"custom"}


@pytest.mark.parametrize("kind", sorted(INJECTED))
def test_an_agent_that_gets_servers_at_its_start_is_described(kind: str) -> None:
    note = NOTES[kind]
    assert note.told in PAGES[kind]
    assert note.consent in PAGES[kind]
    assert "takes its servers only from its files" not in PAGES[kind]


@pytest.mark.parametrize("kind", sorted(PAGES))
def test_a_page_names_the_files_what_is_not_governed_and_resuming(kind: str) -> None:
    page = PAGES[kind]
    agent = AGENTS[kind]
    assert f"thoughtgate wrap -- {agent.commands[0]}" in page
    for heading in ("## Files", "## What is not governed", "## Resuming a session outside `wrap`"):
        assert heading in page
    assert all(layer.path.name in page for layer in files_of(agent))


FLAGS: Final = {
    "claude-code": ("claude", "--mcp-config", "--strict-mcp-config"),
    "codex": ("codex", "-c, --config"),
    "copilot": ("copilot", "--additional-mcp-config", "--disable-builtin-mcps"),
    "qoder": ("qodercli", "--mcp-config", "--strict-mcp-config"),
    "qwen": ("qwen", "--mcp-config", "--allowed-mcp-server-names"),
}
"""The program of an agent, and options that its page relies on."""


def _output(machine: Machine, name: str, *args: str, **variables: str) -> str:
    with run_agent(machine, name, *args, variables=variables) as peer:
        peer.close_stdin()
        lines = peer.remaining_lines(SLOW_S)
        peer.wait(SLOW_S)
        return b"\n".join(lines).decode("utf-8", "replace") + peer.stderr


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(FLAGS))
def test_the_installed_program_has_the_options(tmp_path: Path, kind: str) -> None:
    name, *flags = FLAGS[kind]
    said = _output(Machine(tmp_path), name, "--help")
    assert [flag for flag in flags if flag not in said] == [], said


LISTS: Final = {
    "claude-code": ("claude", "mcp", "list"),
    "codex": ("codex", "mcp", "list"),
    "copilot": ("copilot", "mcp", "list"),
    "gemini": ("gemini", "mcp", "list"),
    "kilo": ("kilo", "mcp", "list"),
    "opencode": ("opencode", "mcp", "list"),
    "qoder": ("qodercli", "mcp", "list"),
    "qwen": ("qwen", "mcp", "list"),
    "droid": ("droid", "mcp", "list"),
    "grok": ("grok", "mcp", "doctor"),  # its list leaves out the files of other agents
}
"""The command with which an agent lists the servers in its files."""

OTHERS: Final = {"config.json": "opencode", ".github/mcp.json": "copilot"}
"""Files that are only read if another one is not there."""


def _own_files(agent: Agent, machine: Machine) -> dict[str, tuple[Path, tuple[str, ...]]]:
    """Return a server name for each file of the user and the project that the page lists."""
    found = {}
    for number, layer in enumerate(files_of(agent)):
        if layer.scope not in ("user", "project") or str(layer.path) == "/.mcp.json":
            continue
        if any(str(layer.path).endswith(one) for one, kind in OTHERS.items() if kind == agent.type):
            continue
        for before, after in ((HOME, machine.home), (PROJECT, machine.project)):
            if layer.path.is_relative_to(before):
                found[f"srv{number}"] = (after / layer.path.relative_to(before), layer.key)
    return found


def _text(agent: Agent, path: Path, key: tuple[str, ...], name: str, machine: Machine) -> str:
    sample = entry()
    words = [sample["command"], *sample["args"]]
    if path.suffix == ".toml":
        trust = f'[projects."{machine.project}"]\ntrust_level = "trusted"\n'
        args = json.dumps(sample["args"])
        return f'{trust}[{key[0]}.{name}]\ncommand = "{words[0]}"\nargs = {args}\n'
    value: Any = {"type": "local", "command": words} if key == ("mcp",) else sample
    if agent.type == "copilot":
        value = {"type": "local", "tools": ["*"], **sample}
    for one in (name, *reversed(key)):
        value = {one: value}
    return json.dumps(value)


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(LISTS))
def test_the_installed_program_reads_the_files(tmp_path: Path, kind: str) -> None:
    machine = Machine(tmp_path)
    agent = AGENTS[kind]
    files = _own_files(agent, machine)
    for name, (path, key) in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(agent, path, key, name, machine), "utf-8")
    if kind == "copilot":
        trusted = json.dumps({"trustedFolders": [str(machine.project)]})
        (machine.home / ".copilot" / "config.json").write_text(trusted, "utf-8")

    said = _output(machine, *LISTS[kind])

    assert files
    assert [str(files[name][0]) for name in files if name not in said] == [], said
