"""The paths of each agent's config files, on Linux and macOS.

Every function returns layers from the lowest to the highest precedence. This module uses the
file system only to find a git root and to resolve links; it reads no config.
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.entries import Format, KeyPath, Layer, format_of
from thoughtgate.agents.entry_shapes import merge_keys
from thoughtgate.errors import ConfigError, Problem

_SERVERS: Final[KeyPath] = ("mcpServers",)


@dataclass(frozen=True, slots=True)
class Search:
    """Everything that determines which config files an agent would load."""

    agent_type: str
    """As ``detect_agent`` returns it."""
    env: Mapping[str, str]
    """The environment that the agent will get."""
    cwd: Path
    """Where the agent will run; absolute."""
    home: Path
    config_path: Path | None = None
    """The one file to govern, in place of every other."""
    argv: tuple[str, ...] = ()
    """The agent's command line, which may name config files and project directories."""
    platform: str = "linux"
    """Selects the paths of Linux or macOS, as ``sys.platform`` names them."""
    root: Path = field(default=Path("/"))
    """The directory below which system-wide settings are searched; tests change it."""
    launcher: tuple[str, ...] = ()
    """The words before the agent's command line, such as ``npx``."""
    is_agent: bool = True
    """Whether the command is known to be the agent, and not only said to be."""
    injects: bool = False
    """Whether servers are given to the agent at its start, so that no file has to be changed."""
    lowest: tuple[Layer, ...] = ()
    """Servers that are in no config file, such as those of plugins; all others take precedence."""

    @property
    def config_home(self) -> Path:
        """The directory of per-user application settings on this platform."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.xdg_config

    @property
    def xdg_config(self) -> Path:
        """The XDG config directory, which some programs use on macOS too."""
        return self.variable_path("XDG_CONFIG_HOME") or self.home / ".config"

    def variable_path(self, name: str) -> Path | None:
        """Return the path in an environment variable, or None."""
        value = self.env.get(name, "")
        return self.cwd / value if value else None

    def system_wide(self, linux: str, macos: str) -> Path:
        """Return the directory of a program's system-wide settings, given its name on each system."""
        if self.platform == "darwin":
            return self.root / "Library" / "Application Support" / macos
        return self.root / "etc" / linux

    @property
    def project_directories(self) -> tuple[Path, ...]:
        """The working directory, and the directories that the command line opens."""
        # A path can also be the value of a flag, as in --add-dir=PATH. A word with a NUL is no path.
        words = [word.partition("=")[2] if word.startswith("-") else word for word in self.argv[1:]]
        opened = [self.cwd / word for word in words if word and "\0" not in word]
        return tuple(dict.fromkeys([self.cwd, *(path for path in opened if _is_directory(path))]))


def config_layers(search: Search) -> tuple[Layer, ...]:
    """Return every place from which the agent would load servers, lowest precedence first.

    Raises:
        ConfigError: a custom agent needs ``--config-path``.
    """
    if search.config_path is not None:
        return tuple(_overridden(search, search.cwd / search.config_path))
    if search.agent_type == "custom":
        raise ConfigError([Problem("", "--agent-type custom needs --config-path FILE")])
    # Without duplicates: the working directory can be the home directory, for example.
    return tuple(dict.fromkeys((*search.lowest, *_PLACES[search.agent_type](search))))


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a prompt on the command line can be longer than a file name may be
        return False


def _layer(path: Path, scope: str, key: KeyPath = _SERVERS, **more: Any) -> Layer:
    return Layer(path, Path(os.path.realpath(path)), scope, key, format_of(path), **more)


def _inline(place: str, text: str, key: KeyPath = _SERVERS, form: Format = "json") -> Layer:
    """Return the layer of servers that are in no file, but on the command line or in a variable."""
    return Layer(Path(place), Path(place), "flag", key, form, writable=False, inline=text)


def _overridden(search: Search, path: Path) -> Iterator[Layer]:
    """Return the layers of the single file given with ``--config-path``."""
    more = {"strict": search.agent_type in ("claude-code", "claude-desktop")}
    for key in _KEYS.get(search.agent_type, (_SERVERS,)):
        yield _layer(path, "user", key, **more)
    if search.agent_type == "claude-code":
        for directory in _project_keys(search.cwd):
            yield _layer(path, "local", ("projects", directory, "mcpServers"), **more)


def _claude_desktop(search: Search) -> Iterator[Layer]:
    yield _layer(search.config_home / "Claude" / "claude_desktop_config.json", "user", strict=True)


def _claude_code(search: Search) -> Iterator[Layer]:
    if "--strict-mcp-config" not in search.argv:
        yield from _claude_code_files(search)
    yield from given_configs(search)
    managed = search.system_wide("claude-code", "ClaudeCode") / "managed-mcp.json"
    yield _layer(managed, "system", strict=True, writable=False)


def claude_code_state(search: Search) -> Path:
    """Return the file with Claude Code's own state: servers, projects and approvals."""
    return (search.variable_path("CLAUDE_CONFIG_DIR") or search.home) / ".claude.json"


def claude_settings_directory(search: Search) -> Path:
    """Return the directory of Claude Code's settings and plugins."""
    return search.variable_path("CLAUDE_CONFIG_DIR") or search.home / ".claude"


def given_configs(search: Search) -> Iterator[Layer]:
    """Return the configs that the command line names, and for an injection those it contains."""
    for number, value in enumerate(flag_values(search.argv, "--mcp-config"), 1):
        if not value.lstrip().startswith("{"):
            yield _layer(search.cwd / value, "flag", strict=True)
        elif search.injects:
            yield _inline(f"--mcp-config {number}", value)


def _claude_code_files(search: Search) -> Iterator[Layer]:
    user = claude_code_state(search)
    own: dict[str, Any] = {"strict": True, "lock_directory": True}
    yield _layer(user, "user", **own)
    for parent in _upward(search.cwd):
        yield _layer(parent / ".mcp.json", "project", strict=True)
    # To rewrite an entry that the agent does not use is harmless; to inject it would start it.
    keys = claude_project_keys if search.injects else _project_keys
    for key in keys(search.cwd):
        yield _layer(user, "local", ("projects", key, "mcpServers"), **own)


def _cursor(search: Search) -> Iterator[Layer]:
    yield from _extensions_of(search, "Cursor")
    yield _layer(search.home / ".cursor" / "mcp.json", "user")
    for directory in search.project_directories:
        yield _layer(directory / ".cursor" / "mcp.json", "project")


def _vscode(search: Search) -> Iterator[Layer]:
    insiders = bool(search.argv) and "insiders" in Path(search.argv[0]).name.lower()
    editor = "Code - Insiders" if insiders else "Code"
    user = search.config_home / editor / "User"
    yield from _extensions_of(search, editor)
    yield _layer(search.home / ".copilot" / "mcp-config.json", "user")
    for directory in (user, *sorted(user.glob("profiles/*"))):
        yield _layer(directory / "settings.json", "user", ("mcp", "servers"))
        yield _layer(directory / "mcp.json", "user", ("servers",))
    for directory in search.project_directories:
        yield _layer(directory / ".mcp.json", "project")
        yield _layer(directory / ".vscode" / "settings.json", "project", ("mcp", "servers"))
        yield _layer(directory / ".vscode" / "mcp.json", "project", ("servers",))


def _windsurf(search: Search) -> Iterator[Layer]:
    yield from _extensions_of(search, "Windsurf")
    yield _layer(search.home / ".codeium" / "windsurf" / "mcp_config.json", "user")


def _zed(search: Search) -> Iterator[Layer]:
    key = ("context_servers",)
    yield _layer(search.xdg_config / "zed" / "settings.json", "user", key)
    for directory in search.project_directories:
        yield _layer(directory / ".zed" / "settings.json", "project", key)


def codex_home(search: Search) -> Path:
    """Return the directory of Codex's own files."""
    return search.variable_path("CODEX_HOME") or search.home / ".codex"


def _codex_overrides(argv: tuple[str, ...]) -> dict[str, Any]:
    """Return the servers that are defined with ``-c`` on the command line, as Codex reads them."""
    values = [one for flag in ("-c", "--config") for one in flag_values(argv, flag)]
    values += [one[2:] for one in argv[1:] if one.startswith("-cmcp_servers")]
    found: dict[str, Any] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or name.split(".")[0] != "mcp_servers":
            continue
        try:
            nested: Any = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            nested = text  # Codex takes what is not TOML as a string
        for key in reversed(name.split(".")):
            nested = {key: nested}
        found = merge_keys(found, nested)
    return found


def _codex(search: Search) -> Iterator[Layer]:
    key = ("mcp_servers",)
    yield _layer(search.root / "etc/codex/config.toml", "system", key, writable=False)
    yield _layer(codex_home(search) / "config.toml", "user", key)
    for directory in _project_trees(search):
        yield _layer(directory / ".codex" / "config.toml", "project", key)
    if search.injects and (given := _codex_overrides(search.argv)):
        yield _inline("-c mcp_servers", json.dumps(given), key)


def gemini_home(search: Search) -> Path:
    """Return the directory of Gemini's own files."""
    return (search.variable_path("GEMINI_CLI_HOME") or search.home) / ".gemini"


def gemini_system_settings(search: Search) -> Path:
    """Return the file with the settings of Gemini's administrator."""
    named = search.variable_path("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
    return named or search.system_wide("gemini-cli", "GeminiCli") / "settings.json"


def _gemini(search: Search) -> Iterator[Layer]:
    yield _layer(gemini_home(search) / "settings.json", "user")
    yield _layer(search.cwd / ".gemini" / "settings.json", "project")
    yield _layer(gemini_system_settings(search), "system", writable=False)


def _opencode(search: Search) -> Iterator[Layer]:
    key = ("mcp",)
    both = ("opencode.json", "opencode.jsonc")
    for name in ("config.json", *both):
        yield _layer(search.xdg_config / "opencode" / name, "user", key)
    named = search.variable_path("OPENCODE_CONFIG")
    if named:
        yield _layer(named, "user", key)
    project = _project_trees(search)
    extra = search.variable_path("OPENCODE_CONFIG_DIR")
    hidden = [directory / ".opencode" for directory in (search.home, *project)]
    for directory in (*project, *hidden, *([extra] if extra else [])):
        for name in both:
            yield _layer(directory / name, "project", key)
    if search.injects and search.env.get("OPENCODE_CONFIG_CONTENT"):
        yield _inline("OPENCODE_CONFIG_CONTENT", search.env["OPENCODE_CONFIG_CONTENT"], key)


def _kilo(search: Search) -> Iterator[Layer]:
    """Return the layers of Kilo, a fork of opencode that also reads opencode's project files."""
    key = ("mcp",)
    names = ("kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc")
    for name in ("config.json", *names):
        yield _layer(search.xdg_config / "kilo" / name, "user", key)
    named = search.variable_path("KILO_CONFIG")
    if named:
        yield _layer(named, "user", key)
    project = _project_trees(search)
    extra = search.variable_path("KILO_CONFIG_DIR")
    hidden = [one / kind for one in (*project, search.home) for kind in (".kilocode", ".kilo")]
    for directory in (*project, *hidden, *([extra] if extra else [])):
        for name in names:
            yield _layer(directory / name, "project", key)
    if search.injects and search.env.get("KILO_CONFIG_CONTENT"):
        yield _inline("KILO_CONFIG_CONTENT", search.env["KILO_CONFIG_CONTENT"], key)


def copilot_home(search: Search) -> Path:
    """Return the directory of Copilot's own files."""
    return search.variable_path("COPILOT_HOME") or search.home / ".copilot"


def _copilot(search: Search) -> Iterator[Layer]:
    yield _layer(copilot_home(search) / "mcp-config.json", "user")
    for directory in _project_trees(search):
        # Copilot reads the first of these that exists.
        yield _layer(directory / ".github" / "mcp.json", "project")
        yield _layer(directory / ".mcp.json", "project")
    for number, value in enumerate(flag_values(search.argv, "--additional-mcp-config"), 1):
        if value.startswith("@"):
            yield _layer(search.cwd / Path(value[1:]).expanduser(), "flag")
        elif search.injects:
            yield _inline(f"--additional-mcp-config {number}", value)


def _qwen(search: Search) -> Iterator[Layer]:
    yield _layer(search.home / ".qwen" / "settings.json", "user")
    yield _layer(search.cwd / ".mcp.json", "project")
    yield _layer(search.cwd / ".qwen" / "settings.json", "project")
    yield from given_configs(search)
    system = search.variable_path("QWEN_CODE_SYSTEM_SETTINGS_PATH")
    if system:
        yield _layer(system, "system", writable=False)


def _qoder(search: Search) -> Iterator[Layer]:
    yield _layer(search.home / ".qoder" / "settings.json", "user")
    yield _layer(search.cwd / ".qoder" / "settings.json", "project")
    yield _layer(search.cwd / ".mcp.json", "project")
    yield _layer(search.cwd / ".qoder" / "settings.local.json", "local")
    yield from given_configs(search)


def _droid(search: Search) -> Iterator[Layer]:
    home = search.variable_path("FACTORY_HOME_OVERRIDE") or search.home
    yield _layer(home / ".factory" / "mcp.json", "user")
    for directory in _project_trees(search):
        yield _layer(directory / ".factory" / "mcp.json", "project")


def _grok(search: Search) -> Iterator[Layer]:
    # Grok also reads the files of Claude Code and Cursor.
    state = claude_code_state(search)
    yield _layer(search.home / ".cursor" / "mcp.json", "user")
    yield _layer(state, "user", lock_directory=True)
    for name in _project_keys(search.cwd):
        yield _layer(state, "local", ("projects", name, "mcpServers"), lock_directory=True)
    for directory in _upward(search.cwd):
        yield _layer(directory / ".cursor" / "mcp.json", "project")
        yield _layer(directory / ".mcp.json", "project")
    key = ("mcp_servers",)
    home = search.variable_path("GROK_HOME") or search.home / ".grok"
    yield _layer(home / "config.toml", "user", key)
    for directory in _project_trees(search):
        yield _layer(directory / ".grok" / "config.toml", "project", key)


def _goose(search: Search) -> Iterator[Layer]:
    yield _layer(search.xdg_config / "goose" / "config.yaml", "user", ("extensions",))


def _amp(search: Search) -> Iterator[Layer]:
    key = ("amp.mcpServers",)  # one key with a dot in it
    yield _layer(search.xdg_config / "amp" / "settings.json", "user", key)
    for directory in _project_trees(search):
        yield _layer(directory / ".amp" / "settings.json", "project", key)
    for value in flag_values(search.argv, "--settings-file"):
        yield _layer(search.cwd / value, "flag", key)


def _cline(search: Search) -> Iterator[Layer]:
    folders = [search.home / ".cline" / "data"]
    folders += [search.cwd / value for value in flag_values(search.argv, "--data-dir")]
    for folder in folders:
        yield _layer(folder / "settings" / "cline_mcp_settings.json", "user")
    named = search.variable_path("CLINE_MCP_SETTINGS_PATH")
    if named:
        yield _layer(named, "user")


def _kiro(search: Search) -> Iterator[Layer]:
    yield from _extensions_of(search, "Kiro")
    yield _layer(search.home / ".kiro" / "settings" / "mcp.json", "user")
    for directory in search.project_directories:
        yield _layer(directory / ".kiro" / "settings" / "mcp.json", "project")


def _junie(search: Search) -> Iterator[Layer]:
    yield _layer(search.home / ".junie" / "mcp" / "mcp.json", "user")
    for directory in search.project_directories:
        yield _layer(directory / ".junie" / "mcp" / "mcp.json", "project")


def _extensions_of(search: Search, editor: str) -> Iterator[Layer]:
    """Return the files of Cline and Roo Code, which run inside VS Code and the editors based on it."""
    storage = search.config_home / editor / "User" / "globalStorage"
    cline, roo = "saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"
    yield _layer(storage / cline / "settings" / "cline_mcp_settings.json", "user")
    yield _layer(storage / roo / "settings" / "mcp_settings.json", "user")
    for directory in search.project_directories:
        yield _layer(directory / ".roo" / "mcp.json", "project")


_PLACES: Final[dict[str, Callable[[Search], Iterator[Layer]]]] = {
    "claude-desktop": _claude_desktop,
    "claude-code": _claude_code,
    "cursor": _cursor,
    "vscode": _vscode,
    "windsurf": _windsurf,
    "zed": _zed,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "kilo": _kilo,
    "copilot": _copilot,
    "qwen": _qwen,
    "qoder": _qoder,
    "droid": _droid,
    "grok": _grok,
    "goose": _goose,
    "amp": _amp,
    "cline": _cline,
    "kiro": _kiro,
    "junie": _junie,
}

_KEYS: Final[dict[str, tuple[KeyPath, ...]]] = {
    "vscode": (("mcp", "servers"), _SERVERS, ("servers",)),
    "zed": (("context_servers",),),
    "codex": (("mcp_servers",),),
    "opencode": (("mcp",),),
    "kilo": (("mcp",),),
    "grok": (("mcp_servers",), _SERVERS),
    "goose": (("extensions",),),
    "amp": (("amp.mcpServers",),),
    # An unknown agent may list its servers under any of these.
    "custom": (_SERVERS, ("servers",), ("context_servers",), ("mcp_servers",), ("mcp",)),
}
"""The keys under which agents list their servers, where they use others than ``mcpServers``."""


def flag_values(argv: tuple[str, ...], flag: str) -> Iterator[str]:
    """Return the values of a flag that takes one or more, written ``--flag a b`` or ``--flag=a``."""
    taking = False
    for argument in argv[1:]:
        if argument.startswith("-"):
            name, equals, value = argument.partition("=")
            taking = name == flag and not equals
            if name == flag and equals:
                yield value
        elif taking:
            yield argument


def git_root(directory: Path) -> Path | None:
    """Return the nearest directory, at or above this one, that contains ``.git``."""
    return next((one for one in (directory, *directory.parents) if (one / ".git").exists()), None)


def _upward(directory: Path) -> tuple[Path, ...]:
    """Return a directory's ancestors and the directory itself, starting at the root."""
    return (*reversed(directory.parents), directory)


def _below_git_root(directory: Path) -> tuple[Path, ...]:
    """Return the directories from the git root down to this one; without a root, only this one."""
    top = git_root(directory)
    if top is None:
        return (directory,)
    return tuple(one for one in _upward(directory) if one == top or top in one.parents)


def _project_trees(search: Search) -> tuple[Path, ...]:
    """Return, for every opened project, the directories from its git root down."""
    trees = (_below_git_root(directory) for directory in search.project_directories)
    return tuple(dict.fromkeys(directory for tree in trees for directory in tree))


def _project_keys(directory: Path) -> tuple[str, ...]:
    """Return the keys under which Claude Code may store a project.

    It uses the git root (for a worktree, the main repository), or else the working directory. We
    look up every ancestor, with and without links resolved: an unused key costs nothing, a
    missing one leaves servers ungoverned.
    """
    chains = [_upward(directory), _upward(directory.resolve())]
    main = main_repository(git_root(directory))
    if main is not None:
        chains.append((main,))
    return tuple(dict.fromkeys(str(one) for chain in chains for one in chain))


def claude_project_keys(directory: Path) -> tuple[str, ...]:
    """Return the keys of the project itself, with and without links resolved."""
    top = git_root(directory)
    own = main_repository(top) or top or directory
    return tuple(dict.fromkeys((str(own), str(own.resolve()))))


_MAX_POINTER: Final = 4096
"""Maximum characters read of a worktree's ``.git`` file; it contains one path, and none is longer."""


def main_repository(top: Path | None) -> Path | None:
    """Return the main repository of a worktree, whose ``.git`` is a file that points there."""
    if top is None or not (top / ".git").is_file():
        return None
    try:
        with (top / ".git").open(encoding="utf-8") as pointer:
            text = pointer.read(_MAX_POINTER).strip()
    except (OSError, UnicodeDecodeError):
        return None
    target = Path(text.removeprefix("gitdir:").strip())
    if target.parent.name == "worktrees" and target.parent.parent.name == ".git":
        return (top / target.parent.parent.parent).resolve()
    return None
