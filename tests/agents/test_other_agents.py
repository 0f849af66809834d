"""The files of the less common agents: rewritten, restored, and what stays outside."""

from pathlib import Path

import pytest
from tests.support.agent_files import Scene, head, put_behind_gate

from thoughtgate.agents.documents import parse_document
from thoughtgate.agents.entries import format_of
from thoughtgate.agents.entry_shapes import argv_of, lookup
from thoughtgate.agents.left_configs import remove_entries

PLAIN = """{
  "mcpServers": { // mine
    "files": {"type": "local", "tools": ["*"], "command": "npx", "args": ["-y", "files"]},
    "bare": {"command": "run", "env": {"LD_PRELOAD": "x", "MODE": "read"}},
    "off": {"command": "run", "disabled": true},
  }
}
"""
CLINE = """{
  "mcpServers": {
    "files": {"transport": {"type": "stdio", "command": "npx", "args": ["-y", "files"]}},
    "bare": {"transport": {"type": "stdio", "command": "run", "env": {"LD_PRELOAD": "x"}}},
    "far": {"transport": {"type": "streamableHttp", "url": "https://example.com/mcp"}}
  }
}
"""
AMP = """{
  "amp.notifications.enabled": true,
  "amp.mcpServers": {
    "files": {"command": "npx", "args": ["-y", "files"]},
    "bare": {"command": "run"}
  }
}
"""
GROK = """# mine
[mcp_servers.files]
command = "npx"
args = [
    "-y",
    "files",
]
enabled = true

[mcp_servers.bare]
command = "run"
"""
GOOSE = """# mine
GOOSE_MODEL: none
extensions:
  files:
    enabled: true
    type: stdio
    name: files
    cmd: npx   # the runner
    args:
      - -y
      - files
    envs: {MODE: read, LD_PRELOAD: x}
  bare:
    cmd: run
    type: stdio
    enabled: true
  far: {enabled: true, type: streamable_http, uri: "https://example.com/mcp"}
  developer: {enabled: true, type: builtin, name: developer}
  off: {enabled: false, type: stdio, cmd: run, args: []}
"""

FILES = [
    ("copilot", "home/.copilot/mcp-config.json", ("mcpServers",), PLAIN),
    ("qwen", "home/.qwen/settings.json", ("mcpServers",), PLAIN),
    ("droid", "work/shop/.factory/mcp.json", ("mcpServers",), PLAIN),
    ("kiro", "home/.kiro/settings/mcp.json", ("mcpServers",), PLAIN),
    ("junie", "work/shop/.junie/mcp/mcp.json", ("mcpServers",), PLAIN),
    ("vscode", "work/shop/.roo/mcp.json", ("mcpServers",), PLAIN),
    ("cline", "home/.cline/data/settings/cline_mcp_settings.json", ("mcpServers",), CLINE),
    ("amp", "home/.config/amp/settings.json", ("amp.mcpServers",), AMP),
    ("grok", "home/.grok/config.toml", ("mcp_servers",), GROK),
    ("grok", "work/shop/.cursor/mcp.json", ("mcpServers",), PLAIN),
    ("goose", "home/.config/goose/config.yaml", ("extensions",), GOOSE),
]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize(("agent", "place", "key", "text"), FILES)
def test_a_file_is_rewritten_and_restored(
    scene: Scene, agent: str, place: str, key: tuple[str, ...], text: str
) -> None:
    scene.agent = agent
    path = scene.write(scene.top / place, text)
    with scene.configs() as configs:
        configs.write(put_behind_gate)
        servers = lookup(parse_document(path.read_bytes(), format_of(path)).values, key)
        assert argv_of(servers["files"]) == [*head("files"), "npx", "-y", "files"]
        assert argv_of(servers["bare"]) == [*head("bare"), "run"]
        # Edited meanwhile, so that the entries are reverted one by one.
        edited = path.read_bytes()
        line = b"# late\n" if format_of(path) != "json" else b"\n"
        path.write_bytes(edited + line)
    assert path.read_bytes() == text.encode() + line


@pytest.mark.parametrize(("agent", "place", "key", "text"), FILES)
def test_a_file_is_unwrapped_without_its_journal(
    scene: Scene, agent: str, place: str, key: tuple[str, ...], text: str
) -> None:
    scene.agent = agent
    # Variables that a wrap empties are known to its journal alone.
    text = text.replace("LD_PRELOAD", "OTHER")
    path = scene.write(scene.top / place, text)
    with scene.configs(restore_on_exit=False) as configs:
        configs.write(put_behind_gate)
    for journal in scene.state.rglob("*.json"):
        journal.unlink()
    remove_entries(path)
    values = parse_document(path.read_bytes(), format_of(path)).values
    before = parse_document(text.encode(), format_of(path)).values
    for name, entry in lookup(before, key).items():
        assert argv_of(lookup(values, key)[name]) == argv_of(entry)


def test_what_cannot_be_governed_is_said(scene: Scene) -> None:
    scene.agent = "goose"
    scene.write(scene.home / ".config/goose/config.yaml", GOOSE)
    notes = {one.id: (one.status, one.note) for one in scene.plan().entries}
    assert notes["far"] == ("unsupported", "has its URL where the gate cannot replace it")
    assert notes["developer"] == ("unsupported", "of type builtin: it runs inside the agent")
    assert notes["off"] == ("disabled", "")

    scene.agent = "cline"
    scene.write(scene.home / ".cline/data/settings/cline_mcp_settings.json", CLINE)
    (far,) = [one for one in scene.plan().entries if one.id == "far"]
    assert (far.status, far.transport) == ("unsupported", "http")


@pytest.mark.parametrize(
    ("agent", "argv", "expected"),
    [
        ("copilot", ["copilot", "--additional-mcp-config", "{}"], ["--additional-mcp-config", "github-mcp-server"]),
        ("copilot", ["copilot", "--disable-builtin-mcps"], []),
        ("goose", ["goose", "run", "--with-extension", "npx x"], ["--with-extension"]),
        ("amp", ["amp", "--mcp-config", "{}"], ["--mcp-config"]),
        ("qwen", ["qwen", "--mcp-config", "{}"], ["--mcp-config"]),
    ],
)  # fmt: skip
def test_servers_on_the_command_line_are_named(
    scene: Scene, agent: str, argv: list[str], expected: list[str]
) -> None:
    scene.agent, scene.argv = agent, argv
    assert [one.place for one in scene.plan().outside] == expected


def test_the_server_that_copilot_has_built_in_is_named_only_if_copilot_is_installed(
    scene: Scene,
) -> None:
    scene.agent, scene.argv = "copilot", []
    assert scene.plan().outside == ()

    (scene.home / ".copilot").mkdir()
    assert [one.place for one in scene.plan().outside] == ["github-mcp-server"]
