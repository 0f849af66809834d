"""Where each agent's files lie."""

from pathlib import Path

import pytest
from tests.support.agent_files import Scene

from thoughtgate.agents.config_paths import Search, config_layers, flag_values
from thoughtgate.errors import ConfigError


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _search(scene: Scene, agent: str, **more: object) -> Search:
    fields = {"cwd": scene.project, "home": scene.home, "env": {}, "root": scene.top / "machine"}
    return Search(agent_type=agent, **{**fields, **more})  # type: ignore[arg-type]  # a test's short cut


def _paths(search: Search) -> list[Path]:
    return list(dict.fromkeys(layer.path for layer in config_layers(search)))


def test_claude_desktop_has_one_file_a_platform(scene: Scene) -> None:
    name = "Claude/claude_desktop_config.json"
    assert _paths(_search(scene, "claude-desktop")) == [scene.home / ".config" / name]
    elsewhere = _search(scene, "claude-desktop", env={"XDG_CONFIG_HOME": "/x"})
    assert _paths(elsewhere) == [Path("/x") / name]
    mac = _search(scene, "claude-desktop", platform="darwin")
    assert _paths(mac) == [scene.home / "Library/Application Support" / name]


def test_claude_code_reads_user_every_parent_and_local_scope(scene: Scene) -> None:
    layers = config_layers(_search(scene, "claude-code"))
    user = scene.home / ".claude.json"
    assert layers[0].path == user
    assert layers[0].lock_directory
    parents = [layer.path.parent for layer in layers if layer.scope == "project"]
    assert parents == [*reversed(scene.project.parents), scene.project]
    local = [layer for layer in layers if layer.scope == "local"]
    assert ("projects", str(scene.project), "mcpServers") in [layer.key for layer in local]
    assert {layer.path for layer in local} == {user}


def test_claude_code_follows_its_config_variable(scene: Scene) -> None:
    search = _search(scene, "claude-code", env={"CLAUDE_CONFIG_DIR": str(scene.top / "cc")})
    assert config_layers(search)[0].path == scene.top / "cc" / ".claude.json"


def test_claude_code_reads_the_files_of_its_flag_last(scene: Scene) -> None:
    argv = ("claude", "--mcp-config", "a.json", '{"mcpServers": {}}', "--model", "m", "b.json")
    layers = [
        one for one in config_layers(_search(scene, "claude-code", argv=argv)) if one.writable
    ]
    assert [layer.path for layer in layers if layer.scope == "flag"] == [scene.project / "a.json"]
    assert layers[-1].scope == "flag"


def test_a_worktree_counts_as_its_main_repository(scene: Scene) -> None:
    main = scene.top / "main"
    (main / ".git" / "worktrees" / "w").mkdir(parents=True)
    (scene.project / ".git").write_text(f"gitdir: {main}/.git/worktrees/w\n")
    keys = [layer.key for layer in config_layers(_search(scene, "claude-code"))]
    assert ("projects", str(main), "mcpServers") in keys


@pytest.mark.parametrize("content", [b"gitdir: ../modules/x\n", b"\xff\xfe", b""])
def test_another_git_pointer_is_no_worktree(scene: Scene, content: bytes) -> None:
    (scene.project / ".git").write_bytes(content)
    assert config_layers(_search(scene, "claude-code"))


def test_cursor_reads_the_user_the_cwd_and_every_opened_directory(scene: Scene) -> None:
    (scene.top / "other").mkdir()
    argv = ("cursor", "../../other", "--wait", "missing", "x" * 5000, "a\0b")
    found = [
        path for path in _paths(_search(scene, "cursor", argv=argv)) if path.name == "mcp.json"
    ]
    assert [path for path in found if path.parent.name == ".cursor"] == [
        scene.home / ".cursor/mcp.json",
        scene.project / ".cursor/mcp.json",
        scene.project / "../../other" / ".cursor/mcp.json",
    ]


def test_vscode_reads_user_profiles_and_workspace(scene: Scene) -> None:
    user = scene.home / ".config/Code/User"
    (user / "profiles" / "p1").mkdir(parents=True)
    layers = config_layers(_search(scene, "vscode"))
    places = [(layer.path, layer.key) for layer in layers]
    assert (user / "mcp.json", ("servers",)) in places
    assert (user / "profiles/p1/mcp.json", ("servers",)) in places
    assert (scene.project / ".vscode/mcp.json", ("servers",)) in places
    assert (scene.project / ".mcp.json", ("mcpServers",)) in places
    assert (user / "settings.json", ("mcp", "servers")) in places


def test_vscode_insiders_has_its_own_user_directory(scene: Scene) -> None:
    paths = _paths(_search(scene, "vscode", argv=("code-insiders",)))
    assert scene.home / ".config/Code - Insiders/User/mcp.json" in paths


def test_zed_and_windsurf_have_their_places(scene: Scene) -> None:
    assert _paths(_search(scene, "zed", platform="darwin")) == [
        scene.home / ".config/zed/settings.json",
        scene.project / ".zed/settings.json",
    ]
    windsurf = scene.home / ".codeium/windsurf/mcp_config.json"
    assert windsurf in _paths(_search(scene, "windsurf"))


def test_codex_reads_from_the_git_root_down(scene: Scene) -> None:
    (scene.project.parent / ".git").mkdir()
    search = _search(scene, "codex", env={"CODEX_HOME": str(scene.top / "ch")})
    assert _paths(search)[1:] == [
        scene.top / "ch" / "config.toml",
        scene.project.parent / ".codex/config.toml",
        scene.project / ".codex/config.toml",
    ]
    assert {layer.format for layer in config_layers(search)} == {"toml"}


def test_gemini_reads_the_user_the_cwd_and_the_system(scene: Scene) -> None:
    env = {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/sys.json"}
    layers = config_layers(_search(scene, "gemini", env=env))
    assert [(layer.path, layer.writable) for layer in layers] == [
        (scene.home / ".gemini/settings.json", True),
        (scene.project / ".gemini/settings.json", True),
        (Path("/sys.json"), False),
    ]
    mac = _paths(_search(scene, "gemini", platform="darwin"))
    assert mac[-1] == scene.top / "machine/Library/Application Support/GeminiCli/settings.json"


def test_kilo_reads_every_place_in_order(scene: Scene) -> None:
    env = {"KILO_CONFIG": "/k.jsonc", "KILO_CONFIG_DIR": "/kd"}
    paths = _paths(_search(scene, "kilo", env=env))
    order = [
        scene.home / ".config/kilo/config.json",
        scene.home / ".config/kilo/kilo.jsonc",
        scene.home / ".config/kilo/opencode.json",
        Path("/k.jsonc"),
        scene.project / "kilo.json",
        scene.project / "opencode.json",
        scene.project / ".kilocode/kilo.json",
        scene.project / ".kilo/kilo.json",
        scene.home / ".kilo/kilo.json",
        Path("/kd/kilo.jsonc"),
    ]
    assert sorted(order, key=paths.index) == order
    assert scene.project / ".opencode/opencode.json" not in paths


def test_opencode_reads_every_place_in_order(scene: Scene) -> None:
    env = {"OPENCODE_CONFIG": "/o.jsonc", "OPENCODE_CONFIG_DIR": "/od"}
    paths = _paths(_search(scene, "opencode", env=env))
    order = [
        scene.home / ".config/opencode/config.json",
        scene.home / ".config/opencode/opencode.jsonc",
        Path("/o.jsonc"),
        scene.project / "opencode.json",
        scene.project / ".opencode/opencode.json",
        Path("/od/opencode.jsonc"),
    ]
    assert sorted(order, key=paths.index) == order


def test_macos_keeps_what_administrators_set_for_claude_elsewhere(scene: Scene) -> None:
    layer = config_layers(_search(scene, "claude-code", platform="darwin"))[-1]
    assert "Library/Application Support/ClaudeCode" in str(layer.path)
    assert not layer.writable


@pytest.mark.parametrize("agent", ["claude-code", "vscode", "codex", "opencode", "custom"])
def test_a_named_file_replaces_every_other(scene: Scene, agent: str) -> None:
    search = _search(scene, agent, config_path=Path("mine.json"))
    assert _paths(search) == [scene.project / "mine.json"]


def test_a_custom_agent_needs_a_named_file(scene: Scene) -> None:
    with pytest.raises(ConfigError, match="--config-path"):
        config_layers(_search(scene, "custom"))


def test_a_link_is_followed_to_the_file_itself(scene: Scene) -> None:
    target = scene.write(scene.top / "dotfiles" / "c.json", "{}")
    scene.desktop.parent.mkdir(parents=True)
    scene.desktop.symlink_to(target)
    (layer,) = config_layers(_search(scene, "claude-desktop"))
    assert (layer.path, layer.real) == (scene.desktop, target.resolve())


def test_flag_values_end_at_the_next_flag() -> None:
    argv = ("a", "x", "--f", "1", "2", "--g", "3", "--f=4", "5")
    assert list(flag_values(argv, "--f")) == ["1", "2", "4"]


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("copilot", ["home/.copilot/mcp-config.json", "work/shop/.mcp.json"]),
        (
            "qwen",
            ["home/.qwen/settings.json", "work/shop/.mcp.json", "work/shop/.qwen/settings.json"],
        ),
        ("droid", ["home/.factory/mcp.json", "work/shop/.factory/mcp.json"]),
        ("grok", ["home/.cursor/mcp.json", "home/.claude.json", "home/.grok/config.toml"]),
        ("goose", ["home/.config/goose/config.yaml"]),
        ("amp", ["home/.config/amp/settings.json", "work/shop/.amp/settings.json"]),
        ("cline", ["home/.cline/data/settings/cline_mcp_settings.json"]),
        ("kiro", ["home/.kiro/settings/mcp.json", "work/shop/.kiro/settings/mcp.json"]),
        ("junie", ["home/.junie/mcp/mcp.json", "work/shop/.junie/mcp/mcp.json"]),
    ],
)
def test_the_other_agents_have_their_places(scene: Scene, agent: str, expected: list[str]) -> None:
    found = _paths(_search(scene, agent))
    places = [scene.top / one for one in expected]
    assert [path for path in found if path in places] == [scene.top / one for one in expected]


@pytest.mark.parametrize(
    ("agent", "env", "argv", "expected"),
    [
        ("copilot", {"COPILOT_HOME": "/c"}, (), "/c/mcp-config.json"),
        ("copilot", {}, ("copilot", "--additional-mcp-config", "@/f.json"), "/f.json"),
        ("qwen", {"QWEN_CODE_SYSTEM_SETTINGS_PATH": "/s.json"}, (), "/s.json"),
        ("droid", {"FACTORY_HOME_OVERRIDE": "/d"}, (), "/d/.factory/mcp.json"),
        ("grok", {"GROK_HOME": "/g"}, (), "/g/config.toml"),
        ("goose", {"XDG_CONFIG_HOME": "/x"}, (), "/x/goose/config.yaml"),
        ("amp", {}, ("amp", "--settings-file=/a.json"), "/a.json"),
        ("cline", {"CLINE_MCP_SETTINGS_PATH": "/c.json"}, (), "/c.json"),
        ("cline", {}, ("cline", "--data-dir", "/d"), "/d/settings/cline_mcp_settings.json"),
    ],
)
def test_variables_and_flags_move_the_files_of_the_other_agents(
    scene: Scene, agent: str, env: dict[str, str], argv: tuple[str, ...], expected: str
) -> None:
    assert Path(expected) in _paths(_search(scene, agent, env=env, argv=argv))


@pytest.mark.parametrize(
    ("agent", "folder"),
    [("vscode", "Code"), ("cursor", "Cursor"), ("windsurf", "Windsurf"), ("kiro", "Kiro")],
)
def test_the_extensions_of_an_editor_have_their_places(
    scene: Scene, agent: str, folder: str
) -> None:
    found = _paths(_search(scene, agent))
    storage = scene.home / ".config" / folder / "User" / "globalStorage"
    assert storage / "saoudrizwan.claude-dev/settings/cline_mcp_settings.json" in found
    assert storage / "rooveterinaryinc.roo-cline/settings/mcp_settings.json" in found
    assert scene.project / ".roo/mcp.json" in found
