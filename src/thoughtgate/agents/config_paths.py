"""The paths of each agent's config files, on Linux and macOS.

Every function returns layers from the lowest to the highest precedence. This module uses the
file system only to find a git root and to resolve links; it reads no config.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.entries import Format, KeyPath, Layer
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
        """Return the directory of a program's system-wide settings, by its name there."""
        if self.platform == "darwin":
            return self.root / "Library" / "Application Support" / macos
        return self.root / "etc" / linux

    @property
    def project_directories(self) -> tuple[Path, ...]:
        """The working directory, and the directories that the command line opens."""
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
    return tuple(dict.fromkeys(_PLACES[search.agent_type](search)))


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a prompt on the command line can be longer than a file name may be
        return False


def _layer(path: Path, scope: str, key: KeyPath = _SERVERS, **more: Any) -> Layer:
    form: Format = "toml" if path.suffix == ".toml" else "json"
    return Layer(path, Path(os.path.realpath(path)), scope, key, form, **more)


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
    directory = search.variable_path("CLAUDE_CONFIG_DIR") or search.home
    user = directory / ".claude.json"
    own: dict[str, Any] = {"strict": True, "lock_directory": True}
    yield _layer(user, "user", **own)
    for parent in _upward(search.cwd):
        yield _layer(parent / ".mcp.json", "project", strict=True)
    for key in _project_keys(search.cwd):
        yield _layer(user, "local", ("projects", key, "mcpServers"), **own)
    for value in flag_values(search.argv, "--mcp-config"):
        if not value.lstrip().startswith("{"):
            yield _layer(search.cwd / value, "flag", strict=True)
    managed = search.system_wide("claude-code", "ClaudeCode") / "managed-mcp.json"
    yield _layer(managed, "system", strict=True, writable=False)


def _cursor(search: Search) -> Iterator[Layer]:
    yield _layer(search.home / ".cursor" / "mcp.json", "user")
    for directory in search.project_directories:
        yield _layer(directory / ".cursor" / "mcp.json", "project")


def _vscode(search: Search) -> Iterator[Layer]:
    insiders = bool(search.argv) and "insiders" in Path(search.argv[0]).name.lower()
    user = search.config_home / ("Code - Insiders" if insiders else "Code") / "User"
    yield _layer(search.home / ".copilot" / "mcp-config.json", "user")
    for directory in (user, *sorted(user.glob("profiles/*"))):
        yield _layer(directory / "settings.json", "user", ("mcp", "servers"))
        yield _layer(directory / "mcp.json", "user", ("servers",))
    for directory in search.project_directories:
        yield _layer(directory / ".mcp.json", "project")
        yield _layer(directory / ".vscode" / "settings.json", "project", ("mcp", "servers"))
        yield _layer(directory / ".vscode" / "mcp.json", "project", ("servers",))


def _windsurf(search: Search) -> Iterator[Layer]:
    yield _layer(search.home / ".codeium" / "windsurf" / "mcp_config.json", "user")


def _zed(search: Search) -> Iterator[Layer]:
    key = ("context_servers",)
    yield _layer(search.xdg_config / "zed" / "settings.json", "user", key)
    for directory in search.project_directories:
        yield _layer(directory / ".zed" / "settings.json", "project", key)


def _codex(search: Search) -> Iterator[Layer]:
    key = ("mcp_servers",)
    yield _layer(search.root / "etc/codex/config.toml", "system", key, writable=False)
    home = search.variable_path("CODEX_HOME") or search.home / ".codex"
    yield _layer(home / "config.toml", "user", key)
    for directory in _project_trees(search):
        yield _layer(directory / ".codex" / "config.toml", "project", key)


def _gemini(search: Search) -> Iterator[Layer]:
    yield _layer(search.home / ".gemini" / "settings.json", "user")
    yield _layer(search.cwd / ".gemini" / "settings.json", "project")
    system = search.variable_path("GEMINI_CLI_SYSTEM_SETTINGS_PATH")
    path = system or search.system_wide("gemini-cli", "GeminiCli") / "settings.json"
    yield _layer(path, "system", writable=False)


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
}

_KEYS: Final[dict[str, tuple[KeyPath, ...]]] = {
    "vscode": (("mcp", "servers"), _SERVERS, ("servers",)),
    "zed": (("context_servers",),),
    "codex": (("mcp_servers",),),
    "opencode": (("mcp",),),
    # An unknown agent may list its servers under any of these.
    "custom": (_SERVERS, ("servers",), ("context_servers",), ("mcp_servers",), ("mcp",)),
}
"""The keys of the tables of servers, for agents that use others than ``mcpServers``."""


def flag_values(argv: tuple[str, ...], flag: str) -> Iterator[str]:
    """Return the values of a flag that takes one or more, as ``--flag a b`` or ``--flag=a``."""
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
    main = _main_repository(git_root(directory))
    if main is not None:
        chains.append((main,))
    return tuple(dict.fromkeys(str(one) for chain in chains for one in chain))


_MAX_POINTER: Final = 4096
"""A worktree's ``.git`` file contains one path, and no path is longer."""


def _main_repository(top: Path | None) -> Path | None:
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
