"""Detection of servers that rewriting config files cannot govern.

They are defined on the agent's command line, in an environment variable, or by plugins and
extensions. The caller warns about them.
"""

import re
import shutil
from codecs import BOM_UTF8
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.atomic import read_regular
from thoughtgate.agents.config_paths import (
    Search,
    claude_settings_directory,
    copilot_home,
    flag_values,
    gemini_home,
    git_root,
    main_repository,
)
from thoughtgate.agents.entries import UngovernedServer
from thoughtgate.agents.injection.codex_plugins import plugins_with_servers
from thoughtgate.agents.injection.records import read_json

_MAX_DEFINITION: Final = 4 * 1024 * 1024
"""Maximum bytes of a subagent's definition; real ones have a few kilobytes."""

_MAX_SUBAGENTS: Final = 500
"""Maximum files read below one folder; they are read whenever the config files are checked."""

_OWN_SERVERS: Final = re.compile(rb"(?i)mcp-?servers|\\[xuU]")
"""The key of a subagent's servers, or an escape with which YAML could write it."""

_KILO_FILES: Final = ("kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc", "mcp.json")
_MAIN_CHECKOUT: Final = "a file of the main checkout, which Kilo reads in this git work tree too"

_AS_TEXT: Final = "servers given as JSON text; put them into a file"


def find_ungoverned_servers(search: Search) -> tuple[UngovernedServer, ...]:
    """Return the sources of servers that the agent would start without the gate."""
    if search.config_path is not None or search.injects:  # the injection names them itself
        return ()
    finders = {
        "claude-code": _claude_code,
        "codex": _codex,
        "gemini": _gemini,
        "opencode": _opencode,
        "kilo": _kilo,
        "copilot": _copilot,
        "qwen": _qwen,
        "goose": _goose,
        "amp": _amp,
    }
    finder = finders.get(search.agent_type)
    return tuple(finder(search)) if finder else ()


def _claude_code(search: Search) -> Iterator[UngovernedServer]:
    for value in flag_values(search.argv, "--mcp-config"):
        if value.lstrip().startswith("{"):
            yield UngovernedServer("--mcp-config", _AS_TEXT)
    home = claude_settings_directory(search)
    installed = read_json(home / "plugins" / "installed_plugins.json")
    for directory in sorted(set(_install_paths(installed))):
        if (Path(directory) / ".mcp.json").is_file():
            yield UngovernedServer(str(Path(directory) / ".mcp.json"), "servers of a plugin")
    if "--strict-mcp-config" not in search.argv:
        yield from subagents(home, *(one / ".claude" for one in (search.cwd, *search.cwd.parents)))


def subagents(*folders: Path) -> Iterator[UngovernedServer]:
    """Return the definitions of subagents, below some folders, that have servers of their own."""
    for folder in dict.fromkeys(folders):
        # One more than the maximum shows that there are more, without walking a huge tree.
        found = [*islice((folder / "agents").rglob("*.md"), _MAX_SUBAGENTS + 1)]
        for file in sorted(found[:_MAX_SUBAGENTS]):
            if _has_own_servers(file):
                yield UngovernedServer(str(file), "servers of a subagent")
        if len(found) > _MAX_SUBAGENTS:
            yield UngovernedServer(str(folder / "agents"), "more subagents than the gate reads")


def _has_own_servers(file: Path) -> bool:
    """Tell whether a subagent's head may define servers; YAML can write a key in many ways."""
    try:
        text = read_regular(file, _MAX_DEFINITION)
    except OSError:  # the agent cannot read it either
        return False
    head = text.removeprefix(BOM_UTF8).lstrip().removeprefix(b"---").partition(b"\n---")[0]
    return _OWN_SERVERS.search(head) is not None


def _codex(search: Search) -> Iterator[UngovernedServer]:
    given = [(flag, one) for flag in ("-c", "--config") for one in flag_values(search.argv, flag)]
    # The value may follow the short flag without a space.
    given += [("-c", one[2:]) for one in search.argv[1:] if one.startswith("-cmcp_servers")]
    for flag, value in given:
        if value.startswith("mcp_servers"):
            name = ".".join(value.partition("=")[0].split(".")[:2])
            yield UngovernedServer(f"{flag} {name}", "a server defined on the command line")
    yield from plugins_with_servers(search)


def _gemini(search: Search) -> Iterator[UngovernedServer]:
    yield from extensions(gemini_home(search), "gemini-extension.json")


def _qwen(search: Search) -> Iterator[UngovernedServer]:
    for value in flag_values(search.argv, "--mcp-config"):
        if value.lstrip().startswith("{"):
            yield UngovernedServer("--mcp-config", _AS_TEXT)
    yield from extensions(search.home / ".qwen", "qwen-extension.json")


def extensions(home: Path, name: str) -> Iterator[UngovernedServer]:
    """Return the extensions of an agent that have servers, by the name of their manifests."""
    for manifest in sorted((home / "extensions").glob(f"*/{name}")):
        if _has_servers(manifest):
            yield UngovernedServer(str(manifest), "servers of an extension")


def _opencode(search: Search) -> Iterator[UngovernedServer]:
    if '"mcp"' in search.env.get("OPENCODE_CONFIG_CONTENT", ""):
        yield UngovernedServer("OPENCODE_CONFIG_CONTENT", "servers in an environment variable")


def _kilo(search: Search) -> Iterator[UngovernedServer]:
    if '"mcp"' in search.env.get("KILO_CONFIG_CONTENT", ""):
        yield UngovernedServer("KILO_CONFIG_CONTENT", "servers in an environment variable")
    yield from kilo_files(search)


def kilo_files(search: Search) -> Iterator[UngovernedServer]:
    """Return the files with servers that Kilo reads and the gate does not.

    These are ``mcp.json`` and ``mcp/`` of its former format, and from a linked git work tree the
    folders of the main checkout.
    """
    main = main_repository(git_root(search.cwd))
    for folder in (main / ".kilocode", main / ".kilo") if main is not None else ():
        found = [folder / name for name in _KILO_FILES if (folder / name).is_file()]
        yield from (UngovernedServer(str(file), _MAIN_CHECKOUT) for file in found)
    reason = "servers in Kilo's former format; move them to kilo.json"
    for base in dict.fromkeys((search.home, search.cwd)):
        for folder in (base / ".kilocode", base / ".kilo"):
            files = [folder / "mcp.json"] if _has_servers(folder / "mcp.json") else []
            files += [one for one in sorted((folder / "mcp").glob("*.json")) if read_json(one)]
            yield from (UngovernedServer(str(file), reason) for file in files)


def _copilot(search: Search) -> Iterator[UngovernedServer]:
    for value in flag_values(search.argv, "--additional-mcp-config"):
        if not value.startswith("@"):
            yield UngovernedServer("--additional-mcp-config", _AS_TEXT)
    yield from copilot_own(search)


def copilot_own(search: Search) -> Iterator[UngovernedServer]:
    """Return the sources of Copilot's servers besides its config files and its command line."""
    yield from _copilot_plugins(search)
    yield from _copilot_builtin(search)
    places = (search.cwd, *search.cwd.parents)
    projects = [one / name for one in places for name in (".github", ".claude")]
    yield from subagents(copilot_home(search), *projects)


def _copilot_plugins(search: Search) -> Iterator[UngovernedServer]:
    folders = sorted((copilot_home(search) / "installed-plugins").glob("*/*"))
    folders += [search.cwd / value for value in flag_values(search.argv, "--plugin-dir")]
    for folder in folders:
        if (folder / ".mcp.json").is_file() or _has_servers(folder / "plugin.json"):
            yield UngovernedServer(str(folder), "servers of a plugin")


def _copilot_builtin(search: Search) -> Iterator[UngovernedServer]:
    # Without a command line (`doctor`, `status`), report it only if Copilot is installed.
    program = shutil.which("copilot", path=search.env.get("PATH", ""))
    is_here = search.argv or program or copilot_home(search).is_dir()
    if is_here and "--disable-builtin-mcps" not in search.argv:
        yield UngovernedServer(
            "github-mcp-server", "built into Copilot; --disable-builtin-mcps switches it off"
        )


def _goose(search: Search) -> Iterator[UngovernedServer]:
    for flag in ("--with-extension", "--with-streamable-http-extension", "--with-builtin"):
        if any(flag_values(search.argv, flag)):
            yield UngovernedServer(flag, "extensions given on the command line")


def _amp(search: Search) -> Iterator[UngovernedServer]:
    if any(flag_values(search.argv, "--mcp-config")):
        yield UngovernedServer("--mcp-config", "servers given on the command line")


def _has_servers(manifest: Path) -> bool:
    return bool(read_json(manifest).get("mcpServers"))


def _install_paths(values: Any) -> Iterator[str]:
    if isinstance(values, dict):
        path = values.get("installPath")
        if isinstance(path, str):
            yield path
        for item in values.values():
            yield from _install_paths(item)
    elif isinstance(values, list):
        for item in values:
            yield from _install_paths(item)
