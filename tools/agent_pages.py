"""Render a page for each agent in the catalogue: ``docs/guides/agents/TYPE.md``.

The facts come from the code that ``wrap`` and ``install`` use. What the code cannot tell is in
``NOTES``; a test compares both with the installed programs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from thoughtgate.agents.catalog import AGENTS, Agent, usual_way
from thoughtgate.agents.config_paths import Search, config_layers
from thoughtgate.agents.entries import Layer

HOME: Final = Path("/home/you")
PROJECT: Final = Path("/project")

PLUGINS: Final = "servers of its plugins, which `wrap` names"
EDITOR: Final = "servers that an extension of the editor adds without a config file"


class Note(NamedTuple):
    """What is known about one agent besides the code."""

    told: str = ""
    """How it is given governed servers at its start."""
    consent: str = ""
    """Which of the agent's own approvals count for servers of a project."""
    not_governed: tuple[str, ...] = ()
    more: str = ""


NOTES: Final = {
    "claude-code": Note(
        "`--strict-mcp-config` with `--mcp-config=FILE`, where FILE is private and is removed at the end. Your own `--mcp-config`, `--plugin-dir` and installed plugins are included.",
        "A server in `.mcp.json` is included only if you approved it: `enabledMcpjsonServers` or `enableAllProjectMcpServers` in your own settings, or in those of a project whose folder you trusted. Servers that you rejected or that `deniedMcpServers` names are left out.",
        (
            "connectors of claude.ai",
            "servers in the front matter of subagents: they are not started under `wrap`, and `wrap` names the file",
            "the copy of Claude Code inside an IDE extension, which `wrap` does not start: use `thoughtgate install`",
        ),
        "A background session (`--bg`) loses its servers when the wrapped command ends.",
    ),
    "codex": Note(
        "one `-c mcp_servers=…` that lists every server; variables and headers stay in the files. Servers of plugins are included.",
        "Servers of a project are included if the `trust_level` of its folder is `trusted` in your `config.toml`.",
        ("servers of plugins that are remote or have variables of their own; `wrap` names them",),
    ),
    "opencode": Note(
        "the variable `OPENCODE_CONFIG_CONTENT`, which opencode merges over its files. It contains command lines of shims and no secrets.",
        "opencode never asks for approval, so every server in its files is included. One that a file disables stays off for the whole run, even if you switch it on inside opencode: enable it in the file.",
        (
            "servers that a plugin adds; `wrap` warns if there are plugins, and `--pure` leaves them out",
            "the servers of an opencode server that you attach to",
        ),
    ),
    "kilo": Note(
        "the variable `KILO_CONFIG_CONTENT`, which Kilo merges over its files. It contains command lines of shims and no secrets.",
        "Kilo never asks for approval, so every server in its files is included. One that a file disables stays off for the whole run, even if you switch it on inside Kilo: enable it in the file.",
        (
            "servers that a plugin adds; `wrap` warns if there are plugins, and `--pure` leaves them out",
            "the servers of a Kilo server that you attach to",
            "in a linked git work tree, servers in `.kilo` and `.kilocode` of the main checkout; `wrap` names the files",
        ),
    ),
    "qwen": Note(
        "`--mcp-config=FILE` with `--allowed-mcp-server-names`, where FILE is private and is removed at the end.",
        "A server of a project is included only if `~/.qwen/mcpApprovals.json` approves exactly this entry. `mcp.excluded` and `mcp.allowed` are respected.",
        ("servers of extensions: they are not started under `wrap`",),
    ),
    "qoder": Note(
        "`--strict-mcp-config` with `--mcp-config=FILE`, where FILE is private and is removed at the end. Your own `--mcp-config` is included.",
        "With a prompt (`-p`), Qoder starts the servers of a project without asking, so they are included. In an interactive session, the files are rewritten, so that Qoder asks as usual.",
        ("servers of plugins: they are not started under `wrap`",),
    ),
    "copilot": Note(
        "`--additional-mcp-config=@FILE`, where FILE is private and is removed at the end. Your own `--additional-mcp-config` is included.",
        "Servers of a project are included if a folder in `trustedFolders` of `~/.copilot/config.json` contains the file. `.github/mcp.json` counts only if there is no `.mcp.json`. `disabledMcpServers` is respected.",
        (
            "the built-in GitHub server; `--disable-builtin-mcps` switches it off",
            PLUGINS,
            "servers in the front matter of custom agents",
        ),
    ),
    "gemini": Note(
        "a system settings file, named by `GEMINI_CLI_SYSTEM_SETTINGS_PATH`, with the administrator's own settings included. Gemini CLI accepts it only if nobody but root can change it.",
        "As without the gate, Gemini CLI starts nothing in a folder that you do not trust, and applies `mcp.allowed` and `mcp.excluded`.",
        ("servers of extensions, which `wrap` names",),
    ),
    "grok": Note(
        not_governed=(
            "servers of a project whose folder is not trusted: Grok does not start them",
        ),
        more="Grok also reads the files of Claude Code and Cursor, so those are rewritten too.",
    ),
    "goose": Note(
        not_governed=(
            "built-in extensions and those with a `uri`",
            "extensions given with `--with-extension`, which `wrap` names",
        )
    ),
    "amp": Note(not_governed=("servers given with `--mcp-config`, which `wrap` names",)),
    "cline": Note(
        not_governed=(
            "a hub that is already running: it keeps the servers that it was started with",
        )
    ),
    "cursor": Note(not_governed=(EDITOR,)),
    "vscode": Note(
        not_governed=(EDITOR, "servers of development containers and other machines"),
        more="The extensions Cline and Roo Code have their own files, which are governed too.",
    ),
    "windsurf": Note(not_governed=(EDITOR,)),
    "zed": Note(
        not_governed=("servers of Zed's extensions, which have no command in the settings",)
    ),
    "kiro": Note(not_governed=(EDITOR,)),
    "claude-desktop": Note(not_governed=("connectors and desktop extensions",)),
}

SWITCHES: Final = {
    "disabled": "`disabled: true`",
    "enabled": "`enabled: false`",
    "either": "`disabled: true` or `enabled: false`",
    "ignored": "nothing in the entry: it starts every server in its files",
}
REFERENCES: Final = {
    "none": "none",
    "shell": "`${V}`, `${V:-default}`",
    "dollar": "`$V`, `${V}`",
    "env": "`${env:V}`",
    "brace-env": "`{env:V}`",
}
MERGES: Final = {
    "entry": "the entry in the last of the files below replaces the others",
    "keys": "the keys of all files are merged; the last of the files below wins",
}


def render_pages() -> Iterator[tuple[str, str]]:
    """Return the name and the text of each page."""
    for agent in AGENTS.values():
        if agent.type != "custom":
            yield agent.type, _page(agent, NOTES.get(agent.type, Note()))


def files_of(agent: Agent) -> tuple[Layer, ...]:
    """Return the files that the page of an agent lists, for a made-up home and project."""
    argv = agent.commands[:1]
    return config_layers(Search(agent.type, {}, PROJECT, HOME, argv=argv, root=Path("/")))


def _page(agent: Agent, note: Note) -> str:
    command = f"thoughtgate wrap -- {agent.commands[0]}"
    parts = [
        f"# {agent.name}\n\n<!-- Generated by tools/agent_pages.py; a test fails when it is stale. -->\n",
        f"`{command}` puts the MCP servers of {agent.name} behind the gate for one run; `thoughtgate install {agent.type}` does it for good.\n",
        "| | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in _facts(agent)),
        "## How it is governed\n",
        _ways(agent, note),
        "## Files\n",
        f"These files are governed, lowest precedence first (on macOS, {agent.name} may keep those below `~/.config` in `~/Library/Application Support`):\n"
        if any(".config" in str(layer.path) for layer in files_of(agent))
        else "These files are governed, lowest precedence first:\n",
        "| scope | file | servers under |\n|---|---|---|\n" + "".join(_rows(agent)),
        "## What is not governed\n",
        "".join(f"- {one}\n" for one in _not_governed(note)),
        "## Resuming a session outside `wrap`\n",
        _resume(agent),
    ]
    return "\n".join(parts)


def _facts(agent: Agent) -> Iterator[tuple[str, str]]:
    yield "commands", ", ".join(f"`{one}`" for one in agent.commands)
    if agent.packages:
        yield (
            "packages, for `npx` and similar commands",
            ", ".join(f"`{one}`" for one in agent.packages),
        )
    yield "a server is disabled with", SWITCHES[agent.off_switch]
    yield "variable references", REFERENCES[agent.syntax]
    yield "the same name in two files", MERGES[agent.merge]


def _ways(agent: Agent, note: Note) -> str:
    rewriting = f"{agent.name} takes its servers only from its files, so `wrap` rewrites them during the run and restores them byte for byte. In a git work tree, the rewritten files are kept out of commits.\n"
    text = rewriting
    if usual_way(agent.type) == "inject":
        text = f"{agent.name} gets the governed servers at startup, through {note.told}\nNo file changes, and any number of sessions run at once.\n"
        if agent.rewritten:
            text += (
                f"The files are rewritten instead, and restored at the end, {agent.rewritten}.\n"
            )
    if agent.windowed:
        text += "The command opens a window and may exit before the window is closed; `wrap` follows the window.\n"
    for more in (note.consent, note.more):
        text += f"\n{more}\n" if more else ""
    return text


def _rows(agent: Agent) -> dict[str, None]:
    rows: dict[str, None] = {}
    for layer in files_of(agent):
        key = ".".join("DIRECTORY" if one.startswith("/") else one for one in layer.key)
        never = "" if layer.writable else " (of an administrator; never changed)"
        rows[f"| {layer.scope} | {_place(layer.path)}{never} | `{key}` |\n"] = None
    return rows


def _place(path: Path) -> str:
    if path.is_relative_to(HOME):
        return f"`~/{path.relative_to(HOME)}`"
    if path.is_relative_to(PROJECT):
        return f"`{path.relative_to(PROJECT)}` of the project"
    if path.parent in (Path("/"), Path("/.cursor")):
        return f"`{str(path)[1:]}` of each directory above the project"
    return f"`{path}`"


def _not_governed(note: Note) -> tuple[str, ...]:
    return (
        *note.not_governed,
        "tools that are part of the agent, such as its shell and its editor",
    )


def _resume(agent: Agent) -> str:
    files = "its files" if usual_way(agent.type) == "inject" else "its restored files"
    return (
        f"A session that began under `wrap` and continues without it uses the servers in {files}, without the gate.\n"
        f"Resume it with `thoughtgate wrap -- {agent.commands[0]} …` as well, or use `thoughtgate install {agent.type}`.\n"
    )
